//! The quarantine of a group's replicas, and of a group as a whole.

use std::collections::BTreeSet;

use quorate_types::ServerId;
use quorate_types::limits::{QUARANTINES_MAX, QUARANTINES_REMEMBERED_MS};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quarantine {
    /// Servers whose replica an assertion stopped, until they drop it or are restarted. They take no replica of the group.
    pub servers: BTreeSet<ServerId>,
    /// The times of the last quarantines since the group was released, oldest first, one for each server.
    last_ms: Vec<(ServerId, u64)>,
    /// The time since which the group is quarantined as a whole: it is placed on no further server.
    since_ms: Option<u64>,
}

impl Quarantine {
    pub fn is_none(&self) -> bool {
        *self == Self::default()
    }

    pub fn is_whole(&self) -> bool {
        self.since_ms.is_some()
    }

    pub fn since_ms(&self) -> Option<u64> {
        self.since_ms
    }

    /// Notes the quarantine of a replica; whether the group has had them on too many servers. A server that was restarted
    /// and has it again counts once: it says no more of the others.
    pub fn note(&mut self, server: ServerId, now_ms: u64) -> bool {
        self.servers.insert(server);
        self.last_ms.retain(|(other, at_ms)| {
            *other != server && now_ms.saturating_sub(*at_ms) < QUARANTINES_REMEMBERED_MS
        });
        self.last_ms.push((server, now_ms));
        // Nothing older is asked for.
        let surplus = self.last_ms.len().saturating_sub(QUARANTINES_MAX);
        self.last_ms.drain(..surplus);
        self.last_ms.len() >= QUARANTINES_MAX
    }

    pub fn stop(&mut self, now_ms: u64) {
        self.since_ms.get_or_insert(now_ms);
    }

    /// The group goes on. Replicas in quarantine stay there.
    pub fn release(&mut self) {
        self.since_ms = None;
        self.last_ms.clear();
    }
}
