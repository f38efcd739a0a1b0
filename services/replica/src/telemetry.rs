//! Usage and SLIs of the groups here: counted by their shards, sampled each second by a thread of its own, and
//! handed to telemetry (`docs/internals/telemetry.md`).

use std::sync::Arc;
use std::time::Duration;

use quorate_journal::Journal;
use quorate_telemetry::publish::{Publisher, Publishing, Round};
use quorate_telemetry::spool::Spool;
use quorate_telemetry::{Meter, SpanRecord, SpanSender, Tracer, process};
use tokio::sync::{mpsc, oneshot};
use tokio::task::{LocalSet, spawn_local};
use tokio::time::Instant;

use crate::clock::{now_us, wall_us};
use crate::exit::Exit;
use crate::flags::Flags;
use crate::messages::{ShardMessage, ShardSample};
use crate::shared::Shared;

/// How long a stop waits for the last records to be sent.
const STOP_TIMEOUT: Duration = Duration::from_secs(1);

/// Telemetry that Redis could not take, in the data folder.
const SPOOL_FOLDER: &str = "telemetry";

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
        // As long again to put on the disk what was not sent.
        let _in_time = tokio::time::timeout(2 * STOP_TIMEOUT, self.stopped).await.is_ok();
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
        Some(url) => {
            let publishing = Publishing::new(url, shared.server_id(), &shared.incarnation)
                .map_err(|invalid| Exit::BadFlags(format!("--redis-url: {invalid}")))?;
            let folder = flags.data_dir.join(SPOOL_FOLDER);
            let spool = Spool::open(&folder)
                .map_err(|error| Exit::DependencyMissing(format!("{}: {error}", folder.display())))?;
            Some(publishing.with_spool(spool))
        }
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
                journal_counted: (0, 0),
                spans_dropped: 0,
                reclaims_counted: 0,
            };
            LocalSet::new().block_on(&runtime, sampler.run(stop_asked, spans));
            let _gone = tell_stopped.send(()).is_err();
        })
        .map_err(|e| Exit::DependencyMissing(format!("cannot start a thread: {e}")))?;
    Ok(Telemetry { stop, stopped })
}

/// The work of the telemetry thread.
struct Sampler {
    shared: Arc<Shared>,
    journal: Arc<Journal>,
    publisher: Option<Publisher>,
    exports: Exports,
    /// Syncs and bytes of the journal as last recorded by the meter.
    journal_counted: (u64, u64),
    spans_dropped: u64,
    reclaims_counted: u64,
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
            publisher.keep();
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
            let before = std::mem::replace(&mut self.journal_counted, (journal.syncs, journal.bytes));
            (counts.journal_syncs, counts.journal_bytes) =
                (journal.syncs - before.0, journal.bytes - before.1);
            let dropped = self.shared.spans.as_ref().map_or(0, SpanSender::dropped);
            counts.granted_per_s = self.shared.burst.granted_per_s();
            let reclaims = self.shared.burst.reclaims();
            counts.reclaims = reclaims - std::mem::replace(&mut self.reclaims_counted, reclaims);
            let vouch = self.shared.coordinator.vouch();
            counts.is_clock_doubted = vouch.judge(now_us(), wall_us()).is_err();
            counts.spans_dropped = dropped - std::mem::replace(&mut self.spans_dropped, dropped);
            meter.record(&counts);
        }
        if let Some(publisher) = &self.publisher {
            publisher.observe(Round {
                at_ms: wall_us() / 1000,
                process: process::now(),
                samples: groups,
                grant_changes: self.shared.burst.take_grant_changes(),
                grant_states: self.shared.burst.take_grant_states(),
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

/// Asks every shard; `None` when one has stopped. A shard reports each count once, so its answer is waited for.
async fn collect(shared: &Shared) -> Option<ShardSample> {
    let mut answers = Vec::new();
    for shard in 0..shared.shards.count() {
        let (sender, receiver) = oneshot::channel();
        shared.shards.send(shard, ShardMessage::Sample(sender));
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
