//! The journal's handles: submitting, reading, releasing.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;

use crate::contents::Reach;
use crate::core::{Core, Registered};
use crate::janitor::Job;
use crate::record::{KIND_MARK, Location, Lsn, StoredRecord};
use crate::segment::Segment;
use crate::source::Source;
use crate::walk::Walk;
use crate::writer::Round;
use crate::{Completion, ReadError, Submission, SubmitError};

/// An open journal. Dropping it writes and syncs what was submitted, then stops its threads.
pub struct Journal {
    pub(crate) core: Arc<Core>,
    pub(crate) threads: Vec<JoinHandle<()>>,
    /// Held as long as the journal is open, so that no other process opens it.
    pub(crate) _lock: File,
}

/// One shard's way to append; its events carry its own tags.
#[derive(Clone)]
pub struct Submitter {
    core: Arc<Core>,
    index: usize,
}

/// Where an accepted record will lie. It is durable once `Event::Durable` says so.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Submitted {
    pub lsn: Lsn,
    pub location: Location,
}

/// Counters since the journal was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    pub records: u64,
    pub bytes: u64,
    pub syncs: u64,
    /// Time spent in write and sync together.
    pub busy_us: u64,
    pub durable_lsn: Lsn,
    pub segments: u64,
}

impl Journal {
    /// A way to submit, whose events go to `completion`.
    pub fn submitter(&self, completion: Arc<dyn Completion>) -> Submitter {
        let mut shared = self.core.lock();
        shared.submitters.push(Registered {
            completion,
            wants_room: false,
        });
        Submitter {
            core: self.core.clone(),
            index: shared.submitters.len() - 1,
        }
    }

    pub fn read(&self, location: Location) -> Result<StoredRecord, ReadError> {
        self.core.read(location)
    }

    /// Allows segments all of whose records lie below `lsn` to be reused. Done in the background.
    pub fn release_before(&self, lsn: Lsn) {
        self.core.ask(Job::Release(lsn));
    }

    /// Writes a record over its damaged self, and syncs it. Blocks.
    pub fn rewrite(&self, location: Location, record: &StoredRecord) -> Result<(), ReadError> {
        self.core.rewrite(location, record)
    }

    /// The full segments that hold records from `lsn` on, oldest first, to be read one after the other. All their
    /// records are durable. They must not be released meanwhile.
    pub fn sealed_from(&self, lsn: Lsn) -> Vec<Sealed> {
        let sealed = self.core.table.sealed_from(lsn);
        let of = |(segment, first_lsn, end_lsn)| Sealed {
            first_lsn,
            end_lsn,
            source: SegmentSource {
                core: self.core.clone(),
                segment,
            },
        };
        sealed.into_iter().map(of).collect()
    }

    /// How long the oldest submission that is not durable yet has been waiting. A slow disk shows here.
    pub fn oldest_unsynced(&self) -> Option<Duration> {
        let shared = self.core.lock();
        let since = shared.writing_since.or(shared.filling_since)?;
        Some(since.elapsed())
    }

    /// Whether no further segment can be prepared: a release would help.
    pub fn is_disk_full(&self) -> bool {
        self.core.lock().disk_full.is_some()
    }

    /// The oldest lsn still held.
    pub fn first_lsn(&self) -> Option<Lsn> {
        self.core.table.first_lsn()
    }

    /// Bytes free on the journal's file system.
    pub fn free_bytes(&self) -> std::io::Result<u64> {
        self.core.disk.free_bytes()
    }

    pub fn stats(&self) -> Stats {
        let counters = &self.core.counters;
        Stats {
            records: counters.records.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
            syncs: counters.syncs.load(Ordering::Relaxed),
            busy_us: counters.busy_us.load(Ordering::Relaxed),
            durable_lsn: counters.durable_lsn.load(Ordering::Acquire),
            segments: self.core.table.len() as u64,
        }
    }
}

/// A full segment.
pub struct Sealed {
    pub first_lsn: Lsn,
    /// The first lsn of the next segment.
    pub end_lsn: Lsn,
    source: SegmentSource,
}

impl Sealed {
    pub fn bytes(&self) -> u64 {
        self.source.bytes()
    }

    /// Whose records the segment has, and up to where; `None` if that is not known of all of them.
    pub fn reaches(&self) -> Option<Vec<(u128, Reach)>> {
        self.source.segment.contents.lock().expect("contents").reaches()
    }

    pub fn walk(self) -> Walk<SegmentSource> {
        let head = self.source.segment.head(self.first_lsn);
        Walk::new(self.source, head, self.end_lsn)
    }
}

/// A segment's file, read through the fault hook.
pub struct SegmentSource {
    core: Arc<Core>,
    segment: Arc<Segment>,
}

impl Source for SegmentSource {
    fn bytes(&self) -> u64 {
        self.core.options.segment_bytes
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> std::io::Result<()> {
        self.core.disk.read_at(&self.segment.file, buffer, position)
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        self.core.lock().closing = true;
        self.core.wake_writer.notify_all();
        self.core.ask(Job::Close);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the journal panicked");
            }
        }
    }
}

impl Submitter {
    pub fn submit(&self, kind: u8, head: &[u8], payload: &Bytes, tag: u64) -> Result<Submitted, SubmitError> {
        let mut placed = None;
        self.submit_many(
            &[Submission {
                kind,
                head,
                payload,
                payload_crc: None,
                tag,
                reserved: false,
            }],
            |at| placed = Some(at),
        )?;
        Ok(placed.expect("an accepted record has a place"))
    }

    /// Submits in order, under one lock; `placed` is called for each accepted record. On an error the records
    /// before it were accepted and the rest were not.
    pub fn submit_many(
        &self,
        submissions: &[Submission<'_>],
        placed: impl FnMut(Submitted),
    ) -> Result<(), SubmitError> {
        let result = self.place_many(submissions, placed);
        self.commit();
        result
    }

    /// Has the journal's thread write what was placed.
    pub fn commit(&self) {
        self.core.call_writer();
    }

    /// Writes and syncs, in the calling thread, all that was placed, if nobody is writing; answers whether it did. If
    /// not, somebody else is at it or the journal failed: call [`Self::commit`]. Events are notified from within.
    pub fn commit_here(&self) -> bool {
        match self.core.writer.try_lock() {
            Ok(mut writer) => writer.round(&self.core) == Round::Written,
            Err(_) => false,
        }
    }

    /// What the last write and sync took.
    pub fn last_commit(&self) -> Duration {
        Duration::from_micros(self.core.counters.last_us.load(Ordering::Relaxed))
    }

    /// Like [`Self::submit_many`], but nobody is told to write: the caller MUST call [`Self::commit`] or
    /// [`Self::commit_here`] soon.
    pub fn place_many(
        &self,
        submissions: &[Submission<'_>],
        mut placed: impl FnMut(Submitted),
    ) -> Result<(), SubmitError> {
        let is_own = |submission: &Submission<'_>| submission.kind == KIND_MARK;
        assert!(!submissions.iter().any(is_own), "kind 0 is the journal's own");
        let mut shared = self.core.lock();
        let mut result = Ok(());
        for submission in submissions {
            match shared.place(&self.core.options, self.index, submission) {
                Ok(submitted) => placed(submitted),
                Err(error) => {
                    result = Err(error);
                    break;
                }
            }
        }
        if let Err(SubmitError::Busy | SubmitError::DiskFull(_)) = result {
            shared.submitters[self.index].wants_room = true;
        }
        let wants_segment = matches!(result, Err(SubmitError::Busy)) && shared.ready.is_empty();
        drop(shared);
        if wants_segment {
            self.core.ask(Job::Fill);
        }
        result
    }

    /// The record at `location`, which must be durable. Blocks for a read from disk if it is not cached.
    pub fn read(&self, location: Location) -> Result<StoredRecord, ReadError> {
        self.core.read(location)
    }
}
