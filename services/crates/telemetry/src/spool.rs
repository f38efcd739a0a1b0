//! The spool: usage records that Redis could not take in time, on the server's disk until it does.
//!
//! Files of compressed blocks, oldest first. A file is removed once all its blocks were sent. What was sent may be sent again
//! after a restart, which is harmless: the worker keeps the greatest of each counter.

use std::collections::VecDeque;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use quorate_types::limits::{TELEMETRY_SPOOL_AGE_S, TELEMETRY_SPOOL_BYTES_MAX, TELEMETRY_SPOOL_FILE_BYTES};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::usage::UsageRecord;

const SUFFIX: &str = "spool";
/// Length and checksum, before each block.
const HEAD_BYTES: usize = 8;
/// A block of 256 records has some tens of kilobytes. A longer one is damaged.
const BLOCK_BYTES_MAX: u32 = 8 << 20;

/// Records of one process, as they go into one entry of the stream.
#[derive(Debug, Deserialize)]
pub struct Block {
    pub incarnation: String,
    pub records: Box<RawValue>,
}

#[derive(Serialize)]
struct NewBlock<'a> {
    incarnation: &'a str,
    records: &'a [UsageRecord],
}

#[derive(Debug)]
struct Stored {
    number: u64,
    bytes: u64,
    /// Seconds since 1970.
    written_s: u64,
}

#[derive(Debug)]
pub struct Spool {
    folder: PathBuf,
    bytes_max: u64,
    file_bytes: u64,
    /// Oldest first. Blocks go to the last one while `writing` is open.
    files: VecDeque<Stored>,
    writing: Option<File>,
    next_number: u64,
    /// Bytes of the first file that were sent, and those of the block that is being sent.
    sent: u64,
    sending: u64,
    dropped_files: u64,
}

impl Spool {
    /// Opens a folder with what an earlier process left. It is made if it is not there.
    pub fn open(folder: &Path) -> io::Result<Self> {
        Self::with_bounds(folder, TELEMETRY_SPOOL_BYTES_MAX, TELEMETRY_SPOOL_FILE_BYTES)
    }

    pub fn with_bounds(folder: &Path, bytes_max: u64, file_bytes: u64) -> io::Result<Self> {
        fs::create_dir_all(folder)?;
        let mut files = Vec::new();
        for entry in fs::read_dir(folder)? {
            let (path, about) = {
                let entry = entry?;
                (entry.path(), entry.metadata()?)
            };
            let Some(number) = number_of(&path) else { continue };
            let written = about.modified()?.duration_since(UNIX_EPOCH).unwrap_or_default();
            files.push(Stored {
                number,
                bytes: about.len(),
                written_s: written.as_secs(),
            });
        }
        files.sort_by_key(|file| file.number);
        Ok(Self {
            folder: folder.to_path_buf(),
            bytes_max,
            file_bytes,
            next_number: files.last().map_or(1, |last| last.number + 1),
            files: files.into(),
            writing: None,
            sent: 0,
            sending: 0,
            dropped_files: 0,
        })
    }

    /// Adds a block, which is on the disk when this returns.
    pub fn append(&mut self, incarnation: &str, records: &[UsageRecord], now_s: u64) -> io::Result<()> {
        let json = serde_json::to_vec(&NewBlock { incarnation, records }).expect("records are plain data");
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&json)?;
        let payload = encoder.finish()?;
        let length = u32::try_from(payload.len()).expect("a block is far smaller");
        let mut block = Vec::with_capacity(HEAD_BYTES + payload.len());
        block.extend(length.to_le_bytes());
        block.extend(crc32fast::hash(&payload).to_le_bytes());
        block.extend(payload);
        if let Err(error) = self.write(&block, now_s) {
            // The part that was written ends the file.
            self.writing = None;
            return Err(error);
        }
        self.bound();
        Ok(())
    }

    fn write(&mut self, block: &[u8], now_s: u64) -> io::Result<()> {
        let is_full = self
            .files
            .back()
            .is_some_and(|last| last.bytes >= self.file_bytes);
        if self.writing.is_none() || is_full {
            let path = self.path(self.next_number);
            let file = OpenOptions::new().create_new(true).append(true).open(path)?;
            self.writing = Some(file);
            self.files.push_back(Stored {
                number: self.next_number,
                bytes: 0,
                written_s: now_s,
            });
            self.next_number += 1;
        }
        let file = self.writing.as_mut().expect("opened above");
        file.write_all(block)?;
        file.sync_data()?;
        let last = self.files.back_mut().expect("it is being written");
        last.bytes += block.len() as u64;
        last.written_s = now_s;
        Ok(())
    }

    /// The oldest block that was not sent. The same again until [`Spool::mark_sent`].
    pub fn first(&mut self) -> Option<Block> {
        while let Some(first) = self.files.front() {
            if self.sent < first.bytes {
                match self.read(first.number) {
                    Ok((block, bytes)) => {
                        self.sending = bytes;
                        return Some(block);
                    }
                    Err(error) => {
                        // A block that was cut off by the end of a process ends its file.
                        let (file, left) = (self.path(first.number), first.bytes - self.sent);
                        tracing::warn!(%error, ?file, left, "the rest of a file of telemetry cannot be read");
                    }
                }
            }
            self.remove_first();
        }
        None
    }

    pub fn mark_sent(&mut self) {
        self.sent += std::mem::take(&mut self.sending);
    }

    /// Removes files that nobody takes any more.
    pub fn forget_old(&mut self, now_s: u64) {
        while let Some(first) = self.files.front()
            && first.written_s + TELEMETRY_SPOOL_AGE_S < now_s
        {
            self.dropped_files += 1;
            self.remove_first();
        }
    }

    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Files that were removed before they were sent, for their age or for room.
    pub fn dropped_files(&self) -> u64 {
        self.dropped_files
    }

    fn bound(&mut self) {
        while self.bytes() > self.bytes_max && self.files.len() > 1 {
            self.dropped_files += 1;
            self.remove_first();
        }
    }

    fn read(&self, number: u64) -> io::Result<(Block, u64)> {
        let mut file = File::open(self.path(number))?;
        file.seek(SeekFrom::Start(self.sent))?;
        let mut head = [0; HEAD_BYTES];
        file.read_exact(&mut head)?;
        let (length, crc) = head.split_at(4);
        let length = u32::from_le_bytes(length.try_into().expect("four bytes"));
        if length > BLOCK_BYTES_MAX {
            return Err(io::Error::other(format!("a block of {length} bytes")));
        }
        let mut payload = vec![0; length as usize];
        file.read_exact(&mut payload)?;
        if crc32fast::hash(&payload).to_le_bytes() != crc {
            return Err(io::Error::other("a block's checksum is wrong"));
        }
        let block = serde_json::from_reader(ZlibDecoder::new(payload.as_slice()))?;
        Ok((block, (HEAD_BYTES + payload.len()) as u64))
    }

    fn remove_first(&mut self) {
        let Some(first) = self.files.pop_front() else {
            return;
        };
        if self.files.is_empty() {
            self.writing = None;
        }
        (self.sent, self.sending) = (0, 0);
        if let Err(error) = fs::remove_file(self.path(first.number)) {
            tracing::warn!(%error, number = first.number, "a file of telemetry cannot be removed");
        }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{number:012}.{SUFFIX}"))
    }
}

fn number_of(path: &Path) -> Option<u64> {
    let is_ours = path.extension().is_some_and(|suffix| suffix == SUFFIX);
    is_ours
        .then(|| path.file_stem()?.to_str()?.parse().ok())
        .flatten()
}
