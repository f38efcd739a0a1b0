//! Time that shards' threads spent on processors, and waiting for one, by the kernel's count.

use std::sync::Mutex;
use std::time::Duration;

#[derive(Default)]
pub struct Processors {
    /// Numbers of the shards' threads.
    threads: Mutex<Vec<u32>>,
}

impl Processors {
    /// Call on a shard's own thread.
    pub fn join(&self) {
        if let Some(thread) = own_number() {
            self.threads.lock().expect("threads").push(thread);
        }
    }

    /// The time of all shards together since each began; `None` where the kernel does not count.
    pub fn busy(&self) -> Option<Duration> {
        let threads = self.threads.lock().expect("threads");
        let times = threads.iter().map(|thread| {
            let counted = std::fs::read_to_string(format!("/proc/self/task/{thread}/schedstat")).ok()?;
            busy_of(&counted)
        });
        times
            .collect::<Option<Vec<Duration>>>()
            .map(|all| all.iter().sum())
    }

    pub fn count(&self) -> usize {
        self.threads.lock().expect("threads").len()
    }
}

/// The kernel's number of this thread, which is the name of a folder.
fn own_number() -> Option<u32> {
    let link = std::fs::read_link("/proc/thread-self").ok()?;
    link.file_name()?.to_str()?.parse().ok()
}

/// Nanoseconds on a processor, nanoseconds in the queue for one, and the number of turns.
fn busy_of(schedstat: &str) -> Option<Duration> {
    let mut counts = schedstat.split_whitespace().map(str::parse::<u64>);
    let (Some(Ok(ran_ns)), Some(Ok(waited_ns))) = (counts.next(), counts.next()) else {
        return None;
    };
    Some(Duration::from_nanos(ran_ns.saturating_add(waited_ns)))
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_thread_that_works_is_busy() {
        let processors = Processors::default();
        assert_eq!(processors.busy(), Some(Duration::ZERO), "no shard has begun");
        processors.join();
        let (before, began) = (processors.busy().expect("the kernel counts"), Instant::now());
        let mut spins = 0u64;
        while began.elapsed() < Duration::from_millis(100) {
            spins += 1;
        }
        let busy = processors.busy().expect("the kernel counts") - before;
        assert!(spins > 0 && busy >= Duration::from_millis(80), "{busy:?}");
        assert!(busy <= began.elapsed() + Duration::from_millis(20), "{busy:?}");
        assert_eq!(processors.count(), 1);
    }

    #[test]
    fn other_counts_are_none() {
        assert_eq!(busy_of("1000 2000 3\n"), Some(Duration::from_nanos(3_000)));
        assert_eq!(busy_of(""), None);
        assert_eq!(busy_of("1000"), None);
        assert_eq!(busy_of("a b c"), None);
    }
}
