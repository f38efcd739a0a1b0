//! A stream of bytes in each direction between two servers, over one-sided writes (`docs/internals/one-sided.md`). Pure.
//!
//! Each side registers memory with slots for the other's records, and stages its own records in memory of the same shape. A
//! record is one write of a slot, with 32 bits that the other side's completion queue shows. Writes may land in any order.
//!
//! - [`record`]: the bytes of a slot
//! - [`sender`]: records that are under way, and the room that is left
//! - [`receiver`]: records that have arrived, in the order of their numbers
//! - [`side`]: both, with credits and sleep
//!
//! There is no memory registration, completion queue or clock inside: the caller writes, polls and keeps time.

mod receiver;
mod record;
mod sender;
mod side;

pub use record::{RECORD_BYTES_MAX, SLOT_BYTES};
pub use side::{Side, Write};

use thiserror::Error;

/// Slots of a ring. With `SLOT_BYTES` a ring takes a mebibyte.
pub const SLOTS: u64 = 64;
/// Bytes of a ring's memory, and of the memory in which a side stages its records.
pub const RING_BYTES: usize = SLOTS as usize * SLOT_BYTES;
/// The least slots that a ring may have: records with bytes leave some to credits.
pub const SLOTS_MIN: u64 = 16;

/// The other side cannot have written what arrived. The connection ends: nothing behind it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
    #[error("record {expected} came where none was due: the ring has no such slot free, or has it already")]
    Unexpected { expected: u64 },
    #[error("slot of record {expected}: {what}")]
    Damaged { expected: u64, what: &'static str },
}
