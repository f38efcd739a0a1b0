//! Usage and SLIs of the groups here: counted by their shards, sampled each second by a thread of its own, and
//! handed to telemetry (`docs/internals/telemetry.md`).

use std::sync::Arc;
use std::time::Duration;

use quorate_journal::Journal;
use quorate_telemetry::publish::{Publisher, Publishing, Round};
use quorate_telemetry::usage::{Histogram, Process, Sample, Totals};
use quorate_types::limits::TELEMETRY_CUTS_MAX;
use quorate_types::{GroupState, Micros, Role};
use tokio::sync::oneshot;
use tokio::task::{LocalSet, spawn_local};

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
/// The kernel counts CPU time in hundredths of a second for user space.
const CPU_TICK_US: u64 = 10_000;

/// What happened to a group since it came to this server.
pub struct Counters {
    since_us: Micros,
    pub totals: Totals,
    /// Commit latency of entries, since it was last taken.
    pub latency: Histogram,
    accounted_at: Micros,
}

impl Counters {
    pub fn new(now: Micros) -> Self {
        Self { since_us: now, totals: Totals::default(), latency: Histogram::default(), accounted_at: now }
    }

    pub fn throttled(&mut self, entries: u32, within_sla: bool) {
        self.totals.throttled_entries += u64::from(entries);
        if within_sla {
            self.totals.throttled_within_sla_entries += u64::from(entries);
        }
    }
}

/// What a shard answers each second.
pub struct ShardSample {
    pub groups: Vec<Sample>,
}

impl Shard {
    pub fn sample(&mut self) -> ShardSample {
        let mut groups = std::mem::take(&mut self.parted);
        for group in self.groups.values_mut() {
            groups.append(&mut group.cuts);
            groups.extend(sample(group));
        }
        ShardSample { groups }
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
    Some(Sample {
        group: group.id,
        since_us: group.counters.since_us,
        epoch: replica.epoch(),
        role: replica.role(),
        at_ms: wall_us() / 1000,
        committed_entries: replica.commit_offset(),
        committed_bytes: replica.committed_bytes(),
        stored_bytes: replica.log().payload_bytes(),
        totals: group.counters.totals,
        latency: group.counters.latency.take(),
    })
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
pub fn start(flags: &Flags, shared: Arc<Shared>, _journal: Arc<Journal>) -> Result<Telemetry, Exit> {
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
            LocalSet::new().block_on(&runtime, run(shared, publishing.map(Publisher::new), stop_asked));
            let _gone = tell_stopped.send(()).is_err();
        })
        .map_err(|e| Exit::DependencyMissing(format!("cannot start a thread: {e}")))?;
    Ok(Telemetry { stop, stopped })
}

async fn run(shared: Arc<Shared>, publisher: Option<Publisher>, mut stop: oneshot::Receiver<()>) {
    if let Some(publisher) = publisher.clone() {
        spawn_local(async move { publisher.run().await });
    }
    let mut is_last = false;
    while !is_last {
        tokio::select! {
            () = tokio::time::sleep(until_next_second()) => {}
            _ = &mut stop => is_last = true,
        }
        let Some(samples) = collect(&shared).await else {
            return;
        };
        let round = Round { at_ms: wall_us() / 1000, process: process(), samples };
        if let Some(publisher) = &publisher {
            publisher.observe(round);
        }
    }
    if let Some(publisher) = &publisher {
        let _in_time = tokio::time::timeout(STOP_TIMEOUT, publisher.flush()).await.is_ok();
    }
}

/// Samples are taken at whole seconds, so that windows end where samples are taken.
fn until_next_second() -> Duration {
    let wait_ms = 1000 - wall_us() / 1000 % 1000;
    Duration::from_millis(if wait_ms < 500 { wait_ms + 1000 } else { wait_ms })
}

/// Asks every shard; `None` when one has stopped. What a shard tells it tells once, so the answer is waited for.
async fn collect(shared: &Shared) -> Option<Vec<Sample>> {
    let mut answers = Vec::new();
    for shard in 0..shared.shard_count() {
        let (sender, receiver) = oneshot::channel();
        shared.send(shard, ShardMessage::Sample(sender));
        answers.push(receiver);
    }
    let mut samples = Vec::new();
    for answer in answers {
        samples.append(&mut answer.await.ok()?.groups);
    }
    Some(samples)
}

/// Memory and CPU time of this process, as far as `/proc` tells.
fn process() -> Process {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    Process { memory_bytes: resident_bytes(&status).unwrap_or(0), cpu_us: cpu_us(&stat).unwrap_or(0) }
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// Of `/proc/self/stat`, the 14th and 15th field; the second may contain anything, in parentheses.
fn cpu_us(stat: &str) -> Option<u64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) * CPU_TICK_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_is_understood() {
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t  1024 kB\n"), Some(1 << 20));
        let stat = "7 (a ) b) S 1 1 1 0 -1 0 0 0 0 0 25 5 0 0 20 0 4 0 0 0 0";
        assert_eq!(cpu_us(stat), Some(300_000));
        let here = process();
        assert!(here.memory_bytes > 1 << 20);
    }

    #[test]
    fn samples_are_a_second_apart() {
        let wait = until_next_second();
        assert!(wait > Duration::from_millis(499) && wait <= Duration::from_millis(1_500), "{wait:?}");
    }
}
