//! Latency from the reservation's time, and refusals within the reservation: the SLA counts both of a queue. Neither may
//! depend on how much is offered beyond it (`docs/reference/sla.md`).

use proptest::prelude::*;
use quorate_qos::{Admission, Offer, QueueLimits, Ready, Reservation};
use quorate_types::Micros;
use quorate_types::cost::{AppendCost, Budget};

const COST: AppendCost = AppendCost {
    fixed_milli: [1_500, 128_000, 0],
    per_byte_milli: [1, 2_000, 0],
};
const MS: Micros = 1_000;
const S: Micros = 1_000 * MS;
/// A server's timer and its turn.
const LATE: Micros = 2 * MS;

/// Counts by which a group is judged.
#[derive(Debug, Default, PartialEq)]
struct Judged {
    /// Requests that passed, and those of them within the reservation.
    passed: u64,
    reserved: u64,
    /// The longest time of a request within the reservation from its start to its passing.
    held_us_max: Micros,
    refused: u64,
    refused_within: u64,
}

impl Judged {
    fn pass(&mut self, now: Micros, start_us: Option<Micros>) {
        self.passed += 1;
        if let Some(start_us) = start_us {
            self.reserved += 1;
            self.held_us_max = self.held_us_max.max(now.saturating_sub(start_us));
        }
    }

    fn refuse(&mut self, within_sla: bool) {
        self.refused += 1;
        self.refused_within += u64::from(within_sla);
    }
}

/// A head whose queue is looked at late, and held up in `held`.
struct Head {
    queue: Admission<u64>,
    judged: Judged,
    held: std::ops::Range<Micros>,
}

impl Head {
    fn new(rate_per_s: u64) -> Self {
        let budget = Budget::for_rate(rate_per_s, 64, COST);
        Self {
            queue: Admission::new(&budget, QueueLimits::default(), 0),
            judged: Judged::default(),
            held: 0..0,
        }
    }

    fn offer(&mut self, now: Micros, entries: u64, timeout: Micros) {
        self.queue.set_window_open(now, !self.held.contains(&now));
        let bytes = entries * 64;
        match self
            .queue
            .offer(now, entries, COST.of(entries, bytes), bytes, now + timeout)
        {
            Offer::Admitted(admitted) => self.judged.pass(now, admitted.start_us),
            Offer::Queued => {}
            Offer::Throttled { within_sla, .. } => self.judged.refuse(within_sla),
        }
    }

    /// Lets pass what may, at times up to `until`, each a little late.
    fn run(&mut self, now: Micros, until: Micros) {
        let mut now = now;
        loop {
            self.queue.set_window_open(now, !self.held.contains(&now));
            while let Some(ready) = self.queue.pop(now) {
                match ready {
                    Ready::Admitted(admitted) => self.judged.pass(now, admitted.start_us),
                    Ready::Expired { within_sla, .. } => self.judged.refuse(within_sla),
                }
            }
            let Some(mut wake) = self.queue.next_wake(now) else {
                return;
            };
            if self.held.contains(&now) {
                wake = wake.min(self.held.end);
            }
            if wake + LATE > until {
                return;
            }
            now = wake + LATE;
        }
    }

    /// Requests of `entries` entries, evenly, `per_s` entries each second, for `seconds`.
    fn offer_evenly(&mut self, per_s: u64, entries: u64, seconds: u64, timeout: Micros) {
        let step = entries * S / per_s;
        for number in 0..seconds * per_s / entries {
            self.offer(number * step, entries, timeout);
            self.run(number * step, (number + 1) * step);
        }
    }
}

#[test]
fn overload_of_its_own_is_neither_slow_nor_refused_within_the_reservation() {
    for times in [2, 3, 10] {
        for entries in [1, 10, 700] {
            for timeout in [100 * MS, S, 10 * S] {
                let mut head = Head::new(1_000);
                head.offer_evenly(times * 1_000, entries, 20, timeout);
                let judged = &head.judged;
                assert_eq!(judged.refused_within, 0, "{times} times, {entries}: {judged:?}");
                assert!(judged.refused > 0, "{times} times, {entries}: {judged:?}");
                assert!(judged.held_us_max <= LATE, "{times} times, {entries}: {judged:?}");
            }
        }
    }
}

#[test]
fn a_head_that_is_held_up_is_late_by_so_much() {
    let mut head = Head::new(1_000);
    head.held = S..S + 700 * MS;
    head.offer_evenly(1_000, 1, 5, 10 * S);
    assert_eq!((head.judged.refused, head.judged.passed), (0, 5_000));
    assert!(
        head.judged.held_us_max.abs_diff(700 * MS) <= LATE,
        "{:?}",
        head.judged
    );
}

#[test]
fn a_head_that_is_held_up_for_longer_than_requests_wait_has_refused_them() {
    let mut head = Head::new(1_000);
    head.held = S..6 * S;
    head.offer_evenly(1_000, 1, 20, 10 * S);
    let judged = &head.judged;
    // Three of five seconds: the others waited, and passed.
    assert_eq!(judged.refused_within, judged.refused);
    assert!(judged.refused.abs_diff(3_000) < 60, "{judged:?}");
    // It has lost the tokens of that time but a second of them. So the last second of the backlog stays.
    assert_eq!(judged.passed + judged.refused + head.queue.len() as u64, 20_000);
    assert!(head.queue.len().abs_diff(1_000) < 60, "{}", head.queue.len());
}

#[test]
fn overload_that_ends_is_not_held_against_the_service_either() {
    let mut head = Head::new(1_000);
    for number in 0..40_000 {
        // Five times the rate for two seconds of every four, then half of it.
        let now = number * S / 5_000;
        let is_calm = now / (2 * S) % 2 == 1;
        if !is_calm || number % 10 == 0 {
            head.offer(now, 1, 10 * S);
        }
        head.run(now, now + S / 5_000);
    }
    assert_eq!(head.judged.refused_within, 0, "{:?}", head.judged);
    assert!(head.judged.held_us_max <= LATE, "{:?}", head.judged);
}

#[test]
fn burst_capacity_that_ends_leaves_nothing_to_be_credited() {
    let mut head = Head::new(1_000);
    let grant = COST.of(1, 64).map(|cost| cost * 4_000);
    for number in 0..50_000 {
        let now = number * S / 10_000;
        if number % 10_000 == 0 {
            head.queue.grant(now, grant, now + 600 * MS);
        }
        head.offer(now, 1, 10 * S);
        head.run(now, now + S / 10_000);
    }
    let judged = &head.judged;
    assert_eq!(judged.refused_within, 0, "{judged:?}");
    assert!(judged.passed > judged.reserved + 8_000, "{judged:?}");
    assert!(judged.held_us_max <= LATE, "{judged:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(150) })]

    /// Any mix of sizes, gaps and deadlines, with a head that is never held up: nothing counts against the service.
    #[test]
    fn a_head_that_is_never_held_up_keeps_the_promise(
        rate in 1u64..5_000, steps in proptest::collection::vec((0u64..200, 1u64..300, 1u64..4_000), 1..200)
    ) {
        let mut head = Head::new(rate);
        let mut now = 0;
        for (gap_ms, entries, timeout_ms) in steps {
            head.run(now, now + gap_ms * MS);
            now += gap_ms * MS;
            head.offer(now, entries, timeout_ms * MS);
        }
        head.run(now, now + 20 * S);
        prop_assert_eq!(head.judged.refused_within, 0);
        prop_assert!(head.judged.held_us_max <= LATE, "{:?}", head.judged);
    }
}

/// The earliest start of a request behind others (start and cost of each), by the arrival curve alone. From any request to
/// this one no more may pass than a second of the rate, and the rate for the time between them.
fn start_by_curve(
    rate_milli: [u64; 3],
    before: &[(Micros, [u64; 3])],
    arrival: Micros,
    cost: [u64; 3],
) -> Micros {
    let mut start = before.last().map_or(arrival, |(last, _)| arrival.max(*last));
    let mut sum = cost.map(|milli| i128::from(milli) * 1_000_000);
    let mut bound = |from: Micros, sum: &[i128; 3]| {
        for (rate, sum) in rate_milli.iter().zip(sum) {
            let beyond = sum - i128::from(*rate) * i128::from(S);
            if beyond > 0 {
                let rate = i128::from(*rate);
                start = start.max(from + (beyond / rate + i128::from(beyond % rate != 0)) as Micros);
            }
        }
    };
    for (from, cost) in before.iter().rev() {
        for (sum, milli) in sum.iter_mut().zip(cost) {
            *sum += i128::from(*milli) * 1_000_000;
        }
        bound(*from, &sum);
    }
    start
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// The reservation is the greedy shaper of its arrival curve.
    #[test]
    fn the_reservation_lets_requests_pass_as_soon_as_its_curve_allows(
        rate in 1u64..5_000, steps in proptest::collection::vec((0u64..300_000, 1u64..100, 0u64..10_000), 1..60)
    ) {
        let budget = Budget::for_rate(rate, 64, COST);
        let mut reservation = Reservation::new(&budget, 0);
        let (mut now, mut before) = (0, Vec::new());
        for (gap_us, percent, bytes) in steps {
            now += gap_us;
            // At most a second of the rate at once.
            let most = budget.tokens_per_s_milli;
            let cost = COST.of((rate * percent / 100).max(1), bytes);
            let cost: [u64; 3] = std::array::from_fn(|i| cost[i].min(most[i]));
            let expected = start_by_curve(most, &before, now, cost);
            prop_assert_eq!(reservation.start(now, cost, [0; 3]), expected);
            prop_assert_eq!(reservation.pass(now, cost), expected);
            before.push((expected, cost));
        }
    }
}
