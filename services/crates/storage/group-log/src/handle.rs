//! The handle: reading entries back, repairing damaged ones, trimming.

use std::fs::File;
use std::io;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use quorate_journal::{Lsn, StoredRecord};
use quorate_types::{GroupId, Index};

use crate::core::Core;
use crate::errors::GroupLogReadError;
use crate::format::{HEADER_BYTES, Header, LogLocation};
use crate::jobs::Job;

/// Longest gap between two records that are read together: one read is cheaper than two.
const GAP_BYTES_MAX: u32 = 64 << 10;
/// Most bytes of one read.
const RUN_BYTES_MAX: u32 = 8 << 20;

/// The group logs of a server. Dropping it ends the background thread at once; the next one repeats its copy pass.
pub struct GroupLogs {
    pub(crate) core: Arc<Core>,
    pub(crate) jobs: Mutex<mpsc::Sender<Job>>,
    pub(crate) thread: Option<JoinHandle<()>>,
    /// Held while the logs are open.
    pub(crate) _lock: File,
}

/// Counters since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    pub copied_lsn: Lsn,
    pub records: u64,
    /// Heads and padding included; manifests too.
    pub bytes_written: u64,
    pub bytes_scrubbed: u64,
    /// Damaged records that were written over.
    pub rewritten: u64,
    /// Complete passes over all files.
    pub scrubs: u64,
}

impl GroupLogs {
    /// The records at these places, each with its lsn; places in the log's order are read together. Blocks.
    pub fn read(
        &self,
        group: GroupId,
        places: &[(Lsn, LogLocation)],
    ) -> Vec<Result<StoredRecord, GroupLogReadError>> {
        let mut records = Vec::with_capacity(places.len());
        let mut rest = places;
        while let Some((_, first)) = rest.first() {
            let (mut end, mut count) = (first.position + first.len, 1);
            for (_, next) in &rest[1..] {
                let joins = next.file == first.file
                    && (end..=end + GAP_BYTES_MAX).contains(&next.position)
                    && next.position + next.len - first.position <= RUN_BYTES_MAX;
                if !joins {
                    break;
                }
                end = next.position + next.len;
                count += 1;
            }
            let (run, behind) = rest.split_at(count);
            match self.core.read_range(group, *first, end) {
                Ok(bytes) => records.extend(
                    run.iter()
                        .map(|at| self.core.record(group, *at, first.position, &bytes)),
                ),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    records.extend(run.iter().map(|_| Err(GroupLogReadError::Released)));
                }
                Err(error) => {
                    tracing::error!(%group, file = first.file, %error, "a group log cannot be read");
                    records.extend(
                        run.iter()
                            .map(|(_, place)| Err(GroupLogReadError::Damaged(*place))),
                    );
                }
            }
            rest = behind;
        }
        records
    }

    /// Writes a record over its damaged self, and syncs it. Blocks. The caller ensures that the group's log still holds
    /// the record.
    pub fn rewrite(
        &self,
        group: GroupId,
        place: LogLocation,
        record: &StoredRecord,
    ) -> Result<(), GroupLogReadError> {
        let header = Header {
            lsn: record.lsn,
            body_len: place.len - HEADER_BYTES as u32,
            payload_crc: crc32fast::hash(&record.payload),
            position: place.position,
            head_len: record.head.len() as u16,
            kind: record.kind,
        };
        let written = self
            .core
            .write_over(group, place.file, &header, &record.head, &record.payload);
        written.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => GroupLogReadError::Released,
            _ => GroupLogReadError::Io(error),
        })
    }

    /// A base at `index`, with the record `lsn`, is durable: files without a later record can go. In the background.
    pub fn trim(&self, group: GroupId, index: Index, lsn: Lsn) {
        self.ask(Job::Trim { group, index, lsn });
    }

    pub fn free_bytes(&self) -> io::Result<u64> {
        self.core.disk.free_bytes()
    }

    pub fn stats(&self) -> Stats {
        let counters = &self.core.counters;
        Stats {
            copied_lsn: counters.copied_lsn.load(Ordering::Acquire),
            records: counters.records.load(Ordering::Relaxed),
            bytes_written: counters.bytes_written.load(Ordering::Relaxed),
            bytes_scrubbed: counters.bytes_scrubbed.load(Ordering::Relaxed),
            rewritten: counters.rewritten.load(Ordering::Relaxed),
            scrubs: counters.scrubs.load(Ordering::Acquire),
        }
    }

    fn ask(&self, job: Job) {
        // The thread is gone only after a panic, which the log shows.
        let _gone = self.jobs.lock().expect("jobs").send(job).is_err();
    }
}

impl Drop for GroupLogs {
    fn drop(&mut self) {
        self.core.is_stopping.store(true, Ordering::Release);
        self.ask(Job::Stop);
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the group logs' thread panicked");
        }
    }
}
