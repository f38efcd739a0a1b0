//! The memory and disk that a replica may fill: what admission promises, and what a server holds its groups to
//! (`docs/internals/allocation.md`, "Memory and disk").
//!
//! Rates come back each second, and space does not. So the two are kept apart: burst capacity is shared of rates alone.

use serde::{Deserialize, Serialize};

use crate::config::GroupConfig;
use crate::durability::Durability;
use crate::limits::{
    BATCH_MEMORY_BYTES, ENTRY_PREFIX_BYTES, GROUP_DISK_BYTES, GROUP_MEMORY_BYTES, PERSIST_BASE_BYTES,
    SESSION_MEMORY_BYTES, SESSION_PLACE_BYTES, SESSION_PLACES_MAX, SESSION_PLACES_MIN,
    SESSIONS_PER_GROUP_MAX, WINDOW_MEMORY_BYTES_MAX, WINDOW_MEMORY_BYTES_MIN,
};

/// Bytes that a replica may fill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Space {
    pub memory_bytes: u64,
    pub disk_bytes: u64,
}

/// Bytes that a server has for replicas; `None`: it does not say, and is not limited. Servers of earlier versions do
/// not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Room {
    #[serde(default)]
    pub memory_bytes: Option<u64>,
    #[serde(default)]
    pub disk_bytes: Option<u64>,
}

impl Room {
    /// The sum, as far as both are known.
    pub fn plus(self, other: Self) -> Self {
        let sum = |a: Option<u64>, b: Option<u64>| Some(a?.saturating_add(b?));
        Self {
            memory_bytes: sum(self.memory_bytes, other.memory_bytes),
            disk_bytes: sum(self.disk_bytes, other.disk_bytes),
        }
    }

    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }
}

/// The part of a group's terms that its space follows from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Terms {
    pub durability: Durability,
    pub retention_bytes: u64,
    pub request_size_bytes: u32,
    pub rate_per_s: u64,
}

impl Terms {
    pub fn of_config(config: &GroupConfig) -> Self {
        Self {
            durability: config.durability,
            retention_bytes: config.retention_bytes,
            request_size_bytes: config.budget.request_size_bytes,
            rate_per_s: config.budget.rate_per_s,
        }
    }

    /// The space of one replica, in whichever role: a replica may become the head at any time.
    pub fn space(&self) -> Space {
        Space {
            memory_bytes: self
                .log_memory_bytes()
                .saturating_add(with_slack(self.window_bytes()))
                .saturating_add(self.session_bytes())
                .saturating_add(GROUP_MEMORY_BYTES),
            disk_bytes: self.disk_bytes(),
        }
    }

    /// Batches that the log retains at most. A batch counts as a request of the declared size at least.
    pub fn retained_batches_max(&self) -> u64 {
        let least = u64::from(self.request_size_bytes) + ENTRY_PREFIX_BYTES + BATCH_MEMORY_BYTES;
        self.retention_bytes / least + 1
    }

    /// Batches of all sessions whose places are remembered for retries: two seconds of the SLA, each alone.
    pub fn session_places_max(&self) -> u64 {
        self.rate_per_s
            .saturating_mul(2)
            .clamp(SESSION_PLACES_MIN, SESSION_PLACES_MAX)
    }

    /// In memory: all that is retained. On disk: what memory holds of each batch beside its payload.
    fn log_memory_bytes(&self) -> u64 {
        match self.durability {
            Durability::InMemory => with_slack(self.retention_bytes),
            Durability::Persistent => self.retained_batches_max().saturating_mul(BATCH_MEMORY_BYTES),
        }
    }

    /// A quarter of a second of the SLA that is neither committed nor refused, or that waits. More of it needs room in
    /// the server's pool.
    pub fn window_bytes(&self) -> u64 {
        let request = u64::from(self.request_size_bytes) + ENTRY_PREFIX_BYTES;
        let quarter_s = self.rate_per_s.saturating_mul(request) / 4;
        let window = quarter_s.clamp(WINDOW_MEMORY_BYTES_MIN, WINDOW_MEMORY_BYTES_MAX);
        window.max(2 * request)
    }

    /// Two tables: after the last batch, and at the base.
    fn session_bytes(&self) -> u64 {
        let records = SESSIONS_PER_GROUP_MAX as u64 * SESSION_MEMORY_BYTES;
        2 * (records + self.session_places_max() * SESSION_PLACE_BYTES)
    }

    fn disk_bytes(&self) -> u64 {
        match self.durability {
            Durability::InMemory => 0,
            Durability::Persistent => self
                .retention_bytes
                .saturating_add(self.retention_bytes.min(PERSIST_BASE_BYTES))
                .saturating_add(GROUP_DISK_BYTES),
        }
    }
}

/// Memory that holds so many bytes: buffers are not filled to their ends, nor does the allocator waste nothing.
pub fn with_slack(bytes: u64) -> u64 {
    bytes.saturating_add(bytes / 4)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(durability: Durability, retention_bytes: u64, request_size_bytes: u32) -> Terms {
        Terms {
            durability,
            retention_bytes,
            request_size_bytes,
            rate_per_s: 1_000,
        }
    }

    #[test]
    fn memory_grows_with_what_is_retained() {
        let in_memory = |retention| terms(Durability::InMemory, retention, 64).space();
        let (less, more) = (in_memory(1 << 30), in_memory(2 << 30));
        assert_eq!(more.memory_bytes - less.memory_bytes, (1 << 30) + (1 << 28));
        assert_eq!(more.disk_bytes, 0, "nothing of it is on a disk");
    }

    #[test]
    fn a_persistent_group_keeps_the_heads_of_its_batches_in_memory() {
        let small = terms(Durability::Persistent, 1 << 30, 64);
        let large = terms(Durability::Persistent, 1 << 30, 4_096);
        assert_eq!(small.retained_batches_max(), (1 << 30) / 324 + 1);
        assert!(large.space().memory_bytes < small.space().memory_bytes / 5);
        assert_eq!(
            small.space().disk_bytes,
            (1 << 30) + PERSIST_BASE_BYTES + GROUP_DISK_BYTES
        );
    }

    #[test]
    fn no_terms_overflow() {
        for durability in [Durability::InMemory, Durability::Persistent] {
            let most = Terms {
                durability,
                retention_bytes: u64::MAX,
                request_size_bytes: u32::MAX,
                rate_per_s: u64::MAX,
            };
            let space = most.space();
            assert!(space.memory_bytes >= 1 << 39);
        }
    }

    #[test]
    fn an_unknown_room_makes_a_sum_unknown() {
        let known = Room {
            memory_bytes: Some(3),
            disk_bytes: Some(4),
        };
        let half = Room {
            disk_bytes: None,
            ..known
        };
        assert_eq!(known.plus(half).memory_bytes, Some(6));
        assert_eq!(known.plus(half).disk_bytes, None);
    }
}
