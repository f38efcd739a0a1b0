//! The head's part: it orders appends, learns from the ring what the chain has, and answers when that is certain.
//!
//! A *ring pass* is a number that the head sends down the chain and that comes back with the acknowledgements. When it
//! is back, every replica of the chain was still in the head's epoch after the pass had begun. No later head can have
//! committed anything before that. One pass is under way at a time; questions that come meanwhile share the next one.
//!
//! - `judge`: order an append, recognise it as a retry, or refuse it
//! - `waiters`, `questions`, `refusals`: clients that wait for commitment, for a ring pass, for a refusal's premise
//! - `ring`: what the chain has acknowledged
//! - `lead`: the head's turn, at the end of a run of events
//! - `isolation`: a head that reaches nobody

mod headship;
mod isolation;
mod judge;
mod lead;
mod questions;
mod refusals;
mod ring;
mod waiters;

pub(crate) use headship::Headship;
pub(crate) use isolation::IsolationWatch;
pub(crate) use judge::{Judgement, order};
pub(crate) use lead::Lead;
pub(crate) use ring::acknowledges;
