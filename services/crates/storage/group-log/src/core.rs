//! State that the handle and the thread share.

use std::io;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use quorate_journal::{Lsn, Source, StoredRecord, read_around};
use quorate_types::GroupId;

use crate::disk::Disk;
use crate::errors::GroupLogReadError;
use crate::format::{HEADER_BYTES, Header, LogLocation, Seal};
use crate::options::GroupLogOptions;

pub(crate) struct Core {
    pub disk: Disk,
    pub salt: u64,
    pub options: GroupLogOptions,
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

impl Core {
    pub fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Acquire)
    }

    pub fn seal(&self, group: GroupId, file: u32) -> Seal {
        Seal::new(self.salt, group, file)
    }

    /// The bytes of one file from `first` up to `end`, with zeros in place of unreadable pages.
    pub fn read_range(&self, group: GroupId, first: LogLocation, end: u32) -> io::Result<Bytes> {
        let file = self.disk.open(&self.disk.path(group, first.file))?;
        let end = u64::from(end).min(file.bytes());
        let mut bytes = vec![0; end.saturating_sub(u64::from(first.position)) as usize];
        read_around(&file, &mut bytes, u64::from(first.position))?;
        Ok(bytes.into())
    }

    /// The record at `place` in `bytes`, which were read from position `from` on.
    pub fn record(
        &self,
        group: GroupId,
        (lsn, place): (Lsn, LogLocation),
        from: u32,
        bytes: &Bytes,
    ) -> Result<StoredRecord, GroupLogReadError> {
        let damaged = || GroupLogReadError::Damaged(place);
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
            return Err(GroupLogReadError::Released);
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

    /// Writes a record over the bytes at its place, and syncs it.
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
            // The thread may be about to write the same page, with the bytes it has read of it.
            let _alone = self.pages.lock().expect("pages");
            self.disk.patch(&path, &bytes, u64::from(header.position))?;
        }
        self.disk.sync(&path)?;
        self.counters.rewritten.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}
