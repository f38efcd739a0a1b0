//! A head's rates between two looks.

use quorate_burst::demand::MeasuredRates;
use quorate_qos::Flow;
use quorate_types::Micros;

use crate::append_queue::AppendQueue;

#[derive(Debug, Default)]
pub(crate) struct RateMeter {
    measured_at_us: Micros,
    measured: Flow,
}

impl RateMeter {
    /// The time since the last call of [`RateMeter::take`].
    pub fn elapsed_us(&self, now_us: Micros) -> Micros {
        now_us.saturating_sub(self.measured_at_us)
    }

    /// Rates since the last call, in requests/s of the declared size.
    pub fn take(&mut self, queue: &AppendQueue, now_us: Micros) -> MeasuredRates {
        let flow = queue.admission.flow();
        let elapsed_us = self.elapsed_us(now_us).max(1);
        self.measured_at_us = now_us;
        let since = flow.since(&std::mem::replace(&mut self.measured, flow));
        let per_s = |milli: [u64; 3]| {
            let requests = u128::from(queue.budget.requests_of(milli));
            u64::try_from(requests * 1_000_000 / u128::from(elapsed_us)).unwrap_or(u64::MAX)
        };
        let both = std::array::from_fn(|i| since.reserved[i].wrapping_add(since.burst[i]));
        MeasuredRates {
            accepted_per_s: per_s(both),
            offered_per_s: per_s(since.offered),
            beyond_per_s: per_s(since.beyond),
            was_held_back: since.held_back > since.offers / 2,
            extra_max_per_s: None,
        }
    }
}
