//! The reservation as a server of its own: it decides which requests are owed to a group, and since when
//! (`docs/reference/sla.md`). SLIs are judged by it, so neither overload of a group's own nor a queue of ours moves them.
//!
//! It takes requests in the order in which they arrive, and is never held up. Nothing that the head does changes its
//! decisions. A head that is not held up has at least its tokens, and so lets each request that is owed pass in time.

use std::collections::VecDeque;

use quorate_types::Micros;
use quorate_types::cost::Budget;

use crate::buckets::Buckets;
use crate::queue_limits::QueueLimits;

#[derive(Debug, Clone)]
pub struct Reservation {
    buckets: Buckets,
    /// Owed requests that its queue still holds: the start and the bytes of each.
    queue: VecDeque<(Micros, u64)>,
    queued_bytes: u64,
}

impl Reservation {
    /// Full buckets that hold one second of the budget.
    pub fn new(budget: &Budget, now: Micros) -> Self {
        Self {
            buckets: Buckets::new(budget, now),
            queue: VecDeque::new(),
            queued_bytes: 0,
        }
    }

    /// Takes a request in, and returns the time at which it lets it pass. `None`: it is not owed, as it would not pass by
    /// `start_max`, or would not find room in the queue.
    pub fn offer(
        &mut self,
        now: Micros,
        cost: [u64; 3],
        bytes: u64,
        start_max: Micros,
        limits: &QueueLimits,
    ) -> Option<Micros> {
        let start = self.buckets.start(now, cost);
        if start > start_max {
            return None;
        }
        self.let_pass(now);
        if start > now {
            if limits.is_full(self.queue.len(), self.queued_bytes, bytes) {
                return None;
            }
            self.queue.push_back((start, bytes));
            self.queued_bytes += bytes;
        }
        self.charge(start, cost);
        Some(start)
    }

    /// Takes in a request that it lets pass at once, before those that wait: it is within its session's share.
    pub fn pass_at_once(&mut self, now: Micros, cost: [u64; 3]) {
        self.buckets.charge_now(now, cost);
    }

    /// Whether `buckets` can let `cost` pass, and then all requests that are owed and wait (`owed`) in time. The head's own
    /// can where owed requests passed on burst capacity, or left without passing.
    pub fn can_spare(&self, now: Micros, cost: [u64; 3], owed: [u128; 3], buckets: &Buckets) -> bool {
        let both = std::array::from_fn(|i| u128::from(cost[i]).saturating_add(owed[i]));
        buckets.is_ahead_with(now, both, &self.buckets)
    }

    /// The new rates count from now on. Requests that wait keep the times that they were promised.
    pub fn set_budget(&mut self, now: Micros, budget: &Budget) {
        self.buckets.count_from(now);
        self.buckets.set_budget(budget, now);
    }

    fn let_pass(&mut self, now: Micros) {
        while let Some((_, bytes)) = self.queue.pop_front_if(|(start, _)| *start <= now) {
            self.queued_bytes -= bytes;
        }
    }

    fn charge(&mut self, start: Micros, cost: [u64; 3]) {
        let passes = self.buckets.take(start, cost);
        assert_eq!(passes, Ok(()), "it passes when its wait is over");
    }
}

#[cfg(test)]
mod tests {
    use quorate_types::cost::EntryCost;

    use super::*;

    const COST: EntryCost = EntryCost {
        fixed_milli: [1_500, 128_000, 0],
        per_byte_milli: [1, 2_000, 0],
    };
    const S: Micros = 1_000_000;

    fn one() -> [u64; 3] {
        COST.of(1, 64)
    }

    fn reservation(rate_per_s: u64) -> Reservation {
        Reservation::new(&Budget::for_rate(rate_per_s, 64, COST), 0)
    }

    /// A request that waits for as long as it must.
    fn pass(reservation: &mut Reservation, now: Micros) -> Option<Micros> {
        reservation.offer(now, one(), 64, now + 100 * S, &QueueLimits::default())
    }

    #[test]
    fn requests_start_at_once_within_the_rate_and_in_turn_beyond_it() {
        let mut reservation = reservation(10);
        for _ in 0..10 {
            assert_eq!(pass(&mut reservation, 5), Some(5), "a second of the rate");
        }
        // Half a token is there.
        assert_eq!(pass(&mut reservation, 50_005), Some(100_005));
        assert_eq!(pass(&mut reservation, 50_005), Some(200_005));
        assert_eq!(pass(&mut reservation, 60_000), Some(300_005), "in order");
        assert_eq!(pass(&mut reservation, 2 * S), Some(2 * S));
    }

    #[test]
    fn a_request_that_would_pass_too_late_is_not_owed_and_costs_nothing() {
        let mut reservation = reservation(10);
        for _ in 0..10 {
            pass(&mut reservation, 0);
        }
        let limits = QueueLimits::default();
        for _ in 0..3 {
            assert_eq!(reservation.offer(0, one(), 64, 99_999, &limits), None);
        }
        assert_eq!(reservation.offer(0, one(), 64, 100_000, &limits), Some(100_000));
    }

    #[test]
    fn its_queue_has_the_bounds_of_the_heads() {
        let limits = QueueLimits {
            batches_max: 2,
            ..QueueLimits::default()
        };
        let mut reservation = reservation(10);
        for _ in 0..10 {
            pass(&mut reservation, 0);
        }
        let mut offer = |now| reservation.offer(now, one(), 64, now + 10 * S, &limits);
        assert_eq!(
            [offer(0), offer(0), offer(0)],
            [Some(100_000), Some(200_000), None]
        );
        assert_eq!(offer(99_999), None);
        assert_eq!(offer(100_000), Some(300_000), "one has passed");
    }

    #[test]
    fn another_budget_counts_from_now_on() {
        let mut reservation = reservation(10);
        for _ in 0..10 {
            pass(&mut reservation, 0);
        }
        // A second of the old rate is there, and the new one fills it up from now on.
        reservation.set_budget(5 * S, &Budget::for_rate(100, 64, COST));
        for _ in 0..10 {
            assert_eq!(pass(&mut reservation, 5 * S), Some(5 * S));
        }
        assert_eq!(pass(&mut reservation, 5 * S), Some(5 * S + 10_000));
        let nothing = Budget {
            tokens_per_s_milli: [0; 3],
            ..Budget::for_rate(1, 64, COST)
        };
        reservation.set_budget(6 * S, &nothing);
        assert_eq!(pass(&mut reservation, 7 * S), None);
    }
}
