//! The coordinator's process. Its decisions are in `crates/coordinator-core`.
//!
//! - [`shell`]: sockets, HTTP, clock, keys around them
//! - [`log_file`]: the log of commands on a disk
//! - [`options`], [`exit`]: flags, exit codes

pub mod exit;
pub mod log_file;
pub mod options;
pub mod shell;
