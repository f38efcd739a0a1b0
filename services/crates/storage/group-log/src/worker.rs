//! The thread: copy passes, trims, and scrubbing when nothing else is to do.

use std::io;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use quorate_journal::{Journal, Lsn, Sealed};
use quorate_types::{GroupId, Index};

use crate::copy::due::Due;
use crate::copy::pass::Pass;
use crate::copy::pending::Spare;
use crate::core::Core;
use crate::events::{Event, Listener};
use crate::groups::Groups;
use crate::jobs::Job;
use crate::manifest::Manifest;
use crate::scrub::Scrub;

/// Time after an error until the next attempt.
const RETRY: Duration = Duration::from_secs(2);
/// Longest time until trims are noted and their files removed; a copy pass does it earlier.
const TRIM_DELAY: Duration = Duration::from_secs(2);
/// Below the server's other threads, so that a busy processor is theirs.
const NICE: i32 = 10;

pub(crate) struct Worker {
    core: Arc<Core>,
    journal: Arc<Journal>,
    events: Arc<Listener>,
    groups: Groups,
    generation: u64,
    copied_lsn: Lsn,
    due: Due,
    /// Holes of the journal that its groups know of.
    known_holes: Vec<Range<Lsn>>,
    /// Files to remove once the manifest no longer names them.
    garbage: Vec<PathBuf>,
    trimmed_at: Option<Instant>,
    stalled: Option<Arc<str>>,
    scrub: Scrub,
    spare: Spare,
}

impl Worker {
    pub fn new(
        core: Arc<Core>,
        journal: Arc<Journal>,
        events: Arc<Listener>,
        groups: Groups,
        manifest: &Manifest,
        known_holes: Vec<Range<Lsn>>,
    ) -> Self {
        Self {
            core,
            journal,
            events,
            groups,
            generation: manifest.generation,
            copied_lsn: manifest.copied_lsn,
            due: Due::default(),
            known_holes,
            garbage: Vec::new(),
            trimmed_at: None,
            stalled: None,
            scrub: Scrub::default(),
            spare: Spare::default(),
        }
    }

    pub fn run(mut self, inbox: &mpsc::Receiver<Job>) {
        // Without the right to lower its priority, the thread works at the usual one.
        let _as_before = rustix::process::nice(NICE).is_err();
        // The last process may have ended between the manifest and the release.
        self.journal.release_before(self.copied_lsn + 1);
        let mut wait = Duration::ZERO;
        loop {
            let mut job = inbox.recv_timeout(wait);
            // All waiting trims first: trimmed records are not copied.
            while let Ok(Job::Trim { group, index, lsn }) = job {
                self.trim(group, index, lsn);
                job = inbox.recv_timeout(Duration::ZERO);
            }
            match job {
                Ok(_) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
                Err(mpsc::RecvTimeoutError::Timeout) => {}
            }
            if self.core.is_stopping() {
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

    /// One copy pass, or other work; answers whether more may be due.
    fn work(&mut self) -> io::Result<bool> {
        let did_copy = self.copy()?;
        if self.stalled.take().is_some() {
            tracing::info!("records are copied into the group logs again");
            (self.events)(Event::Resumed);
        }
        if self.trimmed_at.is_some_and(|at| at.elapsed() >= TRIM_DELAY) {
            self.note(self.copied_lsn)?;
        }
        if !did_copy {
            self.scrub
                .step(&self.core, &self.groups.files, self.events.as_ref());
        }
        Ok(did_copy)
    }

    fn stall(&mut self, reason: &str) {
        if self.stalled.as_deref() == Some(reason) || self.core.is_stopping() {
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
        let freed = self.groups.trim(group, index, lsn);
        if !freed.is_empty() {
            self.trimmed_at.get_or_insert_with(Instant::now);
        }
        self.garbage
            .extend(freed.into_iter().map(|number| self.core.disk.path(group, number)));
    }

    /// Copies the next records, if segments are due; answers whether some were. After an error everything is as
    /// before, except for bytes in files behind their ends.
    fn copy(&mut self) -> io::Result<bool> {
        let mut sealed = self.journal.sealed_from(self.copied_lsn + 1);
        sealed.truncate(self.due.count(&self.core.options, &self.journal, &sealed));
        if sealed.is_empty() {
            return Ok(false);
        }
        self.fit_space(&mut sealed)?;
        let pass = Pass::new(
            &self.core,
            self.events.as_ref(),
            &self.known_holes,
            &mut self.groups,
            sealed.len(),
            std::mem::take(&mut self.spare),
        );
        let (outcome, report) = pass.run(self.copied_lsn, sealed);
        self.spare = report.spare;
        // After a failed write of the manifest, the new one may count after a crash; in this process it does not.
        if let Err(error) = outcome.and_then(|()| self.note(report.through)) {
            self.groups.restore(report.before);
            return Err(error);
        }
        let path = |(group, number): (GroupId, u32)| self.core.disk.path(group, number);
        self.remove(report.void.into_iter().map(path).collect());
        let counters = &self.core.counters;
        counters.records.fetch_add(report.records, Ordering::Relaxed);
        let written_bytes = report.written_bytes;
        counters.bytes_written.fetch_add(written_bytes, Ordering::Relaxed);
        for (group, records) in report.moved {
            (self.events)(Event::Moved { group, records });
        }
        if report.is_incomplete {
            (self.events)(Event::Incomplete { group: None });
        }
        self.journal.release_before(report.through + 1);
        Ok(true)
    }

    /// Keeps those segments for which the device has space. Skipped segments take none and free some of the journal's.
    fn fit_space(&self, sealed: &mut Vec<Sealed>) -> io::Result<()> {
        let is_skipped = |segment: &Sealed| self.groups.trimmed_segment(segment).is_some();
        let is_read = |segment: &&Sealed| !is_skipped(segment);
        if let Err(error) = self.check_space(sealed.iter().filter(is_read).map(Sealed::bytes).sum()) {
            let skipped = sealed.iter().take_while(|segment| is_skipped(segment)).count();
            if skipped == 0 {
                return Err(error);
            }
            sealed.truncate(skipped);
        }
        Ok(())
    }

    fn check_space(&self, waiting_bytes: u64) -> io::Result<()> {
        let options = &self.core.options;
        if waiting_bytes == 0 {
            return Ok(());
        }
        let needed = options.reserve_bytes + waiting_bytes.min(options.pass_bytes);
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

    /// Replaces the manifest: everything up to `copied_lsn` is in the groups' files, and synced. Then removes the files
    /// that are no longer named.
    fn note(&mut self, copied_lsn: Lsn) -> io::Result<()> {
        let manifest = Manifest {
            generation: self.generation + 1,
            salt: self.core.salt,
            copied_lsn,
            groups: self.groups.manifest_entries(),
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
        for group in self.groups.take_empty() {
            self.garbage.push(self.core.disk.group_dir(group));
        }
        let garbage = std::mem::take(&mut self.garbage);
        self.remove(garbage);
        Ok(())
    }

    /// Removes files that the manifest no longer names.
    fn remove(&self, paths: Vec<PathBuf>) {
        for path in paths {
            if let Err(error) = self.core.disk.remove(&path) {
                // The next start removes it.
                tracing::warn!(path = %path.display(), %error, "cannot remove a file of a group log");
            }
        }
    }
}
