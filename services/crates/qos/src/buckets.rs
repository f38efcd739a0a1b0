//! Multi-resource token buckets, exact: levels are integers, so no rate drifts however often a caller asks.

use quorate_types::Micros;
use quorate_types::cost::Budget;

/// Levels count millionths of a thousandth of a token: `tokens_per_s_milli` per microsecond, exactly.
const SCALE: i128 = 1_000_000;

/// Not now. The same request passes after this many microseconds, if nothing else passes before it. `u64::MAX` means
/// never with this budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryAfter(pub Micros);

/// Whether the load offered so far, this request included, was within the reserved rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Conformance {
    WithinSla,
    BeyondSla,
}

/// One bucket per resource, each holding at most one second of its rate, or `depth_us` of it.
///
/// A request passes if every bucket holds its cost. A request that costs more than a bucket can hold passes once that
/// bucket is full, and leaves it in debt. So over any time `t` at most `rate · t + depth` passes, and the excess of one
/// such request over the depth.
#[derive(Debug, Clone)]
pub struct Buckets {
    rate_milli: [u64; 3],
    /// The time in which an empty bucket fills.
    depth_us: Micros,
    /// Below zero, a bucket is in debt.
    level: [i128; 3],
    updated: Micros,
}

/// The depth of a group's own budget: an idle group may use one second of its rate at once.
const SECOND_US: Micros = 1_000_000;

impl Buckets {
    /// Full buckets that hold one second of the budget.
    pub fn new(budget: &Budget, now: Micros) -> Self {
        Self::with_depth(budget.tokens_per_s_milli, SECOND_US, now)
    }

    /// Full buckets that hold `depth_us` of the rates (thousandths of tokens each second).
    pub fn with_depth(rate_milli: [u64; 3], depth_us: Micros, now: Micros) -> Self {
        Self {
            rate_milli,
            depth_us,
            level: rate_milli.map(|rate| depth(rate, depth_us)),
            updated: now,
        }
    }

    /// Changes the rates. Tokens held are kept up to the new depth; debts are kept.
    pub fn set_budget(&mut self, budget: &Budget, now: Micros) {
        self.set_rates(budget.tokens_per_s_milli, now);
    }

    /// Whether the budget is less in any resource.
    pub fn is_more_than(&self, budget: &Budget) -> bool {
        (0..3).any(|i| self.rate_milli[i] > budget.tokens_per_s_milli[i])
    }

    pub fn set_rates(&mut self, rate_milli: [u64; 3], now: Micros) {
        self.refill(now);
        self.rate_milli = rate_milli;
        for i in 0..3 {
            self.level[i] = self.level[i].min(depth(self.rate_milli[i], self.depth_us));
        }
    }

    /// Other rates, and another depth. Tokens held are kept up to that; debts are kept.
    pub fn set_rates_and_depth(&mut self, rate_milli: [u64; 3], depth_us: Micros, now: Micros) {
        self.depth_us = self.depth_us.max(depth_us);
        self.refill(now);
        self.depth_us = depth_us;
        self.set_rates(rate_milli, now);
    }

    /// Whether full buckets hold `cost`.
    pub fn can_hold(&self, cost: [u64; 3]) -> bool {
        (0..3).all(|i| i128::from(cost[i]) * SCALE <= depth(self.rate_milli[i], self.depth_us))
    }

    /// Takes `cost` whatever the buckets hold.
    pub fn charge_now(&mut self, now: Micros, cost: [u64; 3]) {
        self.refill(now);
        self.charge(cost);
    }

    /// The same, with no more debt than full buckets hold.
    pub fn charge_to_depth(&mut self, now: Micros, cost: [u64; 3]) {
        self.charge_now(now, cost);
        for i in 0..3 {
            self.level[i] = self.level[i].max(-depth(self.rate_milli[i], self.depth_us));
        }
    }

    /// Microseconds in which the rates bring `cost`, rounded up. A resource without rate counts for none.
    pub fn worth_us(&self, cost: [u64; 3]) -> Micros {
        let of = |i: usize| match self.rate_milli[i] {
            0 => 0,
            rate => (u128::from(cost[i]) * SCALE.unsigned_abs()).div_ceil(u128::from(rate)),
        };
        let most = (0..3).map(of).max().unwrap_or(0);
        Micros::try_from(most).unwrap_or(Micros::MAX)
    }

    /// Two budgets as one, to compute when requests that wait for both will have passed.
    pub fn joined(&self, other: &Self, now: Micros) -> Self {
        Self {
            rate_milli: std::array::from_fn(|i| self.rate_milli[i].saturating_add(other.rate_milli[i])),
            depth_us: self.depth_us,
            level: std::array::from_fn(|i| self.level_at(i, now).saturating_add(other.level_at(i, now))),
            updated: now,
        }
    }

    /// Takes `cost` (thousandths of tokens, per resource), or returns when to come back.
    pub fn take(&mut self, now: Micros, cost: [u64; 3]) -> Result<(), RetryAfter> {
        match self.wait_us(now, cost, [0; 3]) {
            0 => {
                self.refill(now);
                self.charge(cost);
                Ok(())
            }
            wait_us => Err(RetryAfter(wait_us)),
        }
    }

    /// The time from `from` on at which `cost` (thousandths of tokens, per resource) would pass, exactly. It is not before
    /// the last request that passed. `Micros::MAX` means never.
    pub fn start(&self, from: Micros, cost: [u64; 3]) -> Micros {
        let from = from.max(self.updated);
        from.saturating_add(self.wait_us(from, cost, [0; 3]))
    }

    /// Microseconds from `now` until `cost` would pass after `ahead` (thousandths, per resource) has passed. It is a
    /// lower bound, and exact if one resource limits all of them. `Micros::MAX` means never.
    pub fn wait_us(&self, now: Micros, cost: [u64; 3], ahead: [u128; 3]) -> Micros {
        (0..3)
            .map(|i| self.wait_for(i, now, cost[i], ahead[i]))
            .max()
            .unwrap_or(0)
    }

    /// Counts an offered request, served or not, and returns whether it was within the rate.
    ///
    /// A request beyond the rate uses up the tokens in the buckets but makes no debt. So none conforms while more than
    /// the rate is offered, and all do as soon as the offered rate is within it again.
    pub fn observe(&mut self, now: Micros, cost: [u64; 3]) -> Conformance {
        self.refill(now);
        if self.wait_us(now, cost, [0; 3]) == 0 {
            self.charge(cost);
            return Conformance::WithinSla;
        }
        for i in 0..3 {
            let taken = (i128::from(cost[i]) * SCALE).min(self.level[i].max(0));
            self.level[i] -= taken;
        }
        Conformance::BeyondSla
    }

    /// Whether these buckets would still hold as much as the others in each resource, had they let `cost` pass.
    pub fn is_ahead_with(&self, now: Micros, cost: [u128; 3], others: &Self) -> bool {
        (0..3).all(|i| {
            let cost = i128::try_from(cost[i]).unwrap_or(i128::MAX).saturating_mul(SCALE);
            self.level_at(i, now).saturating_sub(cost) >= others.level_back_at(i, now)
        })
    }

    /// Counts from `now` on, though requests passed at later times: what they took is missing all the same.
    pub fn count_from(&mut self, now: Micros) {
        self.level = std::array::from_fn(|i| self.level_back_at(i, now));
        self.updated = now;
    }

    /// As [`Buckets::level_at`], also for a time before the last request passed: what it will find then is missing.
    fn level_back_at(&self, i: usize, now: Micros) -> i128 {
        let ahead_us = i128::from(self.updated.saturating_sub(now));
        let missing = i128::from(self.rate_milli[i]).saturating_mul(ahead_us);
        self.level_at(i, now).saturating_sub(missing)
    }

    fn refill(&mut self, now: Micros) {
        self.level = std::array::from_fn(|i| self.level_at(i, now));
        self.updated = self.updated.max(now);
    }

    /// Nothing is added if the clock went back.
    fn level_at(&self, i: usize, now: Micros) -> i128 {
        let elapsed_us = i128::from(now.saturating_sub(self.updated));
        // Rate and time are below 2^64 each, and levels within ± 2^105: the sum fits 128 bits.
        let added = i128::from(self.rate_milli[i]).saturating_mul(elapsed_us);
        self.level[i]
            .saturating_add(added)
            .min(depth(self.rate_milli[i], self.depth_us))
    }

    fn charge(&mut self, cost: [u64; 3]) {
        for i in 0..3 {
            self.level[i] = self.level[i].saturating_sub(i128::from(cost[i]) * SCALE);
        }
    }

    fn wait_for(&self, i: usize, now: Micros, cost: u64, ahead: u128) -> Micros {
        if cost == 0 {
            return 0;
        }
        // A request larger than the bucket passes when the bucket is full.
        let own = (i128::from(cost) * SCALE).min(depth(self.rate_milli[i], self.depth_us));
        let ahead = i128::try_from(ahead).unwrap_or(i128::MAX).saturating_mul(SCALE);
        let missing = ahead.saturating_add(own).saturating_sub(self.level_at(i, now));
        match self.rate_milli[i] {
            // Nothing refills such a bucket, and its depth is 0.
            0 => Micros::MAX,
            _ if missing <= 0 => 0,
            rate => {
                let rate = i128::from(rate);
                Micros::try_from(missing / rate + i128::from(missing % rate != 0)).unwrap_or(Micros::MAX)
            }
        }
    }
}

/// `SCALE` levels are a thousandth of a token, and a second has as many microseconds. So a rate times a time is a
/// level.
fn depth(rate_milli: u64, depth_us: Micros) -> i128 {
    i128::from(rate_milli).saturating_mul(i128::from(depth_us))
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_types::cost::EntryCost;

    const COST: EntryCost = EntryCost {
        fixed_milli: [1_500, 128_000, 0],
        per_byte_milli: [1, 2_000, 0],
    };

    fn budget(rate_per_s: u64) -> Budget {
        Budget::for_rate(rate_per_s, 64, COST)
    }

    #[test]
    fn one_second_of_the_rate_passes_at_once_and_then_exactly_the_rate() {
        let mut buckets = Buckets::new(&budget(1_000), 0);
        let one = COST.of(1, 64);
        for _ in 0..1_000 {
            buckets.take(0, one).unwrap();
        }
        assert_eq!(buckets.take(0, one), Err(RetryAfter(1_000)));
        assert_eq!(buckets.take(999, one), Err(RetryAfter(1)));
        // An odd step does not lose the remainder: 1000 a second for 1000 s.
        let mut passed = 0;
        let mut now = 0;
        while now < 1_000_000_000 {
            now += 777;
            while buckets.take(now, one).is_ok() {
                passed += 1;
            }
        }
        assert_eq!(passed, now / 1_000);
    }

    #[test]
    fn a_request_larger_than_the_bucket_passes_when_it_is_full_and_leaves_debt() {
        let mut buckets = Buckets::new(&budget(10), 0);
        let large = COST.of(35, 35 * 64);
        buckets.take(0, large).unwrap();
        // 25 requests of debt, and then a full bucket: 3.5 s at 10/s.
        assert_eq!(buckets.take(0, large), Err(RetryAfter(3_500_000)));
        assert_eq!(buckets.take(0, COST.of(1, 64)), Err(RetryAfter(2_600_000)));
        buckets.take(3_500_000, large).unwrap();
    }

    #[test]
    fn a_resource_without_rate_and_cost_does_not_limit_and_without_rate_blocks() {
        let mut buckets = Buckets::new(&budget(10), 0);
        buckets.take(0, [1, 1, 0]).unwrap();
        assert_eq!(buckets.take(0, [1, 1, 1]), Err(RetryAfter(Micros::MAX)));
    }

    #[test]
    fn a_clock_that_goes_back_mints_nothing() {
        let mut buckets = Buckets::new(&budget(1), 5_000_000);
        buckets.take(5_000_000, COST.of(1, 64)).unwrap();
        assert_eq!(
            buckets.take(1_000_000, COST.of(1, 64)),
            Err(RetryAfter(1_000_000))
        );
        assert_eq!(buckets.take(5_500_000, COST.of(1, 64)), Err(RetryAfter(500_000)));
        buckets.take(6_000_000, COST.of(1, 64)).unwrap();
    }

    #[test]
    fn a_smaller_budget_caps_and_a_larger_one_grants_nothing_by_itself() {
        let mut buckets = Buckets::new(&budget(100), 0);
        buckets.set_budget(&budget(10), 0);
        for _ in 0..10 {
            buckets.take(0, COST.of(1, 64)).unwrap();
        }
        buckets.set_budget(&budget(1_000), 0);
        assert_eq!(buckets.take(0, COST.of(1, 64)), Err(RetryAfter(1_000)));
    }

    #[test]
    fn nothing_conforms_while_twice_the_rate_is_offered_and_all_does_at_once_after() {
        let mut meter = Buckets::new(&budget(100), 0);
        let one = COST.of(1, 64);
        let mut now = 0;
        for i in 0..1_000u64 {
            now = i * 5_000;
            let conformance = meter.observe(now, one);
            if i > 250 {
                assert_eq!(conformance, Conformance::BeyondSla, "at {now}");
            }
        }
        for i in 1..1_000u64 {
            assert_eq!(meter.observe(now + i * 10_000, one), Conformance::WithinSla);
        }
    }

    #[test]
    fn extreme_numbers_do_not_overflow() {
        let budget = Budget {
            tokens_per_s_milli: [u64::MAX; 3],
            ..budget(1)
        };
        let mut buckets = Buckets::new(&budget, 0);
        buckets.take(0, [u64::MAX; 3]).unwrap();
        assert!(buckets.take(0, [u64::MAX; 3]).is_err());
        buckets.take(u64::MAX, [u64::MAX; 3]).unwrap();
        assert!(buckets.wait_us(u64::MAX, [1; 3], [u128::MAX; 3]) > 0);
    }
}
