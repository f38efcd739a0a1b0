//! Contents of a heartbeat, computed as in `services/replica` (`control.rs`, `shared/`, `shard/slow.rs`).
//!
//! Links here have no outbox, so no server is slow by bytes that wait in one. Frames that do not arrive show in the chain.

use std::collections::{BTreeMap, BTreeSet};

use quorate_types::control::{Heartbeat, SlowCause, SlowReport};
use quorate_types::limits::SLOW_REPORT_MS;
use quorate_types::{Micros, Role, ServerId};

use crate::fleet::Server;

pub(super) fn heartbeat(server: &mut Server, seq: u64) -> Heartbeat {
    let groups = server.groups.values();
    let reports = groups.filter_map(|hosted| hosted.group.report());
    reports.for_each(|report| server.reports.note(report));
    let (groups, changes) = server.reports.take();
    Heartbeat {
        seq,
        groups,
        unreachable: missed_peers(server),
        storage_fault: server.disk_fault.then(|| "full".to_string()),
        slow: server.slow.clone(),
        hung_ms: server.hang.watch.hung_ms(),
        estimated: None,
        changes: Some(changes),
        quarantined: server.quarantined.reports().cloned().collect(),
    }
}

/// Peers that groups here need and that cannot be reached. Other peers may be gone.
fn missed_peers(server: &Server) -> Vec<ServerId> {
    let Some(me) = server.id else { return Vec::new() };
    let configs = server
        .groups
        .values()
        .filter_map(|hosted| hosted.replica().config());
    let mine = configs.filter(|config| config.role_of(me) != Role::None);
    let wanted: BTreeSet<ServerId> = mine
        .flat_map(|config| config.line().map(|m| m.server_id))
        .collect();
    server.unreachable.intersection(&wanted).copied().collect()
}

/// The worst that any group saw of each server, for heartbeats until the next tick.
pub(super) fn slow(server: &Server, now: Micros) -> Vec<SlowReport> {
    let now = server.clock_us(now);
    let mut worst: BTreeMap<ServerId, (Micros, SlowCause)> = BTreeMap::new();
    let mut note = |server, waited, cause| {
        let known = worst.entry(server).or_insert((waited, cause));
        if waited > known.0 {
            *known = (waited, cause);
        }
    };
    for hosted in server.groups.values() {
        let lags = hosted.replica().lags(now);
        if let Some((server, waited)) = lags.successor {
            note(server, waited, SlowCause::Chain);
        }
        if let (Some(waited), Some(me)) = (lags.journal, server.id) {
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
