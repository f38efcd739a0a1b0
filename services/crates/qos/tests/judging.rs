//! Latency from the reservation's time, and refusals of requests that are owed: the SLA counts both of a queue. Neither may
//! depend on how much is offered beyond the reservation (`docs/reference/sla.md`).

// Loops over the resources read several arrays at the same index.
#![allow(clippy::needless_range_loop)]

use proptest::prelude::*;
use quorate_qos::{Admission, Admitted, Offer, QueueLimits, Ready, Reservation};
use quorate_types::Micros;
use quorate_types::cost::{Budget, EntryCost};

const COST: EntryCost = EntryCost {
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
    /// Requests that passed.
    passed: u64,
    /// Times of requests within the reservation from their starts to their passing.
    held_us: Vec<Micros>,
    refused: u64,
    refused_owed: u64,
}

impl Judged {
    fn pass(&mut self, now: Micros, admitted: &Admitted<u64>) {
        self.passed += 1;
        let held_us = admitted.start_us.map(|start_us| now.saturating_sub(start_us));
        self.held_us.extend(held_us);
    }

    fn refuse(&mut self, is_owed: bool) {
        self.refused += 1;
        self.refused_owed += u64::from(is_owed);
    }

    fn held_us_max(&self) -> Micros {
        self.held_us.iter().copied().max().unwrap_or(0)
    }

    fn held_us_p99(&self) -> Micros {
        let mut sorted = self.held_us.clone();
        sorted.sort_unstable();
        sorted[(sorted.len() * 99).div_ceil(100) - 1]
    }

    /// Nothing counts against the service.
    fn assert_kept(&self, case: &str) {
        let (refused, held_us) = (self.refused, self.held_us_max());
        assert_eq!(self.refused_owed, 0, "{case}: of {refused} refused");
        assert!(held_us <= LATE, "{case}: held up for {held_us} µs");
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
        self.offer_bytes(now, entries, entries * 64, timeout);
    }

    fn offer_bytes(&mut self, now: Micros, entries: u64, bytes: u64, timeout: Micros) {
        self.queue.set_window_open(now, !self.held.contains(&now));
        let cost = COST.of(entries, bytes);
        match self.queue.offer(now, entries, 1, cost, bytes, now + timeout) {
            Offer::Admitted(admitted) => self.judged.pass(now, &admitted),
            Offer::Queued => {}
            Offer::Throttled { within_sla, .. } => self.judged.refuse(within_sla),
        }
    }

    fn grant(&mut self, now: Micros, per_s: u64, until: Micros) {
        let tokens = COST.of(1, 64).map(|cost| cost * per_s);
        self.queue.grant(now, tokens, until);
    }

    /// Lets pass what may, at times up to `until`, each a little late.
    fn run(&mut self, now: Micros, until: Micros) {
        let mut now = now;
        loop {
            self.queue.set_window_open(now, !self.held.contains(&now));
            while let Some(ready) = self.queue.pop(now) {
                match ready {
                    Ready::Admitted(admitted) => self.judged.pass(now, &admitted),
                    Ready::Expired { within_sla, .. } => self.judged.refuse(within_sla),
                }
            }
            let Some(mut wake) = self.queue.next_wake(now) else {
                return;
            };
            assert!(wake > now, "a wake-up at {wake} would spin at {now}");
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
                let case = format!("{times} times, batches of {entries}, {timeout} µs");
                head.judged.assert_kept(&case);
                assert!(head.judged.refused > 0, "{case}");
            }
        }
    }
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
    head.judged.assert_kept("on and off");
}

#[test]
fn burst_capacity_that_ends_leaves_nothing_to_be_credited() {
    let mut head = Head::new(1_000);
    for number in 0..50_000 {
        let now = number * S / 10_000;
        if number % 10_000 == 0 {
            head.grant(now, 4_000, now + 600 * MS);
        }
        head.offer(now, 1, 10 * S);
        head.run(now, now + S / 10_000);
    }
    head.judged.assert_kept("grants of 0.6 s");
    let judged = &head.judged;
    assert!(
        judged.passed > judged.held_us.len() as u64 + 8_000,
        "on burst capacity"
    );
}

#[test]
fn requests_that_leave_ahead_of_others_make_them_no_later() {
    for is_withdrawn in [true, false] {
        let mut head = Head::new(1_000);
        head.offer(0, 1_000, 10 * S);
        head.offer(0, 950, 10 * S);
        for _ in 0..400 {
            head.offer(0, 1, 10 * S);
        }
        head.run(0, 900 * MS);
        if is_withdrawn {
            assert_eq!(head.queue.remove_where(|entries| *entries == 950), [950]);
        } else {
            head.grant(900 * MS, 20_000, 2 * S);
        }
        head.run(900 * MS, 5 * S);
        head.judged.assert_kept(&format!("withdrawn: {is_withdrawn}"));
    }
}

#[test]
fn a_larger_reservation_promises_nothing_of_the_time_before() {
    let mut head = Head::new(10);
    head.run(0, 10 * S);
    head.queue.set_budget(10 * S, &Budget::for_rate(10_000, 64, COST));
    for _ in 0..10_000 {
        head.offer(10 * S, 1, 500 * MS);
    }
    head.run(10 * S, 20 * S);
    head.judged.assert_kept("resized");
}

#[test]
fn a_grant_in_debt_takes_nothing_from_the_reservation() {
    let mut head = Head::new(1_000);
    head.grant(0, 50, 60 * S);
    head.offer(0, 1_000, 10 * S);
    head.offer(0, 4_000, 10 * S);
    head.offer_evenly(1_500, 1, 10, 10 * S);
    head.judged.assert_kept("a batch of 80 s of the grant");
}

#[test]
fn two_resources_make_no_promise_that_one_of_them_breaks() {
    let mut head = Head::new(1_000);
    head.offer_bytes(0, 1_000, 0, 10 * S);
    head.offer_bytes(0, 900, 0, 10 * S);
    for _ in 0..100 {
        head.offer_bytes(0, 1, 1_216, 1_100 * MS);
    }
    head.run(0, 10 * S);
    head.judged.assert_kept("processors first, then the network");
}

#[test]
fn a_head_that_is_held_up_is_late_by_so_much() {
    let mut head = Head::new(1_000);
    head.held = S..S + 700 * MS;
    head.offer_evenly(1_000, 1, 5, 10 * S);
    assert_eq!((head.judged.refused, head.judged.passed), (0, 5_000));
    assert!(head.judged.held_us_max().abs_diff(700 * MS) <= LATE);
}

#[test]
fn a_head_that_is_held_up_for_longer_than_requests_wait_has_refused_them() {
    let mut head = Head::new(1_000);
    head.held = S..6 * S;
    head.offer_evenly(1_000, 1, 20, 10 * S);
    let judged = &head.judged;
    // Three of five seconds expired. The others waited, and passed.
    assert_eq!(judged.refused_owed, judged.refused);
    assert!(judged.refused.abs_diff(3_000) < 60, "{}", judged.refused);
    // It has lost the tokens of that time but a second of them. So the last second of the backlog stays.
    assert_eq!(judged.passed + judged.refused + head.queue.len() as u64, 20_000);
    assert!(head.queue.len().abs_diff(1_000) < 60, "{}", head.queue.len());
}

#[test]
fn a_queue_that_fills_while_the_head_is_held_up_counts_in_full() {
    let mut head = Head::new(4_000);
    head.held = S..2_500 * MS;
    head.offer_evenly(4_000, 1, 4, 10 * S);
    let judged = &head.judged;
    // 4 096 batches found room in 1.5 s at 4 000 a second. The others were owed as well.
    assert_eq!(judged.refused, judged.refused_owed);
    assert!(judged.refused >= 6_000 - 4_096, "{}", judged.refused);
    assert!(judged.held_us_max() >= 1_490 * MS, "{}", judged.held_us_max());
    assert!(judged.held_us_p99() >= 1_300 * MS, "{}", judged.held_us_p99());
}

#[test]
fn short_deadlines_do_not_hide_how_long_others_were_held_up() {
    let mut head = Head::new(1_000);
    head.held = S..2_400 * MS;
    for number in 0..4_000 {
        let now = number * MS;
        head.offer(now, 1, 10 * S);
        if number % 200 == 0 {
            head.offer(now, 1, 20 * MS);
        }
        head.run(now, now + MS);
    }
    assert!(
        head.judged.held_us_max() >= 1_390 * MS,
        "{}",
        head.judged.held_us_max()
    );
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
    for (from, cost) in before.iter().rev() {
        for i in 0..3 {
            sum[i] += i128::from(cost[i]) * 1_000_000;
            let rate = i128::from(rate_milli[i]);
            let beyond = sum[i] - rate * i128::from(S);
            if beyond > 0 {
                start = start.max(from + (beyond / rate + i128::from(beyond % rate != 0)) as Micros);
            }
        }
    }
    start
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// Any mix of sizes, gaps, deadlines and withdrawals, with grants that come and go: nothing counts against a head that
    /// is never held up.
    #[test]
    fn a_head_that_is_never_held_up_keeps_the_promise(
        rate in 1u64..5_000,
        steps in proptest::collection::vec((0u64..200, 1u64..300, 0u64..4_000, 20u64..4_000, 0u32..40), 1..200)
    ) {
        let mut head = Head::new(rate);
        let mut now = 0;
        for (gap_ms, entries, entry_bytes, timeout_ms, step) in steps {
            head.run(now, now + gap_ms * MS);
            now += gap_ms * MS;
            match step {
                0 => drop(head.queue.remove_where(|entries| entries % 3 == 0)),
                1 => head.grant(now, rate, now + 700 * MS),
                2 => head.queue.set_yields(entries % 2 == 0),
                3 => head.queue.end_grant(),
                _ => head.offer_bytes(now, entries, entries * entry_bytes, timeout_ms * MS),
            }
        }
        head.run(now, now + 20 * S);
        prop_assert!(head.queue.is_empty());
        head.judged.assert_kept("any history");
    }

    /// The reservation is the greedy shaper of its arrival curve, for the requests that it takes.
    #[test]
    fn the_reservation_lets_requests_pass_as_soon_as_its_curve_allows(
        rate in 1u64..5_000,
        steps in proptest::collection::vec((0u64..300_000, 1u64..100, 0u64..10_000, 0u64..3_000), 1..60)
    ) {
        let budget = Budget::for_rate(rate, 64, COST);
        let limits = QueueLimits::default();
        let mut reservation = Reservation::new(&budget, 0);
        let (mut now, mut before) = (0, Vec::new());
        for (gap_us, percent, bytes, timeout_ms) in steps {
            now += gap_us;
            // At most a second of the rate at once.
            let most = budget.tokens_per_s_milli;
            let cost = COST.of((rate * percent / 100).max(1), bytes);
            let cost: [u64; 3] = std::array::from_fn(|i| cost[i].min(most[i]));
            let start = start_by_curve(most, &before, now, cost);
            let start_max = now + timeout_ms * MS;
            let expected = Some(start).filter(|start| *start <= start_max);
            prop_assert_eq!(reservation.offer(now, cost, bytes, start_max, &limits), expected);
            before.extend(expected.map(|start| (start, cost)));
        }
    }
}

/// A request that is not owed waits for burst capacity between owed ones. The last of these leaves, and the tokens that it
/// will not take are not there yet.
#[test]
fn what_a_later_request_leaves_is_not_spent_before_an_earlier_one() {
    let mut head = Head::new(1_786);
    let offers = [
        (0, 64, 1_162, 20),
        (32, 74, 956, 20),
        (165, 273, 2_921, 559),
        (1_303, 1, 3_186, 2_000),
        (1_397, 61, 292, 1_953),
        (2_102, 83, 733, 1_841),
        (2_663, 279, 999, 2_356),
    ];
    let mut now = 0;
    for (at_ms, entries, entry_bytes, timeout_ms) in offers {
        if at_ms == 1_303 {
            head.run(now, 755 * MS);
            now = 755 * MS;
            head.grant(now, 1_786, now + 700 * MS);
            // It takes all of the grant.
            head.run(now, 873 * MS);
            now = 873 * MS;
            head.offer_bytes(now, 52, 52 * 2_863, 20 * MS);
        }
        head.run(now, at_ms * MS);
        now = at_ms * MS;
        head.offer_bytes(now, entries, entries * entry_bytes, timeout_ms * MS);
    }
    head.run(now, 2_793 * MS);
    assert_eq!(head.queue.remove_where(|entries| *entries == 279), [279]);
    head.run(2_793 * MS, 20 * S);
    head.judged.assert_kept("behind one that is not owed");
}
