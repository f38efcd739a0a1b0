//! Records that wait for the next sync.

use bytes::Bytes;

use crate::Submission;
use crate::image::Image;
use crate::record::{self, HEADER_BYTES, Header, Location, Lsn};

/// Payloads up to this many bytes are copied next to their header: a longer one is worth keeping what it came in.
const INLINE_BYTES_MAX: usize = 2048;
const ARENA_BYTES: usize = 1 << 20;

/// Submissions of one group commit.
#[derive(Default)]
pub(crate) struct Buffer {
    /// Headers, heads and short payloads, one record behind the other.
    arena: Vec<u8>,
    records: Vec<Waiting>,
    submitted: usize,
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

    /// Records that somebody submitted.
    pub fn submitted(&self) -> usize {
        self.submitted
    }

    /// `submitter`: who is told, if anybody.
    pub fn push(
        &mut self,
        submitter: Option<usize>,
        submission: &Submission<'_>,
        lsn: Lsn,
        location: Location,
    ) {
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
        let Some(submitter) = submitter else {
            return;
        };
        self.submitted += 1;
        if self.tags.len() <= submitter {
            self.tags.resize(submitter + 1, None);
        }
        let before = self.tags[submitter].replace((submission.tag, lsn));
        assert!(
            before.is_none_or(|(tag, _)| tag <= submission.tag),
            "tags of a submitter never fall"
        );
    }

    pub fn records(&self) -> impl Iterator<Item = Sealable<'_>> {
        self.records.iter().map(|waiting| {
            let body_len = waiting.location.len as usize - HEADER_BYTES;
            let in_arena = match waiting.payload {
                Some(_) => waiting.head_len,
                None => body_len,
            };
            let start = waiting.arena_start;
            let header = self.arena[start..start + HEADER_BYTES].first_chunk();
            Sealable {
                lsn: waiting.lsn,
                location: waiting.location,
                head_len: waiting.head_len,
                header: header.expect("a header"),
                body: &self.arena[start + HEADER_BYTES..start + HEADER_BYTES + in_arena],
                payload: waiting.payload.as_deref().unwrap_or(&[]),
            }
        })
    }

    /// Empties the buffer and keeps its memory, within reason, for the next round.
    pub fn clear(&mut self) {
        self.arena.clear();
        self.arena.shrink_to(ARENA_BYTES);
        self.records.clear();
        self.records.shrink_to(ARENA_BYTES / HEADER_BYTES);
        self.submitted = 0;
        self.bytes = 0;
        self.tags.fill(None);
    }
}

/// A record that lacks what is known only when it is written.
pub(crate) struct Sealable<'a> {
    pub lsn: Lsn,
    pub location: Location,
    head_len: usize,
    header: &'a [u8; HEADER_BYTES],
    /// The head, and a short payload.
    body: &'a [u8],
    /// A long one.
    payload: &'a [u8],
}

impl Sealable<'_> {
    pub fn kind(&self) -> u8 {
        self.header[30]
    }

    pub fn head(&self) -> &[u8] {
        &self.body[..self.head_len]
    }

    /// Appends the record with the lsn that is durable, and the checksum.
    pub fn seal(&self, durable_lsn: Lsn, salt: u64, image: &mut Image) {
        let mut header = *self.header;
        let unsynced = u32::try_from(self.lsn - durable_lsn).expect("a buffer holds fewer records");
        header[24..28].copy_from_slice(&unsynced.to_le_bytes());
        let crc = record::checksum(salt, &header, &[self.body, self.payload]);
        header[0..4].copy_from_slice(&crc.to_le_bytes());
        image.push(&header);
        image.push(self.body);
        image.push(self.payload);
        let len = self.location.len as usize;
        let end = u64::from(self.location.position) + record::stride(len - HEADER_BYTES) as u64;
        image.pad_to(end);
    }
}
