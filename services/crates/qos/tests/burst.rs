//! Two classes of requests: reserved and burst.

use proptest::prelude::*;
use quorate_qos::{Admission, Admitted, Offer, QueueLimits, Ready};
use quorate_types::Micros;
use quorate_types::cost::{Budget, EntryCost};

const COST: EntryCost = EntryCost {
    fixed_milli: [1_500, 128_000, 0],
    per_byte_milli: [1, 2_000, 0],
};
const MS: Micros = 1_000;
const S: Micros = 1_000 * MS;

fn one() -> [u64; 3] {
    COST.of(1, 64)
}

fn rate(per_s: u64) -> [u64; 3] {
    one().map(|cost| cost * per_s)
}

/// A group that has used up its own budget's bucket.
fn spent(rate_per_s: u64) -> Admission<u64> {
    let mut queue = Admission::new(&Budget::for_rate(rate_per_s, 64, COST), QueueLimits::default(), 0);
    for i in 0..rate_per_s {
        assert_eq!(offer(&mut queue, 0, i), own(i));
    }
    queue
}

fn offer(queue: &mut Admission<u64>, now: Micros, item: u64) -> Offer<u64> {
    queue.offer(now, item, 1, one(), 64, now + 10 * S)
}

/// A request that passes at time 0 within the reservation.
fn own(item: u64) -> Offer<u64> {
    let (is_owed, start_us) = (true, Some(0));
    Offer::Admitted(Admitted {
        item,
        is_owed,
        start_us,
    })
}

/// A request that passes on burst capacity, and would have passed in time without it.
fn burst(item: u64) -> Offer<u64> {
    let (is_owed, start_us) = (true, None);
    Offer::Admitted(Admitted {
        item,
        is_owed,
        start_us,
    })
}

fn admitted(queue: &mut Admission<u64>, now: Micros) -> usize {
    queue.poll(now).admitted.len()
}

#[test]
fn burst_capacity_adds_to_the_reservation_and_ends_by_itself() {
    let mut queue = spent(100);
    queue.grant(0, rate(400), S);
    // A tenth of a second of the grant is there at once.
    for i in 0..40 {
        assert_eq!(offer(&mut queue, 0, i), burst(i));
    }
    for i in 0..1_000 {
        assert!(!matches!(offer(&mut queue, 0, i), Offer::Admitted(_)));
    }
    let within: usize = (1..=100).map(|t| admitted(&mut queue, t * 10 * MS - 1)).sum();
    assert!((490..=500).contains(&within), "{within} of 100 + 400 each second");
    let after: usize = (101..=200).map(|t| admitted(&mut queue, t * 10 * MS - 1)).sum();
    // Of those that its own budget would have let pass, 95 passed on burst capacity. So it can spare as much for others.
    assert!((95..=97).contains(&after), "{after} once it has ended");
    assert!(queue.is_empty(), "and the others were refused");
}

#[test]
fn burst_capacity_yields_at_once_and_the_reservation_does_not() {
    let mut queue = spent(100);
    queue.grant(0, rate(900), 60 * S);
    for i in 0..1_000 {
        offer(&mut queue, 0, i);
    }
    assert!(admitted(&mut queue, 100 * MS) >= 90);
    queue.set_yields(true);
    let own = (1..=50)
        .map(|t| admitted(&mut queue, 100 * MS + t * 10 * MS))
        .sum::<usize>();
    assert!((49..=51).contains(&own), "{own} in half a second at 100 a second");
    queue.set_yields(false);
    assert!(admitted(&mut queue, 700 * MS) >= 80, "the grant is there again");
    queue.end_grant();
    assert!(admitted(&mut queue, 701 * MS) <= 1);
}

#[test]
fn the_reservation_is_used_before_burst_capacity() {
    let mut queue = Admission::new(&Budget::for_rate(100, 64, COST), QueueLimits::default(), 0);
    queue.grant(0, rate(1_000), 60 * S);
    for i in 0..150 {
        let expected = if i < 100 { own(i) } else { burst(i) };
        assert_eq!(offer(&mut queue, 0, i), expected);
    }
    let flow = queue.flow();
    assert_eq!(flow.reserved, rate(100));
    assert_eq!(flow.burst, rate(50));
    assert_eq!(flow.offered, rate(150));
    assert_eq!(flow.beyond, rate(50));
    assert_eq!(flow.held_back, 0);
}

#[test]
fn the_time_that_requests_wait_is_counted_while_they_do() {
    let mut queue = spent(100);
    let before = queue.flow_at(0);
    assert_eq!(offer(&mut queue, 0, 7), Offer::Queued);
    assert_eq!(queue.waiting_milli(), one());
    let waited = |queue: &Admission<u64>, now| queue.flow_at(now).since(&before).waited;
    assert_eq!(waited(&queue, MS), one().map(|cost| cost * MS));
    assert_eq!(queue.flow().waited, [0; 3], "nothing has happened since");
    assert_eq!(admitted(&mut queue, 10 * MS), 1);
    let after = one().map(|cost| cost * 10 * MS);
    assert_eq!(waited(&queue, 10 * MS), after);
    assert_eq!(waited(&queue, S), after, "nothing waits any more");
}

#[test]
fn an_owner_that_returns_is_noticed_at_its_first_request_beyond() {
    let mut queue = Admission::new(&Budget::for_rate(1_000, 64, COST), QueueLimits::default(), 0);
    queue.assume(0, Some(rate(100)));
    // A hundred a second is the assumed rate, for as long as it lasts.
    for i in 0..500 {
        offer(&mut queue, i * 10 * MS, i);
        assert!(!queue.take_returned());
    }
    let mut beyond = 0;
    let noticed = (0..100).find(|i| {
        offer(&mut queue, 5 * S + i * MS, *i);
        beyond = i + 1;
        queue.take_returned()
    });
    assert!(noticed.is_some() && beyond <= 12, "noticed after {beyond}");
    assert!(!queue.take_returned(), "reported once");
    queue.assume(6 * S, None);
    for i in 0..500 {
        offer(&mut queue, 6 * S, i);
    }
    assert!(!queue.take_returned(), "nothing is assumed of it");
}

#[test]
fn waiting_times_count_the_grant() {
    let mut queue = spent(10);
    queue.grant(0, rate(990), 60 * S);
    for i in 0..99 {
        let offer = offer(&mut queue, 0, i);
        // Its own budget would let 19 pass within two seconds.
        assert!(
            matches!(offer, Offer::Admitted(Admitted { is_owed, .. }) if is_owed == (i < 19)),
            "{i}: {offer:?}"
        );
    }
    // By its own budget the 1 500th request would wait 150 s, and so be throttled.
    for i in 0..1_500 {
        assert_eq!(offer(&mut queue, 0, i), Offer::Queued, "{i}");
    }
    let wake = queue.next_wake(0).unwrap();
    assert!(wake > 0 && wake <= 2 * MS, "{wake}");
    assert!(matches!(
        queue.pop(wake),
        Some(Ready::Admitted(Admitted {
            item: 0,
            start_us: None,
            ..
        }))
    ));
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    /// Grants come, change and end in any order. No more burst requests pass than was granted, and requests within the
    /// reservation pass as if there were no grant.
    #[test]
    fn both_classes_keep_to_their_rates(
        own in 1u64..200, steps in proptest::collection::vec((0u64..20, 0u64..400, 0u8..4, 1u64..30), 1..80)
    ) {
        let limits = QueueLimits { batches_max: 0, ..QueueLimits::default() };
        let budget = Budget::for_rate(own, 64, COST);
        let mut granted = Admission::new(&budget, limits, 0);
        let mut alone = Admission::new(&budget, limits, 0);
        let (mut now, mut granted_per_s, mut may_burst) = (0, 0, 0u64);
        let (mut passed, mut passed_alone, mut passed_burst) = (0u64, 0u64, 0u64);
        for (wait_ms, per_s, what, offers) in steps {
            may_burst += granted_per_s * wait_ms;
            now += wait_ms * MS;
            match what {
                0 => {
                    // A new bucket is full, and one request may leave it in debt.
                    may_burst += (per_s * 100 + 1_000) * u64::from(!granted.has_grant());
                    granted.grant(now, rate(per_s), now + 3_600 * S);
                    granted_per_s = if per_s > 0 { per_s } else { granted_per_s };
                }
                1 => {
                    granted.end_grant();
                }
                2 => granted.set_yields(per_s % 2 == 0),
                _ => {}
            }
            for i in 0..offers {
                passed += u64::from(matches!(offer(&mut granted, now, i), Offer::Admitted(_)));
                passed_alone += u64::from(matches!(offer(&mut alone, now, i), Offer::Admitted(_)));
            }
            let burst = granted.flow().burst[0] / one()[0];
            prop_assert_eq!(passed, passed_alone + burst);
            prop_assert!(burst * 1_000 <= may_burst, "{} passed, {} thousandths were granted", burst, may_burst);
            prop_assert!(burst >= passed_burst);
            passed_burst = burst;
        }
    }
}

#[test]
fn a_request_that_waits_for_another_reason_than_the_budget_is_not_beyond_it() {
    let mut queue = Admission::new(&Budget::for_rate(100, 64, COST), QueueLimits::default(), 0);
    queue.set_window_open(0, false);
    for i in 0..100 {
        assert_eq!(offer(&mut queue, 0, i), Offer::Queued);
    }
    assert_eq!(queue.flow().held_back, 100);
    assert_eq!(queue.flow().beyond, [0; 3], "a second of the rate is what it has");
    offer(&mut queue, 0, 100);
    assert_eq!(queue.flow().beyond, rate(1));
}
