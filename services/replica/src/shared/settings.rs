//! An operator's settings, in force for all shards.

use std::sync::atomic::{AtomicBool, Ordering};

use quorate_one_sided::Fabric;
use quorate_types::cost::ResourceVector;

/// Tokens of a [`ResourceVector`] in thousandths: picoseconds, thousandths of bytes, millionths of operations.
pub(super) const MILLI_PER_UNIT: [f64; 3] = [1e12, 1e3, 1e6];

pub struct Settings {
    /// Groups go without budgets, queues and accounting; only ever with `--measure-isolation`.
    is_unmetered: AtomicBool,
    /// Bytes a second that learners of this server's groups may be sent.
    pub catchup_bytes_per_s: u64,
    /// Memory of all shards for what groups hold beyond what they were admitted with.
    pub pool_bytes: u64,
    /// The server's amount of each resource.
    pub capacity: ResourceVector,
    /// Links go by one-sided writes where both ends can. None: by their sockets.
    pub one_sided: Option<Fabric>,
}

impl Settings {
    pub fn new(capacity: ResourceVector, catchup_bytes_per_s: u64, pool_bytes: u64) -> Self {
        Self {
            is_unmetered: AtomicBool::new(false),
            catchup_bytes_per_s,
            pool_bytes,
            capacity,
            one_sided: None,
        }
    }

    pub fn is_unmetered(&self) -> bool {
        self.is_unmetered.load(Ordering::Relaxed)
    }

    /// Turns isolation off, or on again; whether it is off now.
    pub fn toggle_isolation(&self) -> bool {
        !self.is_unmetered.fetch_xor(true, Ordering::Relaxed)
    }

    /// A share of all that the operator stated, in thousandths of tokens each second.
    pub fn capacity_milli(&self, share: f64) -> [u64; 3] {
        let all = self.capacity.to_array();
        std::array::from_fn(|i| (all[i] * share * MILLI_PER_UNIT[i]) as u64)
    }

    /// One shard's amount of each resource, in thousandths of tokens each second: a thread, and a part of the rest.
    pub fn shard_capacity_milli(&self, shards: usize) -> [u64; 3] {
        let [_, network, storage] = self.capacity.to_array();
        let shards = shards.max(1) as f64;
        let all = [1.0, network / shards, storage / shards];
        std::array::from_fn(|i| (all[i] * MILLI_PER_UNIT[i]) as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shard_has_one_thread_and_its_part_of_the_rest() {
        let settings = Settings::new(ResourceVector::new(8.0, 1e9, 4e5), 1, u64::MAX);
        let expected = [1_000_000_000_000, 250_000_000_000, 100_000_000_000];
        assert_eq!(settings.shard_capacity_milli(4), expected);
        let half = [4_000_000_000_000, 500_000_000_000, 200_000_000_000];
        assert_eq!(settings.capacity_milli(0.5), half);
    }
}
