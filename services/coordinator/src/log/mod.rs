//! The durable log of commands: one file that is appended to, and rewritten as a snapshot now and then.
//!
//! The framing is that of `quorate_records`, with the magic "QRTCLOG\0" and version 1; payloads are JSON:
//!
//! ```text
//! {"snapshot": State}                              first record only
//! {"commands": [{"at_ms": …, "command": …}, …]}   one batch, synced as one
//! ```
//!
//! A batch is one record and is synced before anything follows from it. A torn end is cut. Damage: the
//! coordinator refuses to start rather than forget what it promised.

mod scan;

pub use scan::{Scanned, scan};

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use quorate_records::HEADER_BYTES;
use quorate_types::limits::{COORDINATOR_LOG_BYTES, COORDINATOR_RECORD_BYTES_MAX};
use serde::{Deserialize, Serialize};

use crate::state::State;
use crate::state::command::Command;

const MAGIC: &[u8; 8] = b"QRTCLOG\0";
const VERSION: u32 = 1;

/// The log cannot be used: exit code 5.
#[derive(Debug, thiserror::Error)]
pub enum LogError {
    #[error("{action} {}: {source}", path.display())]
    Io {
        action: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("{} is in use by another coordinator; stop it, or choose another --data-dir", path.display())]
    InUse { path: PathBuf },
    #[error(
        "{} is damaged at byte {offset}: {problem}. Nothing was changed. Restore the file from a backup, or \
         restore the disk; starting without it would forget groups that were promised",
        path.display()
    )]
    Damaged {
        path: PathBuf,
        offset: u64,
        problem: String,
    },
}

/// A command with the time at which it was applied.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    pub at_ms: u64,
    pub command: Command,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Record<S> {
    Snapshot(S),
    Commands(Vec<Timed>),
}

/// What the log held.
#[derive(Debug, Default)]
pub struct Recovered {
    /// As it was serialised: call `State::restore` on it.
    pub snapshot: Option<State>,
    pub commands: Vec<Timed>,
    /// Bytes of a torn last record that were cut.
    pub cut_bytes: u64,
}

/// The open log; the data folder is locked as long as it lives.
#[derive(Debug)]
pub struct DurableLog {
    path: PathBuf,
    file: File,
    bytes: u64,
    snapshot_bytes: u64,
    _lock: File,
}

impl DurableLog {
    /// Opens or creates `coordinator.log` in the folder and reads it.
    pub fn open(data_dir: &Path) -> Result<(Self, Recovered), LogError> {
        let lock = lock(data_dir)?;
        let path = data_dir.join("coordinator.log");
        if !path.try_exists().map_err(|e| io_error("look for", &path, e))? {
            replace(&path, &header())?;
        }
        let bytes = std::fs::read(&path).map_err(|e| io_error("read", &path, e))?;
        let scanned = scan(&bytes).map_err(|(offset, problem)| LogError::Damaged {
            path: path.clone(),
            offset: offset as u64,
            problem,
        })?;
        let file = OpenOptions::new()
            .append(true)
            .open(&path)
            .map_err(|e| io_error("open", &path, e))?;
        if scanned.recovered.cut_bytes > 0 {
            file.set_len(scanned.end)
                .and_then(|()| file.sync_all())
                .map_err(|e| io_error("cut", &path, e))?;
        }
        let log = Self {
            path,
            file,
            bytes: scanned.end,
            snapshot_bytes: scanned.snapshot_bytes,
            _lock: lock,
        };
        Ok((log, scanned.recovered))
    }

    /// Appends one batch and waits until it is on stable storage.
    pub fn append(&mut self, batch: Vec<Timed>) -> Result<(), LogError> {
        let record = encode_batch(batch);
        let written = self.file.write_all(&record).and_then(|()| self.file.sync_data());
        written.map_err(|e| io_error("write to", &self.path, e))?;
        self.bytes += record.len() as u64;
        Ok(())
    }

    /// Whether the log has grown enough that a snapshot pays.
    pub fn wants_snapshot(&self) -> bool {
        self.bytes > COORDINATOR_LOG_BYTES.max(2 * self.snapshot_bytes)
    }

    /// Replaces all that was logged by the state that it led to; atomic by rename.
    pub fn rewrite(&mut self, state: &State) -> Result<(), LogError> {
        let contents = encode_snapshot(state);
        replace(&self.path, &contents)?;
        self.file = OpenOptions::new()
            .append(true)
            .open(&self.path)
            .map_err(|e| io_error("open", &self.path, e))?;
        self.bytes = contents.len() as u64;
        self.snapshot_bytes = self.bytes;
        Ok(())
    }
}

/// A whole log that holds nothing but this state.
pub fn encode_snapshot(state: &State) -> Vec<u8> {
    let mut contents = header().to_vec();
    contents.extend_from_slice(&encode(&Record::Snapshot(state)));
    contents
}

/// What is appended for one batch.
pub fn encode_batch(batch: Vec<Timed>) -> Vec<u8> {
    encode(&Record::<State>::Commands(batch))
}

/// The beginning of every log.
pub fn header() -> [u8; HEADER_BYTES] {
    quorate_records::header(MAGIC, VERSION)
}

fn encode<S: Serialize>(record: &Record<S>) -> Vec<u8> {
    let payload = serde_json::to_vec(record).expect("commands and state serialise");
    assert!(
        payload.len() as u64 <= COORDINATOR_RECORD_BYTES_MAX,
        "a record of {} bytes",
        payload.len()
    );
    quorate_records::encode(&payload)
}

fn lock(data_dir: &Path) -> Result<File, LogError> {
    let path = data_dir.join("lock");
    let file = File::create(&path).map_err(|e| io_error("create", &path, e))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(std::fs::TryLockError::WouldBlock) => Err(LogError::InUse {
            path: data_dir.to_path_buf(),
        }),
        Err(std::fs::TryLockError::Error(e)) => Err(io_error("lock", &path, e)),
    }
}

/// Writes the file beside the old one, syncs it, renames it over, and syncs the folder.
fn replace(path: &Path, contents: &[u8]) -> Result<(), LogError> {
    let beside = path.with_extension("log.new");
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()?;
        std::fs::rename(&beside, path)?;
        File::open(path.parent().expect("a log lies in a folder"))?.sync_all()
    });
    written.map_err(|e| io_error("write", path, e))
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> LogError {
    LogError::Io {
        action,
        path: path.to_path_buf(),
        source,
    }
}
