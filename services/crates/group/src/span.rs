//! A traced batch's time at one replica.

use quorate_types::{Epoch, Index};
use quorate_wire::TraceContext;

/// A span that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    pub kind: SpanKind,
    pub trace: TraceContext,
    /// Wall clock.
    pub began_us: u64,
    pub ended_us: u64,
    pub epoch: Epoch,
    pub index: Index,
    pub entry_count: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpanKind {
    /// At the head, from arrival to commitment.
    Order,
    /// At a follower, until it holds the batch.
    Replicate,
}
