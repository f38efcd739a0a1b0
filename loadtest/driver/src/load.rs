//! Producers at work.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quorate_client::feed::{FeedConnections, FeedOptions, run_feed};
use quorate_client::{Handle, Wake};
use tokio::task::JoinHandle;

use crate::producer::{Arrivals, Producer};
use crate::tally::Tally;
use crate::workload::Workload;

/// Longest time to connect, and longest wait for outstanding appends at the end.
pub const PATIENCE: Duration = Duration::from_secs(15);
/// Least and greatest interval of the pacer's looks for due entries: the grain of an open loop.
const PACE_MIN: Duration = Duration::from_micros(100);
const PACE_MAX: Duration = Duration::from_millis(1);
/// Looks for each due entry. More would take a machine that others share.
const LOOKS_PER_ENTRY: f64 = 50.0;

/// Producers at work, their wakers and their counts.
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
        let pacer = workload
            .rate_per_s
            .map(|rate_per_s| Pacer::start(wakes.clone(), pace(rate_per_s, wakes.len() as f64)));
        Self {
            tally,
            tasks,
            wakes,
            pacer,
        }
    }

    /// Waits until every producer has found its head.
    pub async fn wait_attached(&self, mut report: impl FnMut(&str)) -> Result<(), String> {
        let (began, producers) = (Instant::now(), self.tasks.len());
        while (self.tally.borrow().attached as usize) < producers {
            if began.elapsed() > PATIENCE || self.tally.borrow().is_stopped {
                return Err(self.tally.borrow().not_attached(producers));
            }
            report("connecting");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        Ok(())
    }

    /// Ends the producers and waits for outstanding appends, at most for `patience`.
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

/// The interval of looks at so many producers, which share a rate.
fn pace(rate_per_s: f64, producers: f64) -> Duration {
    Duration::from_secs_f64(producers / rate_per_s / LOOKS_PER_ENTRY).clamp(PACE_MIN, PACE_MAX)
}

/// Wakes the producers of an open loop often: the runtime's timers have a grain of a millisecond.
struct Pacer {
    is_stopped: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Pacer {
    fn start(wakes: Vec<Arc<Wake>>, pace: Duration) -> Self {
        let is_stopped = Arc::new(AtomicBool::new(false));
        let stop = is_stopped.clone();
        let thread = std::thread::spawn(move || {
            while !stop.load(Ordering::Relaxed) {
                std::thread::sleep(pace);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_entries_are_looked_for_less_often() {
        assert_eq!(pace(50_000.0, 1.0), PACE_MIN);
        assert_eq!(pace(100.0, 1.0), Duration::from_micros(200));
        assert_eq!(pace(120.0, 6.0), PACE_MAX);
    }
}
