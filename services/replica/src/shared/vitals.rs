//! Signs of life of the shards' threads, for the thread that watches them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use quorate_group::Mark;

#[derive(Default)]
pub struct Vitals {
    /// Locked when a shard starts, and by the watching thread.
    pulses: Mutex<Vec<Weak<AtomicU64>>>,
    hung_ms: AtomicU64,
}

/// One shard's count of its ticks.
pub struct Pulse(Arc<AtomicU64>);

impl Pulse {
    pub fn beat(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Vitals {
    pub fn join(&self) -> Pulse {
        let count = Arc::new(AtomicU64::new(0));
        self.pulses.lock().expect("pulses").push(Arc::downgrade(&count));
        Pulse(count)
    }

    /// Each shard's mark, in the order in which they joined. A shard that has ended has none.
    pub fn marks(&self) -> Vec<Mark> {
        let pulses = self.pulses.lock().expect("pulses");
        let mark = |count: &Weak<AtomicU64>| count.upgrade().map(|count| count.load(Ordering::Relaxed));
        pulses.iter().map(mark).collect()
    }

    /// How long a shard or the journal has hung by now.
    pub fn hung_ms(&self) -> u64 {
        self.hung_ms.load(Ordering::Relaxed)
    }

    pub fn set_hung_ms(&self, hung_ms: u64) {
        self.hung_ms.store(hung_ms, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shard_has_a_mark_until_it_ends() {
        let vitals = Vitals::default();
        let (first, second) = (vitals.join(), vitals.join());
        second.beat();
        assert_eq!(vitals.marks(), [Some(0), Some(1)]);
        drop(first);
        assert_eq!(vitals.marks(), [None, Some(1)]);
    }
}
