//! Records of the next flush.

use bytes::Bytes;

use crate::image::Image;
use crate::record::{self, HEADER_BYTES, Header, Location, Lsn};
use crate::submission::Submission;

/// Payloads up to this many bytes are copied next to their header. A longer payload stays in its own buffer.
const INLINE_BYTES_MAX: usize = 2048;
const ARENA_BYTES: usize = 1 << 20;

/// Submissions of one group commit.
#[derive(Default)]
pub(crate) struct Buffer {
    /// Headers, heads and short payloads, record after record.
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
    /// Checksum of a long payload, if it is known.
    payload_crc: Option<u32>,
}

impl Buffer {
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// Number of submitted records: all but marks.
    pub fn submitted(&self) -> usize {
        self.submitted
    }

    /// `submitter`: the index that receives the acknowledgement; `None` for a mark.
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
            payload_crc: submission.payload_crc.filter(|_| !inline),
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
            "tags of a submitter never decrease"
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
                payload_crc: waiting.payload_crc,
            }
        })
    }

    /// Empties the buffer and keeps its memory, up to a bound, for the next flush.
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

/// A record without the fields that are known only when it is written.
pub(crate) struct Sealable<'a> {
    pub lsn: Lsn,
    pub location: Location,
    head_len: usize,
    header: &'a [u8; HEADER_BYTES],
    /// The head, and a short payload.
    body: &'a [u8],
    /// A long payload, and its CRC-32 if that is known.
    payload: &'a [u8],
    payload_crc: Option<u32>,
}

impl Sealable<'_> {
    pub fn kind(&self) -> u8 {
        self.header[30]
    }

    pub fn head(&self) -> &[u8] {
        &self.body[..self.head_len]
    }

    /// Appends the record with the durable lsn and the checksum.
    pub fn seal(&self, durable_lsn: Lsn, salt: u64, image: &mut Image) {
        let mut header = *self.header;
        let unsynced = u32::try_from(self.lsn - durable_lsn).expect("a buffer holds fewer records");
        header[24..28].copy_from_slice(&unsynced.to_le_bytes());
        let crc = self.checksum(salt, &header);
        header[0..4].copy_from_slice(&crc.to_le_bytes());
        image.push(&header);
        image.push(self.body);
        image.push(self.payload);
        let len = self.location.len as usize;
        let end = u64::from(self.location.position) + record::stride(len - HEADER_BYTES) as u64;
        image.pad_to(end);
    }

    /// Combines the payload's own checksum, checked on arrival, instead of reading a long payload again.
    /// A payload whose memory changed since then does not match, and the record reads as damaged.
    fn checksum(&self, salt: u64, header: &[u8; HEADER_BYTES]) -> u32 {
        let Some(crc) = self.payload_crc else {
            return record::checksum(salt, header, &[self.body, self.payload]);
        };
        record::checksum_by_parts(salt, header, self.body, crc, self.payload.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::SEGMENT_HEAD_BYTES;

    /// The bytes on disk of a record with this payload.
    fn sealed(payload: &Bytes, payload_crc: Option<u32>) -> Vec<u8> {
        let submission = Submission {
            kind: 1,
            head: b"head",
            payload,
            payload_crc,
            tag: 0,
            reserved: false,
        };
        let location = Location {
            segment: 7,
            position: SEGMENT_HEAD_BYTES as u32,
            len: (HEADER_BYTES + 4 + payload.len()) as u32,
        };
        let mut buffer = Buffer::default();
        buffer.push(Some(0), &submission, 9, location);
        let mut image = Image::new(SEGMENT_HEAD_BYTES, &[]);
        buffer
            .records()
            .for_each(|record| record.seal(8, 0x5A17, &mut image));
        let mut out = Vec::new();
        let written = image.write(|pages, _| {
            out.extend_from_slice(pages);
            Ok::<_, ()>(())
        });
        written.expect("nothing can fail");
        out
    }

    #[test]
    fn a_checksum_that_is_known_seals_as_one_that_is_computed() {
        for len in [0, 5, INLINE_BYTES_MAX, INLINE_BYTES_MAX + 1, 100_003] {
            let payload = Bytes::from_iter((0..len).map(|i| (i * 31 % 251) as u8));
            let bytes = sealed(&payload, Some(crc32fast::hash(&payload)));
            assert_eq!(bytes, sealed(&payload, None), "{len} bytes");
            let (_, head, read) = record::parse(&bytes, 7, 0x5A17).expect("an intact record");
            assert_eq!((head, read), (&b"head"[..], &payload[..]));
        }
    }

    #[test]
    fn a_known_checksum_is_taken_as_it_is() {
        let payload = Bytes::from(vec![7; INLINE_BYTES_MAX + 1]);
        assert!(record::parse(&sealed(&payload, Some(1)), 7, 0x5A17).is_none());
    }

    #[test]
    fn a_payload_that_has_changed_since_it_was_checked_is_no_intact_record() {
        let (salt, crc) = (0x5A17, crc32fast::hash(&[7; 3000]));
        let header = Header {
            body_len: 3000,
            lsn: 9,
            segment: 7,
            unsynced: 1,
            head_len: 0,
            kind: 1,
        };
        for (byte, is_intact) in [(7, true), (8, false)] {
            let mut bytes = header.encode().to_vec();
            let crc = record::checksum_by_parts(salt, &bytes, &[], crc, 3000);
            bytes[..4].copy_from_slice(&crc.to_le_bytes());
            bytes.extend_from_slice(&[7; 2999]);
            bytes.push(byte);
            assert_eq!(record::parse(&bytes, 7, salt).is_some(), is_intact);
        }
    }
}
