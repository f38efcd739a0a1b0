//! Memory and CPU time of this process, from `/proc`.

use crate::usage::Process;

/// The kernel counts CPU time in hundredths of a second for user space.
const CPU_TICK_US: u64 = 10_000;

/// The present usage; zero where `/proc` lacks it.
pub fn now() -> Process {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    Process {
        memory_bytes: resident_bytes(&status).unwrap_or(0),
        cpu_us: cpu_us(&stat).unwrap_or(0),
    }
}

fn resident_bytes(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024)
}

/// The sum of the 14th and 15th field of `/proc/self/stat`. The second field may contain anything, in parentheses.
fn cpu_us(stat: &str) -> Option<u64> {
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let ticks = |at: usize| fields.get(at)?.parse::<u64>().ok();
    Some((ticks(11)? + ticks(12)?) * CPU_TICK_US)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proc_is_parsed() {
        assert_eq!(resident_bytes("Name:\tx\nVmRSS:\t  1024 kB\n"), Some(1 << 20));
        let stat = "7 (a ) b) S 1 1 1 0 -1 0 0 0 0 0 25 5 0 0 20 0 4 0 0 0 0";
        assert_eq!(cpu_us(stat), Some(300_000));
        assert!(now().memory_bytes > 1 << 20);
    }
}
