//! Upstream: agreeing with the predecessor on where the logs part, taking its batches in order, and acknowledging to
//! the head.

mod agreement;
mod head_acks;

pub(crate) use agreement::{Agreed, Fits, Upstream};
pub(crate) use head_acks::HeadAcks;
