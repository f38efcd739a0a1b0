//! The group's share of its project's guarantee: what it wants of it, and what it may use beside it
//! (`docs/internals/allocation.md`, "Guarantees of projects").

use quorate_burst::demand::DemandHistory;
use quorate_types::Micros;
use quorate_types::control::GroupShare;
use quorate_types::limits::GUARANTEE_INTERVAL_MS;

use crate::append_queue::AppendQueue;
use crate::latencies::ChainTime;
use crate::rate_meter::RateMeter;

/// Heads also report when their shares change. A rate over less time would say nothing.
const MEASURED_US_MIN: Micros = GUARANTEE_INTERVAL_MS * 1_000 / 2;

#[derive(Debug, Default)]
pub(crate) struct ProjectShare {
    /// A coordinator told it a share, so it reports what it wants.
    is_reported: bool,
    idle_max_per_s: Option<u64>,
    meter: RateMeter,
    demand: DemandHistory,
}

impl ProjectShare {
    pub fn take(
        &mut self,
        queue: &mut AppendQueue,
        share: &GroupShare,
        chain_time: ChainTime,
        now_us: Micros,
    ) {
        if !std::mem::replace(&mut self.is_reported, true) {
            let _of_the_time_before = self.meter.take(queue, chain_time, now_us);
        }
        self.idle_max_per_s = share.idle_max_per_s;
        queue.set_share(now_us, share.per_s.unwrap_or(0));
    }

    /// Another replica is the head, or no coordinator was heard for long.
    pub fn end(&mut self, queue: Option<&mut AppendQueue>, now_us: Micros) {
        if let Some(queue) = queue {
            queue.set_share(now_us, 0);
        }
        *self = Self::default();
    }

    /// The most that the group may use of others' idle capacity, in requests/s; `None`: as much as it gets.
    pub fn idle_max_per_s(&self) -> Option<u64> {
        self.idle_max_per_s
    }

    /// Requests/s that the group wants beside its own reservation; `None`: nobody told it a share. Call at least once an
    /// interval.
    pub fn wanted_per_s(
        &mut self,
        queue: &AppendQueue,
        chain_time: ChainTime,
        now_us: Micros,
    ) -> Option<u64> {
        if !self.is_reported {
            return None;
        }
        if self.meter.elapsed_us(now_us) >= MEASURED_US_MIN {
            self.demand.observe(self.meter.take(queue, chain_time, now_us));
        }
        let own_per_s = queue.own().reserved_per_s();
        let in_force_per_s = own_per_s.saturating_add(queue.share_per_s());
        Some(self.demand.wanted_per_s(in_force_per_s).saturating_sub(own_per_s))
    }
}
