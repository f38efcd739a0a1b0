//! State that submitters, readers, writer and janitor share.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use bytes::Bytes;

use crate::disk::Disk;
use crate::errors::JournalReadError;
use crate::events::Event;
use crate::jobs::Jobs;
use crate::options::JournalOptions;
use crate::queue::Queue;
use crate::record::{self, HEADER_BYTES, Header, Location, StoredRecord};
use crate::segment::Table;

pub(crate) struct Core {
    pub options: JournalOptions,
    pub disk: Disk,
    pub table: Table,
    pub queue: Mutex<Queue>,
    pub wake_writer: Condvar,
    pub jobs: Jobs,
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
    /// Duration of the last write and sync.
    pub last_us: AtomicU64,
    pub durable_lsn: AtomicU64,
    /// The writer's system calls so far, each counted when it begins and when it ends: odd while one is under way.
    pub calls: AtomicU64,
}

/// A system call of the writer, from its begin to its end.
pub(crate) struct Call<'a>(&'a AtomicU64);

impl Drop for Call<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

impl Counters {
    /// The writer's lock is held, so there is one at a time.
    pub fn begin_call(&self) -> Call<'_> {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Call(&self.calls)
    }

    /// The number of the call under way.
    pub fn call_under_way(&self) -> Option<u64> {
        let calls = self.calls.load(Ordering::Relaxed);
        (calls % 2 == 1).then_some(calls)
    }

    pub fn count_flush(&self, records: u64, bytes: u64, took_us: u64, durable_lsn: u64) {
        self.busy_us.fetch_add(took_us, Ordering::Relaxed);
        self.last_us.store(took_us, Ordering::Relaxed);
        self.records.fetch_add(records, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.durable_lsn.store(durable_lsn, Ordering::Release);
    }
}

impl Core {
    pub fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().expect("journal state")
    }

    /// Has the journal's thread write the submissions.
    pub fn call_writer(&self) {
        let must_wake = self.lock().call_writer();
        if must_wake {
            self.wake_writer.notify_one();
        }
    }

    /// Final: no acknowledgement, no submission from here on.
    pub fn fail(&self, what: &str, error: &std::io::Error) {
        let reason: Arc<str> = format!("{what}: {error}").into();
        tracing::error!(%reason, "the journal failed; persistent appends stop");
        let completions = self.lock().fail(reason.clone());
        for completion in completions {
            completion.notify(Event::Failed {
                reason: reason.clone(),
            });
        }
    }

    /// Writes a record over its damaged self. The segment is not freed meanwhile: its file might be reused.
    pub fn rewrite(&self, location: Location, record: &StoredRecord) -> Result<(), JournalReadError> {
        let header = Header {
            body_len: location.len - HEADER_BYTES as u32,
            lsn: record.lsn,
            segment: location.segment,
            // The durable lsn of that time is not known any more: the record claims none.
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
        let io = |source| JournalReadError::Io { location, source };
        written.ok_or(JournalReadError::Released)?.map_err(io)?;
        let segment = self
            .table
            .get(location.segment)
            .ok_or(JournalReadError::Released)?;
        self.disk.sync(&segment.file).map_err(io)
    }

    pub fn read(&self, location: Location) -> Result<StoredRecord, JournalReadError> {
        let segment = self
            .table
            .get(location.segment)
            .ok_or(JournalReadError::Released)?;
        let mut bytes = vec![0; location.len as usize];
        self.disk
            .read_at(&segment.file, &mut bytes, u64::from(location.position))
            .map_err(|source| JournalReadError::Io { location, source })?;
        let (header, head_len) = match record::parse(&bytes, location.segment, segment.salt) {
            Some((header, head, _)) => (header, head.len()),
            None if self.table.get(location.segment).is_none() => return Err(JournalReadError::Released),
            None => return Err(JournalReadError::Damaged(location)),
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
