//! Records on disk come out once, oldest first, whatever ended the process before.

use std::fs;
use std::path::Path;

use quorate_telemetry::spool::Spool;
use quorate_telemetry::usage::UsageRecord;
use quorate_types::limits::TELEMETRY_SPOOL_AGE_S;
use quorate_types::{GroupId, Role};
use serde::Deserialize;
use uuid::Uuid;

const NOW_S: u64 = 1_732_112_340;
const MANY: u64 = 1 << 30;

fn record(number: u64) -> UsageRecord {
    UsageRecord {
        group: GroupId(Uuid::from_u128(7)),
        epoch: 1,
        log_epoch: 0,
        role: Role::Head,
        window_start_s: NOW_S,
        window_s: 60,
        committed_entries: number,
        committed_bytes: 64 * number,
        first_committed_entries: 0,
        first_committed_bytes: 0,
        offered_entries: number,
        throttled_entries: 0,
        throttled_within_sla_entries: 0,
        within_sla_entries: number,
        refused_entries: 0,
        read_entries: 0,
        read_bytes: 0,
        owed_read_entries: 0,
        late_read_entries: 0,
        active_ms: 60_000,
        paused_ms: 0,
        from_ms: 0,
        to_ms: 0,
        stored_bytes: 0,
        latency_us: Default::default(),
        judged_latency_us: None,
    }
}

fn append(spool: &mut Spool, numbers: std::ops::Range<u64>) {
    for number in numbers {
        spool
            .append(&format!("process-{}", number / 100), &[record(number)], NOW_S)
            .unwrap();
    }
}

#[derive(Deserialize)]
struct Sent {
    committed_entries: u64,
}

/// The process and the number of each block, until there is none.
fn drain(spool: &mut Spool) -> Vec<(String, u64)> {
    let mut found = Vec::new();
    while let Some(block) = spool.first() {
        let records: Vec<Sent> = serde_json::from_str(block.records.get()).unwrap();
        assert_eq!(records.len(), 1);
        found.push((block.incarnation, records[0].committed_entries));
        spool.mark_sent();
    }
    found
}

fn expected(numbers: std::ops::Range<u64>) -> Vec<(String, u64)> {
    numbers
        .map(|number| (format!("process-{}", number / 100), number))
        .collect()
}

fn files(folder: &Path) -> usize {
    fs::read_dir(folder).unwrap().count()
}

#[test]
fn blocks_come_out_in_their_order_and_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::with_bounds(folder.path(), MANY, 2_000).unwrap();
    append(&mut spool, 0..250);
    assert!(files(folder.path()) > 3, "files have a bound");
    assert_eq!(drain(&mut spool), expected(0..250));
    assert!(spool.is_empty());
    assert_eq!(files(folder.path()), 0);
    append(&mut spool, 250..260);
    assert_eq!(drain(&mut spool), expected(250..260));
}

#[test]
fn blocks_that_are_added_while_others_are_sent_follow() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::with_bounds(folder.path(), MANY, 1_000).unwrap();
    let (mut sent, mut added) = (Vec::new(), 0);
    while sent.len() < 300 {
        if added < 300 {
            append(&mut spool, added..added + 3);
            added += 3;
        }
        for _ in 0..2 {
            let Some(block) = spool.first() else { continue };
            // A send that failed is repeated.
            assert_eq!(spool.first().unwrap().records.get(), block.records.get());
            spool.mark_sent();
            sent.push(block);
        }
    }
    assert!(spool.first().is_none());
    assert_eq!(files(folder.path()), 0);
}

#[test]
fn another_process_goes_on_and_repeats_at_most_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::with_bounds(folder.path(), MANY, 1_000).unwrap();
    append(&mut spool, 0..100);
    for _ in 0..40 {
        spool.first().unwrap();
        spool.mark_sent();
    }
    drop(spool);
    let mut spool = Spool::with_bounds(folder.path(), MANY, 1_000).unwrap();
    append(&mut spool, 100..110);
    let found = drain(&mut spool);
    let first = found[0].1;
    assert!((20..=40).contains(&first), "{first}");
    assert_eq!(found, expected(first..110));
}

#[test]
fn what_a_crash_cut_off_or_a_disk_damaged_loses_its_file_alone() {
    for damage in ["cut", "flipped", "length"] {
        let folder = tempfile::tempdir().unwrap();
        let mut spool = Spool::with_bounds(folder.path(), MANY, 1_000).unwrap();
        append(&mut spool, 0..30);
        drop(spool);
        let mut paths: Vec<_> = fs::read_dir(folder.path())
            .unwrap()
            .map(|each| each.unwrap().path())
            .collect();
        paths.sort();
        let first = &paths[0];
        let mut bytes = fs::read(first).unwrap();
        let length = bytes.len();
        match damage {
            "cut" => bytes.truncate(length - 5),
            "flipped" => bytes[length - 5] ^= 1,
            _ => bytes[0..4].fill(0xff),
        }
        fs::write(first, bytes).unwrap();
        let mut spool = Spool::with_bounds(folder.path(), MANY, 1_000).unwrap();
        let found = drain(&mut spool);
        let last_of_first_lost = found.iter().map(|(_, number)| *number).collect::<Vec<_>>();
        assert!(
            last_of_first_lost.ends_with(&(10..30).collect::<Vec<_>>()),
            "{damage}: {found:?}"
        );
        assert!(found.len() < 30 && spool.is_empty(), "{damage}");
        assert_eq!(files(folder.path()), 0, "{damage}");
    }
}

#[test]
fn beyond_the_bounds_the_oldest_go_and_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let mut spool = Spool::with_bounds(folder.path(), 5_000, 1_000).unwrap();
    append(&mut spool, 0..200);
    assert!(spool.bytes() <= 5_000 + 1_000);
    assert!(spool.dropped_files() > 0);
    let dropped = spool.dropped_files();
    spool.forget_old(NOW_S + TELEMETRY_SPOOL_AGE_S);
    assert_eq!(spool.dropped_files(), dropped, "not yet");
    spool.forget_old(NOW_S + TELEMETRY_SPOOL_AGE_S + 1);
    assert!(spool.is_empty() && spool.dropped_files() > dropped);
    append(&mut spool, 200..201);
    assert_eq!(drain(&mut spool), expected(200..201));
}
