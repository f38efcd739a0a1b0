//! Cost of isolation: the same load on the same servers, with budgets, queues and accounting on and off in turn.
//!
//! Servers that run with `--measure-isolation` take SIGUSR1 as a switch. One load runs all the time. A pair is a window
//! with isolation and one without, in alternating order, so that drift affects both.

use std::fs;
use std::time::Duration;

use quorate_client::Handle;
use rustix::process::{Pid, Signal, kill_process};
use serde::Serialize;
use tokio::task::LocalSet;

use crate::cpu::CpuSeconds;
use crate::load::{Load, PATIENCE};
use crate::profile::median;
use crate::workload::Workload;

/// Time for a switch to reach all shards, and for flushes under way to end.
const SETTLE: Duration = Duration::from_millis(50);

#[derive(Debug, Serialize)]
pub struct Isolation {
    pub pairs: Vec<Pair>,
    /// Median over the pairs of the time with isolation, divided by the time without.
    pub cpu_ratio: f64,
}

/// Processor seconds of the servers for a million appends.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct Pair {
    pub on: f64,
    pub off: f64,
}

/// Measures `pairs` pairs. `workload.window` is the length of one window.
pub fn isolation(handles: &[Handle], workload: &Workload, pairs: u32) -> Result<Isolation, String> {
    let mut switch = Switch::new(&workload.server_pids)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    LocalSet::new().block_on(&runtime, async {
        let load = Load::start(handles, workload);
        let measured = run(&load, workload, pairs, &mut switch).await;
        let ended = load.stop(PATIENCE).await;
        let pairs = measured?;
        ended?;
        let cpu_ratio = median(pairs.iter().map(|pair| pair.on / pair.off).collect());
        Ok(Isolation { pairs, cpu_ratio })
    })
}

async fn run(load: &Load, workload: &Workload, count: u32, switch: &mut Switch) -> Result<Vec<Pair>, String> {
    load.wait_attached(|_| ()).await?;
    tokio::time::sleep(workload.warmup).await;
    let mut pairs = Vec::new();
    for number in 0..count {
        let is_on_first = number % 2 == 0;
        switch.turn(is_on_first)?;
        let first = window(load, workload).await?;
        switch.turn(!is_on_first)?;
        let second = window(load, workload).await?;
        let (on, off) = if is_on_first {
            (first, second)
        } else {
            (second, first)
        };
        pairs.push(Pair { on, off });
    }
    Ok(pairs)
}

async fn window(load: &Load, workload: &Workload) -> Result<f64, String> {
    tokio::time::sleep(SETTLE).await;
    let before = CpuSeconds::now(&workload.server_pids)?;
    load.tally.borrow_mut().begin();
    tokio::time::sleep(workload.window).await;
    let used = CpuSeconds::now(&workload.server_pids)?.since(&before);
    let tally = load.tally.borrow();
    tally.check_all_acked(tally.acked)?;
    Ok(used.servers * 1e6 / tally.acked as f64)
}

/// The servers' isolation; on again when this is dropped.
struct Switch {
    pids: Vec<Pid>,
    is_on: bool,
}

impl Switch {
    fn new(pids: &[u32]) -> Result<Self, String> {
        if pids.is_empty() {
            return Err("--server-pids must name the servers to switch".to_string());
        }
        for pid in pids {
            let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
            // The signal would end other processes, even some that catch it.
            if !is_switchable(&status) {
                return Err(format!("process {pid} is no server with --measure-isolation"));
            }
        }
        let pids = pids
            .iter()
            .filter_map(|pid| Pid::from_raw(i32::try_from(*pid).ok()?));
        Ok(Self {
            pids: pids.collect(),
            is_on: true,
        })
    }

    fn turn(&mut self, is_on: bool) -> Result<(), String> {
        if is_on != self.is_on {
            for pid in &self.pids {
                kill_process(*pid, Signal::USR1).map_err(|error| format!("a server is gone: {error}"))?;
            }
            self.is_on = is_on;
        }
        Ok(())
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        let _best_effort = self.turn(true).is_err();
    }
}

/// Whether `/proc/PID/status` is that of a server that handles the signal.
fn is_switchable(status: &str) -> bool {
    let is_server = status.lines().next() == Some("Name:\tquorate-replica");
    is_server && catches_usr1(status)
}

fn catches_usr1(status: &str) -> bool {
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
    let mask = caught.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (Signal::USR1.as_raw() - 1)) != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signal_is_sent_only_to_servers_that_catch_it() {
        assert!(is_switchable(
            "Name:\tquorate-replica\nSigCgt:\t0000000000000200\n"
        ));
        assert!(!is_switchable(
            "Name:\tquorate-replica\nSigCgt:\t0000000000000100\n"
        ));
        assert!(!is_switchable("Name:\tbash\nSigCgt:\t0000000000000200\n"));
        assert!(!is_switchable("Name:\tquorate-replica\n"));
        // This process does not catch it.
        assert!(Switch::new(&[std::process::id()]).is_err());
        assert!(Switch::new(&[]).is_err());
    }
}
