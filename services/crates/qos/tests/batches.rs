//! A group that sends short batches pays for them within its own budget, and no other group does.

use quorate_qos::{Admission, Offer, QueueLimits};
use quorate_types::Micros;
use quorate_types::cost::{Budget, EntryCost, ShortBatch};
use quorate_types::limits::SINGLE_ENTRY_APPENDS_PER_S;

const S: Micros = 1_000_000;
const ENTRY_BYTES: u64 = 64;
const RATE_PER_S: u64 = 16_000;
const FULL: u64 = 16;
/// Two microseconds an append; a batch costs 4.8 itself, so an append that comes alone costs 6.5.
const COST: EntryCost = EntryCost {
    fixed_milli: [2_000_000, 128_000, 0],
    per_byte_milli: [0, 2_000, 0],
};
const SHORT: ShortBatch = ShortBatch {
    entries: FULL as u32,
    lacking_milli: [300_000, 10_000, 0],
};

fn budget(rate_per_s: u64) -> Budget {
    let plain = Budget::for_rate(rate_per_s, ENTRY_BYTES as u32, COST);
    let single_entry = SHORT
        .of(1)
        .map(|milli| milli * rate_per_s.min(SINGLE_ENTRY_APPENDS_PER_S));
    Budget {
        tokens_per_s_milli: std::array::from_fn(|i| plain.tokens_per_s_milli[i] + single_entry[i]),
        short_batch: SHORT,
        ..plain
    }
}

#[derive(Debug, Default, PartialEq)]
struct Seen {
    /// Entries that passed.
    passed: u64,
    /// Batches that waited or were refused, and the least time to retry of the refused.
    queued: u64,
    throttled: u64,
    retry_us_min: Option<Micros>,
    /// Cost of the passed batches in the first resource, in thousandths.
    cpu_milli: u64,
}

/// Batches of this many entries, evenly at `rate_per_s` entries each second, for ten seconds. No batch is retried.
fn offer_evenly(budget: &Budget, entries: u64, rate_per_s: u64) -> Seen {
    let mut queue: Admission<u64> = Admission::new(budget, QueueLimits::default(), 0);
    let (mut seen, cost) = (
        Seen::default(),
        budget.batch_milli(entries, entries * ENTRY_BYTES),
    );
    let pass = |seen: &mut Seen, batches: u64| {
        seen.passed += batches * entries;
        seen.cpu_milli += batches * cost[0];
    };
    for number in 0..10 * rate_per_s / entries {
        let now = number * entries * S / rate_per_s;
        let left = queue.poll(now);
        pass(&mut seen, left.admitted.len() as u64);
        match queue.offer(now, number, 1, cost, entries * ENTRY_BYTES, now + S) {
            Offer::Admitted(_) => pass(&mut seen, 1),
            Offer::Queued => seen.queued += 1,
            Offer::Throttled {
                retry_after_us,
                within_sla,
                ..
            } => {
                assert!(
                    !within_sla,
                    "what is beyond the reservation is not held against the service"
                );
                seen.throttled += 1;
                seen.retry_us_min = Some(
                    seen.retry_us_min
                        .map_or(retry_after_us, |us| us.min(retry_after_us)),
                );
            }
        }
    }
    seen
}

#[test]
fn full_batches_at_the_sla_never_wait_and_larger_ones_neither() {
    for entries in [FULL, 2 * FULL, 1_000] {
        let seen = offer_evenly(&budget(RATE_PER_S), entries, RATE_PER_S);
        assert_eq!(
            (seen.queued, seen.throttled, seen.passed),
            (0, 0, 10 * RATE_PER_S)
        );
    }
}

#[test]
fn single_entries_at_the_sla_are_held_to_the_reservation_and_get_the_time_to_retry() {
    let (budget, seconds) = (budget(RATE_PER_S), 10);
    let alone = offer_evenly(&budget, 1, RATE_PER_S);
    let reserved = budget.tokens_per_s_milli[0];
    // No more passes than is reserved, and the second that was saved up.
    assert!(alone.cpu_milli <= (seconds + 1) * reserved, "{alone:?}");
    assert!(
        alone.cpu_milli >= seconds * reserved,
        "it gets all of it: {alone:?}"
    );
    assert!(
        alone.throttled > 0 && alone.retry_us_min >= Some(1_000),
        "{alone:?}"
    );
    // The number that can be paid for: 36.5 milliseconds each second, at 6.5 microseconds each.
    let per_s = reserved / 6_500_000;
    assert!(alone.passed.abs_diff((seconds + 1) * per_s) <= per_s, "{alone:?}");
    // Without a charge for short batches it would take more than two and a half times that, from others.
    let uncharged = Budget {
        short_batch: ShortBatch::default(),
        ..budget
    };
    let before = offer_evenly(&uncharged, 1, RATE_PER_S);
    assert_eq!(before.passed, 10 * RATE_PER_S);
}

#[test]
fn a_slow_tenant_may_send_each_entry_alone() {
    for rate_per_s in [1, 7, SINGLE_ENTRY_APPENDS_PER_S] {
        let seen = offer_evenly(&budget(rate_per_s), 1, rate_per_s);
        assert_eq!(
            (seen.queued, seen.throttled, seen.passed),
            (0, 0, 10 * rate_per_s)
        );
    }
    let seen = offer_evenly(&budget(RATE_PER_S), 1, SINGLE_ENTRY_APPENDS_PER_S);
    assert_eq!((seen.queued, seen.throttled), (0, 0));
}
