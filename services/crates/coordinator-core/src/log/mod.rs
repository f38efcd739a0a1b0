//! The durable log of commands, as bytes. `services/coordinator/src/log_file.rs` has it on a disk.
//!
//! - `format`: records, to bytes
//! - `scan`: bytes, to what they hold
//! - `mark`: how far it had been synced
//! - `replay`: what they hold, to the state

mod format;
mod mark;
mod replay;
mod scan;

pub use format::{encode_batch, encode_snapshot, header};
pub use mark::{BEGINNING_BYTES, MARK_BYTES, Mark};
pub use replay::{Difference, replay};
pub use scan::{Recovered, Scanned, scan};
