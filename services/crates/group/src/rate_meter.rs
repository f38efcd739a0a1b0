//! A head's rates between two looks.

use quorate_burst::demand::MeasuredRates;
use quorate_qos::Flow;
use quorate_types::Micros;

use crate::append_queue::AppendQueue;
use crate::latencies::ChainTime;

#[derive(Debug, Default)]
pub(crate) struct RateMeter {
    measured_at_us: Micros,
    measured: Flow,
    chain_time: ChainTime,
}

impl RateMeter {
    /// The time since the last call of [`RateMeter::take`].
    pub fn elapsed_us(&self, now_us: Micros) -> Micros {
        now_us.saturating_sub(self.measured_at_us)
    }

    /// Rates since the last call, in requests/s of the declared size.
    pub fn take(&mut self, queue: &AppendQueue, chain_time: ChainTime, now_us: Micros) -> MeasuredRates {
        let flow = queue.admission.flow_at(now_us);
        let elapsed_us = self.elapsed_us(now_us).max(1);
        self.measured_at_us = now_us;
        let since = flow.since(&std::mem::replace(&mut self.measured, flow));
        let before = std::mem::replace(&mut self.chain_time, chain_time);
        let per_s = |milli: [u64; 3]| {
            let requests = u128::from(queue.budget.requests_of(milli));
            u64::try_from(requests * 1_000_000 / u128::from(elapsed_us)).unwrap_or(u64::MAX)
        };
        // Little: as many outstanding as are committed in the time that each takes.
        let queued = queue
            .budget
            .requests_of(since.waited.map(|milli_us| milli_us / elapsed_us));
        let took_us = chain_time.mean_us_since(&before);
        let closed_per_s = took_us.map_or(0, |took_us| queued.saturating_mul(1_000_000) / took_us.max(1));
        let both = std::array::from_fn(|i| since.reserved[i].wrapping_add(since.burst[i]));
        MeasuredRates {
            accepted_per_s: per_s(both),
            offered_per_s: per_s(since.offered),
            beyond_per_s: per_s(since.beyond),
            waiting_per_s: closed_per_s.max(per_s(queue.admission.waiting_milli())),
            was_held_back: since.held_back > since.offers / 2,
            extra_max_per_s: None,
        }
    }
}
