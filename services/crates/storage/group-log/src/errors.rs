//! Errors of the group logs, one type for each operation.

use std::io;
use std::path::PathBuf;

use crate::format::LogLocation;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("group logs in {0} are in use by another process")]
    Locked(PathBuf),
    #[error("group logs: {0}")]
    Mismatched(String),
    #[error("cannot {what} in the group logs: {source}")]
    Io { what: &'static str, source: io::Error },
}

#[derive(Debug, thiserror::Error)]
pub enum GroupLogReadError {
    #[error("the record's file was trimmed")]
    Released,
    #[error("the record in file {:08x} at {} is damaged; fetch it from another replica", .0.file, .0.position)]
    Damaged(LogLocation),
    #[error("cannot read the group log: {0}")]
    Io(io::Error),
}
