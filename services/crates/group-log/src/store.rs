//! The handle: reading entries back, writing damaged ones anew, trimming.

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;

use bytes::Bytes;
use quorate_journal::{Lsn, Source, StoredRecord, read_around};
use quorate_types::{GroupId, Index};

use crate::Options;
use crate::disk::Disk;
use crate::format::{HEADER_BYTES, Header, Place, Seal};

/// What lies between two records is read with them, if it is no more than this: one read is cheaper than two.
const GAP_BYTES_MAX: u32 = 64 << 10;
/// Read at once.
const RUN_BYTES_MAX: u32 = 8 << 20;

/// The group logs of a server. Dropping it ends the background thread within a moment; what it was copying is copied
/// again by the next one.
pub struct GroupLogs {
    pub(crate) core: Arc<Core>,
    pub(crate) jobs: Mutex<mpsc::Sender<Job>>,
    pub(crate) thread: Option<JoinHandle<()>>,
    /// Held as long as the logs are open.
    pub(crate) _lock: File,
}

/// What the handle and the thread share.
pub(crate) struct Core {
    pub disk: Disk,
    pub salt: u64,
    pub options: Options,
    pub is_stopping: AtomicBool,
    /// Held while pages of files are written.
    pub pages: Mutex<()>,
    pub counters: Counters,
}

#[derive(Default)]
pub(crate) struct Counters {
    pub copied_lsn: AtomicU64,
    pub records: AtomicU64,
    pub bytes_written: AtomicU64,
    pub bytes_scrubbed: AtomicU64,
    pub rewritten: AtomicU64,
    pub scrubs: AtomicU64,
}

pub(crate) enum Job {
    Trim { group: GroupId, index: Index, lsn: Lsn },
    Stop,
}

/// Counters since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stats {
    pub copied_lsn: Lsn,
    pub records: u64,
    /// Heads and padding included; manifests too.
    pub bytes_written: u64,
    pub bytes_scrubbed: u64,
    /// Damaged records that were written anew.
    pub rewritten: u64,
    /// Times that all files were read through.
    pub scrubs: u64,
}

#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("the record's file was trimmed")]
    Released,
    #[error("the record in file {:08x} at {} is damaged; fetch it from another replica", .0.file, .0.position)]
    Damaged(Place),
    #[error("cannot read the group log: {0}")]
    Io(io::Error),
}

impl GroupLogs {
    /// The records at these places, each with its lsn; places in order of the log are read together. Blocks.
    pub fn read(&self, group: GroupId, places: &[(Lsn, Place)]) -> Vec<Result<StoredRecord, ReadError>> {
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
                    records.extend(run.iter().map(|_| Err(ReadError::Released)));
                }
                Err(error) => {
                    tracing::error!(%group, file = first.file, %error, "a group log cannot be read");
                    records.extend(run.iter().map(|(_, place)| Err(ReadError::Damaged(*place))));
                }
            }
            rest = behind;
        }
        records
    }

    /// Writes a record over its damaged self, and syncs it. Blocks. The caller makes sure that the group's log still
    /// holds the record.
    pub fn rewrite(&self, group: GroupId, place: Place, record: &StoredRecord) -> Result<(), ReadError> {
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
            io::ErrorKind::NotFound => ReadError::Released,
            _ => ReadError::Io(error),
        })
    }

    /// A base at `index`, whose record is `lsn`, is durable: files with nothing behind it can go. In the background.
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

impl Core {
    pub fn seal(&self, group: GroupId, file: u32) -> Seal {
        Seal::new(self.salt, group, file)
    }

    fn read_range(&self, group: GroupId, first: Place, end: u32) -> io::Result<Bytes> {
        let file = self.disk.open(&self.disk.path(group, first.file))?;
        let end = u64::from(end).min(file.bytes());
        let mut bytes = vec![0; end.saturating_sub(u64::from(first.position)) as usize];
        read_around(&file, &mut bytes, u64::from(first.position))?;
        Ok(bytes.into())
    }

    fn record(
        &self,
        group: GroupId,
        (lsn, place): (Lsn, Place),
        from: u32,
        bytes: &Bytes,
    ) -> Result<StoredRecord, ReadError> {
        let damaged = || ReadError::Damaged(place);
        let at = (place.position - from) as usize;
        if bytes.len() < at + place.len as usize {
            return Err(damaged());
        }
        let bytes = bytes.slice(at..at + place.len as usize);
        let header = Header::decode(&bytes, place.position).ok_or_else(damaged)?;
        if header.place(place.file) != place || !header.is_sound(&self.seal(group, place.file), &bytes) {
            return Err(damaged());
        }
        if header.lsn != lsn {
            return Err(ReadError::Released);
        }
        let head_end = HEADER_BYTES + usize::from(header.head_len);
        let payload = bytes.slice(head_end..);
        if crc32fast::hash(&payload) != header.payload_crc {
            return Err(damaged());
        }
        Ok(StoredRecord {
            lsn,
            kind: header.kind,
            head: bytes.slice(HEADER_BYTES..head_end),
            payload,
        })
    }

    pub fn write_over(
        &self,
        group: GroupId,
        file: u32,
        header: &Header,
        head: &[u8],
        payload: &[u8],
    ) -> io::Result<()> {
        let seal = self.seal(group, file);
        let bytes = [&header.encode(&seal, head, payload)[..], head, payload].concat();
        let path = self.disk.path(group, file);
        {
            // The thread may be about to write the same page, with what it has read of it.
            let _alone = self.pages.lock().expect("pages");
            self.disk.patch(&path, &bytes, u64::from(header.position))?;
        }
        self.disk.sync(&path)?;
        self.counters.rewritten.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
