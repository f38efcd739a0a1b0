//! A member's log on a disk: one file that is appended to, and rewritten as a snapshot now and then.
//!
//! Each write of the quorum is one record, and is synced before any effect of it. A torn end is truncated. Damage stops the
//! start: the coordinator would forget groups that it promised, or votes that it gave.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use quorate_coordinator_core::log::{
    BEGINNING_BYTES, Base, Contents, MARK_BYTES, Mark, encode_base, encode_base_of, encode_writes, header,
    scan,
};
use quorate_coordinator_core::state::CoordinatorState;
use quorate_quorum::{Entry, Members, Point, Snapshot, Write as QuorumWrite, WriteId};
use quorate_types::FleetId;
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
    /// The member, and its last vote. None: the log has no beginning yet.
    base: Option<Base>,
    bytes: u64,
    snapshot_bytes: u64,
    /// Records since the last snapshot was begun, while it is not in place yet.
    since_snapshot: Option<Vec<u8>>,
    snapshots_begun: u64,
    /// Its first bytes, by which the mark knows it.
    beginning: Vec<u8>,
    mark: File,
    _lock: File,
}

/// The contents of a log that was opened.
#[derive(Debug)]
pub struct Opened {
    pub contents: Contents,
    /// Bytes of a torn last record that were truncated.
    pub cut_bytes: u64,
}

/// A snapshot to be written beside the log, while that goes on.
#[derive(Debug)]
pub struct SnapshotBegun {
    number: u64,
    path: PathBuf,
    base: Base,
    /// The entries behind it that the log has.
    entries: Vec<Entry>,
}

/// A snapshot that lies beside the log on stable storage.
#[derive(Debug)]
pub struct SnapshotWritten {
    number: u64,
    file: File,
    base: Base,
    bytes: u64,
    snapshot_bytes: u64,
    /// Its first bytes, by which the mark knows it.
    beginning: Vec<u8>,
}

impl SnapshotBegun {
    /// Writes the state as of the beginning; takes as long as its size demands.
    pub fn write(self, state: &CoordinatorState) -> Result<SnapshotWritten, LogError> {
        let Self {
            number,
            path,
            base,
            entries,
        } = self;
        let mut contents = encode_base(&base, Some(state));
        let (snapshot_bytes, beginning) = (contents.len() as u64, contents[..BEGINNING_BYTES].to_vec());
        if !entries.is_empty() {
            contents.extend_from_slice(&encode_writes([&QuorumWrite {
                id: WriteId::default(),
                vote: None,
                snapshot: None,
                cut_after: None,
                entries,
            }]));
        }
        let written = File::create(&path).and_then(|mut file| {
            file.write_all(&contents)?;
            file.sync_all()?;
            Ok(file)
        });
        Ok(SnapshotWritten {
            number,
            file: written.map_err(|e| io_error("write", &path, e))?,
            base,
            bytes: contents.len() as u64,
            snapshot_bytes,
            beginning,
        })
    }
}

impl DurableLog {
    /// Opens or creates `coordinator.log` in the folder and reads it.
    pub fn open(data_dir: &Path) -> Result<(Self, Opened), LogError> {
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
        if scanned.cut_bytes > 0 {
            file.set_len(scanned.end)
                .and_then(|()| file.sync_all())
                .map_err(|e| io_error("truncate", &path, e))?;
        }
        let base = match &scanned.contents {
            Contents::Member(disk) => Some(Base {
                vote: disk.vote,
                ..disk.base.clone()
            }),
            Contents::Nothing | Contents::Former(_) => None,
        };
        let log = Self {
            path,
            file,
            base,
            bytes: scanned.end,
            snapshot_bytes: scanned.snapshot_bytes,
            since_snapshot: None,
            snapshots_begun: 0,
            beginning: bytes[..bytes.len().min(BEGINNING_BYTES)].to_vec(),
            mark,
            _lock: lock,
        };
        let opened = Opened {
            contents: scanned.contents,
            cut_bytes: scanned.cut_bytes,
        };
        Ok((log, opened))
    }

    /// Begins the log anew, in the place of what it has; atomic by rename. No state: an empty disk.
    pub fn begin(&mut self, base: Base, state: Option<&CoordinatorState>) -> Result<(), LogError> {
        let contents = encode_base(&base, state);
        self.replace(base, &contents)
    }

    /// The member has been taken in: the next snapshot is of this fleet.
    pub fn know_fleet(&mut self, fleet: FleetId) {
        let base = self.base.as_mut().expect("the log was begun");
        base.fleet.get_or_insert(fleet);
    }

    /// Appends writes of the quorum, in order, and waits until they are on stable storage.
    pub fn write(&mut self, writes: &[QuorumWrite]) -> Result<(), LogError> {
        let mut first = 0;
        for (number, write) in writes.iter().enumerate() {
            if let Some(vote) = write.vote {
                self.base.as_mut().expect("the log was begun").vote = vote;
            }
            if let Some(snapshot) = &write.snapshot {
                // It takes the place of everything before.
                self.install(snapshot)?;
                first = number + 1;
            }
        }
        self.append(&writes[first..])
    }

    fn append(&mut self, writes: &[QuorumWrite]) -> Result<(), LogError> {
        if writes.is_empty() {
            return Ok(());
        }
        let record = encode_writes(writes);
        let written = self.file.write_all(&record).and_then(|()| self.file.sync_data());
        written.map_err(|e| io_error("write to", &self.path, e))?;
        self.bytes += record.len() as u64;
        if let Some(since) = &mut self.since_snapshot {
            since.extend_from_slice(&record);
        }
        self.write_mark();
        Ok(())
    }

    /// A snapshot came from another member.
    fn install(&mut self, snapshot: &Snapshot) -> Result<(), LogError> {
        let base = Base {
            point: snapshot.base,
            members: snapshot.members.clone(),
            ..self.base.clone().expect("the log was begun")
        };
        let contents = encode_base_of(&base, &snapshot.contents);
        self.replace(base, &contents)
    }

    /// Whether the log has grown so much that a snapshot is worth its write, and none is being written.
    pub fn wants_snapshot(&self) -> bool {
        self.since_snapshot.is_none() && self.bytes > COORDINATOR_LOG_BYTES.max(2 * self.snapshot_bytes)
    }

    /// Begins a snapshot of the state there. `entries`: those behind it. Later writes go into the log as before.
    pub fn begin_snapshot(&mut self, point: Point, members: Members, entries: Vec<Entry>) -> SnapshotBegun {
        self.since_snapshot = Some(Vec::new());
        self.snapshots_begun += 1;
        SnapshotBegun {
            number: self.snapshots_begun,
            path: snapshot_of(&self.path),
            base: Base {
                point,
                members,
                ..self.base.clone().expect("the log was begun")
            },
            entries,
        }
    }

    /// Whether so much was appended since a snapshot was begun that it should be waited for.
    pub fn awaits_snapshot(&self) -> bool {
        let since = self.since_snapshot.as_ref();
        since.is_some_and(|records| records.len() as u64 > COORDINATOR_LOG_BYTES)
    }

    /// Puts a snapshot, with the records since, in the place of the log; atomic by rename. False: a later one was begun, or
    /// came from another member.
    pub fn put_in_place(&mut self, written: SnapshotWritten) -> Result<bool, LogError> {
        if written.number != self.snapshots_begun {
            return Ok(false);
        }
        let Some(since) = self.since_snapshot.take() else {
            return Ok(false);
        };
        let mut file = written.file;
        let path = &self.path;
        let placed = file.write_all(&since).and_then(|()| {
            file.sync_all()?;
            move_over(&snapshot_of(path), path)
        });
        placed.map_err(|e| io_error("write", path, e))?;
        let vote = self.base.as_ref().expect("the log was begun").vote;
        self.base = Some(Base { vote, ..written.base });
        (self.file, self.snapshot_bytes) = (file, written.snapshot_bytes);
        (self.bytes, self.beginning) = (written.bytes + since.len() as u64, written.beginning);
        self.write_mark();
        Ok(true)
    }

    /// The snapshot that the log begins with.
    pub fn newest_snapshot(&self) -> Result<Arc<Snapshot>, LogError> {
        let bytes = std::fs::read(&self.path).map_err(|e| io_error("read", &self.path, e))?;
        let damaged = |offset: usize, problem: String| LogError::Damaged {
            path: self.path.clone(),
            offset: offset as u64,
            problem,
        };
        let scanned = scan(&bytes).map_err(|(offset, problem)| damaged(offset, problem))?;
        let Contents::Member(disk) = scanned.contents else {
            return Err(damaged(0, "it has no beginning any more".into()));
        };
        let contents = disk.state.ok_or_else(|| damaged(0, "it has no state".into()))?;
        Ok(Arc::new(Snapshot {
            base: disk.base.point,
            members: disk.base.members,
            contents,
        }))
    }

    /// Writes the file beside the old one, and puts it in its place.
    fn replace(&mut self, base: Base, contents: &[u8]) -> Result<(), LogError> {
        replace(&self.path, contents)?;
        self.file = OpenOptions::new()
            .append(true)
            .open(&self.path)
            .map_err(|e| io_error("open", &self.path, e))?;
        self.base = Some(base);
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
        move_over(&beside(path), path)
    });
    written.map_err(|e| io_error("write", path, e))
}

fn beside(path: &Path) -> PathBuf {
    path.with_extension("log.new")
}

/// Another name: the log may be replaced while a snapshot is written.
fn snapshot_of(path: &Path) -> PathBuf {
    path.with_extension("log.snapshot")
}

fn move_over(from: &Path, path: &Path) -> io::Result<()> {
    std::fs::rename(from, path)?;
    File::open(path.parent().expect("a log lies in a folder"))?.sync_all()
}

fn io_error(action: &'static str, path: &Path, source: io::Error) -> LogError {
    LogError::Io {
        action,
        path: path.to_path_buf(),
        source,
    }
}
