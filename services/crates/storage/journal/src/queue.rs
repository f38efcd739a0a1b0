//! The queue of submissions: it numbers records, places them in segments, and keeps them until the next flush.
//!
//! Submitters, writer and janitor share it under one lock, which nobody holds across a system call.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;

use crate::buffer::Buffer;
use crate::errors::SubmitError;
use crate::events::Completion;
use crate::options::JournalOptions;
use crate::record::{self, HEADER_BYTES, KIND_MARK, Location, Lsn, SEGMENT_HEAD_BYTES};
use crate::segment::{Segment, Table};
use crate::submission::{Submission, Submitted};

pub(crate) struct Queue {
    /// Records of the next flush.
    filling: Buffer,
    /// Bytes of the flush under way.
    writing_bytes: usize,
    /// Time of the first record of the next flush, and of the one under way.
    filling_since: Option<Instant>,
    writing_since: Option<Instant>,
    next_lsn: Lsn,
    /// Segment and position of the next record.
    current: Arc<Segment>,
    position: u64,
    /// Prepared segments, in the order of their numbers.
    ready: VecDeque<Arc<Segment>>,
    /// Segments with records that the writer has not begun yet.
    entered: Vec<Arc<Segment>>,
    submitters: Vec<Registered>,
    disk_full: Option<Arc<str>>,
    failed: Option<Arc<str>>,
    is_closing: bool,
    /// The writer's thread sleeps.
    is_writer_asleep: bool,
    /// The writer's thread is to flush.
    wants_writer: bool,
    /// Time of the last flush without a mark behind it; `None` if there is a mark, or no marks are written.
    unmarked_since: Option<Instant>,
}

struct Registered {
    completion: Arc<dyn Completion>,
    wants_room: bool,
}

/// Receivers of one event.
pub(crate) type Completions = Vec<Arc<dyn Completion>>;

/// The last tag and lsn of a flush, for one submitter.
pub(crate) type Acknowledgement = (Arc<dyn Completion>, (u64, Lsn));

/// Errand of the writer's thread.
pub(crate) enum Errand {
    Flush,
    /// Sleep until woken, at most so long.
    Sleep(Duration),
    /// The journal failed.
    End,
}

/// Reason for a flush of nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Nothing {
    Submitted,
    /// Closed or failed: no submission follows.
    Ever,
}

/// Records taken for a flush.
pub(crate) struct Taken {
    pub last_lsn: Lsn,
    /// The writer's thread sleeps without a limit and must learn of the mark to write.
    pub must_wake_writer: bool,
}

/// Receivers to inform about a prepared segment.
pub(crate) struct Prepared {
    /// The disk was full: every submitter learns of its end.
    pub of_free_disk: Completions,
    pub of_room: Completions,
}

// Submitters.
impl Queue {
    /// Empty; the next record goes to `position` of `current`. `is_unmarked`: records found at the start have no mark.
    pub fn new(
        next_lsn: Lsn,
        current: Arc<Segment>,
        position: u64,
        entered: Vec<Arc<Segment>>,
        is_unmarked: bool,
    ) -> Self {
        Self {
            filling: Buffer::default(),
            writing_bytes: 0,
            filling_since: None,
            writing_since: None,
            next_lsn,
            current,
            position,
            ready: VecDeque::new(),
            entered,
            submitters: Vec::new(),
            disk_full: None,
            failed: None,
            is_closing: false,
            is_writer_asleep: false,
            wants_writer: false,
            unmarked_since: is_unmarked.then(Instant::now),
        }
    }

    /// Answers the submitter's index.
    pub fn register(&mut self, completion: Arc<dyn Completion>) -> usize {
        self.submitters.push(Registered {
            completion,
            wants_room: false,
        });
        self.submitters.len() - 1
    }

    pub fn place(
        &mut self,
        options: &JournalOptions,
        submitter: usize,
        submission: &Submission<'_>,
    ) -> Result<Submitted, SubmitError> {
        if let Some(reason) = &self.failed {
            return Err(SubmitError::Failed(reason.clone()));
        }
        if self.is_closing {
            return Err(SubmitError::Closing);
        }
        let body_len = submission.head.len() + submission.payload.len();
        let max = options.body_bytes_max();
        if body_len > max || submission.head.len() > usize::from(u16::MAX) {
            return Err(SubmitError::TooLong { bytes: body_len, max });
        }
        let stride = record::stride(body_len);
        if self.filling.bytes + self.writing_bytes + stride > options.buffer_bytes_max
            && self.filling.bytes + self.writing_bytes > 0
        {
            return Err(SubmitError::Busy);
        }
        let reserve = if submission.reserved {
            0
        } else {
            options.reserve_bytes
        };
        let end = self.position + stride as u64;
        if self.ready.is_empty() && end + reserve > options.segment_bytes {
            return Err(self
                .disk_full
                .clone()
                .map_or(SubmitError::Busy, SubmitError::DiskFull));
        }
        if end > options.segment_bytes {
            self.current = self.ready.pop_front().expect("checked above");
            self.entered.push(self.current.clone());
            self.position = SEGMENT_HEAD_BYTES;
        }
        let len = (HEADER_BYTES + body_len) as u32;
        let location = Location {
            segment: self.current.number,
            position: self.position as u32,
            len,
        };
        let submitted = Submitted {
            lsn: self.next_lsn,
            location,
        };
        self.filling_since.get_or_insert_with(Instant::now);
        self.filling
            .push(Some(submitter), submission, submitted.lsn, location);
        self.position += stride as u64;
        self.next_lsn += 1;
        Ok(submitted)
    }

    /// Notes a refused submitter, which learns of room; answers whether the next segment must be filled for it.
    pub fn note_refused(&mut self, submitter: usize, error: &SubmitError) -> bool {
        if let SubmitError::Busy | SubmitError::DiskFull(_) = error {
            self.submitters[submitter].wants_room = true;
        }
        matches!(error, SubmitError::Busy) && self.ready.is_empty()
    }

    /// Calls the writer's thread if there is something to write; answers whether it must be woken.
    pub fn call_writer(&mut self) -> bool {
        if self.filling.is_empty() {
            return false;
        }
        self.wants_writer = true;
        std::mem::take(&mut self.is_writer_asleep)
    }

    /// Time of the oldest submission that is not durable.
    pub fn oldest_since(&self) -> Option<Instant> {
        self.writing_since.or(self.filling_since)
    }

    pub fn is_disk_full(&self) -> bool {
        self.disk_full.is_some()
    }

    pub fn close(&mut self) {
        self.is_closing = true;
    }

    /// Refuses every submission from here on.
    pub fn fail(&mut self, reason: Arc<str>) -> Completions {
        self.failed = Some(reason);
        self.completions()
    }

    fn completions(&self) -> Completions {
        self.submitters.iter().map(|s| s.completion.clone()).collect()
    }

    fn take_wanting_room(&mut self) -> Completions {
        let taken = |s: &mut Registered| std::mem::take(&mut s.wants_room).then(|| s.completion.clone());
        self.submitters.iter_mut().filter_map(taken).collect()
    }
}

// The writer.
impl Queue {
    /// The next errand of the writer's thread, which counts as asleep if the errand is to sleep.
    pub fn errand(&mut self, mark_after: Option<Duration>) -> Errand {
        self.is_writer_asleep = false;
        if self.failed.is_some() {
            return Errand::End;
        }
        if std::mem::take(&mut self.wants_writer) {
            return Errand::Flush;
        }
        let patience = match (mark_after, self.unmarked_since) {
            (Some(after), Some(since)) => after.saturating_sub(since.elapsed()),
            _ => Duration::MAX,
        };
        if patience.is_zero() || self.is_closing {
            return Errand::Flush;
        }
        self.is_writer_asleep = true;
        Errand::Sleep(patience)
    }

    /// Swaps the submissions into `writing`. After a while without any, a mark takes their place.
    pub fn take(&mut self, options: &JournalOptions, writing: &mut Buffer) -> Result<Taken, Nothing> {
        if self.failed.is_some() {
            return Err(Nothing::Ever);
        }
        let is_late = |since: Instant| options.mark_after.is_some_and(|after| since.elapsed() >= after);
        let mut must_wake_writer = false;
        if !self.filling.is_empty() {
            // The thread sleeps without a limit while no mark is due.
            let is_first = self.unmarked_since.is_none();
            self.unmarked_since = options.mark_after.map(|_| Instant::now());
            must_wake_writer = is_first && self.is_writer_asleep;
        } else if self
            .unmarked_since
            .is_some_and(|since| self.is_closing || is_late(since))
        {
            self.unmarked_since = None;
            self.mark(options);
        }
        if self.filling.is_empty() {
            return Err(if self.is_closing {
                Nothing::Ever
            } else {
                Nothing::Submitted
            });
        }
        std::mem::swap(&mut self.filling, writing);
        self.writing_bytes = writing.bytes;
        self.writing_since = self.filling_since.take();
        Ok(Taken {
            last_lsn: self.next_lsn - 1,
            must_wake_writer,
        })
    }

    /// Appends a mark, unless that would take a new segment.
    fn mark(&mut self, options: &JournalOptions) {
        let end = self.position + record::stride(0) as u64;
        if end > options.segment_bytes {
            return;
        }
        let mark = Submission {
            kind: KIND_MARK,
            head: &[],
            payload: &Bytes::new(),
            payload_crc: None,
            tag: 0,
            reserved: true,
        };
        let location = Location {
            segment: self.current.number,
            position: self.position as u32,
            len: HEADER_BYTES as u32,
        };
        self.filling.push(None, &mark, self.next_lsn, location);
        self.position = end;
        self.next_lsn += 1;
    }

    /// The segment with this number, which a record was placed in.
    pub fn entered(&self, number: u32) -> Arc<Segment> {
        let entered = self.entered.iter().find(|s| s.number == number);
        entered
            .cloned()
            .expect("records lie in segments that were prepared")
    }

    /// `writing` is durable; answers the receivers of that, and of the room that it leaves.
    pub fn written(&mut self, table: &Table, writing: &Buffer) -> (Vec<Acknowledgement>, Completions) {
        self.writing_bytes = 0;
        self.writing_since = None;
        self.entered.retain(|segment| table.get(segment.number).is_none());
        let acknowledgements = writing
            .tags
            .iter()
            .enumerate()
            .filter_map(|(index, tag)| tag.map(|tag| (self.submitters[index].completion.clone(), tag)))
            .collect();
        (acknowledgements, self.take_wanting_room())
    }
}

// The janitor.
impl Queue {
    /// A journal that failed needs no segment, and reports no free disk.
    pub fn needs_segment(&self) -> bool {
        self.ready.is_empty() && self.failed.is_none()
    }

    /// `segment`: `None` if it is allocated, and not filled yet.
    pub fn segment_prepared(&mut self, segment: Option<Arc<Segment>>) -> Prepared {
        let was_full = self.disk_full.take().is_some();
        let is_ready = segment.is_some();
        self.ready.extend(segment);
        Prepared {
            of_room: if is_ready || was_full {
                self.take_wanting_room()
            } else {
                Vec::new()
            },
            of_free_disk: if was_full { self.completions() } else { Vec::new() },
        }
    }

    /// Answers the receivers, unless the disk was full already.
    pub fn disk_is_full(&mut self, reason: Arc<str>) -> Option<Completions> {
        let is_new = self.disk_full.replace(reason).is_none();
        is_new.then(|| self.completions())
    }
}
