//! The coordinator's log on a disk: one file that is appended to, and rewritten as a snapshot now and then.
//!
//! A batch is one record, and is synced before any effect of it. A torn end is truncated. Damage stops the start: the
//! coordinator would forget groups that it promised.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use quorate_coordinator_core::command::Timed;
use quorate_coordinator_core::log::{
    BEGINNING_BYTES, MARK_BYTES, Mark, Recovered, encode_batch, encode_snapshot, header, scan,
};
use quorate_coordinator_core::state::CoordinatorState;
use quorate_types::limits::COORDINATOR_LOG_BYTES;

/// The log cannot be used: exit code 5, or 6 where its end is lost.
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
        "{} is damaged at byte {offset}: {problem}. Nothing was changed. Restore the file as it was last, or \
         restore the disk; starting without it would forget promised groups",
        path.display()
    )]
    Damaged {
        path: PathBuf,
        offset: u64,
        problem: String,
    },
    #[error(
        "{} has {whole} bytes of whole records, and had {synced} that were synced: it is an older copy, or its end is \
         damaged. Nothing was changed. Put the newer log in place; docs/operating/coordinator-behind.md says how",
        path.display()
    )]
    EndLost { path: PathBuf, whole: u64, synced: u64 },
}

/// The open log; it locks the data folder until it is dropped.
#[derive(Debug)]
pub struct DurableLog {
    path: PathBuf,
    file: File,
    bytes: u64,
    snapshot_bytes: u64,
    /// Records of batches since a snapshot was begun that is not in place yet.
    since_snapshot: Option<Vec<u8>>,
    /// Its first bytes, by which the mark knows it.
    beginning: Vec<u8>,
    mark: File,
    _lock: File,
}

/// A snapshot to be written beside the log, while that goes on.
#[derive(Debug)]
pub struct SnapshotBegun {
    path: PathBuf,
}

/// A snapshot that lies beside the log on stable storage.
#[derive(Debug)]
pub struct SnapshotWritten {
    file: File,
    bytes: u64,
    /// Its first bytes, by which the mark knows it.
    beginning: Vec<u8>,
}

impl SnapshotBegun {
    /// Writes the state as of the beginning; takes as long as its size demands.
    pub fn write(self, state: &CoordinatorState) -> Result<SnapshotWritten, LogError> {
        let contents = encode_snapshot(state);
        let written = File::create(&self.path).and_then(|mut file| {
            file.write_all(&contents)?;
            file.sync_all()?;
            Ok(file)
        });
        let file = written.map_err(|e| io_error("write", &self.path, e))?;
        let bytes = contents.len() as u64;
        let beginning = contents[..BEGINNING_BYTES].to_vec();
        Ok(SnapshotWritten {
            file,
            bytes,
            beginning,
        })
    }
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
        let mark = open_mark(data_dir)?;
        check_end(&path, &mark, &bytes, scanned.end)?;
        let file = OpenOptions::new()
            .append(true)
            .open(&path)
            .map_err(|e| io_error("open", &path, e))?;
        if scanned.recovered.cut_bytes > 0 {
            file.set_len(scanned.end)
                .and_then(|()| file.sync_all())
                .map_err(|e| io_error("truncate", &path, e))?;
        }
        let log = Self {
            path,
            file,
            bytes: scanned.end,
            snapshot_bytes: scanned.snapshot_bytes,
            since_snapshot: None,
            beginning: bytes[..bytes.len().min(BEGINNING_BYTES)].to_vec(),
            mark,
            _lock: lock,
        };
        Ok((log, scanned.recovered))
    }

    /// Appends one batch and waits until it is on stable storage.
    pub fn append(&mut self, batch: Vec<Timed>) -> Result<(), LogError> {
        let record = encode_batch(batch);
        let written = self.file.write_all(&record).and_then(|()| self.file.sync_data());
        written.map_err(|e| io_error("write to", &self.path, e))?;
        let lacking = BEGINNING_BYTES.saturating_sub(self.beginning.len());
        if lacking > 0 {
            self.beginning.extend_from_slice(&record[..lacking]);
        }
        self.bytes += record.len() as u64;
        if let Some(since) = &mut self.since_snapshot {
            since.extend_from_slice(&record);
        }
        self.write_mark();
        Ok(())
    }

    /// Whether the log has grown so much that a snapshot is worth its write, and none is being written.
    pub fn wants_snapshot(&self) -> bool {
        self.since_snapshot.is_none() && self.bytes > COORDINATOR_LOG_BYTES.max(2 * self.snapshot_bytes)
    }

    /// Begins a snapshot of the state that all appended batches have led to. Later batches go into the log as before.
    pub fn begin_snapshot(&mut self) -> SnapshotBegun {
        self.since_snapshot = Some(Vec::new());
        SnapshotBegun {
            path: beside(&self.path),
        }
    }

    /// Whether so much was appended since a snapshot was begun that it should be waited for.
    pub fn awaits_snapshot(&self) -> bool {
        let since = self.since_snapshot.as_ref();
        since.is_some_and(|records| records.len() as u64 > COORDINATOR_LOG_BYTES)
    }

    /// Puts a snapshot, with the batches since, in the place of the log; atomic by rename.
    pub fn put_in_place(&mut self, written: SnapshotWritten) -> Result<(), LogError> {
        let since = self.since_snapshot.take().expect("a snapshot was begun");
        let SnapshotWritten {
            mut file,
            bytes,
            beginning,
        } = written;
        let path = &self.path;
        let placed = file.write_all(&since).and_then(|()| {
            file.sync_all()?;
            move_over(path)
        });
        placed.map_err(|e| io_error("write", path, e))?;
        (self.file, self.snapshot_bytes) = (file, bytes);
        (self.bytes, self.beginning) = (bytes + since.len() as u64, beginning);
        self.write_mark();
        Ok(())
    }

    /// Replaces all logged commands by the state that they led to; atomic by rename.
    pub fn rewrite(&mut self, state: &CoordinatorState) -> Result<(), LogError> {
        let contents = encode_snapshot(state);
        replace(&self.path, &contents)?;
        self.file = OpenOptions::new()
            .append(true)
            .open(&self.path)
            .map_err(|e| io_error("open", &self.path, e))?;
        self.bytes = contents.len() as u64;
        self.snapshot_bytes = self.bytes;
        self.since_snapshot = None;
        self.beginning = contents[..BEGINNING_BYTES].to_vec();
        self.write_mark();
        Ok(())
    }

    /// Without it a start knows less, and servers still know more. So a failure is none of the log's.
    fn write_mark(&self) {
        if let Some(mark) = Mark::of(&self.beginning, self.bytes) {
            let _no_mark = self.mark.write_all_at(&mark.encode(), 0).is_err();
        }
    }
}

fn open_mark(data_dir: &Path) -> Result<File, LogError> {
    let path = data_dir.join("coordinator.mark");
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    options.open(&path).map_err(|e| io_error("open", &path, e))
}

/// Refuses a log whose whole records end before what the mark proves to have been synced.
fn check_end(path: &Path, mark: &File, bytes: &[u8], whole: u64) -> Result<(), LogError> {
    let mut known = [0; MARK_BYTES];
    let mark = mark
        .read_exact_at(&mut known, 0)
        .ok()
        .and_then(|()| Mark::decode(&known));
    let lost = mark.and_then(|mark| mark.lost_of(bytes, whole));
    lost.map_or(Ok(()), |synced| {
        Err(LogError::EndLost {
            path: path.to_path_buf(),
            whole,
            synced,
        })
    })
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
    let written = File::create(beside(path)).and_then(|mut file| {
        file.write_all(contents)?;
        file.sync_all()?;
        move_over(path)
    });
    written.map_err(|e| io_error("write", path, e))
}

fn beside(path: &Path) -> PathBuf {
    path.with_extension("log.new")
}

fn move_over(path: &Path) -> io::Result<()> {
    std::fs::rename(beside(path), path)?;
    File::open(path.parent().expect("a log lies in a folder"))?.sync_all()
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> LogError {
    LogError::Io {
        action,
        path: path.to_path_buf(),
        source,
    }
}
