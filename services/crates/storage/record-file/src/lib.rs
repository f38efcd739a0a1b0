//! An append-only file of records: framing, torn ends and damage. Pure.
//!
//! ```text
//! file    magic[8]  u32 version  u32 CRC-32 of the 12 bytes before   then records
//! record  "QREC"  u32 length  u32 CRC-32 of length and payload  payload
//! ```
//!
//! Integers are little-endian. Each record is synced before the program acts on it, so a crash can tear only the last
//! one. Bytes at the end of the file that match no checksum are a torn record, never acted on. Such bytes *before* a
//! valid record are damage.
//!
//! Payloads must be text without control characters, such as JSON. Bytes inside a torn record then never pass for a
//! good record: each byte of its length would be at least 0x20, hence the length half a gigabyte.

use std::ops::Range;

pub const HEADER_BYTES: usize = 16;
pub const RECORD_HEADER_BYTES: usize = 12;
const MARKER: &[u8; 4] = b"QREC";

/// Result of [`scan`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scanned {
    /// Ranges of the payloads in the file, in order.
    pub payloads: Vec<Range<usize>>,
    /// Position of the next record. Bytes behind it are a torn record, to be truncated.
    pub end: usize,
}

/// The first byte without a good record, although a good one follows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a record does not match its checksum, and a good one follows at {good_at}")]
pub struct Damage {
    pub offset: usize,
    pub good_at: usize,
}

/// The first bytes of a file.
pub fn header(magic: &[u8; 8], version: u32) -> [u8; HEADER_BYTES] {
    let mut header = [0; HEADER_BYTES];
    header[..8].copy_from_slice(magic);
    header[8..12].copy_from_slice(&version.to_le_bytes());
    let crc = crc32fast::hash(&header[..12]);
    header[12..].copy_from_slice(&crc.to_le_bytes());
    header
}

/// One record. The payload must have less than 4 GiB and no control characters.
pub fn encode(payload: &[u8]) -> Vec<u8> {
    let is_text = payload.iter().all(|byte| *byte >= b' ');
    assert!(is_text, "a payload without control characters");
    let length = u32::try_from(payload.len()).expect("a payload of less than 4 GiB");
    let length = length.to_le_bytes();
    let mut bytes = Vec::with_capacity(RECORD_HEADER_BYTES + payload.len());
    bytes.extend_from_slice(MARKER);
    bytes.extend_from_slice(&length);
    bytes.extend_from_slice(&crc(&length, payload).to_le_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

/// Finds the records behind the file's header. A payload longer than `payload_bytes_max` is no record.
pub fn scan(file: &[u8], payload_bytes_max: u64) -> Result<Scanned, Damage> {
    let mut payloads = Vec::new();
    let mut at = HEADER_BYTES;
    while let Some(payload) = record_at(file, at, payload_bytes_max) {
        at = payload.end;
        payloads.push(payload);
    }
    match next_record(file, at + 1, payload_bytes_max) {
        Some(good_at) => Err(Damage { offset: at, good_at }),
        None => Ok(Scanned { payloads, end: at }),
    }
}

/// The payload of the record that begins at `at`, if one does and it matches its checksum.
fn record_at(file: &[u8], at: usize, payload_bytes_max: u64) -> Option<Range<usize>> {
    let start = at + RECORD_HEADER_BYTES;
    let head = file.get(at..start)?;
    if &head[..4] != MARKER {
        return None;
    }
    let field = |at: usize| u32::from_le_bytes(head[at..at + 4].try_into().expect("four bytes"));
    let (length, stored_crc) = (field(4), field(8));
    if u64::from(length) > payload_bytes_max {
        return None;
    }
    let end = start.checked_add(length as usize)?;
    let payload = file.get(start..end)?;
    (crc(&head[4..8], payload) == stored_crc).then_some(start..end)
}

fn next_record(file: &[u8], from: usize, payload_bytes_max: u64) -> Option<usize> {
    let windows = file.get(from..)?.windows(MARKER.len()).enumerate();
    windows
        .filter(|(_, window)| window == MARKER)
        .map(|(offset, _)| from + offset)
        .find(|at| record_at(file, *at, payload_bytes_max).is_some())
}

fn crc(length: &[u8], payload: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(length);
    hasher.update(payload);
    hasher.finalize()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(payloads: &[&[u8]]) -> Vec<u8> {
        let mut file = header(b"QTESTREC", 1).to_vec();
        for payload in payloads {
            file.extend(encode(payload));
        }
        file
    }

    #[test]
    fn records_come_back() {
        let bytes = file(&[b"one", b"", b"three"]);
        let scanned = scan(&bytes, 100).unwrap();
        let found: Vec<&[u8]> = scanned
            .payloads
            .iter()
            .map(|range| &bytes[range.clone()])
            .collect();
        assert_eq!(found, [&b"one"[..], b"", b"three"]);
        assert_eq!(scanned.end, bytes.len());
    }

    #[test]
    fn a_truncation_anywhere_leaves_the_records_before_it() {
        let bytes = file(&[b"one", b"two"]);
        let second = file(&[b"one"]).len();
        for len in HEADER_BYTES..bytes.len() {
            let scanned = scan(&bytes[..len], 100).unwrap();
            let whole = usize::from(len >= second);
            assert_eq!(scanned.payloads.len(), whole, "truncated to {len}");
            assert_eq!(scanned.end, if whole == 1 { second } else { HEADER_BYTES });
        }
    }

    #[test]
    fn damage_before_a_good_record_is_reported() {
        let mut bytes = file(&[b"one", b"two"]);
        let good_at = file(&[b"one"]).len();
        bytes[HEADER_BYTES + RECORD_HEADER_BYTES] ^= 1;
        let expected = Damage {
            offset: HEADER_BYTES,
            good_at,
        };
        assert_eq!(scan(&bytes, 100), Err(expected));
    }

    #[test]
    fn a_longer_payload_than_allowed_is_no_record() {
        let bytes = file(&[b"one", b"too long"]);
        assert_eq!(scan(&bytes, 7).unwrap().payloads.len(), 1);
    }
}
