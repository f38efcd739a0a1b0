//! Processor time of processes, from their clocks, and of the machine, from /proc.
//!
//! A process's clock has nanoseconds, /proc only ticks of ten milliseconds. At a light load, a tick for each of three
//! servers is up to a tenth of their use in a second.

use std::fs;

use nix::time::{clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// The kernel's limit.
const PID_MAX: u32 = 1 << 22;

/// Processor time used up to now, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuSeconds {
    pub servers: f64,
    pub client: f64,
    /// All processes of the machine, and the time taken by the host of a virtual machine.
    pub machine: f64,
}

impl CpuSeconds {
    /// Reads the counters of `server_pids`, this process and the machine. Fails when a process is gone.
    pub fn now(server_pids: &[u32]) -> Result<Self, String> {
        let mut servers = 0.0;
        for pid in server_pids {
            servers += of_process(*pid)?;
        }
        Ok(Self {
            servers,
            client: of_process(std::process::id())?,
            machine: of_machine()?,
        })
    }

    pub fn since(&self, before: &CpuSeconds) -> Self {
        Self {
            servers: self.servers - before.servers,
            client: self.client - before.client,
            machine: self.machine - before.machine,
        }
    }
}

fn of_process(pid: u32) -> Result<f64, String> {
    // A clock's number has no room for a greater id, and 0 is the caller's own clock.
    if !(1..=PID_MAX).contains(&pid) {
        return Err(format!(
            "{pid} is no process: the kernel's numbers are 1 to {PID_MAX}"
        ));
    }
    let used = clock_getcpuclockid(Pid::from_raw(pid as i32)).and_then(clock_gettime);
    let used = used.map_err(|error| {
        format!("cannot read the processor time of process {pid}: {error}; is the server's process running?")
    })?;
    Ok(used.tv_sec() as f64 + used.tv_nsec() as f64 / 1e9)
}

fn ticks_to_s(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

fn of_machine() -> Result<f64, String> {
    let text =
        fs::read_to_string("/proc/stat").map_err(|error| format!("cannot read /proc/stat: {error}"))?;
    machine_ticks(&text)
        .map(ticks_to_s)
        .ok_or_else(|| "/proc/stat is not in the known form".to_string())
}

/// All ticks but idle time, waits for disks, and guests (already counted as user time). The host's time (`steal`)
/// disturbs a window as another process does, and peers are measured with it too
/// (`quorate_harness/processor.py`).
fn machine_ticks(stat: &str) -> Option<u64> {
    let fields = stat.lines().next()?.split_ascii_whitespace().skip(1);
    let fields: Vec<u64> = fields.filter_map(|field| field.parse().ok()).collect();
    let [user, nice, system, _idle, _iowait, irq, softirq, steal, ..] = fields[..] else {
        return None;
    };
    Some(user + nice + system + irq + softirq + steal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_counts_the_time_taken_by_its_host() {
        // The same line as in the test of `processor.py`.
        let stat = "cpu  100 20 30 4000 500 6 7 80 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n";
        assert_eq!(machine_ticks(stat), Some(100 + 20 + 30 + 6 + 7 + 80));
        assert_eq!(machine_ticks("cpu  1 2 4"), None);
    }

    #[test]
    fn less_than_a_tick_of_proc_is_measured() {
        let own = [std::process::id()];
        let used = || {
            let before = CpuSeconds::now(&own).unwrap();
            let began = std::time::Instant::now();
            while began.elapsed() < std::time::Duration::from_micros(500) {}
            CpuSeconds::now(&own).unwrap().since(&before)
        };
        // Tests of other threads use time, too: the least of many.
        let least = (0..100).map(|_| used().servers).fold(f64::INFINITY, f64::min);
        assert!(least > 0.0 && least < 0.01, "{least}");
        assert!(used().client > 0.0);
    }

    #[test]
    fn a_process_that_is_gone_is_an_error() {
        for pid in [0, PID_MAX, PID_MAX + 1, u32::MAX] {
            assert!(CpuSeconds::now(&[pid]).unwrap_err().contains("process"), "{pid}");
        }
    }
}
