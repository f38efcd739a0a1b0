//! The memory of a shard that its groups share: what they hold beyond what each was admitted with.
//!
//! A group always has the memory of its own terms ([`quorate_types::space`]). Windows, queues, recent payloads and
//! retained payloads that a learner still needs may be more than that, as long as the pool has room. When it is full,
//! groups that hold more than their own let go of what can be had again, and take in no more.

use quorate_types::planted::{self, Bug};

#[derive(Debug, Clone)]
pub struct Pool {
    bytes_max: u64,
    used_bytes: u64,
}

impl Pool {
    pub fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            used_bytes: 0,
        }
    }

    /// A pool that is never full.
    pub fn unlimited() -> Self {
        Self::new(u64::MAX)
    }

    pub fn is_full(&self) -> bool {
        self.used_bytes >= self.bytes_max && !planted::on(Bug::PoolIgnored)
    }

    pub fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    pub fn bytes_max(&self) -> u64 {
        self.bytes_max
    }

    /// A group that used so much uses so much now.
    pub(crate) fn note(&mut self, before_bytes: u64, now_bytes: u64) {
        assert!(before_bytes <= self.used_bytes, "what a group used was noted");
        self.used_bytes = self.used_bytes - before_bytes + now_bytes;
    }
}
