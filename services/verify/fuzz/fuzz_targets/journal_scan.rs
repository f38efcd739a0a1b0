//! The scan of a journal: no bytes cause a panic. From a sound journal damaged by a disk, the scan yields only records
//! that were written, and all records before the damage.

#![cfg_attr(fuzzing, no_main)]

use quorate_fuzz::Input;
use quorate_fuzz::damage::damage;
use quorate_journal::record::{
    self, HEADER_BYTES, Header, KIND_MARK, PAGE_BYTES, SEGMENT_HEAD_BYTES, SegmentHead,
};
use quorate_journal::{Head, Scanned, SegmentFile, scan};

const HEAD_BYTES: usize = SEGMENT_HEAD_BYTES as usize;
/// Bytes of a segment's head that are examined, in each of its two copies.
const HEAD_USED_BYTES: usize = 40;

quorate_fuzz::program!(run);

fn run(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 3 {
        0 => any_bytes(input),
        1 => any_fields(input),
        _ => damaged(input),
    }
}

type Found = (u64, u8, Vec<u8>, Vec<u8>);

fn read(segments: Vec<(u32, Vec<u8>)>) -> (Scanned, Vec<Found>) {
    let files: Vec<_> = segments
        .into_iter()
        .map(|(number, source)| SegmentFile { number, source })
        .collect();
    let mut found = Vec::new();
    let mut visit = |r: quorate_journal::JournalRecord<'_>| {
        found.push((r.lsn, r.kind, r.head.to_vec(), r.payload.to_vec()));
    };
    let scanned = scan(&files, &mut visit).expect("memory can be read");
    let lsns: Vec<u64> = found.iter().map(|record| record.0).collect();
    assert!(
        lsns.windows(2).all(|pair| pair[0] < pair[1]),
        "records in order: {lsns:?}"
    );
    assert!(lsns.last().is_none_or(|last| *last < scanned.recovery.next_lsn));
    let without_marks = found.iter().filter(|record| record.1 != KIND_MARK).count();
    assert_eq!(scanned.recovery.records, without_marks as u64);
    (scanned, found)
}

/// Files with any content, half of them behind a sound head.
fn any_bytes(mut input: Input<'_>) {
    let mut segments = Vec::new();
    for number in 1..=u32::from(input.byte() % 3) + 1 {
        let has_head = input.byte().is_multiple_of(2);
        let first_lsn = 1 + u64::from(input.byte());
        let len = usize::from(input.u16());
        let mut bytes = match has_head {
            true => head(number, first_lsn).encode(),
            false => Vec::new(),
        };
        bytes.extend(input.bytes(len));
        segments.push((number, bytes));
    }
    read(segments);
}

/// Heads and records with any content under right checksums: the worst that can be on a disk.
fn any_fields(mut input: Input<'_>) {
    let mut segments = Vec::new();
    for number in 1..=u32::from(input.byte() % 3) + 1 {
        let of = |n: u64, small: bool| if small { n % 16 } else { n };
        let small = !input.byte().is_multiple_of(4);
        let mut bytes = head(number, of(input.u64(), small)).encode();
        for _ in 0..input.byte() % 6 {
            let payload = input.byte();
            let header = Header {
                body_len: u32::from(payload),
                lsn: of(input.u64(), small),
                segment: u32::from(input.byte() % 4),
                unsynced: of(input.u64(), small) as u32,
                head_len: 0,
                kind: input.byte(),
            };
            record::encode(&header, SALT, &[], &vec![7; usize::from(payload)], &mut bytes);
        }
        segments.push((number, bytes));
    }
    read(segments);
}

const SALT: u64 = 0x0dd5_a17e;

fn head(segment: u32, first_lsn: u64) -> SegmentHead {
    SegmentHead {
        segment,
        salt: SALT ^ u64::from(segment),
        first_lsn: first_lsn.max(1),
    }
}

/// A record that was written, and its place.
struct Written {
    found: Found,
    synced_lsn: u64,
    segment: usize,
    start: usize,
    end: usize,
}

fn damaged(mut input: Input<'_>) {
    let mut written = Vec::new();
    let mut segments = Vec::new();
    let mut first_lsns = Vec::new();
    let mut lsn = 1 + u64::from(input.byte() % 4);
    let count = usize::from(input.byte() % 3) + 1;
    for segment in 0..count {
        let number = segment as u32 + 1;
        // A segment begins only after everything before it was synced.
        let mut synced_lsn = lsn - 1;
        first_lsns.push(lsn);
        let mut bytes = head(number, lsn).encode();
        for _ in 0..input.byte() % 12 {
            write(
                &mut input,
                &mut bytes,
                (segment, number, lsn, synced_lsn),
                &mut written,
            );
            lsn += 1;
            if input.byte().is_multiple_of(3) {
                synced_lsn = lsn - 1;
            }
        }
        bytes.resize(
            (bytes.len() + HEADER_BYTES).next_multiple_of(PAGE_BYTES as usize),
            0,
        );
        segments.push((number, bytes));
    }
    // Remains of an earlier use of the file: another number and salt.
    let mut earlier = head(99, 1).encode();
    for (at, record) in written.iter().enumerate() {
        let header = header_of(&record.found, 99, at as u64 + 1, 1);
        record::encode(&header, SALT ^ 99, &record.found.2, &record.found.3, &mut earlier);
    }
    let hits: Vec<Vec<bool>> = segments
        .iter_mut()
        .map(|(_, bytes)| damage(bytes, &earlier, &mut input))
        .collect();
    let (scanned, found) = read(segments);
    judge(&written, &first_lsns, &hits, &scanned, &found);
}

fn write(
    input: &mut Input<'_>,
    bytes: &mut Vec<u8>,
    (segment, number, lsn, synced_lsn): (usize, u32, u64, u64),
    written: &mut Vec<Written>,
) {
    let (head_len, kind) = (usize::from(input.byte() % 20), input.byte());
    let payload_len = usize::from(input.u16() % 700);
    let fill = input.byte();
    let found = (lsn, kind, vec![fill ^ 0x55; head_len], vec![fill; payload_len]);
    let header = header_of(&found, number, lsn, (lsn - synced_lsn) as u32);
    let start = bytes.len();
    record::encode(&header, SALT ^ u64::from(number), &found.2, &found.3, bytes);
    written.push(Written {
        found,
        synced_lsn,
        segment,
        start,
        end: start + HEADER_BYTES + header.body_len as usize,
    });
}

fn header_of(found: &Found, segment: u32, lsn: u64, unsynced: u32) -> Header {
    Header {
        body_len: (found.2.len() + found.3.len()) as u32,
        lsn,
        segment,
        unsynced,
        head_len: found.2.len() as u16,
        kind: found.1,
    }
}

fn judge(written: &[Written], first_lsns: &[u64], hits: &[Vec<bool>], scanned: &Scanned, found: &[Found]) {
    for record in found {
        let is_written = written.iter().any(|w| w.found == *record);
        assert!(
            is_written,
            "yielded, and never written: lsn {} kind {}",
            record.0, record.1
        );
    }
    let copy_is_whole = |hit: &[bool], at: usize| !hit[at..at + HEAD_USED_BYTES].contains(&true);
    let head_is_whole: Vec<bool> = hits
        .iter()
        .map(|hit| copy_is_whole(hit, 0) || copy_is_whole(hit, PAGE_BYTES as usize))
        .collect();
    let mut durable_lsn = 0;
    for (segment, first_lsn) in first_lsns.iter().enumerate() {
        if head_is_whole[segment] {
            durable_lsn = durable_lsn.max(first_lsn - 1);
        }
    }
    for record in written.iter().filter(|w| head_is_whole[w.segment]) {
        let hit = &hits[record.segment];
        if hit[record.start..record.end].contains(&true) {
            continue;
        }
        durable_lsn = durable_lsn.max(record.synced_lsn);
        let is_before_damage = !hit[HEAD_BYTES..record.end].contains(&true);
        let is_yielded = found.contains(&record.found);
        let recovery = &scanned.recovery;
        assert!(
            is_yielded || !is_before_damage,
            "lost before any damage: lsn {}, {recovery:?}",
            record.found.0
        );
    }
    // Every record known to be durable is yielded or reported as damaged; none is truncated in silence.
    let next_lsn = scanned.recovery.next_lsn;
    assert!(
        next_lsn > durable_lsn,
        "next is {next_lsn}, although {durable_lsn} was durable"
    );
    // Leading segments that read as never begun may have been released: nothing tells the two apart.
    let is_begun = |head: &Head| *head != Head::Unused;
    let front = scanned.heads.iter().position(is_begun).unwrap_or(usize::MAX);
    for record in written
        .iter()
        .filter(|w| w.found.0 < next_lsn && w.segment >= front)
    {
        let lsn = record.found.0;
        let is_reported = scanned
            .recovery
            .damages
            .iter()
            .any(|d| d.first_lsn <= lsn && d.end_lsn.is_none_or(|end| lsn < end));
        assert!(
            is_reported || found.contains(&record.found),
            "neither yielded nor reported: lsn {lsn}"
        );
    }
}
