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

mod fault;
mod receiver;
mod record;
mod sender;
mod shape;
mod side;

pub use fault::Fault;
pub use record::{RECORD_BYTES_MAX, SLOT_BYTES};
pub use shape::{RING_BYTES, SLOTS};
pub use side::{Side, Write};
