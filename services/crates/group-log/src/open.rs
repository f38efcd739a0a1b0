//! Opening group logs: what the manifest covers is read and told, the rest is removed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Mutex, mpsc};

use quorate_journal::{Journal, Lsn};
use quorate_types::GroupId;

use crate::book::Book;
use crate::disk::Disk;
use crate::format::{KIND_HOLE, KIND_OWN_FROM, Place, Seal};
use crate::manifest::{Absent, Entry, Manifest};
use crate::store::{Core, Counters, GroupLogs};
use crate::walk::{Payload, Step, Walk};
use crate::worker::Worker;
use crate::{Event, Meaning, OpenError, Options};

/// What is found in a group's log, in order.
#[derive(Debug)]
pub enum Found<'a> {
    Record {
        lsn: Lsn,
        kind: u8,
        head: &'a [u8],
        /// Empty for a batch: only its length is known.
        payload: &'a [u8],
        place: Place,
    },
    /// Records are missing here that had been durable.
    Hole,
}

/// Group logs that were read, and take nothing yet.
pub struct Opened {
    disk: Disk,
    options: Options,
    lock: File,
    pair_file: PathBuf,
    manifest: Manifest,
    books: BTreeMap<GroupId, Book>,
    /// There were none before: the journal holds all there is.
    is_new: bool,
}

impl Opened {
    /// Reads the logs in `dir`, which is made if it is not there, and yields what they hold, group by group.
    /// `pair_file` remembers, beside the journal, which logs belong to it.
    pub fn open(
        dir: &Path,
        pair_file: &Path,
        options: Options,
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
            books: BTreeMap::new(),
            is_new,
            options,
            manifest,
        };
        for entry in &opened.manifest.groups {
            let book = opened.read_group(entry, &mut |found| visit(entry.group, found));
            opened.books.insert(entry.group, book);
        }
        opened.sweep().map_err(io("remove what is left over"))?;
        Ok(opened)
    }

    /// The journal's records up to this one were told by [`Opened::open`].
    pub fn copied_lsn(&self) -> Lsn {
        self.manifest.copied_lsn
    }

    pub fn is_new(&self) -> bool {
        self.is_new
    }

    fn read_group(&self, entry: &Entry, visit: &mut dyn FnMut(Found<'_>)) -> Book {
        let mut book = Book {
            next_number: entry.first_file,
            ..Book::default()
        };
        for number in entry.first_file..=entry.last_file {
            book.begin_file();
            let end = (number == entry.last_file).then_some(entry.end);
            if let Err(error) = self.read_file(entry.group, number, end, &mut book, visit) {
                tracing::error!(group = %entry.group, number, %error, "a file of a group log cannot be read");
                visit(Found::Hole);
            }
        }
        book.end = entry.end;
        book
    }

    /// `end` is known of the last file; those before it end where they end.
    fn read_file(
        &self,
        group: GroupId,
        number: u32,
        end: Option<u32>,
        book: &mut Book,
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
            // A first look without payload says whether it is to be read.
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
                    let oldest = book.files.back_mut().expect("a file was begun");
                    oldest.last_lsn = oldest.last_lsn.max(lsn);
                    if let Some((_, Meaning::Batch { index })) = classify(kind, head) {
                        oldest.last_index = oldest.last_index.max(index);
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

    /// Removes what an unfinished round or an unfinished removal has left.
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
            let Some(book) = self.books.get(&GroupId(id)) else {
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
                if !book.files.iter().any(|file| file.number == number) {
                    self.disk.remove(&path)?;
                }
            }
        }
        Ok(())
    }

    /// Starts copying from the journal, of which everything behind [`Opened::copied_lsn`] was read. `damages` are the
    /// lsns that could not be: their groups know, nobody will be asked for them.
    pub fn start(
        mut self,
        journal: Arc<Journal>,
        damages: Vec<std::ops::Range<Lsn>>,
        events: Arc<dyn Fn(Event) + Send + Sync>,
    ) -> Result<GroupLogs, OpenError> {
        if self.manifest.generation == 0 {
            // What the journal has released already is nowhere else.
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
        let worker = Worker::new(core.clone(), journal, events, self.books, self.manifest, damages);
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

/// Whether these are the logs that belong to the journal; which manifest counts, and whether all is new.
fn judge(
    dir: &Path,
    pair: Option<u64>,
    loaded: Result<Manifest, Absent>,
) -> Result<(Manifest, bool), OpenError> {
    let dir = dir.display();
    let begin = || Manifest {
        salt: rand::random(),
        ..Manifest::default()
    };
    match (pair, loaded) {
        (Some(salt), Ok(manifest)) if manifest.salt == salt => Ok((manifest, false)),
        (Some(_), Ok(_)) => Err(OpenError::Foreign(format!(
            "{dir} belongs to another server's journal; mount the right device, or see --group-logs-dir"
        ))),
        // Only the note beside the journal was missing yet.
        (None, Ok(manifest)) if manifest.groups.is_empty() => Ok((manifest, true)),
        (None, Ok(_)) => Err(OpenError::Foreign(format!(
            "{dir} holds group logs, but the data folder knows of none; empty {dir} if the data folder is new"
        ))),
        (_, Err(Absent::Damaged)) => Err(OpenError::Foreign(format!(
            "both copies of the manifest in {dir} are damaged; move the folder away, and the groups are learned anew \
             from other replicas"
        ))),
        (None, Err(Absent::New)) => Ok((begin(), true)),
        (Some(_), Err(Absent::New)) => {
            tracing::error!(%dir, "the group logs are gone; what they held is learned anew from other replicas");
            Ok((begin(), false))
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
