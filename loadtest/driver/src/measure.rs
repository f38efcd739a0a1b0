//! One measurement: connections, warm-up, the window, its figures.

use std::cell::RefCell;
use std::io::{IsTerminal, Write, stderr};
use std::rc::Rc;
use std::time::{Duration, Instant};

use quorate_client::{Handle, now_us};
use tokio::task::LocalSet;

use crate::cpu::CpuSeconds;
use crate::load::{Load, PATIENCE};
use crate::measured::Measured;
use crate::tally::Tally;
use crate::text;
use crate::workload::Workload;

const PROGRESS_INTERVAL: Duration = Duration::from_millis(200);

/// Runs the workload against the groups of the handles. Connections and groups are paired in turn, until each is in a
/// pair.
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

async fn observe(load: &Load, workload: &Workload, title: &str) -> Result<Measured, String> {
    let tally = &load.tally;
    let mut progress = Progress::new(title);
    load.wait_attached(|what| progress.show(|| what.to_string()))
        .await?;
    pass(workload.warmup, tally, &mut progress, "warming up").await?;
    // Counters of appends and of processor time are read at one moment, here and at the end.
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

/// Lets `span` pass, and shows the progress.
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

/// A line of progress that is overwritten, on terminals only.
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
