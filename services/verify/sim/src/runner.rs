//! Many seeds on all cores; failures, and commands that replay them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::counts::Counts;
use crate::plan::Profile;
use crate::run::{Outcome, run_seed};
use crate::trace::{self, Line};

/// A seed that broke a property.
#[derive(Debug, Clone)]
pub struct Failure {
    pub seed: u64,
    pub profile: Profile,
    pub reason: String,
}

#[derive(Debug, Default)]
pub struct Report {
    pub counts: Counts,
    pub failures: Vec<Failure>,
}

/// The seeds to run.
#[derive(Debug, Clone, Copy)]
pub struct Seeds {
    pub first: u64,
    pub count: u64,
    pub profile: Profile,
    /// Stop after so many failures.
    pub failures_max: usize,
}

/// One seed, on this thread.
pub fn run_one(seed: u64, profile: Profile) -> Result<Outcome, Failure> {
    let world = AssertUnwindSafe(|| run_seed(seed, profile));
    catch_unwind(world).map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let reason = text.or_else(|| panic.downcast_ref::<&str>().map(|s| s.to_string()));
        Failure {
            seed,
            profile,
            reason: reason.unwrap_or_default(),
        }
    })
}

/// All of them, on all cores. `prepare` runs on each thread first; `progress` is called for every seed that is done.
pub fn run(seeds: Seeds, prepare: impl Fn() + Sync, progress: impl Fn(u64, usize) + Sync) -> Report {
    let next = AtomicU64::new(seeds.first);
    let done = AtomicU64::new(0);
    let report = Mutex::new(Report::default());
    let threads = std::thread::available_parallelism().map_or(1, |n| n.get());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                prepare();
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    let failed = report.lock().expect("report").failures.len();
                    if seed >= seeds.first + seeds.count || failed >= seeds.failures_max {
                        return;
                    }
                    let outcome = run_one(seed, seeds.profile);
                    let mut report = report.lock().expect("report");
                    match outcome {
                        Ok(outcome) => report.counts.add(&outcome.counts),
                        Err(failure) => report.failures.push(failure),
                    }
                    progress(done.fetch_add(1, Ordering::Relaxed) + 1, report.failures.len());
                }
            });
        }
    });
    let mut report = report.into_inner().expect("report");
    report.failures.sort_by_key(|failure| failure.seed);
    report
}

/// Runs a seed again and keeps its events as text: the last `count` lines of the group concerned.
pub fn replay(seed: u64, profile: Profile, count: usize) -> (Result<Outcome, Failure>, Vec<Line>) {
    trace::record();
    let outcome = run_one(seed, profile);
    let group = trace::focused();
    let lines = trace::recorded();
    if outcome.is_ok() {
        return (outcome, lines);
    }
    let concerned = |line: &&Line| line.group.is_none() || group.is_none() || line.group == group;
    let lines: Vec<Line> = lines.iter().filter(concerned).cloned().collect();
    let skip = lines.len().saturating_sub(count);
    (outcome, lines[skip..].to_vec())
}

impl Failure {
    /// The command that replays it.
    pub fn command(&self) -> String {
        let profile = match self.profile {
            Profile::Any => String::new(),
            other => format!(" --profile {}", other.name()),
        };
        format!("quorate-sim replay {}{profile}", self.seed)
    }
}

/// Panics are failures of a seed, and are printed once, with it.
pub fn quiet_panics() {
    std::panic::set_hook(Box::new(|_| {}));
}

pub fn print_lines(lines: &[Line]) {
    for line in lines {
        let group = line
            .group
            .map_or("      ".to_string(), |g| format!("group{}", g + 1));
        println!("{:>9.3} ms {group} {}", line.at_us as f64 / 1_000.0, line.text);
    }
}
