//! Use of a process, from /proc: processor time in nanoseconds, of all threads and of the busiest; bytes written.

use std::collections::BTreeMap;
use std::fs;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Process(pub u32);

/// Counters at one moment.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    /// Nanoseconds on a processor, by thread.
    threads: BTreeMap<u32, u64>,
    written_bytes: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default, serde::Serialize, serde::Deserialize)]
pub struct Used {
    pub cpu_ns: f64,
    /// Processor time of the busiest thread.
    pub busiest_ns: f64,
    pub written_bytes: f64,
}

impl Counters {
    pub fn of(process: Process) -> Result<Self, String> {
        let pid = process.0;
        let gone = |error| format!("cannot read /proc/{pid}: {error}; is the server's process running?");
        let mut threads = BTreeMap::new();
        for entry in fs::read_dir(format!("/proc/{pid}/task")).map_err(gone)? {
            let name = entry.map_err(gone)?.file_name();
            let Some(thread) = name.to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            // A thread may end between the listing and the read.
            let Ok(text) = fs::read_to_string(format!("/proc/{pid}/task/{thread}/schedstat")) else {
                continue;
            };
            let ns = first_number(&text).ok_or_else(|| {
                format!("/proc/{pid}/task/{thread}/schedstat is not in the known form: {text:?}")
            })?;
            threads.insert(thread, ns);
        }
        if threads.is_empty() {
            return Err(format!("/proc/{pid} has no thread's processor time"));
        }
        let io = fs::read_to_string(format!("/proc/{pid}/io")).map_err(gone)?;
        Ok(Self {
            threads,
            written_bytes: written_bytes(&io).unwrap_or(0),
        })
    }

    /// Threads that have ended are not counted: servers keep theirs.
    pub fn since(&self, before: &Counters) -> Used {
        let used = |(thread, ns): (&u32, &u64)| {
            let before = before.threads.get(thread).copied().unwrap_or(0);
            ns.saturating_sub(before) as f64
        };
        Used {
            cpu_ns: self.threads.iter().map(used).sum(),
            busiest_ns: self.threads.iter().map(used).fold(0.0, f64::max),
            written_bytes: self.written_bytes.saturating_sub(before.written_bytes) as f64,
        }
    }
}

impl Used {
    pub fn each(self, appends: u64) -> Self {
        let appends = appends.max(1) as f64;
        Self {
            cpu_ns: self.cpu_ns / appends,
            busiest_ns: self.busiest_ns / appends,
            written_bytes: self.written_bytes / appends,
        }
    }
}

/// Bytes that crossed the loopback interface: every copy between processes of this machine, once.
pub fn loopback_bytes() -> u64 {
    let text = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    sent_bytes(&text, "lo").unwrap_or(0)
}

/// Flushes completed by all disks of this machine: the result of syncs.
pub fn disk_flushes() -> u64 {
    let text = fs::read_to_string("/proc/diskstats").unwrap_or_default();
    text.lines().filter_map(flushes_of).sum()
}

fn first_number(schedstat: &str) -> Option<u64> {
    schedstat.split_ascii_whitespace().next()?.parse().ok()
}

fn written_bytes(io: &str) -> Option<u64> {
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes:"))?;
    line.trim().parse().ok()
}

fn sent_bytes(dev: &str, interface: &str) -> Option<u64> {
    let line = dev
        .lines()
        .find_map(|line| line.trim().strip_prefix(interface)?.strip_prefix(':'))?;
    line.split_ascii_whitespace().nth(8)?.parse().ok()
}

/// Field 19 of a line; kernels before 5.5 have none.
fn flushes_of(line: &str) -> Option<u64> {
    line.split_ascii_whitespace().nth(18)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_read_from_their_fields() {
        assert_eq!(first_number("123456 789 10\n"), Some(123_456));
        assert_eq!(
            written_bytes("rchar: 1\nwrite_bytes: 4096\ncancelled_write_bytes: 7\n"),
            Some(4_096)
        );
        let dev =
            "Inter-|\n    lo: 10 2 0 0 0 0 0 0 77 2 0 0 0 0 0 0\n  eth0: 1 1 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n";
        assert_eq!(
            (
                sent_bytes(dev, "lo"),
                sent_bytes(dev, "eth0"),
                sent_bytes(dev, "l")
            ),
            (Some(77), Some(5), None)
        );
        let disk = "254 0 vda 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17";
        assert_eq!(
            (flushes_of(disk), flushes_of("254 0 vda 1 2 3")),
            (Some(16), None)
        );
    }

    #[test]
    fn the_busiest_thread_is_distinguished_from_the_rest() {
        let counters = |own: u64, other: u64, written_bytes| Counters {
            threads: BTreeMap::from([(1, own), (2, other)]),
            written_bytes,
        };
        let used = counters(500, 90, 30).since(&counters(100, 80, 10));
        assert_eq!(
            (used.cpu_ns, used.busiest_ns, used.written_bytes),
            (410.0, 400.0, 20.0)
        );
        assert_eq!(used.each(10).cpu_ns, 41.0);
        // This process has threads, which have used time.
        let now = Counters::of(Process(std::process::id())).unwrap();
        assert!(now.since(&Counters::default()).cpu_ns > 0.0);
        assert!(
            Counters::of(Process(u32::MAX))
                .unwrap_err()
                .contains("is the server's process running")
        );
    }
}
