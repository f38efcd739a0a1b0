//! Spans of sampled appends: one at the head from arrival to commitment, one at each follower until it holds the
//! batch. Without an exporter, or without a sampled trace, this costs a comparison.

use std::collections::VecDeque;

use quorate_chain::Event;
use quorate_telemetry::SpanRecord;
use quorate_telemetry::spans::{ORDER, REPLICATE};
use quorate_types::limits::TELEMETRY_TRACED_BATCHES_MAX;
use quorate_types::{Index, Offset};
use quorate_wire::{TraceContext, peer};

use crate::clock::wall_us;
use crate::shard::group::Group;
use crate::shard::io::Io;

/// W3C: the caller may have recorded the trace.
const FLAG_SAMPLED: u8 = 1;

/// Batches of sampled traces that are under way here, oldest first.
#[derive(Default)]
pub struct Traced {
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    span: SpanRecord,
    end_offset: Offset,
}

/// A batch that comes with a sampled trace, before it is in the log.
pub struct Arriving {
    name: &'static str,
    trace: TraceContext,
    index: Index,
    began_us: u64,
}

impl Group {
    /// The trace of the batch that this event would add to the log, if it is sampled and anyone wants it.
    pub fn arriving_trace(&self, io: &Io, event: &Event) -> Option<Arriving> {
        io.shared.spans.as_ref()?;
        let (name, trace, began_us) = match event {
            Event::Append(request) => (ORDER, request.trace?, request.wall_us),
            Event::Peer {
                message: peer::Message::Replicate(replicate),
                ..
            } => (REPLICATE, replicate.batch.trace?, wall_us()),
            _ => return None,
        };
        let index = self.replica.log().last_index() + 1;
        (trace.flags & FLAG_SAMPLED != 0).then_some(Arriving {
            name,
            trace,
            index,
            began_us,
        })
    }

    /// Notes the batch, if the log took it.
    pub fn begin_span(&mut self, io: &Io, arriving: Arriving) {
        let Arriving {
            name,
            trace,
            index,
            began_us,
        } = arriving;
        let Some(header) = self.replica.log().header(index) else {
            return;
        };
        if self.traced.waiting.len() >= TELEMETRY_TRACED_BATCHES_MAX {
            return;
        }
        let span = SpanRecord {
            name,
            trace_id: trace.trace_id,
            parent_span_id: trace.span_id,
            trace_flags: trace.flags,
            began_us,
            ended_us: began_us,
            server_id: io.shared.server_id(),
            group: self.id,
            epoch: header.epoch,
            index,
            entry_count: header.entry_count,
        };
        self.traced.waiting.push_back(Waiting {
            span,
            end_offset: header.end_offset(),
        });
    }

    /// Ends the spans of batches that are committed (at the head) or held (at a follower).
    pub fn end_spans(&mut self, io: &Io) {
        let Some(spans) = &io.shared.spans else { return };
        if self.traced.waiting.is_empty() {
            return;
        }
        let (log, committed, held) = (
            self.replica.log(),
            self.replica.commit_offset(),
            self.replica.durable_offset(),
        );
        self.traced.waiting.retain(|Waiting { span, end_offset }| {
            // Cut from the log: it was never committed.
            if log
                .header(span.index)
                .is_some_and(|header| header.epoch != span.epoch)
                || span.index > log.last_index()
            {
                return false;
            }
            let reached = if span.name == ORDER { committed } else { held };
            if reached < *end_offset {
                return true;
            }
            spans.send(SpanRecord {
                ended_us: wall_us(),
                ..*span
            });
            false
        });
    }
}
