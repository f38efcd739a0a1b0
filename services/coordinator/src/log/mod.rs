//! The durable log of commands.
//!
//! - `format`: records, to bytes
//! - `scan`: bytes, to what they hold
//! - `file`: the log on a disk

mod file;
mod format;
mod scan;

pub use file::{DurableLog, LogError};
pub use format::{encode_batch, encode_snapshot, header};
pub use scan::{Recovered, Scanned, scan};
