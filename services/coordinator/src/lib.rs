//! The coordinator's process. Its decisions are in `crates/coordinator-core`.
//!
//! - [`shell`]: sockets, HTTP, clock, keys around them
//! - [`disk`]: the log on a disk
//! - [`operator`]: commands of operators
//! - [`options`], [`exit`]: flags, exit codes

pub mod disk;
pub mod exit;
pub mod operator;
pub mod options;
pub mod shell;
