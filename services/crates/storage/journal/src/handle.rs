//! The journal's handles: submitting, reading, releasing.

use std::fs::File;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use bytes::Bytes;

use crate::contents::Reach;
use crate::core::Core;
use crate::errors::{JournalReadError, SubmitError};
use crate::events::Completion;
use crate::jobs::Job;
use crate::record::{KIND_MARK, Location, Lsn, StoredRecord};
use crate::segment::Segment;
use crate::source::Source;
use crate::submission::{Submission, Submitted};
use crate::walk::Walk;
use crate::writer::{Flush, Writer};

/// An open journal. Dropping it writes and syncs every submission, then stops its threads.
pub struct Journal {
    pub(crate) parts: Arc<Parts>,
    pub(crate) threads: Vec<JoinHandle<()>>,
    /// Held while the journal is open, so that no other process opens it.
    pub(crate) _lock: File,
}

/// The shared state and the writer that works on it.
pub(crate) struct Parts {
    pub core: Core,
    /// Locked before the queue.
    pub writer: Mutex<Writer>,
}

/// One shard's way to append; its events carry its own tags.
#[derive(Clone)]
pub struct Submitter {
    parts: Arc<Parts>,
    index: usize,
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
        let index = self.parts.core.lock().register(completion);
        Submitter {
            parts: self.parts.clone(),
            index,
        }
    }

    pub fn read(&self, location: Location) -> Result<StoredRecord, JournalReadError> {
        self.parts.core.read(location)
    }

    /// Allows reuse of segments with no record from `lsn` on. Done in the background.
    pub fn release_before(&self, lsn: Lsn) {
        self.parts.core.jobs.send(Job::Release(lsn));
    }

    /// Writes a record over its damaged self, and syncs it. Blocks.
    pub fn rewrite(&self, location: Location, record: &StoredRecord) -> Result<(), JournalReadError> {
        self.parts.core.rewrite(location, record)
    }

    /// The full segments that hold records from `lsn` on, oldest first. All their records are durable.
    /// They must not be released while they are read.
    pub fn sealed_from(&self, lsn: Lsn) -> Vec<Sealed> {
        let sealed = self.parts.core.table.sealed_from(lsn);
        let of = |(segment, first_lsn, end_lsn)| Sealed {
            first_lsn,
            end_lsn,
            source: SegmentSource {
                parts: self.parts.clone(),
                segment,
            },
        };
        sealed.into_iter().map(of).collect()
    }

    /// Age of the oldest submission that is not durable. A slow disk shows here.
    pub fn oldest_unsynced(&self) -> Option<Duration> {
        let since = self.parts.core.lock().oldest_since()?;
        Some(since.elapsed())
    }

    /// The number of the writer's system call that is under way, in whichever thread. The same number after a while is a
    /// call that does not return.
    pub fn call_under_way(&self) -> Option<u64> {
        self.parts.core.counters.call_under_way()
    }

    /// Whether no further segment can be prepared: a release would help.
    pub fn is_disk_full(&self) -> bool {
        self.parts.core.lock().is_disk_full()
    }

    /// The oldest lsn still held.
    pub fn first_lsn(&self) -> Option<Lsn> {
        self.parts.core.table.first_lsn()
    }

    /// Bytes free on the journal's file system.
    pub fn free_bytes(&self) -> std::io::Result<u64> {
        self.parts.core.disk.free_bytes()
    }

    pub fn stats(&self) -> Stats {
        let core = &self.parts.core;
        let counters = &core.counters;
        Stats {
            records: counters.records.load(Ordering::Relaxed),
            bytes: counters.bytes.load(Ordering::Relaxed),
            syncs: counters.syncs.load(Ordering::Relaxed),
            busy_us: counters.busy_us.load(Ordering::Relaxed),
            durable_lsn: counters.durable_lsn.load(Ordering::Acquire),
            segments: core.table.len() as u64,
        }
    }
}

impl Drop for Journal {
    fn drop(&mut self) {
        let core = &self.parts.core;
        core.lock().close();
        core.wake_writer.notify_all();
        core.jobs.send(Job::Close);
        for thread in self.threads.drain(..) {
            if thread.join().is_err() {
                tracing::error!("a thread of the journal panicked");
            }
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

    /// The owners of the segment's records, and how far their records go; `None` if some record's owner is unknown.
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
    parts: Arc<Parts>,
    segment: Arc<Segment>,
}

impl Source for SegmentSource {
    fn bytes(&self) -> u64 {
        self.parts.core.options.segment_bytes
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> std::io::Result<()> {
        let disk = &self.parts.core.disk;
        disk.read_at(&self.segment.file, buffer, position)
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

    /// Has the journal's thread write the placed records.
    pub fn commit(&self) {
        self.parts.core.call_writer();
    }

    /// Writes and syncs all placed records in the calling thread, if nobody else is writing; answers whether it did.
    /// If not, another thread is writing or the journal failed: call [`Self::commit`]. Events are notified from within.
    pub fn commit_here(&self) -> bool {
        match self.parts.writer.try_lock() {
            Ok(mut writer) => writer.flush(&self.parts.core) == Flush::Written,
            Err(_) => false,
        }
    }

    /// Duration of the last write and sync.
    pub fn last_commit(&self) -> Duration {
        Duration::from_micros(self.parts.core.counters.last_us.load(Ordering::Relaxed))
    }

    /// Like [`Self::submit_many`], without calling the writer: the caller MUST call [`Self::commit`] or
    /// [`Self::commit_here`] soon.
    pub fn place_many(
        &self,
        submissions: &[Submission<'_>],
        mut placed: impl FnMut(Submitted),
    ) -> Result<(), SubmitError> {
        let is_own = |submission: &Submission<'_>| submission.kind == KIND_MARK;
        assert!(!submissions.iter().any(is_own), "kind 0 is the journal's own");
        let core = &self.parts.core;
        let mut queue = core.lock();
        for submission in submissions {
            match queue.place(&core.options, self.index, submission) {
                Ok(submitted) => placed(submitted),
                Err(error) => {
                    let needs_fill = queue.note_refused(self.index, &error);
                    drop(queue);
                    if needs_fill {
                        core.jobs.send(Job::Fill);
                    }
                    return Err(error);
                }
            }
        }
        Ok(())
    }

    /// The record at `location`, which must be durable. Blocks for a read from disk if it is not cached.
    pub fn read(&self, location: Location) -> Result<StoredRecord, JournalReadError> {
        self.parts.core.read(location)
    }
}
