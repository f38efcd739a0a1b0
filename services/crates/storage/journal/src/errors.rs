//! Errors of the journal, one type for each operation.

use std::path::PathBuf;
use std::sync::Arc;

use crate::record::Location;

/// Why a record was refused. No part of it was written.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SubmitError {
    /// Back-pressure: `Event::Room` follows.
    #[error("the journal's buffer is full until the next sync")]
    Busy,
    /// `Event::Room` follows when space was freed.
    #[error("the disk is full: {0}; free space or release old segments")]
    DiskFull(Arc<str>),
    #[error("the journal failed and takes nothing more: {0}; replace the disk and restart the server")]
    Failed(Arc<str>),
    #[error("a record of {bytes} bytes is longer than {max}")]
    TooLong { bytes: usize, max: usize },
    #[error("the journal is closing")]
    Closing,
}

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("journal directory {0} is in use by another process")]
    Locked(PathBuf),
    #[error("journal options do not fit together")]
    Options,
    #[error("cannot {what} in the journal directory: {source}")]
    Io {
        what: &'static str,
        source: std::io::Error,
    },
}

#[derive(Debug, thiserror::Error)]
pub enum JournalReadError {
    #[error("the record's segment was released")]
    Released,
    #[error("the record at {0} is damaged; fetch it from another replica")]
    Damaged(Location),
    #[error("cannot read {location}: {source}")]
    Io {
        location: Location,
        source: std::io::Error,
    },
}
