//! The book of windows against a worker that keeps the greatest of every counter.

use std::collections::BTreeMap;

use proptest::prelude::*;
use quorate_telemetry::usage::{Buckets, Histogram, Sample, Totals, UsageBatch, UsageRecord, WindowBook};
use quorate_types::limits::{TELEMETRY_SPOOL_AFTER_S, TELEMETRY_TIME_RECORDS_PER_ROUND_MAX};
use quorate_types::{GroupId, Role};
use uuid::Uuid;

const MINUTE_MS: u64 = 60_000;
/// A whole minute.
const START_MS: u64 = 1_732_112_340_000;

fn group(number: u128) -> GroupId {
    GroupId(Uuid::from_u128(number))
}

/// A group at its head, with its shard's samples.
#[derive(Clone)]
struct Head {
    sample: Sample,
}

impl Head {
    fn new(number: u128, at_ms: u64) -> Self {
        let sample = Sample {
            group: group(number),
            since_us: 1,
            epoch: 1,
            role: Role::Head,
            at_ms,
            accounted_ms: at_ms,
            log_epoch: 0,
            committed_entries: 0,
            committed_bytes: 0,
            stored_bytes: 0,
            totals: Totals::default(),
            latency: Histogram::default(),
            judged_latency: Histogram::default(),
            chain_latency: Histogram::default(),
        };
        Self { sample }
    }

    /// Offers and commits `entries` until `at_ms`, active all the time.
    fn serve(&mut self, at_ms: u64, entries: u64) {
        let sample = &mut self.sample;
        sample.totals.active_us += (at_ms - sample.at_ms) * 1000;
        (sample.at_ms, sample.accounted_ms) = (at_ms, at_ms);
        sample.committed_entries += entries;
        sample.committed_bytes += 64 * entries;
        sample.totals.offered_entries += entries;
        sample.totals.read_entries += 2 * entries;
        sample.totals.read_bytes += 128 * entries;
        sample.totals.owed_read_entries += entries;
        sample.totals.late_read_entries += entries / 3;
        sample.latency.record(500 + entries, entries);
        // Half of each batch waited for budget, which is not judged.
        sample.judged_latency.record(500, entries / 2);
        sample.totals.within_sla_entries += entries / 2;
    }

    fn sample(&mut self, book: &mut WindowBook) {
        book.observe(&self.sample);
        self.sample.latency = Histogram::default();
        self.sample.judged_latency = Histogram::default();
    }
}

type WorkerKey = (GroupId, u32, u64, u64);

/// The worker's table.
#[derive(Default)]
struct Worker {
    windows: BTreeMap<WorkerKey, UsageRecord>,
}

impl Worker {
    fn ingest(&mut self, incarnation: u32, batch: &UsageBatch) {
        for new in &batch.records {
            let key = (new.group, incarnation, new.epoch, new.window_start_s);
            let kept = self.windows.entry(key).or_insert_with(|| new.clone());
            for (kept, new) in counters(kept).into_iter().zip(counters(&mut new.clone())) {
                *kept = (*kept).max(*new);
            }
            keep_greatest(&mut kept.latency_us, &new.latency_us);
            let judged = new.judged_latency_us.as_ref().unwrap_or(&new.latency_us);
            keep_greatest(kept.judged_latency_us.get_or_insert_default(), judged);
        }
    }

    fn sum(&self, of: impl Fn(&UsageRecord) -> u64) -> u64 {
        self.windows.values().map(of).sum()
    }

    fn committed(&self, number: u128) -> u64 {
        let of_group = self.windows.values().filter(|r| r.group == group(number));
        of_group.map(|r| r.committed_entries).max().unwrap_or(0)
    }

    fn latencies(&self) -> u64 {
        self.sum(|r| r.latency_us.values().sum())
    }
}

fn keep_greatest(kept: &mut Buckets, new: &Buckets) {
    for (bucket, count) in new {
        let kept = kept.entry(*bucket).or_default();
        *kept = (*kept).max(*count);
    }
}

fn counters(r: &mut UsageRecord) -> [&mut u64; 17] {
    [
        &mut r.committed_entries,
        &mut r.committed_bytes,
        &mut r.first_committed_entries,
        &mut r.first_committed_bytes,
        &mut r.offered_entries,
        &mut r.throttled_entries,
        &mut r.throttled_within_sla_entries,
        &mut r.within_sla_entries,
        &mut r.refused_entries,
        &mut r.read_entries,
        &mut r.read_bytes,
        &mut r.owed_read_entries,
        &mut r.late_read_entries,
        &mut r.active_ms,
        &mut r.paused_ms,
        &mut r.to_ms,
        &mut r.stored_bytes,
    ]
}

fn send(book: &mut WindowBook, worker: &mut Worker) {
    loop {
        let batch = book.pending(3);
        if batch.records.is_empty() {
            return;
        }
        worker.ingest(1, &batch);
        book.mark_sent(&batch.marks);
    }
}

#[test]
fn a_log_that_was_reset_is_counted_from_zero() {
    let mut book = WindowBook::default();
    let mut head = Head::new(1, START_MS + 1_000);
    head.sample(&mut book);
    head.serve(START_MS + 2_000, 500);
    head.sample(&mut book);
    // The group is lost and reset: the same server, a new epoch, an empty log.
    (head.sample.epoch, head.sample.log_epoch) = (3, 3);
    (head.sample.committed_entries, head.sample.committed_bytes) = (0, 0);
    head.sample(&mut book);
    head.serve(START_MS + 3_000, 7);
    head.sample(&mut book);
    let records = book.pending(10).records;
    let committed: Vec<_> = records
        .iter()
        .map(|r| {
            (
                r.log_epoch,
                r.first_committed_entries,
                r.committed_entries,
                r.committed_bytes,
            )
        })
        .collect();
    assert_eq!(committed, [(0, 0, 500, 500 * 64), (3, 0, 7, 7 * 64)]);
}

#[test]
fn windows_end_exactly_at_the_minute() {
    let mut book = WindowBook::default();
    let mut head = Head::new(1, START_MS + 58_300);
    head.sample(&mut book);
    for (at_ms, entries) in [(59_300, 10), (60_300, 20), (61_300, 40)] {
        head.serve(START_MS + at_ms, entries);
        head.sample(&mut book);
    }
    let records = book.pending(10).records;
    let seen: Vec<_> = records
        .iter()
        .map(|r| {
            (
                r.window_start_s - START_MS / 1000,
                r.first_committed_entries,
                r.committed_entries,
            )
        })
        .collect();
    assert_eq!(seen, [(0, 0, 30), (60, 30, 70)]);
    let seen: Vec<_> = records
        .iter()
        .map(|r| (r.offered_entries, r.active_ms, r.latency_us.values().sum::<u64>()))
        .collect();
    assert_eq!(seen, [(30, 1_700, 30), (40, 1_300, 40)]);
    let seen: Vec<_> = (records.iter())
        .map(|r| (r.from_ms - START_MS, r.to_ms - START_MS))
        .collect();
    assert_eq!(seen, [(58_300, 60_000), (60_000, 61_300)]);
    let judged = |r: &UsageRecord| r.judged_latency_us.as_ref().map(|of| of.values().sum::<u64>());
    let seen: Vec<_> = records
        .iter()
        .map(|r| (r.within_sla_entries, judged(r)))
        .collect();
    assert_eq!(seen, [(15, Some(15)), (20, Some(20))]);
}

#[test]
fn time_before_a_new_group_accepts_is_left_out() {
    let times = |epoch: u64| {
        let mut book = WindowBook::default();
        let mut head = Head::new(1, START_MS + 10_000);
        head.sample.epoch = epoch;
        head.sample(&mut book);
        for (at_ms, active_ms) in [(11_000, 0), (12_000, 700), (13_000, 1_000), (14_000, 400)] {
            let sample = &mut head.sample;
            sample.totals.active_us += active_ms * 1_000;
            sample.totals.paused_us += (1_000 - active_ms) * 1_000;
            (sample.at_ms, sample.accounted_ms) = (START_MS + at_ms, START_MS + at_ms);
            head.sample(&mut book);
        }
        let record = book.pending(10).records.remove(0);
        (
            record.from_ms - START_MS,
            record.to_ms - START_MS,
            record.active_ms,
        )
    };
    assert_eq!(times(1), (11_300, 14_000, 2_100));
    // A later head leaves clients waiting.
    assert_eq!(times(2), (10_000, 14_000, 2_100));
}

#[test]
fn latencies_of_entries_within_the_reservation_are_sent_only_where_they_differ() {
    let mut book = WindowBook::default();
    let mut head = Head::new(1, START_MS);
    head.sample.latency.record(700, 3);
    head.sample.judged_latency.record(700, 3);
    head.sample(&mut book);
    assert_eq!(book.pending(10).records[0].judged_latency_us, None);
    // On burst capacity: nothing of it is judged.
    let mut other = Head::new(2, START_MS);
    other.sample.latency.record(700, 3);
    other.sample(&mut book);
    assert_eq!(
        book.pending(10).records[1].judged_latency_us,
        Some(Buckets::new())
    );
}

#[test]
fn a_late_sample_divides_the_time_among_the_windows_it_spans() {
    let mut book = WindowBook::default();
    let mut head = Head::new(1, START_MS + 50_000);
    head.sample(&mut book);
    head.serve(START_MS + 3 * MINUTE_MS + 5_000, 7);
    head.sample(&mut book);
    let active: Vec<_> = book
        .pending(10)
        .records
        .iter()
        .map(|r| (r.active_ms, r.offered_entries))
        .collect();
    assert_eq!(active, [(10_000, 7), (60_000, 0), (60_000, 0), (5_000, 0)]);
}

#[test]
fn what_did_not_change_is_not_sent_again() {
    let mut book = WindowBook::default();
    let mut follower = Head::new(1, START_MS);
    follower.sample.role = Role::Follower;
    follower.sample(&mut book);
    assert_eq!(book.pending(10).records.len(), 1);
    let batch = book.pending(10);
    book.mark_sent(&batch.marks);
    follower.sample.at_ms += 1000;
    follower.sample.accounted_ms += 1000;
    follower.sample(&mut book);
    assert!(!book.has_pending());
}

#[test]
fn a_change_while_a_batch_is_under_way_is_still_pending() {
    let mut book = WindowBook::default();
    let mut head = Head::new(1, START_MS);
    head.sample(&mut book);
    let batch = book.pending(10);
    head.serve(START_MS + 1000, 5);
    head.sample(&mut book);
    book.mark_sent(&batch.marks);
    assert_eq!(book.pending(10).records[0].offered_entries, 5);
}

#[test]
fn epochs_are_separated_by_samples_at_their_ends() {
    let mut book = WindowBook::default();
    let mut worker = Worker::default();
    let mut member = Head::new(1, START_MS);
    member.sample.role = Role::Follower;
    member.sample.committed_entries = 100;
    member.sample(&mut book);
    // The epoch ends: one sample closes the old one, another opens the new one.
    (member.sample.at_ms, member.sample.accounted_ms) = (START_MS + 400, START_MS + 400);
    member.sample.committed_entries = 110;
    member.sample(&mut book);
    (member.sample.epoch, member.sample.role) = (2, Role::Head);
    member.sample(&mut book);
    member.serve(START_MS + 1_000, 5);
    member.sample(&mut book);
    send(&mut book, &mut worker);
    let seen: Vec<_> = worker
        .windows
        .values()
        .map(|r| {
            (
                r.epoch,
                r.role,
                r.first_committed_entries,
                r.committed_entries,
                r.offered_entries,
                r.active_ms,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            (1, Role::Follower, 100, 110, 0, 0),
            (2, Role::Head, 110, 115, 5, 600)
        ]
    );
}

#[test]
fn a_group_that_left_and_came_back_counts_from_zero() {
    let mut book = WindowBook::default();
    let mut worker = Worker::default();
    let mut head = Head::new(1, START_MS);
    head.serve(START_MS + 1000, 50);
    head.sample(&mut book);
    let mut again = Head::new(1, START_MS + 2000);
    (again.sample.since_us, again.sample.epoch) = (2, 3);
    again.serve(START_MS + 3000, 20);
    again.sample(&mut book);
    send(&mut book, &mut worker);
    assert_eq!(worker.sum(|r| r.offered_entries), 70);
}

#[test]
fn a_clock_set_back_loses_and_doubles_nothing() {
    let mut book = WindowBook::default();
    let mut worker = Worker::default();
    let mut head = Head::new(1, START_MS + 90_000);
    head.serve(START_MS + 91_000, 5);
    head.sample(&mut book);
    (head.sample.at_ms, head.sample.accounted_ms) = (START_MS + 30_000, START_MS + 30_000);
    head.serve(START_MS + 31_000, 7);
    head.sample(&mut book);
    send(&mut book, &mut worker);
    assert_eq!(
        (
            worker.sum(|r| r.offered_entries),
            worker.committed(1),
            worker.latencies()
        ),
        (12, 12, 12)
    );
}

#[test]
fn the_oldest_windows_beyond_the_bound_go_and_usage_stays() {
    let mut book = WindowBook::with_bound(3);
    let mut worker = Worker::default();
    let mut head = Head::new(1, START_MS);
    head.sample(&mut book);
    for second in 1..=600 {
        head.serve(START_MS + second * 1000, 10);
        head.sample(&mut book);
        book.end_round(head.sample.at_ms);
        assert!(book.len() <= 3);
    }
    assert!(book.dropped() > 0);
    // The reads of dropped windows go with the group's next sample.
    head.serve(START_MS + 600_500, 10);
    head.sample(&mut book);
    send(&mut book, &mut worker);
    assert_eq!(worker.committed(1), 6_010);
    assert_eq!(
        worker.sum(|r| r.read_entries),
        12_020,
        "reads are billed, so they move to the next record"
    );
    assert!(
        worker.sum(|r| r.offered_entries) < 6_000,
        "the dropped windows' detail is gone"
    );
}

#[test]
fn what_redis_took_makes_room_first_and_is_kept_for_a_while() {
    let mut book = WindowBook::default();
    let mut worker = Worker::default();
    let mut head = Head::new(1, START_MS);
    for second in 1..=1_800 {
        head.serve(START_MS + second * 1000, 1);
        head.sample(&mut book);
        book.end_round(head.sample.at_ms);
        send(&mut book, &mut worker);
    }
    assert_eq!(book.dropped(), 0);
    assert!((15..=18).contains(&book.len()), "{} windows", book.len());
    // Redis lost all data; the repeated records are whole.
    let mut worker = Worker::default();
    book.send_again();
    send(&mut book, &mut worker);
    let whole = worker
        .windows
        .values()
        .filter(|r| r.active_ms == MINUTE_MS)
        .count();
    assert!(whole >= 15, "{whole} whole minutes");
    assert_eq!(worker.committed(1), 1_800);
}

#[derive(Debug, Clone)]
enum Step {
    Serve {
        group: u128,
        ms: u64,
        entries: u64,
    },
    Epoch {
        group: u128,
    },
    /// Redis took a batch; the answer may be lost.
    Send {
        is_acknowledged: bool,
    },
    Reconnect,
    Restart,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (1..4u128, 1..30_000u64, 0..1_000u64)
            .prop_map(|(group, ms, entries)| Step::Serve { group, ms, entries }),
        1 => (1..4u128).prop_map(|group| Step::Epoch { group }),
        3 => any::<bool>().prop_map(|is_acknowledged| Step::Send { is_acknowledged }),
        1 => Just(Step::Reconnect),
        1 => Just(Step::Restart),
    ]
}

proptest! {
    /// The worker's sums are the served amounts, whatever Redis does: nothing is lost, and nothing counted twice.
    #[test]
    fn sums_are_exact(steps in prop::collection::vec(step(), 1..120)) {
        let mut book = WindowBook::default();
        let mut worker = Worker::default();
        let mut incarnation = 1;
        let mut heads: BTreeMap<u128, Head> = (1..4).map(|n| (n, Head::new(n, START_MS))).collect();
        let (mut served, mut active_ms) = (0, 0);
        for step in steps {
            match step {
                Step::Serve { group, ms, entries } => {
                    let head = heads.get_mut(&group).expect("there are three");
                    head.serve(head.sample.at_ms + ms, entries);
                    head.sample(&mut book);
                    served += entries;
                    active_ms += ms;
                }
                Step::Epoch { group } => heads.get_mut(&group).expect("there are three").sample.epoch += 1,
                Step::Send { is_acknowledged } => {
                    let batch = book.pending(2);
                    worker.ingest(incarnation, &batch);
                    if is_acknowledged {
                        book.mark_sent(&batch.marks);
                    }
                }
                Step::Reconnect => book.send_again(),
                // A stop sends all records; the log stays, and with it the committed counts.
                Step::Restart => {
                    worker.ingest(incarnation, &book.pending(usize::MAX));
                    incarnation += 1;
                    book = WindowBook::default();
                    for head in heads.values_mut() {
                        head.sample.totals = Totals::default();
                        head.sample.since_us += 1;
                    }
                }
            }
        }
        worker.ingest(incarnation, &book.pending(usize::MAX));
        let committed: u64 = (1..4).map(|n| worker.committed(n)).sum();
        prop_assert_eq!(committed, served);
        prop_assert_eq!(worker.sum(|r| r.offered_entries), served);
        prop_assert_eq!(worker.sum(|r| r.read_entries), 2 * served);
        prop_assert_eq!(worker.latencies(), served);
        let counted = worker.sum(|r| r.active_ms);
        let windows = worker.windows.len() as u64;
        prop_assert!(counted <= active_ms && counted + windows >= active_ms, "{} of {}", counted, active_ms);
        for record in worker.windows.values() {
            prop_assert!(record.first_committed_entries <= record.committed_entries);
        }
    }
}

#[test]
fn idle_groups_are_sent_in_turn_and_each_when_its_minute_has_ended() {
    let groups = 3 * TELEMETRY_TIME_RECORDS_PER_ROUND_MAX;
    let mut book = WindowBook::default();
    let mut heads: Vec<Head> = (0..groups as u128)
        .map(|number| Head::new(number, START_MS))
        .collect();
    let mut sent_in = Vec::new();
    let mut last: BTreeMap<GroupId, u64> = BTreeMap::new();
    for second in 0..=60 {
        let at_ms = START_MS + second * 1_000;
        for (number, head) in heads.iter_mut().enumerate() {
            head.serve(at_ms, u64::from(number == 7));
            head.sample(&mut book);
        }
        book.end_round(at_ms);
        let mut sent = 0;
        loop {
            let batch = book.pending(256);
            if batch.records.is_empty() {
                break;
            }
            sent += batch.records.len();
            let first = batch
                .records
                .iter()
                .filter(|record| record.window_start_s == START_MS / 1_000);
            last.extend(first.map(|record| (record.group, record.active_ms)));
            book.mark_sent(&batch.marks);
        }
        sent_in.push(sent);
    }
    assert_eq!(sent_in[0], groups, "each record begins by being sent");
    let most = TELEMETRY_TIME_RECORDS_PER_ROUND_MAX + 1;
    assert!(sent_in[1..60].iter().all(|sent| *sent == most), "{sent_in:?}");
    assert_eq!(last.len(), groups);
    assert!(
        last.values().all(|active_ms| *active_ms == 60_000),
        "the ended minute is whole"
    );
}

#[test]
fn records_of_minutes_that_are_over_go_to_the_disk_whole_and_once() {
    let mut book = WindowBook::default();
    let mut worker = Worker::default();
    let mut head = Head::new(1, START_MS);
    head.sample(&mut book);
    let mut most = 0;
    for second in 1..=3_600 {
        head.serve(START_MS + second * 1000, 10);
        head.sample(&mut book);
        book.end_round(head.sample.at_ms);
        let batch = book.overdue(head.sample.at_ms, 256);
        let kept = head.sample.at_ms / 1000 - TELEMETRY_SPOOL_AFTER_S - 60;
        assert!(batch.records.iter().all(|record| record.window_start_s < kept));
        worker.ingest(0, &batch);
        book.mark_spooled(&batch.marks);
        most = most.max(book.len());
    }
    assert!(most <= 6, "{most} records are in memory");
    assert!(book.overdue(head.sample.at_ms, 256).records.is_empty());
    let left = book.left(256);
    worker.ingest(0, &left);
    book.mark_spooled(&left.marks);
    assert!(book.is_empty() && !book.has_pending());
    assert_eq!(worker.sum(|r| r.offered_entries), 36_000);
    assert_eq!(worker.sum(|r| r.active_ms), 3_600_000);
    assert_eq!(worker.committed(1), 36_000);
    assert_eq!(book.dropped(), 0);
}
