//! Spans of sampled appends: one at the head from arrival to commitment, one at each follower until it holds the
//! batch. Without an exporter, or without a sampled trace, this costs a comparison.

use std::collections::VecDeque;

use quorate_chain::{Replica, ReplicaEvent};
use quorate_types::limits::TELEMETRY_TRACED_BATCHES_MAX;
use quorate_types::{Index, Offset};
use quorate_wire::{TraceContext, peer};

use crate::output::{Output, Outputs};
use crate::span::{Span, SpanKind};
use crate::turn::Turn;

/// W3C: the caller may have recorded the trace.
const FLAG_SAMPLED: u8 = 1;

/// Batches of sampled traces that are under way here, oldest first.
#[derive(Debug, Default)]
pub(crate) struct Spans {
    under_way: VecDeque<(Span, Offset)>,
}

/// A batch that comes with a sampled trace, before it is in the log.
pub(crate) struct Arriving {
    kind: SpanKind,
    trace: TraceContext,
    index: Index,
    began_us: u64,
}

impl Spans {
    /// The trace of the batch that this event would add to the log, if it is sampled and somebody exports spans.
    pub fn arriving(replica: &Replica, turn: &Turn, event: &ReplicaEvent) -> Option<Arriving> {
        if !turn.exports_spans {
            return None;
        }
        let (kind, trace, began_us) = match event {
            ReplicaEvent::Append(request) => (SpanKind::Order, request.trace?, request.wall_us),
            ReplicaEvent::Peer {
                message: peer::Message::Replicate(replicate),
                ..
            } => (SpanKind::Replicate, replicate.batch.trace?, turn.wall_us),
            _ => return None,
        };
        let index = replica.log().last_index() + 1;
        (trace.flags & FLAG_SAMPLED != 0).then_some(Arriving {
            kind,
            trace,
            index,
            began_us,
        })
    }

    /// Begins the batch's span, if the log took it.
    pub fn begin(&mut self, replica: &Replica, arriving: Arriving) {
        let Arriving {
            kind,
            trace,
            index,
            began_us,
        } = arriving;
        let Some(header) = replica.log().header(index) else {
            return;
        };
        if self.under_way.len() >= TELEMETRY_TRACED_BATCHES_MAX {
            return;
        }
        let (epoch, entry_count) = (header.epoch, header.entry_count);
        let span = Span {
            kind,
            trace,
            began_us,
            ended_us: began_us,
            epoch,
            index,
            entry_count,
        };
        self.under_way.push_back((span, header.end_offset()));
    }

    /// Ends the spans of batches that are committed (at the head) or held (at a follower).
    pub fn end(&mut self, replica: &Replica, turn: &Turn, out: &mut Outputs) {
        if self.under_way.is_empty() {
            return;
        }
        let log = replica.log();
        let (committed, held) = (replica.commit_offset(), replica.durable_offset());
        self.under_way.retain(|(span, end_offset)| {
            let is_other = log
                .header(span.index)
                .is_some_and(|header| header.epoch != span.epoch);
            if is_other || span.index > log.last_index() {
                // The batch was truncated: it was never committed.
                return false;
            }
            let reached = if span.kind == SpanKind::Order {
                committed
            } else {
                held
            };
            if reached < *end_offset {
                return true;
            }
            out.push(Output::Span(Span {
                ended_us: turn.wall_us,
                ..*span
            }));
            false
        });
    }
}
