//! Spans, from the shards through a bounded channel to the exporter. A shard drops the span when the channel is full:
//! appends do not wait for traces.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use opentelemetry::trace::{
    Span, SpanBuilder, SpanContext, SpanId, SpanKind, TraceContextExt, TraceFlags, TraceId, TraceState,
    Tracer as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_sdk::trace::SdkTracer;
use quorate_types::limits::TELEMETRY_SPANS_MAX;
use quorate_types::{Epoch, GroupId, Index, ServerId};
use tokio::sync::mpsc;

/// The span at the head: from an append's arrival to its commitment.
pub const ORDER: &str = "quorate.order";
/// The span at a follower: from a batch's arrival until it counts as held; in a persistent group, until it is durable.
pub const REPLICATE: &str = "quorate.replicate";

/// One batch of a sampled trace on one server. The values are plain, so making one allocates nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanRecord {
    pub name: &'static str,
    pub trace_id: [u8; 16],
    pub parent_span_id: [u8; 8],
    pub trace_flags: u8,
    /// Wall clock.
    pub began_us: u64,
    pub ended_us: u64,
    pub server_id: ServerId,
    pub group: GroupId,
    pub epoch: Epoch,
    pub index: Index,
    pub entry_count: u32,
}

/// The shards' end of the channel.
#[derive(Debug, Clone)]
pub struct SpanSender {
    sender: mpsc::Sender<SpanRecord>,
    dropped: Arc<AtomicU64>,
}

impl SpanSender {
    /// Never blocks.
    pub fn send(&self, span: SpanRecord) {
        if self.sender.try_send(span).is_err() {
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Spans that found the channel full, so far.
    pub fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }
}

pub fn channel() -> (SpanSender, mpsc::Receiver<SpanRecord>) {
    let (sender, receiver) = mpsc::channel(TELEMETRY_SPANS_MAX);
    (
        SpanSender {
            sender,
            dropped: Arc::default(),
        },
        receiver,
    )
}

/// Makes spans from records. The exporter's thread sends them.
pub struct Tracer {
    tracer: SdkTracer,
}

impl Tracer {
    pub(super) fn new(tracer: SdkTracer) -> Self {
        Self { tracer }
    }

    pub fn export(&self, record: &SpanRecord) {
        let parent = SpanContext::new(
            TraceId::from_bytes(record.trace_id),
            SpanId::from_bytes(record.parent_span_id),
            TraceFlags::new(record.trace_flags),
            true,
            TraceState::default(),
        );
        if !parent.is_valid() {
            return;
        }
        let builder = SpanBuilder::from_name(record.name)
            .with_kind(SpanKind::Server)
            .with_start_time(time_of(record.began_us))
            .with_attributes([
                KeyValue::new("quorate.group_id", record.group.to_string()),
                KeyValue::new("quorate.server_id", i64::from(record.server_id.0)),
                KeyValue::new("quorate.epoch", record.epoch as i64),
                KeyValue::new("quorate.index", record.index as i64),
                KeyValue::new("quorate.entries", i64::from(record.entry_count)),
            ]);
        let parent = Context::new().with_remote_span_context(parent);
        let mut span = self.tracer.build_with_context(builder, &parent);
        span.end_with_timestamp(time_of(record.ended_us.max(record.began_us)));
    }
}

fn time_of(wall_us: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_micros(wall_us)
}
