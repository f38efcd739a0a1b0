//! Servers that this shard has waited for too long: links whose bytes do not leave, chains, the journal.

use std::collections::BTreeMap;

use quorate_chain::Lags;
use quorate_types::control::{SlowCause, SlowReport};
use quorate_types::limits::SLOW_REPORT_MS;
use quorate_types::{Micros, ServerId};

use super::executor::Executor;

/// For the next heartbeat: the worst of each server. `lags`: of the shard's groups.
pub fn reports(lags: &[Lags], executor: &mut Executor, now: Micros) -> Vec<SlowReport> {
    let mut worst: BTreeMap<ServerId, (Micros, SlowCause)> = BTreeMap::new();
    let mut note = |server, waited, cause| {
        let known = worst.entry(server).or_insert((waited, cause));
        if waited > known.0 {
            *known = (waited, cause);
        }
    };
    for (server, waited) in executor.links.waited(now) {
        note(server, waited, SlowCause::Link);
    }
    let me = executor.shared.server_id();
    if let Some(waited) = executor.disk.port.journal().oldest_unsynced() {
        note(me, waited.as_micros() as Micros, SlowCause::Journal);
    }
    for lags in lags {
        if let Some((server, waited)) = lags.successor {
            note(server, waited, SlowCause::Chain);
        }
        if let Some(waited) = lags.journal {
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
