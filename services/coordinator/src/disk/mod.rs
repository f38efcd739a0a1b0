//! The member's disk.
//!
//! - `log_file`: the log, as a file
//! - `writer`: the thread that writes it, while the coordinator goes on

mod log_file;
mod writer;

pub use log_file::{DurableLog, LogError, Opened, SnapshotBegun, SnapshotWritten};
pub use writer::{Disk, Done, Order, SnapshotOrder};
