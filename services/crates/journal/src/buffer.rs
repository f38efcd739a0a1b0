//! Records that wait for the next sync, laid out as they will lie on disk.

use std::io::IoSlice;

use bytes::Bytes;

use crate::Submission;
use crate::record::{self, HEADER_BYTES, Header, Location, Lsn};

/// Payloads up to this many bytes are copied next to their header: cheaper than a piece of their own.
const INLINE_BYTES_MAX: usize = 2048;
const ARENA_BYTES: usize = 1 << 20;
static ZEROS: [u8; record::PAGE_BYTES as usize] = [0; record::PAGE_BYTES as usize];

/// Submissions of one group commit.
#[derive(Default)]
pub(crate) struct Buffer {
    /// Headers, heads and short payloads, one record behind the other.
    arena: Vec<u8>,
    records: Vec<Waiting>,
    pub bytes: usize,
    /// Per submitter: the last tag and lsn.
    pub tags: Vec<Option<(u64, Lsn)>>,
}

struct Waiting {
    arena_start: usize,
    head_len: usize,
    lsn: Lsn,
    location: Location,
    /// Long payloads; short ones are in the arena.
    payload: Option<Bytes>,
}

impl Buffer {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub fn len(&self) -> usize {
        self.records.len()
    }

    pub fn push(&mut self, submitter: usize, submission: &Submission<'_>, lsn: Lsn, location: Location) {
        let arena_start = self.arena.len();
        let header = Header {
            body_len: location.len - HEADER_BYTES as u32,
            lsn,
            segment: location.segment,
            unsynced: 0,
            head_len: submission.head.len() as u16,
            kind: submission.kind,
        };
        self.arena.extend_from_slice(&header.encode());
        self.arena.extend_from_slice(submission.head);
        let inline = submission.payload.len() <= INLINE_BYTES_MAX;
        if inline {
            self.arena.extend_from_slice(submission.payload);
            let padded = record::stride(header.body_len as usize);
            self.arena.resize(arena_start + padded, 0);
        }
        let payload = (!inline).then(|| submission.payload.clone());
        self.records.push(Waiting {
            arena_start,
            head_len: submission.head.len(),
            lsn,
            location,
            payload,
        });
        self.bytes += record::stride(header.body_len as usize);
        if self.tags.len() <= submitter {
            self.tags.resize(submitter + 1, None);
        }
        let before = self.tags[submitter].replace((submission.tag, lsn));
        assert!(
            before.is_none_or(|(tag, _)| tag <= submission.tag),
            "tags of a submitter never fall"
        );
    }

    /// Writes into each header which lsn is durable, and the checksum. `salt_of` knows each segment's salt.
    pub fn seal(&mut self, durable_lsn: Lsn, mut salt_of: impl FnMut(u32) -> u64) {
        let mut salt = None;
        for waiting in &self.records {
            let segment = waiting.location.segment;
            let salt = match salt {
                Some((number, salt)) if number == segment => salt,
                _ => salt.insert((segment, salt_of(segment))).1,
            };
            let body_len = waiting.location.len as usize - HEADER_BYTES;
            let in_arena = if waiting.payload.is_some() {
                waiting.head_len
            } else {
                body_len
            };
            let end = waiting.arena_start + HEADER_BYTES + in_arena;
            let (header, body) = self.arena[waiting.arena_start..end].split_at_mut(HEADER_BYTES);
            let unsynced = u32::try_from(waiting.lsn - durable_lsn).expect("a buffer holds fewer records");
            header[24..28].copy_from_slice(&unsynced.to_le_bytes());
            let payload: &[u8] = waiting.payload.as_deref().unwrap_or(&[]);
            let crc = record::checksum(salt, header, &[body, payload]);
            header[0..4].copy_from_slice(&crc.to_le_bytes());
        }
    }

    /// Runs of records in one segment: (segment, position of the first byte, lsn of the first, pieces).
    /// The last page of each run is filled up with zeros, so that the kernel never reads a page to change it.
    pub fn runs(&self) -> Vec<Run<'_>> {
        let mut runs = Vec::new();
        let mut start = 0;
        while start < self.records.len() {
            let segment = self.records[start].location.segment;
            let len = self.records[start..]
                .iter()
                .take_while(|r| r.location.segment == segment)
                .count();
            runs.push(self.run(start..start + len));
            start += len;
        }
        runs
    }

    fn run(&self, range: std::ops::Range<usize>) -> Run<'_> {
        let first = &self.records[range.start];
        let mut slices = Vec::new();
        // Records with inline payloads are contiguous in the arena and become one piece.
        let mut open = first.arena_start;
        for waiting in &self.records[range.clone()] {
            if let Some(payload) = &waiting.payload {
                let end = waiting.arena_start + HEADER_BYTES + waiting.head_len;
                slices.push(IoSlice::new(&self.arena[open..end]));
                slices.push(IoSlice::new(payload));
                let len = waiting.location.len as usize;
                let padding = record::stride(len - HEADER_BYTES) - len;
                slices.push(IoSlice::new(&ZEROS[..padding]));
                open = end;
            }
        }
        let close = self
            .records
            .get(range.end)
            .map_or(self.arena.len(), |r| r.arena_start);
        slices.push(IoSlice::new(&self.arena[open..close]));
        let last = &self.records[range.end - 1].location;
        let end = u64::from(last.position) + record::stride(last.len as usize - HEADER_BYTES) as u64;
        let to_page = end.next_multiple_of(record::PAGE_BYTES) - end;
        slices.push(IoSlice::new(&ZEROS[..to_page as usize]));
        Run {
            segment: first.location.segment,
            position: u64::from(first.location.position),
            first_lsn: first.lsn,
            end,
            slices,
        }
    }

    /// Empties the buffer and keeps its memory, within reason, for the next round.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.arena.shrink_to(ARENA_BYTES);
        self.records.clear();
        self.records.shrink_to(ARENA_BYTES / HEADER_BYTES);
        self.bytes = 0;
        self.tags.fill(None);
    }
}

pub(crate) struct Run<'a> {
    pub segment: u32,
    pub position: u64,
    pub first_lsn: Lsn,
    /// Where the next record goes.
    pub end: u64,
    pub slices: Vec<IoSlice<'a>>,
}
