//! One measurement: connections, warming up, the window, its figures.

use std::cell::RefCell;
use std::io::{IsTerminal, Write, stderr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quorate_client::feed::{FeedConnections, FeedOptions, run_feed};
use quorate_client::writer::Batching;
use quorate_client::{Handle, Wake, now_us};
use quorate_types::GroupId;
use serde::Serialize;
use tokio::task::{JoinHandle, LocalSet};

use crate::cpu::CpuSeconds;
use crate::marks::Mark;
use crate::producer::{Arrivals, Producer, Tally};
use crate::text;

/// How long connecting may take, and how long what is outstanding at the end is waited for.
pub const PATIENCE: Duration = Duration::from_secs(15);
const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);
/// How often the pacer looks whether entries are due: the grain of an open loop.
const PACE: Duration = Duration::from_micros(100);

/// What to measure.
#[derive(Debug, Clone)]
pub struct Workload {
    pub size: u32,
    /// Entries outstanding over all connections, in a closed loop.
    pub outstanding: u32,
    /// Entries a second over all connections, in an open loop.
    pub rate_per_s: Option<f64>,
    /// Of an open loop: so many entries are due at once.
    pub burst: u32,
    /// Of an open loop: what is due beyond so many outstanding waits in the client.
    pub outstanding_max: u32,
    /// To each server that is the head of a group. With more groups than connections, groups share them.
    pub connections: u32,
    pub batching: Batching,
    /// How long the client looks for an answer before it sleeps.
    pub spin: Duration,
    /// The client holds back what is beyond the rate that heads tell, as those of users do.
    pub pace: bool,
    pub warmup: Duration,
    pub window: Duration,
    pub timeout: Duration,
    pub server_pids: Vec<u32>,
}

impl Workload {
    /// Each connection appends to one group at least, and each group is appended to.
    pub fn producers(&self, groups: usize) -> u32 {
        self.connections.max(groups as u32)
    }
}

#[derive(Debug, Clone, Serialize)]
pub struct Measured {
    pub size_bytes: u32,
    pub outstanding: u32,
    pub offered_per_s: Option<f64>,
    pub connections: u32,
    pub window_s: f64,
    pub acked: u64,
    pub acked_per_s: f64,
    /// In which they came, on the average.
    pub batch_entries: f64,
    pub p50_us: u64,
    pub p99_us: u64,
    pub p999_us: u64,
    pub max_us: u64,
    /// Processor seconds for a million appends; `None` without the servers' pids.
    pub servers_cpu_s_per_m: Option<f64>,
    pub client_cpu_s_per_m: f64,
    /// Cores that processes other than servers and client used meanwhile: what disturbs the figures.
    pub others_cores: Option<f64>,
    pub reconnects: u32,
    /// By code, from the first append on.
    pub refused: std::collections::BTreeMap<&'static str, u64>,
    pub unknown: std::collections::BTreeMap<&'static str, u64>,
    /// Each connection's identity and how many entries it appended: for `verify --result`.
    pub runs: Vec<Run>,
}

#[derive(Debug, Clone, Serialize, serde::Deserialize)]
pub struct Run {
    pub run: String,
    pub group: GroupId,
    pub entries: u64,
    /// Which of them were acknowledged, in order.
    #[serde(default)]
    pub acked: Vec<Stretch>,
    /// Where, in order.
    #[serde(default)]
    pub marks: Vec<Mark>,
}

/// Consecutive numbers of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct Stretch {
    pub first: u64,
    pub count: u64,
}

impl Stretch {
    pub fn end(&self) -> u64 {
        self.first + self.count
    }

    /// Adds numbers to stretches, in as few as possible when they come in order.
    pub fn extend(stretches: &mut Vec<Stretch>, first: u64, count: u64) {
        match stretches.last_mut() {
            Some(last) if last.end() == first => last.count += count,
            _ => stretches.push(Stretch { first, count }),
        }
    }
}

/// Runs the workload against the groups of the handles: connections and groups are paired in turn, until each has
/// been.
pub fn measure(handles: &[Handle], workload: &Workload, title: &str) -> Result<Measured, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    LocalSet::new().block_on(&runtime, run(handles, workload, title))
}

async fn run(handles: &[Handle], workload: &Workload, title: &str) -> Result<Measured, String> {
    let load = Load::start(handles, workload);
    let tally = load.tally.clone();
    let outcome = observe(&load, workload, title).await;
    let ended = load.stop(PATIENCE).await;
    let mut measured = outcome?;
    ended?;
    let tally = tally.borrow();
    measured.refused = tally.refused.clone();
    measured.unknown = tally.unknown.clone();
    measured.reconnects = tally.reattached;
    measured.runs = tally.runs.clone();
    Ok(measured)
}

/// Producers at work.
pub struct Load {
    pub tally: Rc<RefCell<Tally>>,
    tasks: Vec<JoinHandle<()>>,
    wakes: Vec<Arc<Wake>>,
    pacer: Option<Pacer>,
}

impl Load {
    pub fn start(handles: &[Handle], workload: &Workload) -> Self {
        let tally = Rc::new(RefCell::new(Tally::new()));
        let (tasks, wakes) = connect(handles, workload, &tally);
        let pacer = workload.rate_per_s.map(|_| Pacer::start(wakes.clone()));
        Self {
            tally,
            tasks,
            wakes,
            pacer,
        }
    }

    /// Waits until every producer has found its head.
    pub async fn wait_attached(&self, mut tell: impl FnMut(&str)) -> Result<(), String> {
        let (began, producers) = (Instant::now(), self.tasks.len());
        while (self.tally.borrow().attached as usize) < producers {
            if began.elapsed() > PATIENCE || self.tally.borrow().is_stopped {
                return Err(self.tally.borrow().why_not_attached(producers));
            }
            tell("connecting");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Ends the producers and waits, for a while, for what is outstanding.
    pub async fn stop(self, patience: Duration) -> Result<(), String> {
        self.tally.borrow_mut().is_stopped = true;
        drop(self.pacer);
        for wake in &self.wakes {
            wake.notify_one();
        }
        let ended = tokio::time::timeout(patience, async {
            for task in self.tasks {
                let _panicked = task.await.is_err();
            }
        });
        let late = || {
            let seconds = patience.as_secs();
            format!("appends were still outstanding {seconds} s after the end; the servers do not answer")
        };
        ended.await.map_err(|_| late())
    }
}

type Links = (Vec<JoinHandle<()>>, Vec<Arc<Wake>>);

fn connect(handles: &[Handle], workload: &Workload, tally: &Rc<RefCell<Tally>>) -> Links {
    let (mut tasks, mut wakes) = (Vec::new(), Vec::new());
    let connections: Vec<FeedConnections<Producer>> = (0..workload.connections)
        .map(|_| FeedConnections::default())
        .collect();
    let producers = workload.producers(handles.len());
    for index in 0..producers {
        let arrivals = match workload.rate_per_s {
            Some(rate_per_s) => Arrivals::open(
                rate_per_s / f64::from(producers),
                workload.burst,
                (workload.outstanding_max / producers).max(1),
                f64::from(index) / f64::from(producers),
            ),
            None => {
                let rest = u32::from(index < workload.outstanding % producers);
                Arrivals::Closed {
                    outstanding: workload.outstanding / producers + rest,
                }
            }
        };
        let timeout_us = workload.timeout.as_micros() as u64;
        let handle = handles[index as usize % handles.len()].clone();
        let producer = Producer::new(
            tally.clone(),
            handle.group_id,
            arrivals,
            timeout_us,
            workload.size,
        );
        let wake = Arc::new(Wake::default());
        let options = FeedOptions {
            source: None,
            batching: workload.batching,
            pace: workload.pace,
            spin: workload.spin,
            connections: connections[index as usize % connections.len()].clone(),
        };
        let link = run_feed(handle, producer, wake.clone(), options);
        tasks.push(tokio::task::spawn_local(link));
        wakes.push(wake);
    }
    (tasks, wakes)
}

async fn observe(load: &Load, workload: &Workload, title: &str) -> Result<Measured, String> {
    let tally = &load.tally;
    let mut progress = Progress::new(title);
    load.wait_attached(|what| progress.show(|| what.to_string()))
        .await?;
    pass(workload.warmup, tally, &mut progress, "warming up").await?;
    // One moment for the counters of appends and of processor time, here and at the end.
    let cpu_before = CpuSeconds::now(&workload.server_pids)?;
    tally.borrow_mut().begin();
    let began = Instant::now();
    pass(workload.window, tally, &mut progress, "measuring").await?;
    let cpu = CpuSeconds::now(&workload.server_pids)?.since(&cpu_before);
    let window_s = began.elapsed().as_secs_f64();
    tally.borrow_mut().end(now_us());
    let tally = tally.borrow();
    let per_million = 1e6 / tally.acked.max(1) as f64;
    let has_servers = !workload.server_pids.is_empty();
    let quantile = |q| tally.latency_us.value_at_quantile(q);
    Ok(Measured {
        size_bytes: workload.size,
        outstanding: workload.outstanding,
        offered_per_s: workload.rate_per_s,
        connections: workload.connections,
        window_s,
        acked: tally.acked,
        acked_per_s: tally.acked as f64 / window_s,
        batch_entries: tally.acked as f64 / tally.batches.max(1) as f64,
        p50_us: quantile(0.5),
        p99_us: quantile(0.99),
        p999_us: quantile(0.999),
        max_us: tally.latency_us.max(),
        servers_cpu_s_per_m: has_servers.then_some(cpu.servers * per_million),
        client_cpu_s_per_m: cpu.client * per_million,
        others_cores: has_servers.then_some((cpu.machine - cpu.servers - cpu.client).max(0.0) / window_s),
        reconnects: 0,
        refused: Default::default(),
        unknown: Default::default(),
        runs: Vec::new(),
    })
}

/// Lets `span` pass, telling how it goes.
async fn pass(
    span: Duration,
    tally: &Rc<RefCell<Tally>>,
    progress: &mut Progress,
    what: &str,
) -> Result<(), String> {
    let began = Instant::now();
    let (mut acked_before, mut at_before) = (tally.borrow().acked, began);
    while began.elapsed() < span {
        let step = PROGRESS_INTERVAL.min(span - began.elapsed().min(span));
        tokio::time::sleep(if progress.is_shown { step } else { span }).await;
        let acked = tally.borrow().acked;
        let rate = acked.saturating_sub(acked_before) as f64 / at_before.elapsed().as_secs_f64();
        (acked_before, at_before) = (acked, Instant::now());
        let left = span.saturating_sub(began.elapsed()).as_secs_f64();
        progress.show(|| {
            format!(
                "{what}, {left:.1} s left, {} appends/s",
                text::grouped(rate as u64)
            )
        });
        if tally.borrow().is_stopped {
            let reason = tally.borrow().last_failure.as_ref().map(ToString::to_string);
            return Err(reason.unwrap_or_else(|| "the appends ended early".to_string()));
        }
    }
    Ok(())
}

/// A line that is written over, on terminals only.
struct Progress {
    title: String,
    is_shown: bool,
    shown_at: Option<Instant>,
}

impl Progress {
    fn new(title: &str) -> Self {
        Self {
            title: title.to_string(),
            is_shown: stderr().is_terminal(),
            shown_at: None,
        }
    }

    fn show(&mut self, what: impl FnOnce() -> String) {
        let is_due = self
            .shown_at
            .is_none_or(|at| at.elapsed() >= PROGRESS_INTERVAL / 2);
        if self.is_shown && is_due {
            self.shown_at = Some(Instant::now());
            eprint!("\r\x1b[K{}: {}", self.title, what());
            let _best_effort = stderr().flush();
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.is_shown {
            eprint!("\r\x1b[K");
        }
    }
}

/// Wakes the producers of an open loop often: the runtime's own timers are a millisecond coarse.
struct Pacer {
    is_stopped: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Pacer {
    fn start(wakes: Vec<Arc<Wake>>) -> Self {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stop = is_stopped.clone();
        let thread = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(PACE);
                for wake in &wakes {
                    wake.notify_one();
                }
            }
        });
        Self {
            is_stopped,
            thread: Some(thread),
        }
    }
}

impl Drop for Pacer {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _panicked = thread.join().is_err();
        }
    }
}
