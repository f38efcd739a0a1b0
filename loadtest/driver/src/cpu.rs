//! Processor time of processes and of the machine, from /proc.

use std::fs;

/// Processor time used up to now, in seconds.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuSeconds {
    pub servers: f64,
    pub client: f64,
    /// All processes of the machine, and what the host of a virtual machine took from it.
    pub machine: f64,
}

impl CpuSeconds {
    /// Reads the counters of `server_pids`, this process and the machine. Fails when a process is gone.
    pub fn now(server_pids: &[u32]) -> Result<Self, String> {
        let mut servers = 0.0;
        for pid in server_pids {
            servers += of_process(&pid.to_string())?;
        }
        Ok(Self {
            servers,
            client: of_process("self")?,
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

fn ticks_to_s(ticks: u64) -> f64 {
    ticks as f64 / rustix::param::clock_ticks_per_second() as f64
}

fn of_process(pid: &str) -> Result<f64, String> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path)
        .map_err(|error| format!("cannot read {path}: {error}; is the server's process running?"))?;
    ticks_of_stat(&text)
        .map(ticks_to_s)
        .ok_or_else(|| format!("{path} is not in the known form"))
}

/// utime + stime: fields 14 and 15, counted behind the name, which may contain anything.
fn ticks_of_stat(stat: &str) -> Option<u64> {
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_ascii_whitespace().skip(11);
    Some(fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?)
}

fn of_machine() -> Result<f64, String> {
    let text =
        fs::read_to_string("/proc/stat").map_err(|error| format!("cannot read /proc/stat: {error}"))?;
    ticks_of_machine(&text)
        .map(ticks_to_s)
        .ok_or_else(|| "/proc/stat is not in the known form".to_string())
}

/// Everything but idle, waiting for disks, and guests (which are counted as user time already). With what the host took
/// (steal): a window in which it did is disturbed as by a process of others.
fn ticks_of_machine(stat: &str) -> Option<u64> {
    let fields: Vec<u64> = stat
        .lines()
        .next()
        .unwrap_or_default()
        .split_ascii_whitespace()
        .skip(1)
        .filter_map(|field| field.parse().ok())
        .collect();
    let [user, nice, system, _idle, _waiting, irq, softirq, steal, ..] = fields[..] else {
        return None;
    };
    Some(user + nice + system + irq + softirq + steal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_with_blanks_and_brackets_does_not_shift_the_fields() {
        let stat = "12 (a) b (c) S 1 2 3 4 5 6 7 8 9 10 300 40 0 0 20";
        assert_eq!(ticks_of_stat(stat), Some(340));
    }

    #[test]
    fn what_the_host_took_is_used_by_others() {
        let stat = "cpu  100 20 30 4000 500 6 7 80 900 0\ncpu0 1 2 3 4 5 6 7 8 9 0\n";
        assert_eq!(ticks_of_machine(stat), Some(243));
        assert_eq!(ticks_of_machine("cpu  100 20 30 4000 500 6 7\n"), None);
    }

    #[test]
    fn this_process_and_the_machine_use_time() {
        let mut before = CpuSeconds::now(&[]).unwrap();
        before.client -= 1.0;
        let used = CpuSeconds::now(&[std::process::id()]).unwrap().since(&before);
        assert!(used.client >= 1.0 && used.servers >= 0.0);
        assert!(
            CpuSeconds::now(&[u32::MAX])
                .unwrap_err()
                .contains("is the server's process running")
        );
    }
}
