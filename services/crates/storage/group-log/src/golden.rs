//! Format 1, frozen: today's writer gives these bytes, and today's reader takes them.
//! A change here is a new format: give it a new number and keep reading this one.

use quorate_types::GroupId;
use uuid::Uuid;

use crate::format::{
    FILE_HEAD_BYTES, HEADER_BYTES, Header, KIND_HOLE, LogLocation, Seal, encode_file_head, stride,
};
use crate::manifest::{Entry, Manifest};
use crate::walk::{Payload, Step, Walk};

const SALT: u64 = 0x0123_4567_89ab_cdef;
const FILE: u32 = 3;
/// lsn, kind, head, payload
const RECORDS: [(u64, u8, &[u8], &[u8]); 4] = [
    (41, 1, b"head", b"payload"),
    (44, 2, b"", b""),
    (50, KIND_HOLE, b"", b""),
    (51, 4, b"h", &[0xa5; 3_000]),
];

fn group() -> GroupId {
    GroupId(Uuid::from_u128(0x0011_2233_4455_6677_8899_aabb_ccdd_eeff))
}

fn file() -> Vec<u8> {
    let mut out = encode_file_head(SALT, group(), FILE);
    for (lsn, kind, head, payload) in RECORDS {
        let header = Header {
            lsn,
            body_len: (head.len() + payload.len()) as u32,
            payload_crc: crc32fast::hash(payload),
            position: out.len() as u32,
            head_len: head.len() as u16,
            kind,
        };
        let start = out.len();
        out.extend_from_slice(&header.encode(&Seal::new(SALT, group(), FILE), head, payload));
        out.extend_from_slice(head);
        out.extend_from_slice(payload);
        out.resize(start + crate::format::stride(header.body_len) as usize, 0);
    }
    out
}

fn manifest() -> Manifest {
    let entry = |n: u32| Entry {
        group: GroupId(Uuid::from_u128(u128::from(n) << 64)),
        first_file: n,
        last_file: n + 2,
        end: 4096 * n,
    };
    Manifest {
        generation: 9,
        salt: SALT,
        copied_lsn: 77,
        groups: vec![entry(1), entry(2)],
    }
}

/// Lines of hex, with those of zeros only left out.
fn to_hex(bytes: &[u8]) -> String {
    let line = |(i, chunk): (usize, &[u8])| {
        let hex: String = chunk.iter().map(|b| format!("{b:02x}")).collect();
        let is_any = chunk.iter().any(|b| *b != 0);
        is_any.then(|| format!("{:08x} {hex}\n", i * 32))
    };
    bytes.chunks(32).enumerate().filter_map(line).collect()
}

fn frozen(name: &str, bytes: &[u8], golden: &str) {
    let ours = to_hex(bytes);
    if std::env::var_os("QUORATE_WRITE_GOLDEN").is_some() {
        let path = format!("{}/tests/golden/{name}", env!("CARGO_MANIFEST_DIR"));
        std::fs::write(path, &ours).expect("write");
        return;
    }
    assert_eq!(ours, golden, "the format changed");
}

#[test]
fn the_writer_gives_the_golden_bytes() {
    frozen(
        "file_v1.hex",
        &file(),
        include_str!("../tests/golden/file_v1.hex"),
    );
    frozen(
        "manifest_v1.hex",
        &manifest().encode(),
        include_str!("../tests/golden/manifest_v1.hex"),
    );
}

#[test]
fn the_reader_takes_the_golden_bytes() {
    let bytes = file();
    let end = bytes.len() as u32;
    let mut walk = Walk::new(bytes, Seal::new(SALT, group(), FILE), FILE, end);
    let mut position = FILE_HEAD_BYTES;
    for (lsn, kind, head, payload) in RECORDS {
        let body_len = (head.len() + payload.len()) as u32;
        let place = LogLocation {
            file: FILE,
            position,
            len: HEADER_BYTES as u32 + body_len,
        };
        let step = walk.next(|_| true).expect("memory can be read");
        assert_eq!(
            step,
            Some(Step::Record {
                lsn,
                kind,
                head,
                payload: Payload::Sound(payload),
                place
            })
        );
        position += stride(body_len);
    }
    assert_eq!(walk.next(|_| true).expect("memory can be read"), None);
    assert_eq!(Manifest::decode(&manifest().encode()), Some(manifest()));
}

#[test]
fn every_flipped_bit_of_a_manifest_is_noticed() {
    let bytes = manifest().encode();
    for bit in 0..bytes.len() * 8 {
        let mut damaged = bytes.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(Manifest::decode(&damaged), None, "bit {bit}");
    }
    assert_eq!(Manifest::decode(&bytes[..bytes.len() - 32]), None);
}

/// Each record is either read as it was or reported, whatever bit is flipped; nothing behind it is lost.
#[test]
fn every_flipped_bit_of_a_file_costs_one_record() {
    let mut sound = file();
    sound.truncate(sound.len() - stride(3_001) as usize);
    for bit in FILE_HEAD_BYTES as usize * 8..sound.len() * 8 {
        let mut bytes = sound.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let end = bytes.len() as u32;
        let mut walk = Walk::new(bytes, Seal::new(SALT, group(), FILE), FILE, end);
        let (mut intact, mut reported) = (0, 0);
        while let Some(step) = walk.next(|_| true).expect("memory can be read") {
            match step {
                Step::Record {
                    lsn,
                    payload: Payload::Sound(payload),
                    ..
                } => {
                    let written = RECORDS
                        .iter()
                        .find(|r| r.0 == lsn)
                        .expect("a record that was written");
                    assert_eq!(payload, written.3);
                    intact += 1;
                }
                _ => reported += 1,
            }
        }
        // Bits of the padding belong to no record.
        assert!(
            intact == 3 || (intact == 2 && reported == 1),
            "bit {bit}: {intact} intact, {reported} reported"
        );
    }
}
