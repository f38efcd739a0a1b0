//! Sessions of one group beside each other: each has its share at once, and no delay of their own making is the service's.

use proptest::prelude::*;
use quorate_qos::{Admission, Admitted, Offer, QueueLimits, Ready};
use quorate_types::Micros;
use quorate_types::cost::{Budget, EntryCost};

const S: Micros = 1_000_000;
const MS: Micros = 1_000;
const COST: EntryCost = EntryCost {
    fixed_milli: [1_500_000, 128_000, 0],
    per_byte_milli: [1_000, 2_000, 0],
};
const RATE_PER_S: u64 = 1_000;
const FLOOD: u64 = 1;
const QUIET: u64 = 2;

fn entries(count: u64) -> [u64; 3] {
    COST.of(count, count * 64)
}

struct Head {
    queue: Admission<(u64, u64)>,
    now: Micros,
    /// Session, number, time of passing, whether owed, start.
    passed: Vec<(u64, u64, Micros, Option<Micros>)>,
    breaches: u64,
    throttled: Vec<u64>,
    number: u64,
}

impl Head {
    fn new() -> Self {
        let budget = Budget::for_rate(RATE_PER_S, 64, COST);
        Self {
            queue: Admission::new(&budget, QueueLimits::default(), 0),
            now: 0,
            passed: Vec::new(),
            breaches: 0,
            throttled: Vec::new(),
            number: 0,
        }
    }

    fn pass(&mut self, admitted: Admitted<(u64, u64)>) {
        let (session, number) = admitted.item;
        self.passed.push((session, number, self.now, admitted.start_us));
    }

    /// Lets time pass, with every timer in time.
    fn until(&mut self, then: Micros) {
        loop {
            while let Some(ready) = self.queue.pop(self.now) {
                match ready {
                    Ready::Admitted(admitted) => self.pass(admitted),
                    Ready::Expired { item, within_sla, .. } => {
                        self.breaches += u64::from(within_sla);
                        self.throttled.push(item.0);
                    }
                }
            }
            match self.queue.next_wake(self.now) {
                Some(wake) if wake <= then => {
                    assert!(wake > self.now, "a timer for now");
                    self.now = wake;
                }
                _ => break,
            }
        }
        self.now = self.now.max(then);
    }

    /// Whether it passed at once.
    fn offer(&mut self, session: u64, count: u64) -> bool {
        self.number += 1;
        let item = (session, self.number);
        let before = self.passed.len();
        match self.queue.offer(
            self.now,
            item,
            session,
            entries(count),
            count * 64,
            self.now + 10 * S,
        ) {
            Offer::Admitted(admitted) => self.pass(admitted),
            Offer::Queued => {}
            Offer::Throttled { within_sla, .. } => {
                self.breaches += u64::from(within_sla);
                self.throttled.push(session);
            }
        }
        self.passed.len() > before
    }

    fn is_in_order(&self, session: u64) -> bool {
        let own = self.passed.iter().filter(|each| each.0 == session);
        own.map(|each| each.1).is_sorted()
    }
}

#[test]
fn a_quiet_session_passes_at_once_beside_a_flood() {
    for batch in [1, 16, 90, 1_000, 8_192] {
        let mut head = Head::new();
        for tick in 0..100 {
            for _ in 0..(400 / batch).max(1) {
                head.offer(FLOOD, batch);
            }
            head.until(tick * 200 * MS);
            assert!(head.offer(QUIET, 1), "batches of {batch}, tick {tick}");
        }
        assert_eq!(head.breaches, 0, "batches of {batch}");
        assert!(head.is_in_order(FLOOD) && head.is_in_order(QUIET));
    }
}

#[test]
fn two_that_flood_have_half_each_and_together_the_rate() {
    let mut head = Head::new();
    for tick in 0..10_000 {
        head.until(tick * MS);
        for _ in 0..3 {
            head.offer(FLOOD, 1);
        }
        head.offer(QUIET, 1);
    }
    let of = |session| head.passed.iter().filter(|each| each.0 == session).count() as f64;
    let (flood, other) = (of(FLOOD), of(QUIET));
    assert!(other / (flood + other) > 0.45, "{other} beside {flood}");
    assert!(
        flood + other <= 11_100.0 && flood + other > 10_500.0,
        "{}",
        flood + other
    );
    assert_eq!(head.breaches, 0);
}

#[test]
fn shares_wait_for_a_closed_window_and_go_first_when_it_opens() {
    let mut head = Head::new();
    while head.offer(FLOOD, 10) {}
    for _ in 0..20 {
        head.offer(FLOOD, 10);
    }
    head.queue.set_window_open(head.now, false);
    assert!(!head.offer(QUIET, 5));
    assert!(!head.offer(QUIET, 5));
    head.now += 5 * MS;
    head.queue.set_window_open(head.now, true);
    let before = head.passed.len();
    head.until(head.now);
    let early: Vec<_> = head.passed[before..]
        .iter()
        .map(|each| (each.0, each.3))
        .collect();
    assert_eq!(
        early[..2],
        [(QUIET, Some(0)), (QUIET, Some(0))],
        "since they were offered"
    );
}

#[test]
fn a_session_that_is_alone_has_the_whole_reservation_and_no_more() {
    let mut head = Head::new();
    for tick in 0..5_000 {
        head.until(tick * MS);
        head.offer(FLOOD, 2);
    }
    let passed = head.passed.len() as u64 * 2;
    assert!(passed <= 6 * RATE_PER_S && passed > 5_900, "{passed}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Sessions do anything. Their order is kept, and nothing that was owed is late or refused while the head is not held up.
    #[test]
    fn no_delay_is_the_services_while_the_head_is_not_held_up(
        steps in prop::collection::vec((0u64..30_000, 1u64..6, prop_oneof![1u64..4, 10u64..60, 100u64..2_000]), 1..400),
    ) {
        let mut head = Head::new();
        for (pause, session, count) in steps {
            head.until(head.now + pause);
            head.offer(session, count);
        }
        head.until(head.now + 3 * S);
        prop_assert_eq!(head.breaches, 0);
        for session in 1..6 {
            prop_assert!(head.is_in_order(session), "session {}", session);
        }
        for (session, number, at, start) in &head.passed {
            prop_assert!(start.is_none_or(|start| *at <= start + 5), "{} of {} at {} from {:?}", number, session, at, start);
        }
    }
}
