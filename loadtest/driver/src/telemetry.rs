//! A server's telemetry while Redis is away, in compressed time: what it keeps, and whether it sends all of it afterwards
//! (`make scale ONLY=outage`).

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use clap::Args;
use quorate_telemetry::publish::{Publisher, Publishing, Round};
use quorate_telemetry::spool::Spool;
use quorate_telemetry::usage::{Histogram, Process, Sample, Totals};
use quorate_types::{GroupId, Role, ServerId};
use serde::Serialize;
use tokio::task::{LocalSet, spawn_local};
use uuid::Uuid;

const MINUTE_MS: u64 = 60_000;
const SENT_AGAIN_EVERY: Duration = Duration::from_millis(20);
const SENT_TIMEOUT: Duration = Duration::from_secs(1_800);

#[derive(Args)]
pub struct TelemetryFlags {
    /// Address of the Redis that is away at first, and is there once a line comes on stdin
    #[arg(long)]
    redis: String,
    /// Folder for what Redis does not take
    #[arg(long)]
    folder: PathBuf,
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..=50_000))]
    replicas: u32,
    #[arg(long, default_value_t = 24, value_parser = clap::value_parser!(u64).range(1..=192))]
    hours: u64,
    /// Seconds between two samples
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=60))]
    step: u64,
}

/// A line of the output.
#[derive(Serialize)]
struct Told<'a> {
    phase: &'a str,
    /// The greatest resident memory so far.
    memory_bytes: u64,
    spooled_bytes: u64,
    /// Sums that the sent windows must have, each counted once.
    windows: u64,
    offered_entries: u64,
    read_entries: u64,
    active_ms: u64,
    committed_entries: u64,
}

struct Played {
    samples: Vec<Sample>,
    windows: u64,
    active_ms: u64,
}

/// Plays the hours before now, waits for a line, and sends everything.
pub(crate) fn play(flags: &TelemetryFlags) -> Result<(), String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| error.to_string())?;
    LocalSet::new().block_on(&runtime, run(flags))
}

async fn run(flags: &TelemetryFlags) -> Result<(), String> {
    let spool = Spool::open(&flags.folder).map_err(|error| error.to_string())?;
    let publishing =
        Publishing::new(&flags.redis, ServerId(1), "played").map_err(|error| error.to_string())?;
    let publisher = Publisher::new(publishing.with_spool(spool));
    let sender = publisher.clone();
    spawn_local(async move { sender.run().await });
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_err(|error| error.to_string())?;
    let end_ms = now.as_secs() * 1000 / MINUTE_MS * MINUTE_MS;
    let begin_ms = end_ms - flags.hours * 60 * MINUTE_MS;
    let mut played = Played::new(flags.replicas, begin_ms);
    let mut at_ms = begin_ms;
    while at_ms < end_ms {
        at_ms += flags.step * 1000;
        played.pass(at_ms);
        publisher.observe(round_of(at_ms, played.samples.clone()));
        tokio::task::yield_now().await;
    }
    // The last sample also begins the next minute.
    played.windows += u64::from(flags.replicas);
    told("played", &played, &publisher)?;
    wait_for_line().await?;
    let deadline = tokio::time::Instant::now() + SENT_TIMEOUT;
    while publisher.has_unsent() {
        if tokio::time::Instant::now() > deadline {
            return Err("not everything was sent in time".to_string());
        }
        // A round a second would take minutes; what one round may send stays bounded.
        publisher.observe(round_of(at_ms, Vec::new()));
        tokio::time::sleep(SENT_AGAIN_EVERY).await;
    }
    told("sent", &played, &publisher)
}

fn round_of(at_ms: u64, samples: Vec<Sample>) -> Round {
    Round {
        at_ms,
        process: Process::default(),
        samples,
        grant_changes: Vec::new(),
        grant_states: None,
    }
}

async fn wait_for_line() -> Result<(), String> {
    let read = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    read.await
        .map_err(|error| error.to_string())?
        .map(|_bytes| ())
        .map_err(|error| error.to_string())
}

fn told(phase: &str, played: &Played, publisher: &Publisher) -> Result<(), String> {
    let sum = |of: fn(&Sample) -> u64| played.samples.iter().map(of).sum();
    let line = Told {
        phase,
        memory_bytes: memory_bytes()?,
        spooled_bytes: publisher.spooled_bytes(),
        windows: played.windows,
        offered_entries: sum(|sample| sample.totals.offered_entries),
        read_entries: sum(|sample| sample.totals.read_entries),
        active_ms: played.active_ms,
        committed_entries: sum(|sample| sample.committed_entries),
    };
    println!(
        "{}",
        serde_json::to_string(&line).map_err(|error| error.to_string())?
    );
    Ok(())
}

fn memory_bytes() -> Result<u64, String> {
    let status = fs::read_to_string("/proc/self/status").map_err(|error| error.to_string())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|text| text.trim().strip_suffix(" kB"));
    let kib: u64 = kib
        .and_then(|text| text.trim().parse().ok())
        .ok_or("the memory is not told")?;
    Ok(kib << 10)
}

impl Played {
    /// Heads, followers and tails, a third of each.
    fn new(replicas: u32, at_ms: u64) -> Self {
        let roles = [Role::Head, Role::Follower, Role::Tail];
        let samples = (0..replicas).map(|number| Sample {
            group: GroupId(Uuid::from_u128(u128::from(number) + 1)),
            since_us: 1,
            epoch: 1,
            role: roles[number as usize % roles.len()],
            at_ms,
            accounted_ms: at_ms,
            log_epoch: 0,
            committed_entries: 0,
            committed_bytes: 0,
            stored_bytes: 0,
            totals: Totals::default(),
            latency: Histogram::default(),
            judged_latency: Histogram::default(),
            chain_latency: Histogram::default(),
        });
        Self {
            samples: samples.collect(),
            windows: 0,
            active_ms: 0,
        }
    }

    /// Every replica is busy until this time, each with another load.
    fn pass(&mut self, at_ms: u64) {
        for (number, sample) in self.samples.iter_mut().enumerate() {
            let passed_ms = at_ms - sample.at_ms;
            let entries = (number as u64 * 7 + at_ms / 1000 * 13) % 997 + 1;
            (sample.at_ms, sample.accounted_ms) = (at_ms, at_ms);
            sample.committed_entries += entries;
            sample.committed_bytes += 64 * entries;
            sample.stored_bytes = 64 * sample.committed_entries % (100 << 20);
            match sample.role {
                Role::Head => {
                    sample.totals.offered_entries += entries;
                    sample.totals.within_sla_entries += entries;
                    sample.totals.active_us += passed_ms * 1000;
                    self.active_ms += passed_ms;
                    (sample.latency, sample.judged_latency) = (Histogram::default(), Histogram::default());
                    for step in 0..6 {
                        sample.latency.record(300 + 40 * step, entries / 6 + 1);
                        sample.judged_latency.record(300 + 40 * step, entries / 6 + 1);
                    }
                }
                _ => sample.totals.read_entries += entries / 2,
            }
        }
        if at_ms.is_multiple_of(MINUTE_MS) {
            self.windows += self.samples.len() as u64;
        }
    }
}
