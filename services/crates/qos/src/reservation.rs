//! The reservation as a server of its own: the time at which it would let each request pass. SLIs are judged by it
//! (`docs/reference/sla.md`), so neither overload of a group's own nor a queue of ours moves them.
//!
//! It takes requests in the order in which the group's head does. It is never held up, and loses no tokens while the head
//! is. A request that the head refused although the reservation would have let it pass in time is charged all the same.

use quorate_types::Micros;
use quorate_types::cost::Budget;

use crate::buckets::Buckets;

#[derive(Debug, Clone)]
pub struct Reservation {
    buckets: Buckets,
}

impl Reservation {
    /// Full buckets that hold one second of the budget.
    pub fn new(budget: &Budget, now: Micros) -> Self {
        let buckets = Buckets::new(budget, now);
        Self { buckets }
    }

    /// The time at which a request that came at `arrival` would pass behind `ahead` (thousandths of tokens, per resource).
    /// `Micros::MAX`: never with this budget.
    pub fn start(&self, arrival: Micros, cost: [u64; 3], ahead: [u128; 3]) -> Micros {
        self.buckets.start(arrival, cost, ahead)
    }

    /// Lets a request pass that came at `arrival`, and returns the time at which it does.
    pub fn pass(&mut self, arrival: Micros, cost: [u64; 3]) -> Micros {
        let start = self.start(arrival, cost, [0; 3]);
        // A budget that lets no such request pass is newer than the request.
        if start != Micros::MAX {
            let passes = self.buckets.take(start, cost);
            assert_eq!(passes, Ok(()), "it passes when its wait is over");
        }
        start
    }

    /// The new rates count from the last request on.
    pub fn set_budget(&mut self, budget: &Budget) {
        self.buckets.set_budget(budget, 0);
    }
}

#[cfg(test)]
mod tests {
    use quorate_types::cost::AppendCost;

    use super::*;

    const COST: AppendCost = AppendCost {
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

    #[test]
    fn requests_start_at_once_within_the_rate_and_in_turn_beyond_it() {
        let mut reservation = reservation(10);
        for _ in 0..10 {
            assert_eq!(reservation.pass(5, one()), 5, "a second of the rate");
        }
        // Half a token is there.
        assert_eq!(reservation.pass(50_005, one()), 100_005);
        assert_eq!(reservation.pass(50_005, one()), 200_005);
        assert_eq!(reservation.pass(60_000, one()), 300_005, "in order");
        assert_eq!(reservation.pass(2 * S, one()), 2 * S);
    }

    #[test]
    fn a_request_that_passed_late_in_reality_costs_what_it_did_in_time() {
        let mut reservation = reservation(10);
        for _ in 0..10 {
            reservation.pass(0, one());
        }
        // The head was held up for ten seconds. In them a hundred requests came, at the rate.
        for i in 1..=100 {
            assert_eq!(reservation.pass(i * S / 10, one()), i * S / 10);
        }
    }

    #[test]
    fn what_waits_ahead_comes_first_and_asking_changes_nothing() {
        let reservation = reservation(10);
        let ahead = one().map(|cost| u128::from(cost) * 12);
        for _ in 0..3 {
            assert_eq!(reservation.start(0, one(), ahead), 300_000);
        }
    }

    #[test]
    fn another_budget_counts_from_the_last_request_on() {
        let mut reservation = reservation(10);
        for _ in 0..11 {
            reservation.pass(0, one());
        }
        reservation.set_budget(&Budget::for_rate(100, 64, COST));
        assert_eq!(reservation.pass(S, one()), S);
        reservation.set_budget(&Budget {
            tokens_per_s_milli: [0; 3],
            ..Budget::for_rate(1, 64, COST)
        });
        assert_eq!(reservation.pass(3 * S, one()), Micros::MAX);
    }
}
