//! The durable log of commands, as bytes. `services/coordinator/src/log_file.rs` has it on a disk.
//!
//! - `format`: records, to bytes
//! - `scan`: bytes, to what they hold
//! - `replay`: what they hold, to the state

mod format;
mod replay;
mod scan;

pub use format::{encode_batch, encode_snapshot, header};
pub use replay::{Difference, replay};
pub use scan::{Recovered, Scanned, scan};
