//! Reading a sealed segment from its start to its end, in large pieces and with little memory.

use std::io;

use crate::record::{
    self, ALIGN_BYTES, HEADER_BYTES, JournalRecord, Location, Lsn, SEGMENT_HEAD_BYTES, SegmentHead,
};
use crate::source::{Source, Window};

/// The records of a segment in order, all of them durable.
pub struct Walk<S> {
    head: SegmentHead,
    /// The first lsn of the next segment.
    end_lsn: Lsn,
    next_lsn: Lsn,
    position: u64,
    window: Window<S>,
}

/// The next item in a segment.
#[derive(Debug)]
pub enum Step<'a> {
    Record(JournalRecord<'a>),
    /// Unreadable records from `first_lsn` up to, but without, `end_lsn`.
    Hole {
        first_lsn: Lsn,
        end_lsn: Lsn,
    },
}

impl<S: Source> Walk<S> {
    pub fn new(source: S, head: SegmentHead, end_lsn: Lsn) -> Self {
        Self {
            head,
            end_lsn,
            next_lsn: head.first_lsn,
            position: SEGMENT_HEAD_BYTES,
            window: Window::new(source),
        }
    }

    /// `None` behind the last record. An unreadable page is a hole; only a disk that returns nothing is an error.
    #[allow(clippy::should_implement_trait)] // The item borrows from the walk.
    pub fn next(&mut self) -> io::Result<Option<Step<'_>>> {
        if self.next_lsn >= self.end_lsn {
            return Ok(None);
        }
        let hole_lsn = self.next_lsn;
        let mut lsn = self.intact_at(self.position)?;
        if lsn == Some(hole_lsn) {
            return self.take().map(Some);
        }
        while lsn.is_none_or(|lsn| lsn < hole_lsn || lsn >= self.end_lsn) {
            self.position += ALIGN_BYTES as u64;
            if self.position >= self.window.source().bytes() {
                self.next_lsn = self.end_lsn;
                break;
            }
            lsn = self.intact_at(self.position)?;
        }
        if let Some(lsn) = lsn.filter(|_| self.next_lsn < self.end_lsn) {
            self.next_lsn = lsn;
        }
        Ok(Some(Step::Hole {
            first_lsn: hole_lsn,
            end_lsn: self.next_lsn,
        }))
    }

    /// The lsn of the intact record at `position`, if there is one; it is in the window then.
    fn intact_at(&mut self, position: u64) -> io::Result<Option<Lsn>> {
        let segment = self.head.segment;
        let left = self.window.source().bytes().saturating_sub(position);
        let header = record::Header::decode(self.window.look(position, HEADER_BYTES)?);
        let Some(header) =
            header.filter(|h| h.segment == segment && u64::from(h.body_len) + HEADER_BYTES as u64 <= left)
        else {
            return Ok(None);
        };
        let salt = self.head.salt;
        let bytes = self
            .window
            .look(position, HEADER_BYTES + header.body_len as usize)?;
        Ok(record::parse(bytes, segment, salt).map(|(header, ..)| header.lsn))
    }

    /// The record at the position, known to be intact.
    fn take(&mut self) -> io::Result<Step<'_>> {
        let at = self.position;
        let header = self.window.look(at, HEADER_BYTES)?;
        let header = record::Header::decode(header).expect("it was intact");
        self.next_lsn += 1;
        self.position += record::stride(header.body_len as usize) as u64;
        let len = HEADER_BYTES + header.body_len as usize;
        let body = &self.window.look(at, len)?[HEADER_BYTES..];
        let (head, payload) = body.split_at(usize::from(header.head_len));
        Ok(Step::Record(JournalRecord {
            lsn: header.lsn,
            kind: header.kind,
            head,
            payload,
            location: Location {
                segment: self.head.segment,
                position: at as u32,
                len: len as u32,
            },
        }))
    }
}
