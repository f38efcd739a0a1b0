//! Contents of a heartbeat, found out as in `services/replica` (`control.rs`, `shared.rs`, `shard/slow.rs`).
//!
//! Links here have no outbox, so nobody is slow by what waits in one: what does not arrive shows in the chain.

use std::collections::{BTreeMap, BTreeSet};

use quorate_types::control::{Heartbeat, SlowCause, SlowReport};
use quorate_types::limits::SLOW_REPORT_MS;
use quorate_types::{Micros, Role, ServerId};

use super::Server;

impl Server {
    pub(super) fn heartbeat(&self, seq: u64, now: Micros) -> Heartbeat {
        let groups = self.groups.values();
        let groups = groups.filter_map(|hosted| hosted.group.report());
        Heartbeat {
            seq,
            groups: groups.collect(),
            unreachable: self.missed_peers(),
            storage_fault: self.disk_fault.then(|| "full".to_string()),
            slow: self.slow(self.clock_us(now)),
        }
    }

    /// Peers that groups here need and that cannot be reached; others have the right to be gone.
    fn missed_peers(&self) -> Vec<ServerId> {
        let Some(me) = self.id else { return Vec::new() };
        let configs = self
            .groups
            .values()
            .filter_map(|hosted| hosted.replica().config());
        let mine = configs.filter(|config| config.role_of(me) != Role::None);
        let wanted: BTreeSet<ServerId> = mine
            .flat_map(|config| config.line().map(|m| m.server_id))
            .collect();
        self.unreachable.intersection(&wanted).copied().collect()
    }

    /// The worst that any group saw of each server.
    fn slow(&self, now: Micros) -> Vec<SlowReport> {
        let mut worst: BTreeMap<ServerId, (Micros, SlowCause)> = BTreeMap::new();
        let mut note = |server, waited, cause| {
            let known = worst.entry(server).or_insert((waited, cause));
            if waited > known.0 {
                *known = (waited, cause);
            }
        };
        for hosted in self.groups.values() {
            let lags = hosted.replica().lags(now);
            if let Some((server, waited)) = lags.successor {
                note(server, waited, SlowCause::Chain);
            }
            if let (Some(waited), Some(me)) = (lags.journal, self.id) {
                note(me, waited, SlowCause::Journal);
            }
        }
        let reports = worst.into_iter().map(|(server, (waited, cause))| SlowReport {
            server,
            behind_ms: waited / 1_000,
            cause,
        });
        reports
            .filter(|report| report.behind_ms >= SLOW_REPORT_MS)
            .collect()
    }
}
