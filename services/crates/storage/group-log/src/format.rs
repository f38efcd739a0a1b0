//! The bytes of a group log's files (`docs/internals/group-logs.md`, format 1; frozen by `src/golden.rs`).

use quorate_journal::Lsn;
use quorate_types::GroupId;

pub const HEADER_BYTES: usize = 32;
pub const ALIGN_BYTES: usize = 8;
/// Size of a file's head; records follow.
pub const FILE_HEAD_BYTES: u32 = 4096;
const FILE_MAGIC: [u8; 8] = *b"QGLOGF01";
const RECORD_MAGIC: [u8; 4] = *b"QGR1";
const FILE_HEAD_USED: usize = 40;

/// First of the group log's own kinds; the journal's users give none from here on.
pub const KIND_OWN_FROM: u8 = 254;
/// In place of a damaged record that is not needed.
pub const KIND_VOID: u8 = 254;
/// Records are missing here.
pub const KIND_HOLE: u8 = 255;

/// Location of a record in its group's log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogLocation {
    pub file: u32,
    /// Position of the record's header in the file, in bytes.
    pub position: u32,
    /// Header, head and payload, in bytes.
    pub len: u32,
}

/// A record's header without its checksum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    pub lsn: Lsn,
    /// Head plus payload.
    pub body_len: u32,
    pub payload_crc: u32,
    pub position: u32,
    pub head_len: u16,
    pub kind: u8,
}

/// The start of every checksum in one file: the store's salt, the group, the number. A record of another file, or one
/// that a client forges inside a payload, never passes.
#[derive(Clone)]
pub struct Seal(crc32fast::Hasher);

impl Seal {
    pub fn new(salt: u64, group: GroupId, file: u32) -> Self {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&salt.to_le_bytes());
        hasher.update(group.0.as_bytes());
        hasher.update(&file.to_le_bytes());
        Self(hasher)
    }

    fn checksum(&self, parts: &[&[u8]]) -> u32 {
        let mut hasher = self.0.clone();
        for part in parts {
            hasher.update(part);
        }
        hasher.finalize()
    }
}

pub fn stride(body_len: u32) -> u32 {
    (HEADER_BYTES as u32 + body_len).next_multiple_of(ALIGN_BYTES as u32)
}

/// Two copies of the file's identity, 2 KiB apart. They are for people and tools; the server reads the manifest.
pub fn encode_file_head(salt: u64, group: GroupId, file: u32) -> Vec<u8> {
    let mut head = [0; FILE_HEAD_USED];
    head[0..8].copy_from_slice(&FILE_MAGIC);
    head[8..12].copy_from_slice(&file.to_le_bytes());
    head[12..20].copy_from_slice(&salt.to_le_bytes());
    head[20..36].copy_from_slice(group.0.as_bytes());
    let crc = crc32fast::hash(&head[..36]);
    head[36..].copy_from_slice(&crc.to_le_bytes());
    let mut out = vec![0; FILE_HEAD_BYTES as usize];
    out[..FILE_HEAD_USED].copy_from_slice(&head);
    out[2048..2048 + FILE_HEAD_USED].copy_from_slice(&head);
    out
}

impl Header {
    /// The header's bytes, with its checksum; head, payload and zeros up to the next multiple of 8 follow.
    pub fn encode(&self, seal: &Seal, head: &[u8], payload: &[u8]) -> [u8; HEADER_BYTES] {
        assert_eq!(
            (usize::from(self.head_len), self.body_len as usize),
            (head.len(), head.len() + payload.len()),
            "a header states its body's lengths"
        );
        let mut bytes = [0; HEADER_BYTES];
        bytes[4..8].copy_from_slice(&RECORD_MAGIC);
        bytes[8..16].copy_from_slice(&self.lsn.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.body_len.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.payload_crc.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.position.to_le_bytes());
        bytes[28..30].copy_from_slice(&self.head_len.to_le_bytes());
        bytes[30] = self.kind;
        let crc = seal.checksum(&[&bytes[4..], head]);
        bytes[0..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// The header at `position`, at the start of `bytes`, judged by its shape alone.
    pub fn decode(bytes: &[u8], position: u32) -> Option<Header> {
        if bytes.len() < HEADER_BYTES || bytes[4..8] != RECORD_MAGIC || bytes[31] != 0 {
            return None;
        }
        let u32_at = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        let header = Header {
            lsn: u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes")),
            body_len: u32_at(16),
            payload_crc: u32_at(20),
            position: u32_at(24),
            head_len: u16::from_le_bytes([bytes[28], bytes[29]]),
            kind: bytes[30],
        };
        (header.position == position && u32::from(header.head_len) <= header.body_len).then_some(header)
    }

    /// Whether header and head, at the start of `bytes`, are as they were written. The payload has its own checksum.
    pub fn is_sound(&self, seal: &Seal, bytes: &[u8]) -> bool {
        let end = HEADER_BYTES + usize::from(self.head_len);
        let stored = &bytes[..4];
        bytes.len() >= end && seal.checksum(&[&bytes[4..end]]).to_le_bytes() == stored
    }

    pub fn place(&self, file: u32) -> LogLocation {
        LogLocation {
            file,
            position: self.position,
            len: HEADER_BYTES as u32 + self.body_len,
        }
    }
}
