//! The queue in front of a head: examples, and properties over random histories.

// Loops over the resources read several arrays at the same index.
#![allow(clippy::needless_range_loop)]

use proptest::prelude::*;
use quorate_qos::{Admission, Admitted, Offer, Polled, QueueLimits, Ready};
use quorate_types::Micros;
use quorate_types::cost::{Budget, EntryCost};

const COST: EntryCost = EntryCost {
    fixed_milli: [1_500, 128_000, 0],
    per_byte_milli: [1, 2_000, 0],
};
const S: Micros = 1_000_000;

fn budget(rate_per_s: u64) -> Budget {
    Budget::for_rate(rate_per_s, 64, COST)
}

fn one() -> [u64; 3] {
    COST.of(1, 64)
}

fn admission(rate_per_s: u64, limits: QueueLimits) -> Admission<u64> {
    Admission::new(&budget(rate_per_s), limits, 0)
}

fn offer(queue: &mut Admission<u64>, now: Micros, item: u64) -> Offer<u64> {
    queue.offer(now, item, 1, one(), 64, now + 10 * S)
}

/// A request that the reservation lets pass at `start_us`.
fn own(item: u64, start_us: Micros) -> Admitted<u64> {
    let (is_owed, start_us) = (true, Some(start_us));
    Admitted {
        item,
        is_owed,
        start_us,
    }
}

fn items<T>(polled: Polled<T>) -> Vec<T> {
    polled
        .admitted
        .into_iter()
        .map(|admitted| admitted.item)
        .collect()
}

#[test]
fn over_budget_waits_in_order_and_passes_when_tokens_are_there() {
    let mut queue = admission(10, QueueLimits::default());
    for i in 0..10 {
        assert_eq!(offer(&mut queue, 0, i), Offer::Admitted(own(i, 0)));
    }
    assert_eq!(offer(&mut queue, 0, 10), Offer::Queued);
    assert_eq!(offer(&mut queue, 0, 11), Offer::Queued);
    assert_eq!(queue.next_wake(0), Some(100_000));
    assert_eq!(queue.pop(99_999), None);
    assert_eq!(queue.pop(100_000), Some(Ready::Admitted(own(10, 100_000))));
    assert_eq!(queue.pop(100_000), None);
    // A later request does not overtake, though there is a token for one.
    assert_eq!(offer(&mut queue, 200_000, 12), Offer::Queued);
    assert_eq!(
        queue.poll(300_000).admitted,
        vec![own(11, 200_000), own(12, 300_000)]
    );
    assert_eq!(queue.next_wake(300_000), None);
}

#[test]
fn a_full_queue_throttles_with_the_time_to_retry() {
    let limits = QueueLimits {
        batches_max: 8,
        ..QueueLimits::default()
    };
    let mut queue = admission(10, limits);
    for i in 0..14 {
        assert!(!matches!(offer(&mut queue, 0, i), Offer::Throttled { .. }));
    }
    let Offer::Throttled {
        item: 14,
        retry_after_us,
        within_sla,
    } = offer(&mut queue, 0, 14)
    else {
        panic!("the queue is full");
    };
    assert_eq!((retry_after_us, within_sla), (250_000, false));

    let limits = QueueLimits {
        bytes_max: 100,
        ..QueueLimits::default()
    };
    let mut queue = admission(1, limits);
    assert!(matches!(offer(&mut queue, 0, 0), Offer::Admitted(_)));
    assert_eq!(offer(&mut queue, 0, 1), Offer::Queued);
    assert!(
        matches!(offer(&mut queue, 0, 2), Offer::Throttled { .. }),
        "128 bytes would exceed 100"
    );
}

#[test]
fn a_request_that_cannot_pass_before_its_deadline_is_refused_at_once() {
    let mut queue = admission(1, QueueLimits::default());
    assert!(matches!(offer(&mut queue, 0, 0), Offer::Admitted(_)));
    // It would pass after a second. Timers are late by a little, so that is too late for a deadline soon after.
    let answer = queue.offer(0, 1, 1, one(), 64, 1_049_999);
    assert_eq!(
        answer,
        Offer::Throttled {
            item: 1,
            retry_after_us: 500_000,
            within_sla: false
        }
    );
    assert_eq!(queue.offer(0, 2, 1, one(), 64, 1_050_000), Offer::Queued);
    // No request waits longer than 2 s, whatever its own deadline.
    assert!(matches!(offer(&mut queue, 0, 3), Offer::Throttled { .. }));
    assert_eq!(offer(&mut queue, 50_000, 4), Offer::Queued);
}

#[test]
fn a_closed_window_holds_back_requests_within_budget_and_their_expiry_counts_against_us() {
    let mut queue = admission(100, QueueLimits::default());
    queue.set_window_open(0, false);
    assert_eq!(offer(&mut queue, 0, 0), Offer::Queued);
    assert_eq!(queue.offer(0, 1, 1, one(), 64, 5), Offer::Queued);
    assert_eq!(queue.next_wake(0), Some(5));
    assert_eq!(
        queue.pop(5),
        Some(Ready::Expired {
            item: 1,
            retry_after_us: 50_000,
            within_sla: true
        })
    );
    assert_eq!(queue.next_wake(5), Some(2 * S));
    queue.set_window_open(5, true);
    assert_eq!(queue.next_wake(5), Some(5));
    assert_eq!(queue.pop(5), Some(Ready::Admitted(own(0, 0))));
    assert!(queue.is_empty() && queue.queued_bytes() == 0);
}

#[test]
fn a_new_budget_lets_the_queue_go_on_and_drain_empties_it() {
    let mut queue = admission(2, QueueLimits::default());
    for i in 0..4 {
        offer(&mut queue, 0, i);
    }
    queue.set_budget(0, &budget(1_000_000));
    assert_eq!(items(queue.poll(2)), vec![2, 3]);
    queue.set_window_open(2, false);
    for i in 4..7 {
        assert_eq!(offer(&mut queue, 2, i), Offer::Queued);
    }
    assert_eq!(queue.drain(), vec![4, 5, 6]);
    assert_eq!(queue.next_wake(2), None);
    queue.set_window_open(3, true);
    assert_eq!(queue.offer(S, 7, 1, one(), 64, 2 * S), Offer::Admitted(own(7, S)));
}

#[test]
fn requests_that_are_taken_out_cost_nothing_and_the_others_keep_their_order() {
    let mut queue = admission(10, QueueLimits::default());
    for i in 0..15 {
        offer(&mut queue, 0, i);
    }
    assert_eq!(queue.remove_where(|item| item % 2 == 0), vec![10, 12, 14]);
    assert_eq!((queue.len(), queue.queued_bytes()), (2, 128));
    assert_eq!(queue.next_wake(0), Some(100_000));
    assert_eq!(items(queue.poll(200_000)), vec![11, 13]);
    assert_eq!(queue.remove_where(|_| true), Vec::<u64>::new());
    offer(&mut queue, 200_000, 15);
    assert_eq!(queue.remove_where(|item| *item == 15), vec![15]);
    assert_eq!(queue.next_wake(200_000), None, "nor has it a deadline");
    assert_eq!(queue.pop(20 * S), None);
}

#[derive(Debug, Clone)]
enum Step {
    Offer {
        entries: u64,
        bytes: u64,
        timeout_us: u64,
    },
    Pass(u64),
    Window(bool),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1u64..200, 0u64..50_000, 0u64..5 * S)
            .prop_map(|(entries, bytes, timeout_us)| Step::Offer { entries, bytes, timeout_us }),
        4 => (0u64..300_000).prop_map(Step::Pass),
        1 => any::<bool>().prop_map(Step::Window),
    ]
}

#[derive(Default)]
struct Passed {
    cost: [u128; 3],
    largest: [u64; 3],
    last: Option<u64>,
    count: u64,
}

impl Passed {
    fn add(&mut self, (number, cost): (u64, [u64; 3])) {
        assert!(self.last < Some(number), "order kept");
        self.last = Some(number);
        self.count += 1;
        for i in 0..3 {
            self.cost[i] += u128::from(cost[i]);
            self.largest[i] = self.largest[i].max(cost[i]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    /// Never more passes than rate · t + depth and the excess of one oversized request. Order is kept, nothing is lost,
    /// every wake-up is later than now and of use, and everything leaves in the end.
    #[test]
    fn random_histories(rate in 1u64..5_000, steps in proptest::collection::vec(step(), 1..200)) {
        let budget = budget(rate);
        let limits = QueueLimits { batches_max: 32, ..QueueLimits::default() };
        let mut queue: Admission<(u64, [u64; 3])> = Admission::new(&budget, limits, 0);
        let (mut now, mut passed, mut queued, mut expired, mut number) = (0, Passed::default(), 0u64, 0u64, 0);
        let mut admitted_at_once = 0;
        for step in steps {
            match step {
                Step::Offer { entries, bytes, timeout_us } => {
                    number += 1;
                    let cost = COST.of(entries, bytes);
                    match queue.offer(now, (number, cost), 1, cost, bytes, now + timeout_us) {
                        Offer::Admitted(admitted) => { passed.add(admitted.item); admitted_at_once += 1 }
                        Offer::Queued => queued += 1,
                        Offer::Throttled { retry_after_us, .. } => prop_assert!(retry_after_us >= 1_000),
                    }
                }
                Step::Window(open) => queue.set_window_open(now, open),
                Step::Pass(us) => now += us,
            }
            if let Step::Offer { .. } = step { continue }
            let polled = queue.poll(now);
            expired += polled.expired.len() as u64;
            items(polled).into_iter().for_each(|item| passed.add(item));
            prop_assert!(queue.len() <= 32);
            if let Some(wake) = queue.next_wake(now) {
                prop_assert!(wake > now, "a wake-up at {} would spin at {}", wake, now);
            }
            for i in 0..3 {
                let rate_milli = u128::from(budget.tokens_per_s_milli[i]);
                let debt = u128::from(passed.largest[i]).saturating_sub(rate_milli);
                let bound = rate_milli * u128::from(now) / u128::from(S) + rate_milli + debt;
                prop_assert!(passed.cost[i] <= bound, "resource {}: {} over {}", i, passed.cost[i], bound);
            }
        }
        queue.set_window_open(now, true);
        let (mut wakes, offered) = (0, queue.len() as u64);
        let polled = queue.poll(now);
        let mut left = (polled.admitted.len() + polled.expired.len()) as u64;
        expired += polled.expired.len() as u64;
        items(polled).into_iter().for_each(|item| passed.add(item));
        while let Some(wake) = queue.next_wake(now) {
            now = wake;
            let polled = queue.poll(now);
            prop_assert!(polled.admitted.len() + polled.expired.len() > 0, "a wake-up at {} did not help", wake);
            left += (polled.admitted.len() + polled.expired.len()) as u64;
            expired += polled.expired.len() as u64;
            items(polled).into_iter().for_each(|item| passed.add(item));
            wakes += 1;
        }
        prop_assert!(wakes <= offered);
        prop_assert_eq!(left, offered);
        prop_assert_eq!(passed.count - admitted_at_once + expired, queued);
        prop_assert_eq!(queue.queued_bytes(), 0);
    }

    /// A client that retries when it is asked to gets through, however large its requests are.
    #[test]
    fn nobody_starves(rate in 1u64..100, entries in 1u64..500, others in 0u64..5) {
        let mut queue: Admission<bool> = Admission::new(&budget(rate), QueueLimits::default(), 0);
        let cost = COST.of(entries, entries * 64);
        let (mut now, mut through, mut tries) = (0, false, 0);
        for _ in 0..others {
            queue.offer(now, false, 1, cost, 64, now + 10 * S);
        }
        while !through {
            tries += 1;
            prop_assert!(tries < 500, "still waiting at {} s", now / S);
            match queue.offer(now, true, 1, cost, 64, now + 10 * S) {
                Offer::Admitted(admitted) => through = admitted.item,
                Offer::Throttled { retry_after_us, .. } => {
                    let until = now + retry_after_us;
                    while let Some(wake) = queue.next_wake(now).filter(|wake| *wake <= until) {
                        now = wake;
                        queue.poll(now);
                    }
                    now = until;
                }
                Offer::Queued => {
                    while let Some(wake) = queue.next_wake(now) {
                        now = wake;
                        through |= items(queue.poll(now)).contains(&true);
                    }
                }
            }
        }
    }
}
