//! The reason why a connection ends.

use thiserror::Error;

/// The other side cannot have written what arrived. The connection ends: nothing behind it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Fault {
    #[error("record {expected} came where none was due: the ring has no such slot free, or has it already")]
    Unexpected { expected: u64 },
    #[error("slot of record {expected}: {what}")]
    Damaged { expected: u64, what: &'static str },
}
