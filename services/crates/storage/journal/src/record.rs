//! The bytes of a record and of a segment's head (`docs/internals/journal.md`, format 1; frozen by `src/golden.rs`).
//!
//! Pure: a simulated disk writes with [`SegmentHead::encode`] and [`encode`], and the real [`crate::scan`] reads it.

use bytes::Bytes;
use quorate_types::planted::{self, Bug};

/// Number of a record, dense from 1 in each directory.
pub type Lsn = u64;

/// Size of a record's header, which stands in front of its body.
pub const HEADER_BYTES: usize = 32;
/// Records begin at multiples of this.
pub const ALIGN_BYTES: usize = 8;
/// The journal's own kind: by its `unsynced` it states that all before it is durable, and nothing else.
pub const KIND_MARK: u8 = 0;
/// Each write is filled up with zeros to the end of its page.
pub const PAGE_BYTES: u64 = 4096;
/// Two pages, each with a copy of the segment's head; records follow.
pub const SEGMENT_HEAD_BYTES: u64 = 2 * PAGE_BYTES;
/// Bound of the numbers in a sound header: no journal lasts that long.
const LSN_MAX: Lsn = 1 << 62;
const RECORD_MAGIC: [u8; 4] = *b"QJR1";
const SEGMENT_MAGIC: [u8; 8] = *b"QJSEGM01";
const SEGMENT_HEAD_USED: usize = 40;

/// Location of a record. `segment` numbers every use of a segment file, so a reused file has a new number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Location {
    pub segment: u32,
    /// Position of the record's header in the file, in bytes.
    pub position: u32,
    /// Header, head and payload, in bytes.
    pub len: u32,
}

impl std::fmt::Display for Location {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "segment {:08x} at {} ({} bytes)",
            self.segment, self.position, self.len
        )
    }
}

/// An intact record found while the journal is opened; borrows the scan's buffer.
#[derive(Debug, Clone, Copy)]
pub struct JournalRecord<'a> {
    pub lsn: Lsn,
    pub kind: u8,
    pub head: &'a [u8],
    pub payload: &'a [u8],
    pub location: Location,
}

/// A record read back by its location.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredRecord {
    pub lsn: Lsn,
    pub kind: u8,
    pub head: Bytes,
    pub payload: Bytes,
}

/// A record's header without its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Head plus payload.
    pub body_len: u32,
    pub lsn: Lsn,
    pub segment: u32,
    /// `lsn - unsynced` was durable when this record was written: this tells damage from a torn end.
    pub unsynced: u32,
    pub head_len: u16,
    pub kind: u8,
}

impl Header {
    /// Bytes 4..32; the checksum goes in front.
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[4..8].copy_from_slice(&RECORD_MAGIC);
        out[8..16].copy_from_slice(&self.lsn.to_le_bytes());
        out[16..20].copy_from_slice(&self.body_len.to_le_bytes());
        out[20..24].copy_from_slice(&self.segment.to_le_bytes());
        out[24..28].copy_from_slice(&self.unsynced.to_le_bytes());
        out[28..30].copy_from_slice(&self.head_len.to_le_bytes());
        out[30] = self.kind;
        out
    }

    /// `None` unless the bytes begin like a record; the checksum is not verified.
    pub fn decode(bytes: &[u8]) -> Option<Header> {
        if bytes.len() < HEADER_BYTES || bytes[4..8] != RECORD_MAGIC || bytes[31] != 0 {
            return None;
        }
        let header = Header {
            lsn: u64_at(bytes, 8),
            body_len: u32_at(bytes, 16),
            segment: u32_at(bytes, 20),
            unsynced: u32_at(bytes, 24),
            head_len: u16::from_le_bytes([bytes[28], bytes[29]]),
            kind: bytes[30],
        };
        let is_sound = u32::from(header.head_len) <= header.body_len
            && (u64::from(header.unsynced)..LSN_MAX).contains(&header.lsn);
        is_sound.then_some(header)
    }

    pub fn synced_lsn(&self) -> Lsn {
        self.lsn - u64::from(self.unsynced)
    }
}

/// Checksum over the segment's salt, the header behind the checksum, and the body in its parts. No client knows the
/// salt, so no client can forge a record inside a payload.
pub fn checksum(salt: u64, header: &[u8], body: &[&[u8]]) -> u32 {
    checksum_so_far(salt, header, body).finalize()
}

/// The same checksum, from the CRC-32 and the length of the body's last part.
pub fn checksum_by_parts(salt: u64, header: &[u8], body: &[u8], last_crc: u32, last_len: usize) -> u32 {
    let mut hasher = checksum_so_far(salt, header, &[body]);
    hasher.combine(&crc32fast::Hasher::new_with_initial_len(
        last_crc,
        last_len as u64,
    ));
    hasher.finalize()
}

fn checksum_so_far(salt: u64, header: &[u8], body: &[&[u8]]) -> crc32fast::Hasher {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&salt.to_le_bytes());
    hasher.update(&header[4..HEADER_BYTES]);
    for part in body {
        hasher.update(part);
    }
    hasher
}

/// The intact record of this segment at the start of `bytes`, or `None`.
pub fn parse(bytes: &[u8], segment: u32, salt: u64) -> Option<(Header, &[u8], &[u8])> {
    let header = Header::decode(bytes)?;
    if header.segment != segment {
        return None;
    }
    let body = bytes.get(HEADER_BYTES..HEADER_BYTES + header.body_len as usize)?;
    let stored = u32_at(bytes, 0);
    let is_sound = checksum(salt, &bytes[..HEADER_BYTES], &[body]) == stored;
    if !is_sound && !planted::on(Bug::TornRecordTaken) {
        return None;
    }
    let (head, payload) = body.split_at(usize::from(header.head_len));
    Some((header, head, payload))
}

/// Appends the whole record, padding included, to `out`; `header`'s lengths must be those of `head` and `payload`.
pub fn encode(header: &Header, salt: u64, head: &[u8], payload: &[u8], out: &mut Vec<u8>) {
    assert_eq!(
        (usize::from(header.head_len), header.body_len as usize),
        (head.len(), head.len() + payload.len()),
        "a header states its body's lengths"
    );
    let start = out.len();
    let mut bytes = header.encode();
    let crc = checksum(salt, &bytes, &[head, payload]);
    bytes[0..4].copy_from_slice(&crc.to_le_bytes());
    out.extend_from_slice(&bytes);
    out.extend_from_slice(head);
    out.extend_from_slice(payload);
    out.resize(start + stride(header.body_len as usize), 0);
}

/// Bytes that a record with this body occupies, padding included.
pub fn stride(body_len: usize) -> usize {
    (HEADER_BYTES + body_len).next_multiple_of(ALIGN_BYTES)
}

/// The first bytes of a segment in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SegmentHead {
    pub segment: u32,
    pub salt: u64,
    pub first_lsn: Lsn,
}

impl SegmentHead {
    /// Two pages, each beginning with the same head.
    pub fn encode(&self) -> Vec<u8> {
        let mut head = [0; SEGMENT_HEAD_USED];
        head[0..8].copy_from_slice(&SEGMENT_MAGIC);
        head[8..12].copy_from_slice(&self.segment.to_le_bytes());
        head[16..24].copy_from_slice(&self.salt.to_le_bytes());
        head[24..32].copy_from_slice(&self.first_lsn.to_le_bytes());
        let crc = crc32fast::hash(&head[..SEGMENT_HEAD_USED - 4]);
        head[SEGMENT_HEAD_USED - 4..].copy_from_slice(&crc.to_le_bytes());
        let mut out = vec![0; SEGMENT_HEAD_BYTES as usize];
        out[..SEGMENT_HEAD_USED].copy_from_slice(&head);
        out[PAGE_BYTES as usize..PAGE_BYTES as usize + SEGMENT_HEAD_USED].copy_from_slice(&head);
        out
    }

    /// Decodes either copy.
    pub fn decode(bytes: &[u8]) -> Option<SegmentHead> {
        Self::decode_copies(bytes).into_iter().flatten().next()
    }

    /// Both copies, if they are sound. A copy whose write the disk lost is of an earlier use.
    pub fn decode_copies(bytes: &[u8]) -> [Option<SegmentHead>; 2] {
        let second = bytes.get(PAGE_BYTES as usize..);
        [Self::decode_copy(bytes), second.and_then(Self::decode_copy)]
    }

    fn decode_copy(bytes: &[u8]) -> Option<SegmentHead> {
        let head = bytes.get(..SEGMENT_HEAD_USED)?;
        let sound = head[0..8] == SEGMENT_MAGIC
            && crc32fast::hash(&head[..SEGMENT_HEAD_USED - 4]) == u32_at(head, SEGMENT_HEAD_USED - 4)
            && (1..LSN_MAX).contains(&u64_at(head, 24));
        sound.then(|| SegmentHead {
            segment: u32_at(head, 8),
            salt: u64_at(head, 16),
            first_lsn: u64_at(head, 24),
        })
    }
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}
