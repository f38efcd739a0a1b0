//! Opening group logs: everything that the manifest covers is read and yielded, the rest is removed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, mpsc};

use quorate_journal::{Journal, Lsn};
use quorate_types::GroupId;

use crate::core::{Core, Counters};
use crate::disk::Disk;
use crate::errors::OpenError;
use crate::events::Event;
use crate::format::{KIND_HOLE, KIND_OWN_FROM, LogLocation, Seal};
use crate::group_files::GroupFiles;
use crate::groups::Groups;
use crate::handle::GroupLogs;
use crate::manifest::{Absent, Entry, Manifest};
use crate::options::{GroupLogOptions, Meaning};
use crate::walk::{Payload, Step, Walk};
use crate::worker::Worker;

/// An item of a group's log, yielded in order.
#[derive(Debug)]
pub enum Found<'a> {
    Record {
        lsn: Lsn,
        kind: u8,
        head: &'a [u8],
        /// Empty for a batch: only its length is known.
        payload: &'a [u8],
        place: LogLocation,
    },
    /// Durable records are missing here.
    Hole,
}

/// Group logs that were read, before copying starts.
pub struct Opened {
    disk: Disk,
    options: GroupLogOptions,
    lock: File,
    pair_file: PathBuf,
    manifest: Manifest,
    groups: BTreeMap<GroupId, GroupFiles>,
    /// There were none before: the journal holds everything.
    is_new: bool,
}

impl Opened {
    /// Reads the logs in `dir`, which is created if it is missing, and yields their records, group by group.
    /// `pair_file`, beside the journal, notes which logs belong to it.
    pub fn open(
        dir: &Path,
        pair_file: &Path,
        options: GroupLogOptions,
        mut visit: impl FnMut(GroupId, Found<'_>),
    ) -> Result<Opened, OpenError> {
        let lock = lock(dir)?;
        let disk = Disk::new(dir, options.faults.clone());
        let pair = read_pair(pair_file).map_err(io("read which group logs are the journal's"))?;
        let loaded = Manifest::load(&disk).map_err(io("read the manifest"))?;
        let (manifest, is_new) = judge(dir, pair, loaded)?;
        let mut opened = Opened {
            disk,
            lock,
            pair_file: pair_file.to_owned(),
            groups: BTreeMap::new(),
            is_new,
            options,
            manifest,
        };
        for entry in &opened.manifest.groups {
            let files = opened.read_group(entry, &mut |found| visit(entry.group, found));
            opened.groups.insert(entry.group, files);
        }
        opened.sweep().map_err(io("remove left-over files"))?;
        Ok(opened)
    }

    /// The journal's records up to this one were yielded by [`Opened::open`].
    pub fn copied_lsn(&self) -> Lsn {
        self.manifest.copied_lsn
    }

    pub fn is_new(&self) -> bool {
        self.is_new
    }

    fn read_group(&self, entry: &Entry, visit: &mut dyn FnMut(Found<'_>)) -> GroupFiles {
        let mut files = GroupFiles {
            next_number: entry.first_file,
            ..GroupFiles::default()
        };
        for number in entry.first_file..=entry.last_file {
            files.begin_file();
            let end = (number == entry.last_file).then_some(entry.end);
            if let Err(error) = self.read_file(entry.group, number, end, &mut files, visit) {
                tracing::error!(group = %entry.group, number, %error, "a file of a group log cannot be read");
                visit(Found::Hole);
            }
        }
        files.end = entry.end;
        files
    }

    /// `end` is given for the last file; the others are read to their ends.
    fn read_file(
        &self,
        group: GroupId,
        number: u32,
        end: Option<u32>,
        files: &mut GroupFiles,
        visit: &mut dyn FnMut(Found<'_>),
    ) -> io::Result<()> {
        let file = self.disk.open(&self.disk.path(group, number))?;
        let end = end.unwrap_or_else(|| u32::try_from(file_bytes(&file)).unwrap_or(u32::MAX));
        let mut walk = Walk::new(file, Seal::new(self.manifest.salt, group, number), number, end);
        let classify = self.options.classify;
        let is_batch =
            |kind: u8, head: &[u8]| matches!(classify(kind, head), Some((_, Meaning::Batch { .. })));
        loop {
            let at = walk.position();
            // A first look without payload shows whether to read it.
            match walk.next(|_| false)? {
                None => return Ok(()),
                Some(Step::Hole { .. } | Step::Record { kind: KIND_HOLE, .. }) => {
                    visit(Found::Hole);
                    continue;
                }
                Some(Step::Record { kind, .. }) if kind >= KIND_OWN_FROM => continue,
                Some(Step::Record {
                    lsn,
                    kind,
                    head,
                    place,
                    ..
                }) => {
                    let reach = files.files.back_mut().expect("a file was begun");
                    reach.last_lsn = reach.last_lsn.max(lsn);
                    if let Some((_, Meaning::Batch { index })) = classify(kind, head) {
                        reach.last_index = reach.last_index.max(index);
                    }
                    if is_batch(kind, head) {
                        visit(Found::Record {
                            lsn,
                            kind,
                            head,
                            payload: &[],
                            place,
                        });
                        continue;
                    }
                }
            }
            walk.go_to(at);
            match walk.next(|_| true)? {
                Some(Step::Record {
                    lsn,
                    kind,
                    head,
                    payload: Payload::Sound(payload),
                    place,
                }) => {
                    visit(Found::Record {
                        lsn,
                        kind,
                        head,
                        payload,
                        place,
                    });
                }
                _ => visit(Found::Hole),
            }
        }
    }

    /// Removes the files that an unfinished copy pass or removal has left.
    fn sweep(&self) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.disk.dir)? {
            let path = entry?.path();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let Ok(id) = name.parse::<uuid::Uuid>() else {
                continue;
            };
            let Some(files) = self.groups.get(&GroupId(id)) else {
                self.disk.remove(&path)?;
                continue;
            };
            for file in std::fs::read_dir(&path)? {
                let path = file?.path();
                let name = path
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                let number = u32::from_str_radix(&name, 16).unwrap_or(0);
                if !files.files.iter().any(|file| file.number == number) {
                    self.disk.remove(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Starts copying from the journal. The caller has read everything in it behind [`Opened::copied_lsn`], except
    /// `damages`: the groups know of these lsns, and the thread asks for none of them.
    pub fn start(
        mut self,
        journal: Arc<Journal>,
        damages: Vec<std::ops::Range<Lsn>>,
        events: Arc<dyn Fn(Event) + Send + Sync>,
    ) -> Result<GroupLogs, OpenError> {
        if self.manifest.generation == 0 {
            // Records that the journal has already released are nowhere else.
            self.manifest.copied_lsn = journal.first_lsn().map_or(0, |first| first - 1);
            self.manifest.generation = 1;
            self.manifest
                .store(&self.disk)
                .map_err(io("write the manifest"))?;
        }
        write_pair(&self.disk, &self.pair_file, self.manifest.salt)
            .map_err(io("note which group logs are the journal's"))?;
        let core = Arc::new(Core {
            disk: self.disk,
            salt: self.manifest.salt,
            options: self.options,
            is_stopping: AtomicBool::new(false),
            pages: Mutex::new(()),
            counters: Counters {
                copied_lsn: AtomicU64::new(self.manifest.copied_lsn),
                ..Counters::default()
            },
        });
        let (jobs, inbox) = mpsc::channel();
        let groups = Groups::new(self.groups);
        let worker = Worker::new(core.clone(), journal, events, groups, &self.manifest, damages);
        let thread = std::thread::Builder::new()
            .name("group-logs".into())
            .spawn(move || worker.run(&inbox))
            .map_err(io("start the thread"))?;
        Ok(GroupLogs {
            core,
            jobs: Mutex::new(jobs),
            thread: Some(thread),
            _lock: self.lock,
        })
    }
}

fn io(what: &'static str) -> impl Fn(io::Error) -> OpenError {
    move |source| OpenError::Io { what, source }
}

fn file_bytes(file: &impl quorate_journal::Source) -> u64 {
    file.bytes()
}

fn lock(dir: &Path) -> Result<File, OpenError> {
    std::fs::create_dir_all(dir).map_err(io("create the folder"))?;
    let lock = File::create(dir.join("LOCK")).map_err(io("create the lock file"))?;
    lock.try_lock().map_err(|error| match error {
        std::fs::TryLockError::WouldBlock => OpenError::Locked(dir.to_owned()),
        std::fs::TryLockError::Error(source) => OpenError::Io { what: "lock", source },
    })?;
    Ok(lock)
}

/// Judges whether these logs belong to the journal; answers the manifest that counts, and whether all is new.
fn judge(
    dir: &Path,
    pair: Option<u64>,
    loaded: Result<Manifest, Absent>,
) -> Result<(Manifest, bool), OpenError> {
    let dir = dir.display();
    let new = || Manifest {
        salt: rand::random(),
        ..Manifest::default()
    };
    match (pair, loaded) {
        (Some(salt), Ok(manifest)) if manifest.salt == salt => Ok((manifest, false)),
        (Some(_), Ok(_)) => Err(OpenError::Mismatched(format!(
            "{dir} belongs to another server's journal; mount the right device, or see --group-logs-dir"
        ))),
        // The first start ended before it wrote the note beside the journal.
        (None, Ok(manifest)) if manifest.groups.is_empty() => Ok((manifest, true)),
        (None, Ok(_)) => Err(OpenError::Mismatched(format!(
            "{dir} holds group logs, but the data folder knows of none; empty {dir} if the data folder is new"
        ))),
        (_, Err(Absent::Damaged)) => Err(OpenError::Mismatched(format!(
            "both copies of the manifest in {dir} are damaged; move the folder away, and the groups then learn \
             their entries from other replicas"
        ))),
        (None, Err(Absent::New)) => Ok((new(), true)),
        (Some(_), Err(Absent::New)) => {
            tracing::error!(%dir, "the group logs are gone; their groups learn the entries from other replicas");
            Ok((new(), false))
        }
    }
}

fn read_pair(path: &Path) -> io::Result<Option<u64>> {
    match std::fs::read_to_string(path) {
        Ok(text) => u64::from_str_radix(text.trim(), 16)
            .map(Some)
            .map_err(|_| io::Error::other(format!("{} is malformed", path.display()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn write_pair(disk: &Disk, path: &Path, salt: u64) -> io::Result<()> {
    if read_pair(path)? == Some(salt) {
        return Ok(());
    }
    let new = path.with_extension("new");
    disk.write(&new, format!("{salt:016x}\n").as_bytes())?;
    disk.sync(&new)?;
    disk.rename(&new, path)?;
    disk.sync_dir(path.parent().unwrap_or(Path::new(".")))
}
