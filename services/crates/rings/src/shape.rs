//! The shape of a ring.

use crate::record::SLOT_BYTES;

/// Slots of a ring. With `SLOT_BYTES` a ring takes a mebibyte.
pub const SLOTS: u64 = 64;
/// Bytes of a ring's memory, and of the memory in which a side stages its records.
pub const RING_BYTES: usize = SLOTS as usize * SLOT_BYTES;
/// The least slots that a ring may have: records with bytes leave some to credits.
pub const SLOTS_MIN: u64 = 16;
