//! Format 1, frozen: today's writer gives these bytes, and today's scan reads them.
//! A change here is a new format: give it a new number and keep reading this one.

use bytes::Bytes;

use crate::buffer::Buffer;
use crate::handle::Journal;
use crate::image::Image;
use crate::options::JournalOptions;
use crate::record::{HEADER_BYTES, Location, SEGMENT_HEAD_BYTES, SegmentHead, stride};
use crate::submission::Submission;

const GOLDEN: &str = include_str!("../tests/golden/segment_v1.hex");
const SALT: u64 = 0x0123_4567_89ab_cdef;
/// kind, head, payload
const RECORDS: [(u8, &[u8], &[u8]); 3] = [
    (1, b"head", b"payload"),
    (2, b"", b""),
    (255, b"h", &[0xa5; 3_000]),
];

/// The segment's two pages of head in full, then its records, as lines of hex with runs of zero lines left out.
fn encode() -> Vec<u8> {
    let mut out = SegmentHead {
        segment: 7,
        salt: SALT,
        first_lsn: 41,
    }
    .encode();
    let mut image = Image::new(SEGMENT_HEAD_BYTES, &[]);
    for (lsn, group) in [(41, &RECORDS[..1]), (42, &RECORDS[1..])] {
        let mut buffer = Buffer::default();
        for (i, (kind, head, payload)) in group.iter().enumerate() {
            let payload = Bytes::from_static(payload);
            let body_len = head.len() + payload.len();
            let before: usize = group[..i].iter().map(|(_, h, p)| stride(h.len() + p.len())).sum();
            let location = Location {
                segment: 7,
                position: (out.len() + before) as u32,
                len: (HEADER_BYTES + body_len) as u32,
            };
            let submission = Submission {
                kind: *kind,
                head,
                payload: &payload,
                payload_crc: Some(crc32fast::hash(&payload)),
                tag: 0,
                reserved: false,
            };
            buffer.push(Some(0), &submission, lsn + i as u64, location);
        }
        for record in buffer.records() {
            record.seal(lsn - 1, SALT, &mut image);
        }
        let end = image.end() as usize;
        let write = |pages: &[u8], position: u64| {
            out.truncate(position as usize);
            out.extend_from_slice(pages);
            Ok::<_, ()>(())
        };
        image.write(write).expect("nothing can fail");
        out.truncate(end);
    }
    out
}

fn to_hex(bytes: &[u8]) -> String {
    let line = |(i, chunk): (usize, &[u8])| {
        let hex: String = chunk.iter().map(|b| format!("{b:02x}")).collect();
        chunk
            .iter()
            .any(|b| *b != 0)
            .then(|| format!("{:08x} {hex}\n", i * 32))
    };
    bytes.chunks(32).enumerate().filter_map(line).collect()
}

fn from_hex(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    for line in text.lines() {
        let (at, hex) = line.split_once(' ').expect("position and hex");
        out.resize(usize::from_str_radix(at, 16).expect("position"), 0);
        out.extend(
            (0..hex.len())
                .step_by(2)
                .map(|i| u8::from_str_radix(&hex[i..i + 2], 16).expect("hex")),
        );
    }
    out
}

#[test]
fn the_writer_gives_the_golden_bytes() {
    let ours = to_hex(&encode());
    if std::env::var_os("QUORATE_WRITE_GOLDEN").is_some() {
        std::fs::write(
            concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/segment_v1.hex"),
            &ours,
        )
        .expect("write");
    }
    assert_eq!(ours, GOLDEN, "the journal's format changed");
}

#[test]
fn the_scan_reads_the_golden_bytes() {
    let dir = tempfile::tempdir().expect("directory");
    std::fs::write(dir.path().join("segment-00000007"), from_hex(GOLDEN)).expect("write");
    let options = JournalOptions {
        segment_bytes: 64 << 10,
        reserve_bytes: 0,
        buffer_bytes_max: 1 << 20,
        ..JournalOptions::default()
    };
    let mut read = Vec::new();
    let (_journal, recovery) = Journal::open(dir.path(), options, |r| {
        read.push((r.lsn, r.kind, r.head.to_vec(), r.payload.to_vec()))
    })
    .expect("open");
    assert_eq!(
        (recovery.next_lsn, recovery.damages.len(), recovery.torn),
        (44, 0, None)
    );
    let expected: Vec<_> = (41..)
        .zip(RECORDS)
        .map(|(lsn, (kind, head, payload))| (lsn, kind, head.to_vec(), payload.to_vec()))
        .collect();
    assert_eq!(read, expected);
    assert_eq!(SEGMENT_HEAD_BYTES, 8192);
}
