//! The scan over bytes in memory: no file, as a simulated disk or a fuzzer has it.

use proptest::prelude::*;
use quorate_journal::record::{self, HEADER_BYTES, Header, PAGE_BYTES, SEGMENT_HEAD_BYTES, SegmentHead};
use quorate_journal::{Head, Scanned, SegmentFile, Step, Walk, scan};

const SALT: u64 = 0x5eed;

/// A segment of records with lsns from `first_lsn`, each written when all before it was durable.
fn segment(number: u32, first_lsn: u64, bodies: &[&[u8]]) -> Vec<u8> {
    let head = SegmentHead {
        segment: number,
        salt: SALT,
        first_lsn,
    };
    let mut bytes = head.encode();
    for (lsn, payload) in (first_lsn..).zip(bodies) {
        let header = Header {
            body_len: 1 + payload.len() as u32,
            lsn,
            segment: number,
            unsynced: 1,
            head_len: 1,
            kind: 9,
        };
        record::encode(&header, SALT, b"h", payload, &mut bytes);
    }
    bytes.resize((64 << 10).max(bytes.len() + 4096), 0);
    bytes
}

fn read(segments: Vec<Vec<u8>>) -> (Scanned, Vec<(u64, Vec<u8>)>) {
    let files: Vec<_> = (1..)
        .zip(segments)
        .map(|(number, source)| SegmentFile { number, source })
        .collect();
    let mut records = Vec::new();
    let scanned =
        scan(&files, &mut |r| records.push((r.lsn, r.payload.to_vec()))).expect("memory can be read");
    (scanned, records)
}

#[test]
fn records_encoded_in_memory_are_read_back() {
    let (scanned, records) = read(vec![
        segment(1, 1, &[b"one", b"", b"three"]),
        segment(2, 4, &[&[7; 5_000]]),
        vec![0; 4096],
    ]);
    let expected: [(u64, Vec<u8>); 4] = [
        (1, b"one".to_vec()),
        (2, vec![]),
        (3, b"three".to_vec()),
        (4, vec![7; 5_000]),
    ];
    assert_eq!(records, expected);
    assert_eq!((scanned.recovery.next_lsn, &scanned.recovery.torn), (5, &None));
    assert_eq!(scanned.heads[2], Head::Unused);
    let end = scanned.end.expect("writing goes on in the second segment");
    let position = SEGMENT_HEAD_BYTES + record::stride(5_001) as u64;
    assert_eq!((end.segment, end.position), (2, position));
}

#[test]
fn a_hole_before_a_synced_mark_is_damage_and_one_behind_it_a_torn_end() {
    let mut bytes = segment(1, 1, &[b"one", b"two", b"three"]);
    let second = SEGMENT_HEAD_BYTES as usize + record::stride(4);
    bytes[second + HEADER_BYTES] ^= 1;
    let (scanned, records) = read(vec![bytes]);
    assert_eq!(records.iter().map(|r| r.0).collect::<Vec<_>>(), [1, 3]);
    let damage = &scanned.recovery.damages[0];
    assert_eq!((damage.first_lsn, damage.end_lsn), (2, Some(3)));

    let mut bytes = segment(1, 1, &[b"one", b"two", b"three"]);
    let third = second + record::stride(4);
    bytes[third + HEADER_BYTES] ^= 1;
    let (scanned, records) = read(vec![bytes]);
    assert_eq!((records.len(), scanned.recovery.damages.len()), (2, 0));
    assert_eq!(scanned.recovery.torn.expect("a torn end").position, third as u64);
}

#[test]
fn one_copy_of_an_earlier_use_hides_no_segment() {
    for stale_copy in [0, PAGE_BYTES as usize] {
        let mut bytes = segment(2, 3, &[b"three"]);
        let earlier = SegmentHead {
            segment: 1,
            salt: 1,
            first_lsn: 1,
        };
        bytes[stale_copy..stale_copy + 64].copy_from_slice(&earlier.encode()[..64]);
        let (_, records) = read(vec![segment(1, 1, &[b"one", b"two"]), bytes]);
        let lsns: Vec<u64> = records.iter().map(|record| record.0).collect();
        assert_eq!(lsns, [1, 2, 3], "the stale copy is at {stale_copy}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    /// Heads and records whose fields say anything, with sound checksums: the worst that an adversary could write.
    #[test]
    fn any_fields_are_survived(
        heads in proptest::collection::vec((0u32..4, any::<u64>()), 1..4),
        fields in proptest::collection::vec((any::<u64>(), 0u32..4, any::<u32>(), 0usize..200), 0..8),
        small in proptest::bool::ANY,
    ) {
        let of = |n: u64| if small { n % 8 } else { n };
        let segments = heads.iter().map(|(number, first_lsn)| {
            let mut bytes = SegmentHead { segment: *number, salt: SALT, first_lsn: of(*first_lsn) }.encode();
            for (lsn, segment, unsynced, len) in &fields {
                let header = Header {
                    body_len: *len as u32, lsn: of(*lsn), segment: *segment,
                    unsynced: of(u64::from(*unsynced)) as u32, head_len: 0, kind: 1,
                };
                record::encode(&header, SALT, &[], &vec![1; *len], &mut bytes);
            }
            bytes
        });
        let (scanned, records) = read(segments.collect());
        prop_assert!(records.windows(2).all(|w| w[0].0 < w[1].0));
        prop_assert!(records.last().is_none_or(|(lsn, _)| *lsn < scanned.recovery.next_lsn));
    }
}

#[test]
fn a_sealed_segment_is_walked_over_a_hole() {
    let long = vec![3; 3 << 20];
    let head = SegmentHead {
        segment: 1,
        salt: SALT,
        first_lsn: 1,
    };
    let mut bytes = segment(1, 1, &[b"one", b"two", &long, b"four", b"five"]);
    let second = SEGMENT_HEAD_BYTES as usize + record::stride(4);
    bytes[second] ^= 1;
    let steps = |bytes: Vec<u8>, end_lsn| {
        let mut walk = Walk::new(bytes, head, end_lsn);
        let mut seen = Vec::new();
        while let Some(step) = walk.next().expect("memory can be read") {
            seen.push(match step {
                Step::Record(r) => (r.lsn, r.lsn + 1, r.payload.len()),
                Step::Hole { first_lsn, end_lsn } => (first_lsn, end_lsn, usize::MAX),
            });
        }
        seen
    };
    let lost = usize::MAX;
    let expected = [(1, 2, 3), (2, 3, lost), (3, 4, long.len()), (4, 5, 4), (5, 6, 4)];
    assert_eq!(steps(bytes.clone(), 6), expected);
    let end = bytes.len() - (bytes.iter().rev().take_while(|b| **b == 0).count());
    bytes[end - 8] ^= 1;
    assert_eq!(
        steps(bytes, 6)[4],
        (5, 6, lost),
        "a hole at the end reaches to the next segment"
    );
}
