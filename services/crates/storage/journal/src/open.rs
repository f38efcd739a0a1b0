//! Opening a journal: lock, scan, truncate a torn end, continue behind the last record.

use std::collections::VecDeque;
use std::fs::File;
use std::path::Path;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex, mpsc};
use std::thread::JoinHandle;

use crate::core::{Core, Counters};
use crate::direct::DirectFile;
use crate::disk::Disk;
use crate::errors::OpenError;
use crate::handle::{Journal, Parts};
use crate::janitor::Janitor;
use crate::jobs::{Job, Jobs};
use crate::options::JournalOptions;
use crate::pages::Pages;
use crate::queue::Queue;
use crate::record::{JournalRecord, PAGE_BYTES, SEGMENT_HEAD_BYTES};
use crate::scan::{self, End, Head, Recovery, Scanned, SegmentFile};
use crate::segment::{self, Name, Segment, Table};
use crate::source::{Source, read_around};
use crate::writer::{self, Writer};

/// Read and written at once when a journal is opened.
const REWRITE_BYTES: u64 = 1 << 20;

impl Journal {
    /// Opens or creates the journal in `dir`, yields every intact record in order, and starts writing behind them.
    /// Blocks during the scan (about 1 s per GB).
    pub fn open(
        dir: &Path,
        options: JournalOptions,
        mut visit: impl FnMut(JournalRecord<'_>),
    ) -> Result<(Journal, Recovery), OpenError> {
        options.validate()?;
        let lock = lock(dir)?;
        let disk = Disk::new(dir, options.faults.clone());
        let (found, mut spares, next_number) = list(&disk).map_err(io("list segments"))?;
        let mut scanned = scan::scan(&found, &mut visit).map_err(io("read segments"))?;
        if scanned.heads.iter().all(|head| *head == Head::Unused) {
            scanned.recovery.next_lsn = scanned.recovery.next_lsn.max(options.first_lsn);
        }
        let Scanned { recovery, heads, end } = scanned;
        let table = Table::default();
        let found = found.into_iter().zip(heads);
        let resumed =
            adopt(&disk, &options, &table, found, end, &mut spares).map_err(io("adopt segments"))?;
        let mut janitor = Janitor::new(disk.clone(), options.clone(), spares, next_number);
        let (current, position, entered) = match resumed {
            Some((current, position)) => (current, position, Vec::new()),
            None => {
                let fresh = janitor.prepare_now().map_err(io("prepare a segment"))?;
                (fresh.clone(), SEGMENT_HEAD_BYTES, vec![fresh])
            }
        };
        let fill = position >= options.segment_bytes / 4;
        let (jobs, inbox) = Jobs::new();
        // The last records found may lack a mark.
        let is_unmarked = table.len() > 0 && options.mark_after.is_some();
        let durable_lsn = recovery.next_lsn - 1;
        let core = Core {
            options,
            disk,
            table,
            queue: Mutex::new(Queue::new(
                recovery.next_lsn,
                current,
                position,
                entered,
                is_unmarked,
            )),
            wake_writer: Condvar::new(),
            jobs,
            pages: Mutex::new(()),
            counters: Counters {
                durable_lsn: AtomicU64::new(durable_lsn),
                ..Counters::default()
            },
        };
        let parts = Arc::new(Parts {
            core,
            writer: Mutex::new(Writer::new(durable_lsn)),
        });
        let threads = spawn(&parts, janitor, inbox).map_err(io("start the journal's threads"))?;
        parts.core.jobs.send(if fill { Job::Fill } else { Job::Prepare });
        Ok((
            Journal {
                parts,
                threads,
                _lock: lock,
            },
            recovery,
        ))
    }
}

/// A segment file, read through the fault hook.
struct OpenFile {
    disk: Disk,
    file: DirectFile,
    bytes: u64,
}

impl Source for OpenFile {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> std::io::Result<()> {
        self.disk.read_at(&self.file, buffer, position)
    }
}

fn io(what: &'static str) -> impl Fn(std::io::Error) -> OpenError {
    move |source| OpenError::Io { what, source }
}

fn lock(dir: &Path) -> Result<File, OpenError> {
    std::fs::create_dir_all(dir).map_err(io("create it"))?;
    let lock = File::create(dir.join(segment::LOCK_NAME)).map_err(io("create the lock file"))?;
    lock.try_lock().map_err(|error| match error {
        std::fs::TryLockError::WouldBlock => OpenError::Locked(dir.to_owned()),
        std::fs::TryLockError::Error(source) => OpenError::Io { what: "lock", source },
    })?;
    Ok(lock)
}

/// Puts the segments found into the table; answers segment and position of the next write, if any.
/// Segments whose heads are lost stay in place, for inspection.
fn adopt(
    disk: &Disk,
    options: &JournalOptions,
    table: &Table,
    found: impl Iterator<Item = (SegmentFile<OpenFile>, Head)>,
    end: Option<End>,
    spares: &mut VecDeque<u32>,
) -> std::io::Result<Option<(Arc<Segment>, u64)>> {
    let mut resumed = None;
    for (file, head) in found {
        match head {
            Head::Unused => {
                disk.rename(
                    &segment::segment_name(file.number),
                    &segment::spare_name(file.number),
                )?;
                spares.push_back(file.number);
            }
            Head::Lost => {}
            Head::Begun(head) => {
                let begun = Arc::new(Segment {
                    number: file.number,
                    salt: head.salt,
                    file: file.source.file,
                    contents: Mutex::default(),
                });
                table.begin(begun.clone(), head.first_lsn);
                if let Some(end) = end.filter(|end| end.segment == file.number) {
                    complete(disk, &begun, file.source.bytes, &end, options)?;
                    // A killed process leaves records in the page cache or the device's. They count as durable from
                    // here on, so they have to be.
                    write_again(disk, &begun.file, &end)?;
                    disk.sync(&begun.file)?;
                    resumed = Some((begun, end.position));
                }
            }
        }
    }
    Ok(resumed)
}

fn spawn(
    parts: &Arc<Parts>,
    janitor: Janitor,
    inbox: mpsc::Receiver<Job>,
) -> std::io::Result<Vec<JoinHandle<()>>> {
    let (for_writer, for_janitor) = (parts.clone(), parts.clone());
    let writer = std::thread::Builder::new()
        .name("journal".into())
        .spawn(move || writer::run(&for_writer.core, &for_writer.writer))?;
    let janitor = std::thread::Builder::new()
        .name("journal-janitor".into())
        .spawn(move || janitor.run(&for_janitor.core, &inbox))?;
    Ok(vec![writer, janitor])
}

/// The segment files of the directory in order of use, spare ones, and the next free number.
fn list(disk: &Disk) -> std::io::Result<(Vec<SegmentFile<OpenFile>>, VecDeque<u32>, u32)> {
    let (mut numbers, mut spares) = (Vec::new(), Vec::new());
    for entry in std::fs::read_dir(&disk.dir)? {
        let name = entry?.file_name();
        match segment::parse_name(&name.to_string_lossy()) {
            Name::Segment(number) => numbers.push(number),
            Name::Spare(number) => spares.push(number),
            Name::Other if name == segment::NEW_NAME => disk.remove(segment::NEW_NAME)?,
            Name::Other => {}
        }
    }
    numbers.sort_unstable();
    spares.sort_unstable();
    let next_number = numbers.iter().chain(&spares).max().map_or(1, |number| number + 1);
    let mut found = Vec::with_capacity(numbers.len());
    for number in numbers {
        let file = disk.open(&segment::segment_name(number))?;
        let bytes = file.bytes()?;
        let disk = disk.clone();
        let source = OpenFile { disk, file, bytes };
        found.push(SegmentFile { number, source });
    }
    Ok((found, spares.into(), next_number))
}

/// Writes what no sync is known to have reached. After a failed sync the kernel may take pages for written that it could
/// not write: the next sync would not try again.
fn write_again(disk: &Disk, file: &DirectFile, end: &End) -> std::io::Result<()> {
    let to = end.position.next_multiple_of(PAGE_BYTES);
    let source = Reading {
        disk,
        file,
        bytes: to,
    };
    let mut pages = Pages::new();
    let mut at = end.proven_to - end.proven_to % PAGE_BYTES;
    while at < end.position {
        let len = (to - at).min(REWRITE_BYTES);
        pages.resize(len as usize, 0);
        pages.truncate(len as usize);
        read_around(&source, &mut pages, at)?;
        disk.write_pages(file, &pages, at)?;
        at += len;
    }
    Ok(())
}

/// A segment file that is open already.
struct Reading<'a> {
    disk: &'a Disk,
    file: &'a DirectFile,
    bytes: u64,
}

impl Source for Reading<'_> {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, buffer: &mut [u8], position: u64) -> std::io::Result<()> {
        self.disk.read_at(self.file, buffer, position)
    }
}

/// Completes the segment of the next write: full length, and nothing behind the end that a later scan could take for
/// a record.
fn complete(
    disk: &Disk,
    segment: &Segment,
    bytes: u64,
    end: &End,
    options: &JournalOptions,
) -> std::io::Result<()> {
    if bytes < options.segment_bytes {
        disk.fill(&segment.file, bytes..options.segment_bytes)?;
    }
    if end.wipe_to > end.position {
        disk.fill(&segment.file, end.position..end.wipe_to)?;
    }
    Ok(())
}
