//! The thread: rounds of copying, trims, and scrubbing when there is nothing else to do.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use quorate_journal::{Journal, Lsn};
use quorate_types::{GroupId, Index};

use crate::Event;
use crate::book::Book;
use crate::manifest::{Entry, Manifest};
use crate::round::Spare;
use crate::scrub::Scrub;
use crate::store::{Core, Job};

/// How long to wait after trouble before the round is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// Trims are noted, and their files removed, with the next round or after so long.
const TRIM_DELAY: Duration = Duration::from_secs(2);
/// Below the server's other threads, so that a busy processor is theirs.
const NICE: i32 = 10;

pub(crate) struct Worker {
    pub core: Arc<Core>,
    pub journal: Arc<Journal>,
    pub events: Arc<dyn Fn(Event) + Send + Sync>,
    pub books: BTreeMap<GroupId, Book>,
    pub generation: u64,
    pub copied_lsn: Lsn,
    /// Of each group, its last durable base: index, and lsn of its record.
    pub bases: BTreeMap<GroupId, (Index, Lsn)>,
    /// Since when each full segment, by its first lsn, has been waiting.
    pub waiting_since: BTreeMap<Lsn, Instant>,
    /// Holes of the journal that its groups know of.
    pub known_holes: Vec<Range<Lsn>>,
    /// To be removed once the manifest no longer names them.
    pub garbage: Vec<PathBuf>,
    trimmed_at: Option<Instant>,
    stalled: Option<Arc<str>>,
    scrub: Scrub,
    pub spare: Spare,
}

impl Worker {
    pub fn new(
        core: Arc<Core>,
        journal: Arc<Journal>,
        events: Arc<dyn Fn(Event) + Send + Sync>,
        books: BTreeMap<GroupId, Book>,
        manifest: Manifest,
        known_holes: Vec<Range<Lsn>>,
    ) -> Self {
        Self {
            core,
            journal,
            events,
            books,
            generation: manifest.generation,
            copied_lsn: manifest.copied_lsn,
            bases: BTreeMap::new(),
            waiting_since: BTreeMap::new(),
            known_holes,
            garbage: Vec::new(),
            trimmed_at: None,
            stalled: None,
            scrub: Scrub::default(),
            spare: Spare::default(),
        }
    }

    pub fn run(mut self, inbox: &mpsc::Receiver<Job>) {
        // Not allowed to be modest is no reason not to work.
        let _as_before = rustix::process::nice(NICE).is_err();
        // The process may have ended between the note and the release.
        self.journal.release_before(self.copied_lsn + 1);
        let mut wait = Duration::ZERO;
        loop {
            let mut job = inbox.recv_timeout(wait);
            // All that is there: what is trimmed is not copied.
            while let Ok(Job::Trim { group, index, lsn }) = job {
                self.trim(group, index, lsn);
                job = inbox.recv_timeout(Duration::ZERO);
            }
            match job {
                Ok(_) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            if self.core.is_stopping.load(Ordering::Acquire) {
                return;
            }
            wait = match self.work() {
                Ok(true) => Duration::ZERO,
                Ok(false) => self.core.options.poll,
                Err(error) => {
                    self.stall(&error.to_string());
                    RETRY.max(self.core.options.poll)
                }
            };
        }
    }

    /// One round, or what there is to do besides; answers whether there may be more.
    fn work(&mut self) -> io::Result<bool> {
        let did_copy = self.round()?;
        if self.stalled.take().is_some() {
            tracing::info!("records are copied into the group logs again");
            (self.events)(Event::Resumed);
        }
        if self.trimmed_at.is_some_and(|at| at.elapsed() >= TRIM_DELAY) {
            self.note(self.copied_lsn)?;
        }
        if !did_copy {
            let Worker {
                scrub,
                core,
                books,
                events,
                ..
            } = self;
            scrub.step(core, books, events.as_ref());
        }
        Ok(did_copy)
    }

    fn stall(&mut self, reason: &str) {
        if self.stalled.as_deref() == Some(reason) || self.core.is_stopping.load(Ordering::Acquire) {
            return;
        }
        tracing::warn!(
            reason,
            "nothing is copied into the group logs; the journal grows meanwhile"
        );
        let reason: Arc<str> = reason.into();
        self.stalled = Some(reason.clone());
        (self.events)(Event::Stalled { reason });
    }

    fn trim(&mut self, group: GroupId, index: Index, lsn: Lsn) {
        let base = self.bases.entry(group).or_insert((index, lsn));
        if base.1 <= lsn {
            *base = (index, lsn);
        }
        let Some(book) = self.books.get_mut(&group) else {
            return;
        };
        let freed = book.trim(index, lsn);
        if !freed.is_empty() {
            self.trimmed_at.get_or_insert_with(Instant::now);
        }
        self.garbage
            .extend(freed.into_iter().map(|number| self.core.disk.path(group, number)));
    }

    /// Makes it known that everything up to `copied_lsn` is in the files of the books, all of which is synced; then
    /// removes what is no longer named.
    pub fn note(&mut self, copied_lsn: Lsn) -> io::Result<()> {
        let entry = |(group, book): (&GroupId, &Book)| {
            let (first, last) = (book.files.front()?, book.files.back()?);
            Some(Entry {
                group: *group,
                first_file: first.number,
                last_file: last.number,
                end: book.end,
            })
        };
        let manifest = Manifest {
            generation: self.generation + 1,
            salt: self.core.salt,
            copied_lsn,
            groups: self.books.iter().filter_map(entry).collect(),
        };
        manifest.store(&self.core.disk)?;
        let bytes = 2 * manifest.encode().len() as u64;
        self.core
            .counters
            .bytes_written
            .fetch_add(bytes, Ordering::Relaxed);
        self.core.counters.copied_lsn.store(copied_lsn, Ordering::Release);
        self.generation += 1;
        self.copied_lsn = copied_lsn;
        self.trimmed_at = None;
        let gone: Vec<GroupId> = self
            .books
            .iter()
            .filter(|(_, book)| book.files.is_empty())
            .map(|(group, _)| *group)
            .collect();
        for group in gone {
            self.books.remove(&group);
            self.garbage.push(self.core.disk.group_dir(group));
        }
        let garbage = std::mem::take(&mut self.garbage);
        self.remove(garbage);
        Ok(())
    }

    /// Removes what the manifest does not name any more.
    pub fn remove(&self, paths: Vec<PathBuf>) {
        for path in paths {
            if let Err(error) = self.core.disk.remove(&path) {
                // The next start removes it.
                tracing::warn!(path = %path.display(), %error, "cannot remove a file of a group log");
            }
        }
    }
}
