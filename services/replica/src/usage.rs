//! Usage and SLIs of the groups here: counted by their shards, sampled each second by a thread of its own, and
//! handed to telemetry (`docs/internals/telemetry.md`).

use std::sync::Arc;
use std::time::Duration;

use quorate_journal::Journal;
use quorate_telemetry::publish::{Publisher, Publishing, Round};
use quorate_telemetry::usage::{Histogram, Sample, Totals};
use quorate_telemetry::{Meter, ServerCounts, SpanRecord, SpanSender, Tracer, process};
use quorate_types::limits::TELEMETRY_CUTS_MAX;
use quorate_types::{GroupState, Micros, Role};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::Instant;

use crate::Exit;
use crate::clock::{now_us, wall_us};
use crate::flags::Flags;
use crate::shard::group::Group;
use crate::shard::{Shard, ShardMessage};
use crate::shared::Shared;

/// A shard accounts for its time every 100 ms; when it was away for longer than this, it accepted nothing.
const STALL_US: Micros = 1_000_000;
/// How long a stop waits for the last records to be sent.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// What happened to a group since it came to this server.
pub struct Counters {
    since_us: Micros,
    pub totals: Totals,
    /// Commit latency of entries, since it was last taken.
    pub latency: Histogram,
    accounted_at: Micros,
    /// As last told to the meter.
    metered: Totals,
}

impl Counters {
    pub fn new(now: Micros) -> Self {
        Self {
            since_us: now,
            totals: Totals::default(),
            latency: Histogram::default(),
            accounted_at: now,
            metered: Totals::default(),
        }
    }

    /// An append of so many entries was well formed.
    pub fn offered(&mut self, entries: u32, bytes: u64) {
        self.totals.offered_batches += 1;
        self.totals.offered_entries += u64::from(entries);
        self.totals.offered_bytes += bytes;
    }

    /// Adds what was counted since the last call.
    fn add_to(&mut self, counts: &mut ServerCounts) {
        let delta = self.totals.since(&self.metered);
        self.metered = self.totals;
        counts.appends += delta.offered_batches;
        counts.entries += delta.offered_entries;
        counts.bytes += delta.offered_bytes;
        counts.refused += delta.refused_entries;
        counts.throttled += delta.throttled_entries;
    }

    pub fn throttled(&mut self, entries: u32, within_sla: bool) {
        self.totals.throttled_entries += u64::from(entries);
        if within_sla {
            self.totals.throttled_within_sla_entries += u64::from(entries);
        }
    }
}

/// What a shard answers each second.
#[derive(Default)]
pub struct ShardSample {
    pub groups: Vec<Sample>,
    /// Of the shard as a whole, for metrics.
    pub counts: ServerCounts,
}

impl Shard {
    pub fn sample(&mut self) -> ShardSample {
        let mut groups = std::mem::take(&mut self.parted);
        let mut counts = ServerCounts {
            links_up: self.io.links.len() as u64,
            ..ServerCounts::default()
        };
        for group in self.groups.values_mut() {
            groups.append(&mut group.cuts);
            groups.extend(sample(group));
            group.counters.add_to(&mut counts);
            counts.roles.push(group.replica.role());
            counts.lent += group.lent_requests();
        }
        for sample in &groups {
            counts.latency.merge(&sample.latency);
        }
        ShardSample { groups, counts }
    }
}

impl Group {
    /// At the head, counts the time since the last call as able to accept appends, or not.
    pub fn account_time(&mut self, now: Micros) {
        let elapsed = now.saturating_sub(std::mem::replace(&mut self.counters.accounted_at, now));
        if !self.replica.is_head() {
            return;
        }
        let able = matches!(self.replica.state(), GroupState::Active | GroupState::Degraded);
        let active = if able { elapsed.min(STALL_US) } else { 0 };
        self.counters.totals.active_us += active;
        self.counters.totals.paused_us += elapsed - active;
    }

    /// Samples where an epoch ends or begins, so that each is counted by itself.
    pub fn cut_sample(&mut self) {
        if self.cuts.len() < TELEMETRY_CUTS_MAX
            && let Some(cut) = sample(self)
        {
            self.cuts.push(cut);
        }
    }
}

/// The group's counters now; `None` while it has no role.
pub fn sample(group: &mut Group) -> Option<Sample> {
    group.account_time(now_us());
    let replica = &group.replica;
    if replica.role() == Role::None {
        return None;
    }
    // A log's own: what the group's earlier logs committed was reported with them.
    let beginning = replica.config().and_then(|config| config.beginning);
    let (entries_before, bytes_before) = beginning.map_or((0, 0), |b| (b.entries_before, b.bytes_before));
    Some(Sample {
        group: group.id,
        since_us: group.counters.since_us,
        epoch: replica.epoch(),
        role: replica.role(),
        at_ms: wall_us() / 1000,
        log_epoch: beginning.map_or(0, |beginning| beginning.epoch),
        committed_entries: replica.committed_entries() - entries_before,
        committed_bytes: replica.committed_bytes().saturating_sub(bytes_before),
        stored_bytes: replica.log().payload_bytes(),
        totals: group.counters.totals,
        latency: group.counters.latency.take(),
    })
}

/// Traces and metrics, where they are exported.
pub struct Exports {
    pub tracer: Option<Tracer>,
    pub meter: Option<Meter>,
}

/// The telemetry thread.
pub struct Telemetry {
    stop: oneshot::Sender<()>,
    stopped: oneshot::Receiver<()>,
}

impl Telemetry {
    /// Takes a last sample and sends it, if that is possible soon. Call before the shards are stopped.
    pub async fn stop(self) {
        let _gone = self.stop.send(()).is_err();
        let _in_time = tokio::time::timeout(STOP_TIMEOUT, self.stopped).await.is_ok();
    }
}

/// Starts sampling. Call when the server has its number.
pub fn start(
    flags: &Flags,
    shared: Arc<Shared>,
    journal: Arc<Journal>,
    exports: Exports,
    spans: mpsc::Receiver<SpanRecord>,
) -> Result<Telemetry, Exit> {
    let publishing = match &flags.redis_url {
        Some(url) => Some(
            Publishing::new(url, shared.server_id(), &shared.incarnation)
                .map_err(|invalid| Exit::BadFlags(format!("--redis-url: {invalid}")))?,
        ),
        None => None,
    };
    let (stop, stop_asked) = oneshot::channel();
    let (tell_stopped, stopped) = oneshot::channel();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|e| Exit::DependencyMissing(format!("cannot start a runtime: {e}")))?;
    std::thread::Builder::new()
        .name("telemetry".to_string())
        .spawn(move || {
            let publisher = publishing.map(Publisher::new);
            let sampler = Sampler {
                shared,
                journal,
                publisher,
                exports,
                journal_told: (0, 0),
                spans_dropped: 0,
                recalls_told: 0,
            };
            LocalSet::new().block_on(&runtime, sampler.run(stop_asked, spans));
            let _gone = tell_stopped.send(()).is_err();
        })
        .map_err(|e| Exit::DependencyMissing(format!("cannot start a thread: {e}")))?;
    Ok(Telemetry { stop, stopped })
}

/// What the telemetry thread does.
struct Sampler {
    shared: Arc<Shared>,
    journal: Arc<Journal>,
    publisher: Option<Publisher>,
    exports: Exports,
    /// Syncs and bytes of the journal as last told to the meter.
    journal_told: (u64, u64),
    spans_dropped: u64,
    recalls_told: u64,
}

impl Sampler {
    async fn run(mut self, mut stop: oneshot::Receiver<()>, mut spans: mpsc::Receiver<SpanRecord>) {
        if let Some(publisher) = self.publisher.clone() {
            spawn_local(async move { publisher.run().await });
        }
        let mut next = Instant::now() + until_next_second();
        loop {
            let is_last = tokio::select! {
                () = tokio::time::sleep_until(next) => false,
                _ = &mut stop => true,
                Some(span) = spans.recv() => {
                    self.export(&span);
                    continue;
                }
            };
            if !self.round().await || is_last {
                break;
            }
            next = Instant::now() + until_next_second();
        }
        while let Ok(span) = spans.try_recv() {
            self.export(&span);
        }
        if let Some(publisher) = &self.publisher {
            let _in_time = tokio::time::timeout(STOP_TIMEOUT, publisher.flush())
                .await
                .is_ok();
        }
    }

    fn export(&self, span: &SpanRecord) {
        if let Some(tracer) = &self.exports.tracer {
            tracer.export(span);
        }
    }

    /// Samples once; false when the shards have stopped.
    async fn round(&mut self) -> bool {
        let Some(ShardSample { groups, mut counts }) = collect(&self.shared).await else {
            return false;
        };
        if let Some(meter) = &self.exports.meter {
            let journal = self.journal.stats();
            let told = std::mem::replace(&mut self.journal_told, (journal.syncs, journal.bytes));
            (counts.journal_syncs, counts.journal_bytes) = (journal.syncs - told.0, journal.bytes - told.1);
            let dropped = self.shared.spans.as_ref().map_or(0, SpanSender::dropped);
            counts.lending_granted_per_s = self.shared.lending.granted_per_s();
            let recalls = self.shared.lending.recalls();
            counts.lending_recalls = recalls - std::mem::replace(&mut self.recalls_told, recalls);
            counts.spans_dropped = dropped - std::mem::replace(&mut self.spans_dropped, dropped);
            meter.record(&counts);
        }
        if let Some(publisher) = &self.publisher {
            publisher.observe(Round {
                at_ms: wall_us() / 1000,
                process: process::now(),
                samples: groups,
                lending: self.shared.lending.take_changes(),
                standing: self.shared.lending.take_standing(),
            });
        }
        true
    }
}

/// Samples are taken at whole seconds, so that windows end where samples are taken.
fn until_next_second() -> Duration {
    let wait_ms = 1000 - wall_us() / 1000 % 1000;
    Duration::from_millis(if wait_ms < 500 { wait_ms + 1000 } else { wait_ms })
}

/// Asks every shard; `None` when one has stopped. What a shard tells it tells once, so the answer is waited for.
async fn collect(shared: &Shared) -> Option<ShardSample> {
    let mut answers = Vec::new();
    for shard in 0..shared.shard_count() {
        let (sender, receiver) = oneshot::channel();
        shared.send(shard, ShardMessage::Sample(sender));
        answers.push(receiver);
    }
    let mut whole = ShardSample::default();
    for answer in answers {
        let mut part = answer.await.ok()?;
        whole.groups.append(&mut part.groups);
        whole.counts.merge(&part.counts);
    }
    Some(whole)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_are_a_second_apart() {
        let wait = until_next_second();
        assert!(
            wait > Duration::from_millis(499) && wait <= Duration::from_millis(1_500),
            "{wait:?}"
        );
    }
}
