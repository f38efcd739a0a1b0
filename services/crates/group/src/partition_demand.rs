//! The demand of a partition, by which its group's rate is divided (`docs/internals/partitions.md`, "Rates").

use quorate_burst::demand::DemandHistory;
use quorate_types::Micros;

use crate::append_queue::AppendQueue;
use crate::latencies::ChainTime;
use crate::rate_meter::RateMeter;

#[derive(Debug, Default)]
pub(crate) struct PartitionDemand {
    meter: RateMeter,
    demand: DemandHistory,
    /// A first look measures the time before, which may have been another head's.
    has_begun: bool,
}

impl PartitionDemand {
    /// Requests/s of the declared size that the partition wants in all, smoothed. Call at each interval.
    pub fn take(&mut self, queue: &AppendQueue, chain_time: ChainTime, now_us: Micros) -> u64 {
        let measured = self.meter.take(queue, chain_time, now_us);
        if std::mem::replace(&mut self.has_begun, true) {
            self.demand.observe(measured);
        }
        let in_force_per_s = queue.own().reserved_per_s().saturating_add(queue.share_per_s());
        self.demand.wanted_per_s(in_force_per_s)
    }

    /// Another replica is the head.
    pub fn end(&mut self) {
        *self = Self::default();
    }
}
