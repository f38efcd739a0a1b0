//! Random damage to real journal files: readable records are read, lost ones are named, and no acknowledged record is
//! truncated in silence.

mod support;

use std::ops::Range;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use quorate_journal::{Location, Recovery};
use support::{Owned, open, payload, put, small, submitter};

/// Written records, their locations and groups. A group is one group commit or more, durable before the next begins.
struct Written {
    records: Vec<Owned>,
    locations: Vec<Location>,
    groups: Vec<usize>,
}

fn write(dir: &Path, groups: &[Vec<usize>]) -> Written {
    let (journal, ..) = open(dir, small());
    let (submitter, seen) = submitter(&journal);
    let mut written = Written {
        records: Vec::new(),
        locations: Vec::new(),
        groups: Vec::new(),
    };
    for (number, group) in groups.iter().enumerate() {
        for len in group {
            let lsn = written.records.len() as u64 + 1;
            let record = Owned {
                lsn,
                kind: lsn as u8 | 1,
                head: payload(lsn, 9),
                payload: payload(lsn + 1, *len),
            };
            let at = put(&submitter, record.kind, &record.head, &record.payload, lsn);
            written.records.push(record);
            written.locations.push(at.location);
            written.groups.push(number);
        }
        seen.durable(written.records.len() as u64);
    }
    written
}

/// Damages one segment file, chosen and placed by fractions; answers which bytes of which segment.
fn harm(dir: &Path, file: f64, at: f64, len: usize, change: impl Fn(usize, u8) -> u8) -> (u32, Range<usize>) {
    let segments = segments(dir);
    let path = &segments[((file * segments.len() as f64) as usize).min(segments.len() - 1)];
    let mut bytes = std::fs::read(path).unwrap();
    let at = ((at * bytes.len() as f64) as usize).min(bytes.len() - 1);
    let range = at..(at + len).min(bytes.len());
    for i in range.clone() {
        bytes[i] = change(i - at, bytes[i]);
    }
    std::fs::write(path, &bytes).unwrap();
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    (u32::from_str_radix(&name["segment-".len()..], 16).unwrap(), range)
}

fn segments(dir: &Path) -> Vec<PathBuf> {
    let names = std::fs::read_dir(dir).unwrap().map(|e| e.unwrap().path());
    let mut segments: Vec<_> = names
        .filter(|p| p.file_name().unwrap().to_string_lossy().starts_with("segment-"))
        .collect();
    segments.sort();
    segments
}

/// Everything yielded is genuine and in order. Everything missing is named as damage or was truncated. No record is
/// truncated if an intact record of a later group proves that it was durable.
fn check(written: &Written, harmed: &(u32, Range<usize>), recovery: &Recovery, read: &[Owned]) {
    assert!(read.windows(2).all(|w| w[0].lsn < w[1].lsn));
    for record in read {
        assert_eq!(
            *record,
            written.records[record.lsn as usize - 1],
            "a record that was never written"
        );
    }
    let intact = |at: &Location| {
        let bytes = at.position as usize..(at.position + at.len) as usize;
        at.segment != harmed.0 || bytes.end <= harmed.1.start || bytes.start >= harmed.1.end
    };
    let named = |lsn: u64| {
        recovery
            .damages
            .iter()
            .any(|d| d.first_lsn <= lsn && d.end_lsn.is_none_or(|end| lsn < end))
    };
    for (i, record) in written.records.iter().enumerate() {
        let there = read.iter().any(|r| r.lsn == record.lsn);
        let is_truncated = record.lsn >= recovery.next_lsn;
        assert!(
            there || named(record.lsn) || is_truncated,
            "lsn {} vanished: {recovery:?}",
            record.lsn
        );
        assert!(
            !(there && named(record.lsn)),
            "lsn {} was read and called damaged",
            record.lsn
        );
        assert!(
            there || !intact(&written.locations[i]) || is_truncated,
            "lsn {} was intact: {recovery:?}",
            record.lsn
        );
        let proof = (i + 1..written.records.len())
            .find(|j| written.groups[*j] > written.groups[i] && intact(&written.locations[*j]));
        assert!(
            !is_truncated || proof.is_none(),
            "lsn {} was truncated though {proof:?} is intact: {recovery:?}",
            record.lsn
        );
    }
}

/// After recovery the journal takes appends, and opening it again yields old and new records.
fn goes_on(dir: &Path, recovery: &Recovery, read: &[Owned]) {
    {
        let (journal, again, reread) = open(dir, small());
        assert_eq!((reread.as_slice(), again.next_lsn), (read, recovery.next_lsn));
        assert_eq!((&again.damages, again.torn), (&recovery.damages, None));
        let (submitter, seen) = submitter(&journal);
        for i in 0..10 {
            put(&submitter, 200, b"new", &payload(i, 300), i);
        }
        seen.durable(9);
    }
    let (_journal, again, reread) = open(dir, small());
    assert_eq!(again.torn, None);
    assert_eq!(reread[..read.len()], *read);
    assert_eq!(reread.len(), read.len() + 10);
    assert!(reread[read.len()..].iter().all(|r| r.kind == 200));
}

fn groups() -> impl Strategy<Value = Vec<Vec<usize>>> {
    proptest::collection::vec(proptest::collection::vec(0usize..3_000, 1..12), 2..10)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, max_shrink_iters: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_flipped_bit_costs_one_record_and_is_named(
        groups in groups(), at in 0.0f64..1.0, file in 0.0f64..1.0, bit in 0u8..8,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let written = write(dir.path(), &groups);
        let harmed = harm(dir.path(), file, at, 1, |_, byte| byte ^ (1 << bit));
        let (journal, recovery, read) = open(dir.path(), small());
        drop(journal);
        check(&written, &harmed, &recovery, &read);
        let missing = written.records.len() - read.len();
        prop_assert!(missing <= 1 || recovery.torn.is_some(), "{missing} missing: {recovery:?}");
        goes_on(dir.path(), &recovery, &read);
    }

    #[test]
    fn a_truncated_end_keeps_exactly_the_prefix(groups in groups(), at in 0.0f64..1.0) {
        let dir = tempfile::tempdir().unwrap();
        let written = write(dir.path(), &groups);
        // The last segment that holds records: prepared ones behind it have no head yet.
        let last = segments(dir.path()).into_iter().rfind(|p| std::fs::read(p).unwrap()[0] != 0).unwrap();
        let bytes = std::fs::read(&last).unwrap();
        let end = 8192 + (at * (bytes.len() - 8192) as f64) as usize;
        std::fs::write(&last, &bytes[..end]).unwrap();
        let (journal, recovery, read) = open(dir.path(), small());
        drop(journal);
        prop_assert!(recovery.damages.is_empty(), "{recovery:?}");
        prop_assert_eq!(&read[..], &written.records[..read.len()]);
        goes_on(dir.path(), &recovery, &read);
    }

    #[test]
    fn garbage_over_a_range_is_named(
        groups in groups(), at in 0.0f64..1.0, len in 1usize..20_000, file in 0.0f64..1.0, seed: u64,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let written = write(dir.path(), &groups);
        let noise = payload(seed, len);
        let harmed = harm(dir.path(), file, at, len, |i, _| noise[i]);
        let (journal, recovery, read) = open(dir.path(), small());
        drop(journal);
        if harmed.1.start >= 64 {
            check(&written, &harmed, &recovery, &read);
            goes_on(dir.path(), &recovery, &read);
        } else {
            // Both copies of a segment's head may be gone, and with them all of its records.
            prop_assert!(read.iter().all(|r| written.records[r.lsn as usize - 1] == *r));
            let all = read.len() == written.records.len();
            prop_assert!(all || !recovery.damages.is_empty() || recovery.torn.is_some(), "{recovery:?}");
        }
    }
}

/// A crash in the middle of the last write may leave its later sectors and lose earlier ones.
#[test]
fn a_hole_in_the_last_write_is_a_torn_end_and_not_damage() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, ..) = open(dir.path(), small());
    let (s, seen) = submitter(&journal);
    put(&s, 1, &[], &payload(1, 100), 1);
    seen.durable(1);
    let body = bytes::Bytes::from(payload(2, 1000));
    let one = |tag| quorate_journal::Submission {
        kind: 2,
        head: &[],
        payload: &body,
        payload_crc: None,
        tag,
        reserved: false,
    };
    let mut locations = Vec::new();
    s.submit_many(&[one(2), one(3), one(4)], |at| locations.push(at.location))
        .unwrap();
    seen.durable(4);
    drop(journal);
    let path = &segments(dir.path())[0];
    let mut bytes = std::fs::read(path).unwrap();
    bytes[locations[0].position as usize + 40] ^= 1;
    std::fs::write(path, &bytes).unwrap();
    let (journal, recovery, read) = open(dir.path(), small());
    drop(journal);
    assert_eq!((read.len(), recovery.next_lsn, recovery.damages.len()), (1, 2, 0));
    assert_eq!(recovery.torn.as_ref().unwrap().records_truncated, 2);
    goes_on(dir.path(), &recovery, &read);
}

/// Bytes that look like a record inside a client's payload are not taken for one, whatever is damaged around them.
#[test]
fn a_record_forged_inside_a_payload_is_not_read() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, ..) = open(dir.path(), small());
    let (s, seen) = submitter(&journal);
    let mut header = [0u8; 32];
    header[4..8].copy_from_slice(b"QJR1");
    header[8..16].copy_from_slice(&3u64.to_le_bytes());
    header[20..24].copy_from_slice(&1u32.to_le_bytes());
    let crc = crc32fast::hash(&header[4..]);
    header[0..4].copy_from_slice(&crc.to_le_bytes());
    let forged = [payload(1, 64), header.to_vec()].concat();
    let at = put(&s, 1, &[], &forged, 1);
    seen.durable(1);
    for i in 2..=3 {
        put(&s, 1, &[], b"real", i);
        seen.durable(i);
    }
    drop(journal);
    let path = &segments(dir.path())[0];
    let mut bytes = std::fs::read(path).unwrap();
    bytes[at.location.position as usize + 9] ^= 1;
    std::fs::write(path, &bytes).unwrap();
    let (_journal, recovery, read) = open(dir.path(), small());
    assert_eq!(read.iter().map(|r| r.lsn).collect::<Vec<_>>(), [2, 3]);
    assert!(read.iter().all(|r| r.payload == b"real"));
    assert_eq!(
        (recovery.damages[0].first_lsn, recovery.damages[0].end_lsn),
        (1, Some(2))
    );
}

#[test]
fn damage_to_the_last_record_is_named_once_a_mark_stands_behind_it() {
    let dir = tempfile::tempdir().unwrap();
    let options = quorate_journal::JournalOptions {
        mark_after: Some(std::time::Duration::from_millis(20)),
        ..small()
    };
    let (journal, ..) = open(dir.path(), options.clone());
    let (submitter, seen) = submitter(&journal);
    let at = put(&submitter, 1, b"head", b"the last", 1).location;
    seen.durable(1);
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while journal.stats().durable_lsn < 2 {
        assert!(std::time::Instant::now() < deadline, "no mark was written");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(journal.stats().records, 1, "a mark is nobody's record");
    // As after kill -9: there was no time for another mark.
    let path = segments(dir.path()).remove(0);
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[at.position as usize + 40] ^= 1;
    drop(journal);
    std::fs::write(&path, &bytes).unwrap();
    let (_journal, recovery, read) = open(dir.path(), options);
    assert_eq!((read.len(), recovery.records, recovery.torn), (1, 0, None));
    let named: Vec<_> = recovery
        .damages
        .iter()
        .map(|d| (d.first_lsn, d.end_lsn))
        .collect();
    assert_eq!(named, [(1, Some(2))]);
}

/// Records of a segment without readable heads cannot be counted. A process killed right after it has seen that must
/// not forget that there were some.
#[test]
fn a_lost_last_segment_is_missed_at_each_start() {
    let dir = tempfile::tempdir().unwrap();
    let written = write(dir.path(), &[vec![9_000; 6]]);
    let segments = segments(dir.path());
    let begun = |at: &Location| at.segment;
    let last = written.locations.iter().map(begun).max().unwrap();
    let path = segments
        .iter()
        .find(|path| path.to_string_lossy().ends_with(&format!("{last:08x}")))
        .expect("the last segment");
    let mut bytes = std::fs::read(path).unwrap();
    bytes[..2 * 4096].fill(0xaa);
    std::fs::write(path, &bytes).unwrap();
    let left = written.locations.iter().filter(|at| at.segment < last).count() as u64;
    for start in 1..=3 {
        let (_journal, recovery, read) = open(dir.path(), small());
        assert_eq!(read.len() as u64, left);
        assert_eq!(recovery.next_lsn, left + 2, "a number is left out, once");
        let lost = &recovery.damages[0];
        assert_eq!(lost.first_lsn, left + 1);
        assert!(
            lost.end_lsn.is_none_or(|end| end == left + 2),
            "start {start}: {lost:?}"
        );
    }
}
