//! What learners may be sent, and who is slow: work of the shard that looks at all its groups and links.

use std::collections::BTreeMap;

use quorate_chain::Event;
use quorate_types::control::{SlowCause, SlowReport};
use quorate_types::limits::SLOW_REPORT_MS;
use quorate_types::{Micros, ServerId};

use crate::clock::now_us;
use crate::shard::Shard;
use crate::shard::links::Link;

impl Shard {
    /// Shares what the pace gives out among the groups whose learners wait, evenly.
    pub fn allow_catchup(&mut self) {
        let waiting = std::mem::take(&mut self.io.catching_up);
        let now = now_us();
        let mut rest = waiting.len() as u64;
        for group_id in waiting {
            let share = self.io.pace.available(now).div_ceil(rest);
            rest -= 1;
            let wanted = (self.groups.get(&group_id)).map_or(0, |g| g.replica.catchup_wanted_bytes());
            let bytes = self.io.pace.take(now, wanted.min(share));
            if bytes > 0 {
                self.event(group_id, Event::CatchupAllowance { bytes });
            } else if wanted > 0 {
                self.io.catching_up.insert(group_id);
            }
        }
    }

    /// Notes, for the next heartbeat, whom this shard has waited for too long.
    pub fn report_slow(&mut self, now: Micros) {
        let mut worst: BTreeMap<ServerId, (Micros, SlowCause)> = BTreeMap::new();
        let mut note = |server, waited, cause| {
            let known = worst.entry(server).or_insert((waited, cause));
            if waited > known.0 {
                *known = (waited, cause);
            }
        };
        for (server, link) in &mut self.io.links {
            note(*server, link.waited(now), SlowCause::Link);
        }
        let me = self.io.shared.server_id();
        if let Some(waited) = self.io.journal.journal().oldest_unsynced() {
            note(me, waited.as_micros() as Micros, SlowCause::Journal);
        }
        for group in self.groups.values() {
            let lags = group.replica.lags(now);
            if let Some((server, waited)) = lags.successor {
                note(server, waited, SlowCause::Chain);
            }
            if let Some(waited) = lags.journal {
                note(me, waited, SlowCause::Journal);
            }
        }
        let reports = worst
            .into_iter()
            .map(|(server, (waited, cause))| SlowReport {
                server,
                behind_ms: waited / 1_000,
                cause,
            })
            .filter(|report| report.behind_ms >= SLOW_REPORT_MS)
            .collect();
        self.io.shared.note_slow(self.io.shard, reports);
    }
}

impl Link {
    /// For how long the oldest byte of the outbox has waited, at least: since the tick that saw it first.
    fn waited(&mut self, now: Micros) -> Micros {
        let waiting = self.outbox.len() as u64;
        let written = self.pushed_bytes.saturating_sub(waiting);
        self.waits = match self.waits {
            Some(mark) if mark.0 > written => Some(mark),
            _ => (waiting > 0).then_some((self.pushed_bytes, now)),
        };
        self.waits.map_or(0, |(_, since)| now.saturating_sub(since))
    }
}
