//! One round: records of sealed segments, sorted by group, written, synced, noted; then the segments are released.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use quorate_journal::record::{KIND_MARK, PAGE_BYTES};
use quorate_journal::{Image, Lsn, Reach, Record, Sealed, Step};
use quorate_types::{GroupId, Index};
use uuid::Uuid;

use crate::book::Book;
use crate::format::{self, FILE_HEAD_BYTES, Header, KIND_HOLE, Place};
use crate::store::Core;
use crate::worker::Worker;
use crate::{Answer, Event, Meaning, Rescued};

/// Memory kept for what waits: a first touch of it is dear.
const SPARE_BYTES_MAX: usize = 16 << 20;
/// While lost records are waited for, how often it is looked whether to stop.
const RESCUE_LOOK: Duration = Duration::from_millis(500);
/// Full segments that may be due while copying keeps to its rate. With each further one the rate doubles.
const SEGMENTS_CALM: usize = 2;
/// With so many due there is no rate.
const SEGMENTS_HURRY: usize = 6;
const PACE_BYTES: u64 = 256 << 10;

impl Worker {
    /// Copies the next records, if there are segments that are due; answers whether there were. After an error everything is
    /// as before, but for bytes behind what counts.
    pub fn round(&mut self) -> io::Result<bool> {
        let mut sealed = self.journal.sealed_from(self.copied_lsn + 1);
        sealed.truncate(self.due(&sealed));
        if sealed.is_empty() {
            return Ok(false);
        }
        let is_passed = |segment: &Sealed| self.passed(segment).is_some();
        let is_read = |segment: &&Sealed| !is_passed(segment);
        if let Err(error) = self.check_space(sealed.iter().filter(is_read).map(Sealed::bytes).sum()) {
            // What takes no space gives the journal some.
            let free = sealed.iter().take_while(|segment| is_passed(segment)).count();
            if free == 0 {
                return Err(error);
            }
            sealed.truncate(free);
        }
        let spare = std::mem::take(&mut self.spare);
        let mut round = Round::new(self.core.clone(), sealed.len(), spare);
        let outcome = round.copy(self, sealed).and_then(|()| round.sync());
        self.spare = std::mem::take(&mut round.spare);
        if let Err(error) = outcome {
            round.undo(&mut self.books);
            return Err(error);
        }
        let path = |(group, number): (GroupId, u32)| self.core.disk.path(group, number);
        let void: Vec<PathBuf> = round.void.drain(..).map(path).collect();
        if let Err(error) = self.note(round.through) {
            // Whether the new manifest counts after a crash is open; in this process it does not.
            round.undo(&mut self.books);
            return Err(error);
        }
        self.remove(void);
        let counters = &self.core.counters;
        counters
            .records
            .fetch_add(round.records as u64, Ordering::Relaxed);
        counters.bytes_written.fetch_add(round.written, Ordering::Relaxed);
        for (group, records) in std::mem::take(&mut round.moved) {
            (self.events)(Event::Moved { group, records });
        }
        if round.is_incomplete {
            (self.events)(Event::Incomplete { group: None });
        }
        self.journal.release_before(round.through + 1);
        Ok(true)
    }

    /// How many of the full segments are to be copied now, from the oldest on: all, if the journal has no space left.
    fn due(&mut self, sealed: &[Sealed]) -> usize {
        let options = &self.core.options;
        let now = Instant::now();
        let before = std::mem::take(&mut self.waiting_since);
        self.waiting_since = sealed
            .iter()
            .map(|segment| segment.first_lsn)
            .map(|lsn| (lsn, before.get(&lsn).copied().unwrap_or(now)))
            .collect();
        let is_old = |since: &&Instant| now.duration_since(**since) >= options.keep_for;
        let old = self.waiting_since.values().take_while(is_old).count();
        if self.journal.is_disk_full() {
            return sealed.len();
        }
        old.max(sealed.len().saturating_sub(options.keep_segments))
    }

    /// The groups of a segment of which nobody needs anything any more.
    fn passed(&self, segment: &Sealed) -> Option<Vec<GroupId>> {
        let reaches = segment.reaches()?;
        let group_of = |owner: u128| GroupId(Uuid::from_u128(owner));
        let is_trimmed = |(owner, reach): &(u128, Reach)| {
            self.is_trimmed(group_of(*owner), reach.last_place, reach.last_lsn)
        };
        let owners = reaches.iter().map(|(owner, _)| group_of(*owner));
        reaches.iter().all(is_trimmed).then(|| owners.collect())
    }

    /// Whether a durable base covers this record, and all that the group's log has before it: then it is the log's
    /// beginning that is left out, as when files are trimmed. `index`: of a batch, else 0.
    fn is_trimmed(&self, group: GroupId, index: Index, lsn: Lsn) -> bool {
        let Some((base_index, base_lsn)) = self.bases.get(&group).copied() else {
            return false;
        };
        let is_covered = |book: &Book| book.is_covered(base_index, base_lsn);
        index <= base_index && lsn < base_lsn && self.books.get(&group).is_none_or(is_covered)
    }

    fn check_space(&self, waiting_bytes: u64) -> io::Result<()> {
        let options = &self.core.options;
        if waiting_bytes == 0 {
            return Ok(());
        }
        let needed = options.reserve_bytes + waiting_bytes.min(options.round_bytes);
        let free = self.core.disk.free_bytes()?;
        if free < needed {
            let mib = |bytes: u64| bytes >> 20;
            return Err(io::Error::other(format!(
                "the device of the group logs has {} MiB left and {} are needed; free space there, or trim groups",
                mib(free),
                mib(needed)
            )));
        }
        Ok(())
    }
}

/// The state of one round, until it is noted.
struct Round {
    core: Arc<Core>,
    /// The last record that was taken.
    through: Lsn,
    records: usize,
    read: u64,
    written: u64,
    pending: BTreeMap<GroupId, Pending>,
    pending_bytes: usize,
    /// Memory of what was written, to be used again.
    spare: Spare,
    dirty: BTreeSet<(GroupId, u32)>,
    new_files: BTreeSet<GroupId>,
    /// Files that are full, with their lengths.
    closed: Vec<(GroupId, u32, u32)>,
    /// Files whose group was dropped in this round.
    void: Vec<(GroupId, u32)>,
    moved: BTreeMap<GroupId, Vec<(Lsn, Place)>>,
    /// The books as they were before.
    before: BTreeMap<GroupId, Option<Book>>,
    is_incomplete: bool,
    pace: Pace,
}

/// Bytes to be written to a group's last file.
struct Pending {
    file: u32,
    image: Image,
    moved: Vec<(Lsn, Place)>,
}

impl Pending {
    fn new(file: u32, image: Image) -> Self {
        Self {
            file,
            image,
            moved: Vec::new(),
        }
    }

    fn bytes(&self) -> usize {
        (self.image.end() - self.image.written()) as usize
    }
}

/// Memory in which records waited before.
#[derive(Default)]
pub(crate) struct Spare {
    images: Vec<Image>,
    bytes: usize,
}

impl Spare {
    /// One that goes on at `position`. What the page holds before that is read when it is written.
    fn image(&mut self, position: u32) -> Image {
        let page = [0; PAGE_BYTES as usize];
        let before = &page[..(u64::from(position) % PAGE_BYTES) as usize];
        let Some(mut image) = self.images.pop() else {
            return Image::new(u64::from(position), before);
        };
        self.bytes -= image.capacity();
        image.go_to(u64::from(position), before);
        image
    }

    fn take_back(&mut self, image: Image) {
        if self.bytes + image.capacity() <= SPARE_BYTES_MAX {
            self.bytes += image.capacity();
            self.images.push(image);
        }
    }
}

/// One record on its way.
struct Copied<'a> {
    lsn: Lsn,
    kind: u8,
    head: &'a [u8],
    payload: &'a [u8],
    payload_crc: u32,
}

impl Round {
    fn new(core: Arc<Core>, waiting: usize, spare: Spare) -> Self {
        let pace = Pace::new(core.options.copy_bytes_per_s, waiting);
        Self {
            core,
            through: 0,
            records: 0,
            read: 0,
            written: 0,
            pending: BTreeMap::new(),
            pending_bytes: 0,
            spare,
            dirty: BTreeSet::new(),
            new_files: BTreeSet::new(),
            closed: Vec::new(),
            void: Vec::new(),
            moved: BTreeMap::new(),
            before: BTreeMap::new(),
            is_incomplete: false,
            pace,
        }
    }

    fn copy(&mut self, worker: &mut Worker, sealed: Vec<Sealed>) -> io::Result<()> {
        self.through = worker.copied_lsn;
        for segment in sealed {
            if self.pass(worker, &segment) {
                continue;
            }
            let mut walk = segment.walk();
            while let Some(step) = walk.next()? {
                // Between segments: one of them is lost, or the journal was gone and goes on behind what it had.
                let next_lsn = match &step {
                    Step::Record(record) => record.lsn,
                    Step::Hole { first_lsn, .. } => *first_lsn,
                };
                if self.through > 0 && next_lsn > self.through + 1 {
                    self.cross(worker, self.through + 1..next_lsn)?;
                    self.through = next_lsn - 1;
                }
                match step {
                    Step::Record(record) if record.lsn <= self.through => {}
                    Step::Record(record) if record.kind == KIND_MARK => self.through = record.lsn,
                    Step::Record(record) => {
                        self.take(worker, &record)?;
                        self.through = record.lsn;
                        self.read += u64::from(record.location.len);
                        self.pace.keep(&self.core, u64::from(record.location.len))?;
                    }
                    Step::Hole { end_lsn, .. } if end_lsn <= self.through + 1 => {}
                    Step::Hole { first_lsn, end_lsn } => {
                        self.cross(worker, first_lsn.max(self.through + 1)..end_lsn)?;
                        self.through = end_lsn - 1;
                    }
                }
                let is_full = self.read >= self.core.options.round_bytes
                    || self.records >= self.core.options.round_records;
                if is_full {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Goes over a hole of the journal: one that the groups know of from the start is marked in their logs; for
    /// another, those who may have the records are asked.
    fn cross(&mut self, worker: &mut Worker, lsns: Range<Lsn>) -> io::Result<()> {
        if worker
            .known_holes
            .iter()
            .any(|known| known.start < lsns.end && lsns.start < known.end)
        {
            let groups: Vec<GroupId> = worker.books.keys().copied().collect();
            for group in groups {
                let hole = Copied {
                    lsn: lsns.start,
                    kind: KIND_HOLE,
                    head: &[],
                    payload: &[],
                    payload_crc: 0,
                };
                self.append(&mut worker.books, group, hole)?;
            }
            return Ok(());
        }
        tracing::error!(
            ?lsns,
            "the journal is damaged where it is to be copied; asking for what is lost"
        );
        let (answer, answers) = mpsc::channel();
        (worker.events)(Event::Lost {
            lsns: lsns.clone(),
            answer,
        });
        let mut rescued = self.rescued(&answers)?;
        rescued.sort_by_key(|one| one.lsn);
        rescued.dedup_by_key(|one| one.lsn);
        self.is_incomplete |= (rescued.len() as u64) < lsns.end - lsns.start;
        for one in &rescued {
            let missing;
            let (payload, payload_crc) = match &one.payload {
                Ok(payload) => (&payload[..], crc32fast::hash(payload)),
                Err(len) => {
                    missing = vec![0; *len as usize];
                    // A checksum that it has not: whoever reads it knows that it is not the payload.
                    (&missing[..], !crc32fast::hash(&missing))
                }
            };
            let copied = Copied {
                lsn: one.lsn,
                kind: one.kind,
                head: &one.head,
                payload,
                payload_crc,
            };
            self.append(&mut worker.books, one.group, copied)?;
        }
        Ok(())
    }

    fn rescued(&self, answers: &mpsc::Receiver<Answer>) -> io::Result<Vec<Rescued>> {
        let timeout = self.core.options.rescue_timeout;
        let mut deadline = Instant::now() + timeout;
        let (mut rescued, mut done) = (Vec::new(), 0);
        while done < self.core.options.answerers {
            if self.core.is_stopping.load(Ordering::Acquire) {
                return Err(io::Error::other("stopping"));
            }
            let wait = deadline.saturating_duration_since(Instant::now());
            match answers.recv_timeout(wait.min(RESCUE_LOOK)) {
                Ok(Answer::Record(one)) => {
                    rescued.push(one);
                    deadline = Instant::now() + timeout;
                }
                Ok(Answer::Done) => done += 1,
                Err(mpsc::RecvTimeoutError::Timeout) if Instant::now() < deadline => {}
                Err(_) => {
                    return Err(io::Error::other(
                        "lost records of the journal were not brought in time",
                    ));
                }
            }
        }
        Ok(rescued)
    }

    fn take(&mut self, worker: &mut Worker, record: &Record<'_>) -> io::Result<()> {
        let Some((group, meaning)) = (self.core.options.classify)(record.kind, record.head) else {
            return Err(io::Error::other(format!(
                "record {} of the journal, of kind {}, is not one of this version",
                record.lsn, record.kind
            )));
        };
        let index = match meaning {
            Meaning::Batch { index } => index,
            Meaning::Other => 0,
            Meaning::Dropped => {
                worker.bases.remove(&group);
                self.drop_group(&mut worker.books, group);
                return Ok(());
            }
        };
        if worker.is_trimmed(group, index, record.lsn) {
            self.begin_anew(&mut worker.books, group);
            return Ok(());
        }
        let copied = Copied {
            lsn: record.lsn,
            kind: record.kind,
            head: record.head,
            payload: record.payload,
            payload_crc: crc32fast::hash(record.payload),
        };
        self.append(&mut worker.books, group, copied)
    }

    /// Passes over a segment of which nobody needs anything any more, without reading it; answers whether it did.
    fn pass(&mut self, worker: &mut Worker, segment: &Sealed) -> bool {
        let follows = segment.first_lsn <= self.through + 1;
        let Some(groups) = worker.passed(segment).filter(|_| follows) else {
            return false;
        };
        for group in groups {
            self.begin_anew(&mut worker.books, group);
        }
        self.through = segment.end_lsn - 1;
        true
    }

    /// Nothing of the group's log so far is needed. It goes on in a file that is new: numbers are never used twice.
    fn begin_anew(&mut self, books: &mut BTreeMap<GroupId, Book>, group: GroupId) {
        if books.get(&group).is_none_or(Book::is_blank) {
            return;
        }
        self.drop_group(books, group);
        let book = books.get_mut(&group).expect("looked up above");
        self.begin_file(group, book);
    }

    fn drop_group(&mut self, books: &mut BTreeMap<GroupId, Book>, group: GroupId) {
        let Some(book) = books.get_mut(&group) else {
            return;
        };
        self.before.entry(group).or_insert_with(|| Some(book.clone()));
        self.void
            .extend(book.clear().into_iter().map(|number| (group, number)));
        self.moved.remove(&group);
        if let Some(pending) = self.pending.remove(&group) {
            self.pending_bytes -= pending.bytes();
        }
        self.dirty.retain(|(of, _)| *of != group);
        self.closed.retain(|(of, ..)| *of != group);
    }

    fn append(
        &mut self,
        books: &mut BTreeMap<GroupId, Book>,
        group: GroupId,
        copied: Copied<'_>,
    ) -> io::Result<()> {
        let Copied {
            lsn,
            kind,
            head,
            payload,
            payload_crc,
        } = copied;
        if !self.pending.contains_key(&group) {
            self.before
                .entry(group)
                .or_insert_with(|| books.get(&group).cloned());
        }
        let book = books.entry(group).or_default();
        let body_len = (head.len() + payload.len()) as u32;
        let end = u64::from(book.end) + u64::from(format::stride(body_len));
        let is_full = end > u64::from(self.core.options.file_bytes) && book.end > FILE_HEAD_BYTES;
        if book.files.is_empty() || is_full {
            self.flush_group(group)?;
            if let Some(full) = book.files.back() {
                self.closed.push((group, full.number, book.end));
            }
            self.begin_file(group, book);
        }
        let file = book.files.back_mut().expect("there is a file");
        let header = Header {
            lsn,
            body_len,
            payload_crc,
            position: book.end,
            head_len: head.len() as u16,
            kind,
        };
        let pending = match self.pending.entry(group) {
            Entry::Occupied(there) => there.into_mut(),
            Entry::Vacant(none) => {
                self.dirty.insert((group, file.number));
                none.insert(Pending::new(file.number, self.spare.image(book.end)))
            }
        };
        let header_bytes = header.encode(&self.core.seal(group, file.number), head, payload);
        for part in [&header_bytes[..], head, payload] {
            pending.image.push(part);
        }
        book.end += format::stride(body_len);
        pending.image.pad_to(u64::from(book.end));
        pending.moved.push((lsn, header.place(file.number)));
        let is_long = pending.image.is_full();
        self.pending_bytes += format::stride(body_len) as usize;
        file.last_lsn = lsn;
        if let Some((_, Meaning::Batch { index })) = (self.core.options.classify)(kind, head) {
            file.last_index = file.last_index.max(index);
        }
        self.records += 1;
        if self.pending_bytes > self.core.options.pending_bytes {
            self.flush()?;
        } else if is_long {
            self.flush_group(group)?;
        }
        Ok(())
    }

    fn begin_file(&mut self, group: GroupId, book: &mut Book) {
        let number = book.begin_file();
        let mut image = self.spare.image(0);
        image.push(&format::encode_file_head(self.core.salt, group, number));
        let pending = Pending::new(number, image);
        self.pending_bytes += pending.bytes();
        self.pending.insert(group, pending);
        self.dirty.insert((group, number));
        self.new_files.insert(group);
    }

    fn flush(&mut self) -> io::Result<()> {
        while let Some(group) = self.pending.keys().next().copied() {
            self.flush_group(group)?;
        }
        Ok(())
    }

    fn flush_group(&mut self, group: GroupId) -> io::Result<()> {
        let Some(mut pending) = self.pending.remove(&group) else {
            return Ok(());
        };
        self.pending_bytes -= pending.bytes();
        self.written += pending.bytes() as u64;
        let disk = &self.core.disk;
        if pending.image.written() == 0 {
            disk.make_dir(&disk.group_dir(group))?;
        }
        let path = disk.path(group, pending.file);
        {
            let _alone = self.core.pages.lock().expect("pages");
            disk.write_image(&path, &mut pending.image)?;
        }
        self.moved.entry(group).or_default().append(&mut pending.moved);
        self.spare.take_back(pending.image);
        Ok(())
    }

    /// Writes what waits and makes all of it durable: contents first, then the folders' entries.
    fn sync(&mut self) -> io::Result<()> {
        self.flush()?;
        let disk = &self.core.disk;
        for (group, file, end) in &self.closed {
            // Whole pages were written, and an earlier attempt at this round may have written further.
            disk.cut(&disk.path(*group, *file), u64::from(*end))?;
            // Though nothing else of it may be new: where it ends, the manifest will not say any more.
            self.dirty.insert((*group, *file));
        }
        for (group, file) in &self.dirty {
            disk.sync(&disk.path(*group, *file))?;
        }
        for group in &self.new_files {
            if disk.group_dir(*group).exists() {
                disk.sync_dir(&disk.group_dir(*group))?;
            }
        }
        if self.new_files.is_empty() {
            Ok(())
        } else {
            disk.sync_dir(&disk.dir)
        }
    }

    fn undo(&mut self, books: &mut BTreeMap<GroupId, Book>) {
        for (group, before) in std::mem::take(&mut self.before) {
            match before {
                Some(book) => books.insert(group, book),
                None => books.remove(&group),
            };
        }
    }
}

/// Keeps copying to its rate.
struct Pace {
    started: Instant,
    /// `None`: as fast as it goes.
    bytes_per_s: Option<u64>,
    bytes: u64,
    checked: u64,
}

impl Pace {
    fn new(calm_bytes_per_s: u64, waiting: usize) -> Self {
        let doublings = waiting.saturating_sub(SEGMENTS_CALM) as u32;
        Self {
            started: Instant::now(),
            bytes_per_s: (waiting < SEGMENTS_HURRY).then(|| calm_bytes_per_s << doublings),
            bytes: 0,
            checked: 0,
        }
    }

    /// Waits until so many more bytes are due; an error when the thread is to stop.
    fn keep(&mut self, core: &Core, bytes: u64) -> io::Result<()> {
        self.bytes += bytes;
        if self.bytes - self.checked < PACE_BYTES {
            return Ok(());
        }
        self.checked = self.bytes;
        loop {
            if core.is_stopping.load(Ordering::Acquire) {
                return Err(io::Error::other("stopping"));
            }
            let Some(rate) = self.bytes_per_s else {
                return Ok(());
            };
            let due = Duration::from_secs_f64(self.bytes as f64 / rate as f64);
            let wait = due.saturating_sub(self.started.elapsed());
            if wait.is_zero() {
                return Ok(());
            }
            std::thread::sleep(wait.min(Duration::from_millis(50)));
        }
    }
}
