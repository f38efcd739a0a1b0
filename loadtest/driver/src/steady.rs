//! A load for other programs to observe: it runs until stdin ends, and reports its clients' view of each window.
//!
//! ```text
//! stdin    a line             ends the present window, and names the next one, which begins
//! stdout   {"ready":true}     every connection has found its head; the window "start" begins
//!          {"window":…}       one for each window, when it ends
//! ```
//!
//! Times are microseconds of the Unix clock at the start, continued by the monotonic one. They can be compared with
//! the servers' logs, and do not jump.

use std::collections::BTreeMap;
use std::io::{BufRead, Write, stdin, stdout};
use std::time::{SystemTime, UNIX_EPOCH};

use quorate_client::{Handle, now_us};
use quorate_types::Micros;
use serde::Serialize;
use tokio::sync::mpsc;
use tokio::task::LocalSet;

use crate::load::{Load, PATIENCE};
use crate::runs::Run;
use crate::tally::Tally;
use crate::workload::Workload;

/// Most lines of stdin that wait: their writer waits for each window's answer.
const MARKS_MAX: usize = 64;

#[derive(Serialize)]
struct Window {
    name: String,
    began_us: u64,
    ended_us: u64,
    acked: u64,
    acked_per_s: f64,
    p50_us: u64,
    p99_us: u64,
    max_us: u64,
    /// The longest time between two successive acknowledgements, if any came.
    gap: Option<Span>,
    /// Time since the last acknowledgement, at the window's end.
    silent_us: Option<u64>,
    links: Vec<Link>,
    /// Entries by code, since the start.
    refused: BTreeMap<&'static str, u64>,
    unknown: BTreeMap<&'static str, u64>,
}

#[derive(Serialize)]
struct Span {
    from_us: u64,
    to_us: u64,
}

#[derive(Serialize)]
struct Link {
    at_us: u64,
    /// Epoch of the attached head; `null`: the connection was lost.
    epoch: Option<u64>,
}

/// Outcomes of all appends.
#[derive(Serialize)]
pub struct Ended {
    refused: BTreeMap<&'static str, u64>,
    unknown: BTreeMap<&'static str, u64>,
    reconnects: u32,
    runs: Vec<Run>,
}

/// Runs the load until stdin ends.
pub fn steady(handles: &[Handle], workload: &Workload) -> Result<Ended, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let ended = LocalSet::new().block_on(&runtime, run(handles, workload));
    // The reader of stdin may wait for a line that never comes.
    runtime.shutdown_background();
    ended
}

async fn run(handles: &[Handle], workload: &Workload) -> Result<Ended, String> {
    let clock = Clock::now();
    let load = Load::start(handles, workload);
    let tally = load.tally.clone();
    load.wait_attached(|_| ()).await?;
    report("ready", &true)?;
    let mut marks = read_marks();
    let (mut name, mut began) = ("start".to_string(), now_us());
    tally.borrow_mut().begin();
    loop {
        let mark = marks.recv().await;
        let ended = now_us();
        let window = window(&tally.borrow(), std::mem::take(&mut name), began, ended, &clock);
        tally.borrow_mut().begin();
        report("window", &window)?;
        match mark {
            Some(next) => (name, began) = (next, ended),
            None => break,
        }
        if tally.borrow().is_stopped {
            let reason = tally.borrow().last_failure.as_ref().map(ToString::to_string);
            return Err(reason.unwrap_or_else(|| "the appends ended early".to_string()));
        }
    }
    load.stop(PATIENCE.max(workload.timeout * 2)).await?;
    let tally = tally.borrow();
    Ok(Ended {
        refused: tally.refused.clone(),
        unknown: tally.unknown.clone(),
        reconnects: tally.reattached,
        runs: tally.runs.clone(),
    })
}

fn window(tally: &Tally, name: String, began: Micros, ended: Micros, clock: &Clock) -> Window {
    let quantile = |q| tally.latency_us.value_at_quantile(q);
    let link = |event: &crate::tally::LinkEvent| Link {
        at_us: clock.unix_us(event.at),
        epoch: event.epoch,
    };
    Window {
        name,
        began_us: clock.unix_us(began),
        ended_us: clock.unix_us(ended),
        acked: tally.acked,
        acked_per_s: tally.acked as f64 * 1e6 / (ended - began).max(1) as f64,
        p50_us: quantile(0.5),
        p99_us: quantile(0.99),
        max_us: tally.latency_us.max(),
        gap: tally.gap.map(|gap| Span {
            from_us: clock.unix_us(gap.from),
            to_us: clock.unix_us(gap.to),
        }),
        silent_us: tally.acked_at.map(|at| ended - at),
        links: tally.link_events.iter().map(link).collect(),
        refused: tally.refused.clone(),
        unknown: tally.unknown.clone(),
    }
}

fn report(kind: &str, what: &impl Serialize) -> Result<(), String> {
    let line = serde_json::json!({ kind: what });
    let mut out = stdout().lock();
    let written = writeln!(out, "{line}").and_then(|()| out.flush());
    written.map_err(|error| format!("cannot write a window to stdout: {error}"))
}

fn read_marks() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(MARKS_MAX);
    std::thread::spawn(move || {
        for line in stdin().lock().lines().map_while(Result::ok) {
            if sender.blocking_send(line).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Converts times of the client's clock to Unix time.
struct Clock {
    zero_unix_us: u64,
}

impl Clock {
    fn now() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            zero_unix_us: (unix.as_micros() as u64).saturating_sub(now_us()),
        }
    }

    fn unix_us(&self, at: Micros) -> u64 {
        self.zero_unix_us + at
    }
}
