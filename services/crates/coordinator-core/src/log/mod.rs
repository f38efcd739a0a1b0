//! The durable log of one member, as bytes. `services/coordinator/src/disk` has it on a disk.
//!
//! - `format`: records, to bytes
//! - `scan`: bytes, to what they hold; `former`: the same for logs of before the quorum
//! - `mark`: how far it had been synced
//! - `replay`: commands, to the state

mod format;
mod former;
mod mark;
mod replay;
mod scan;

pub use format::{Base, encode_base, encode_base_of, encode_state, encode_writes, header};
pub use former::Former;
pub use mark::{BEGINNING_BYTES, MARK_BYTES, Mark};
pub use replay::{Difference, Replay};
pub use scan::{Contents, MemberDisk, Scanned, scan};
