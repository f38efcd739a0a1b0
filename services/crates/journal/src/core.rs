//! What submitters, writer and janitor share, and where each record is placed.

use std::collections::VecDeque;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::time::Instant;

use bytes::Bytes;

use crate::buffer::Buffer;
use crate::disk::Disk;
use crate::handle::Submitted;
use crate::janitor::Job;
use crate::record::{self, HEADER_BYTES, Header, KIND_MARK, Location, Lsn, SEGMENT_HEAD_BYTES, StoredRecord};
use crate::segment::{Segment, Table};
use crate::writer::Writer;
use crate::{Completion, Event, Options, ReadError, Submission, SubmitError};

pub(crate) struct Core {
    pub options: Options,
    pub disk: Disk,
    pub table: Table,
    pub shared: Mutex<Shared>,
    /// Locked before `shared`, and across system calls.
    pub writer: Mutex<Writer>,
    pub wake_writer: Condvar,
    pub jobs: Mutex<mpsc::Sender<Job>>,
    /// Held while pages of segments are written.
    pub pages: Mutex<()>,
    pub counters: Counters,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub records: AtomicU64,
    pub bytes: AtomicU64,
    pub syncs: AtomicU64,
    pub busy_us: AtomicU64,
    /// What the last write and sync took.
    pub last_us: AtomicU64,
    pub durable_lsn: AtomicU64,
}

/// What submitters, writer and janitor share; held for the time of a copy, never across a system call.
pub(crate) struct Shared {
    pub filling: Buffer,
    /// Bytes that the writer is writing.
    pub writing_bytes: usize,
    /// When the first record came into the filling buffer, and into the one that is being written.
    pub filling_since: Option<Instant>,
    pub writing_since: Option<Instant>,
    pub next_lsn: Lsn,
    /// Where the next record goes.
    pub current: Arc<Segment>,
    pub position: u64,
    /// Prepared segments, in the order of their numbers.
    pub ready: VecDeque<Arc<Segment>>,
    /// Segments that records were placed in and that the writer has not begun yet.
    pub entered: Vec<Arc<Segment>>,
    pub submitters: Vec<Registered>,
    pub disk_full: Option<Arc<str>>,
    pub failed: Option<Arc<str>>,
    pub closing: bool,
    /// The writer's thread sleeps; whether it is to look.
    pub writer_waits: bool,
    pub wants_writer: bool,
    /// Since when what was written last is without a mark behind it; `None` if it has one, or there are no marks.
    pub unmarked_since: Option<Instant>,
}

pub(crate) struct Registered {
    pub completion: Arc<dyn Completion>,
    pub wants_room: bool,
}

impl Shared {
    /// Nothing is submitted yet; the next record goes to `position` of `current`.
    pub fn new(next_lsn: Lsn, current: Arc<Segment>, position: u64, entered: Vec<Arc<Segment>>) -> Self {
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
            closing: false,
            writer_waits: false,
            wants_writer: false,
            unmarked_since: None,
        }
    }

    pub fn place(
        &mut self,
        options: &Options,
        submitter: usize,
        submission: &Submission<'_>,
    ) -> Result<Submitted, SubmitError> {
        if let Some(reason) = &self.failed {
            return Err(SubmitError::Failed(reason.clone()));
        }
        if self.closing {
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

    /// States that all there is is durable; answers whether it did. It does not, if that would take a new segment.
    pub fn mark(&mut self, options: &Options) -> bool {
        let end = self.position + record::stride(0) as u64;
        if self.failed.is_some() || end > options.segment_bytes {
            return false;
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
        true
    }

    pub fn take_wanting_room(&mut self) -> Vec<Arc<dyn Completion>> {
        let taken = |s: &mut Registered| std::mem::take(&mut s.wants_room).then(|| s.completion.clone());
        self.submitters.iter_mut().filter_map(taken).collect()
    }

    pub fn completions(&self) -> Vec<Arc<dyn Completion>> {
        self.submitters.iter().map(|s| s.completion.clone()).collect()
    }
}

impl Core {
    pub fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().expect("journal state")
    }

    pub fn writer(&self) -> std::sync::MutexGuard<'_, Writer> {
        self.writer.lock().expect("the journal's writer")
    }

    /// Has the journal's thread write what was submitted.
    pub fn call_writer(&self) {
        let mut shared = self.lock();
        if shared.filling.is_empty() {
            return;
        }
        shared.wants_writer = true;
        let waits = std::mem::take(&mut shared.writer_waits);
        drop(shared);
        if waits {
            self.wake_writer.notify_one();
        }
    }

    pub fn ask(&self, job: Job) {
        // The janitor is gone only while the journal is being dropped.
        let _gone = self.jobs.lock().expect("jobs").send(job).is_err();
    }

    /// Final: no acknowledgement, no submission from here on.
    pub fn fail(&self, what: &str, error: &std::io::Error) {
        let reason: Arc<str> = format!("{what}: {error}").into();
        tracing::error!(%reason, "the journal failed; persistent appends stop");
        let mut shared = self.lock();
        shared.failed = Some(reason.clone());
        let completions = shared.completions();
        drop(shared);
        for completion in completions {
            completion.notify(Event::Failed {
                reason: reason.clone(),
            });
        }
    }

    /// Writes a record over its damaged self. A segment is not freed meanwhile: its file might be another's by then.
    pub fn rewrite(&self, location: Location, record: &StoredRecord) -> Result<(), ReadError> {
        let header = Header {
            body_len: location.len - HEADER_BYTES as u32,
            lsn: record.lsn,
            segment: location.segment,
            // What was durable then is not known any more: it claims nothing.
            unsynced: u32::try_from(record.lsn).unwrap_or(u32::MAX),
            head_len: record.head.len() as u16,
            kind: record.kind,
        };
        let written = self.table.with(location.segment, |segment| {
            let mut bytes = Vec::new();
            record::encode(&header, segment.salt, &record.head, &record.payload, &mut bytes);
            // The writer may be about to write the same page.
            let _alone = self.pages.lock().expect("pages");
            self.disk
                .patch(&segment.file, &bytes, u64::from(location.position))
        });
        let io = |source| ReadError::Io { location, source };
        written.ok_or(ReadError::Released)?.map_err(io)?;
        let segment = self.table.get(location.segment).ok_or(ReadError::Released)?;
        self.disk.sync(&segment.file).map_err(io)
    }

    pub fn read(&self, location: Location) -> Result<StoredRecord, ReadError> {
        let segment = self.table.get(location.segment).ok_or(ReadError::Released)?;
        let mut bytes = vec![0; location.len as usize];
        self.disk
            .read_at(&segment.file, &mut bytes, u64::from(location.position))
            .map_err(|source| ReadError::Io { location, source })?;
        let (header, head_len) = match record::parse(&bytes, location.segment, segment.salt) {
            Some((header, head, _)) => (header, head.len()),
            None if self.table.get(location.segment).is_none() => return Err(ReadError::Released),
            None => return Err(ReadError::Damaged(location)),
        };
        let body = Bytes::from(bytes).slice(HEADER_BYTES..);
        let (head, payload) = (body.slice(..head_len), body.slice(head_len..));
        Ok(StoredRecord {
            lsn: header.lsn,
            kind: header.kind,
            head,
            payload,
        })
    }
}
