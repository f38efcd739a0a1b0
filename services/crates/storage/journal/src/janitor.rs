//! The thread that prepares the next segment before it is needed, and frees old ones for reuse.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use crate::contents::Contents;
use crate::core::Core;
use crate::direct::DirectFile;
use crate::disk::Disk;
use crate::events::Event;
use crate::jobs::Job;
use crate::options::JournalOptions;
use crate::record::Lsn;
use crate::segment::{self, Segment};

/// How often a full disk is tried again when nothing was released.
const RETRY: Duration = Duration::from_secs(1);

pub(crate) struct Janitor {
    disk: Disk,
    options: JournalOptions,
    /// Numbers of files free for reuse.
    spares: VecDeque<u32>,
    /// Allocated, not yet written through.
    allocated: Option<DirectFile>,
    next_number: u32,
}

impl Janitor {
    pub fn new(disk: Disk, options: JournalOptions, spares: VecDeque<u32>, next_number: u32) -> Self {
        Self {
            disk,
            options,
            spares,
            allocated: None,
            next_number,
        }
    }

    pub fn run(mut self, core: &Core, inbox: &mpsc::Receiver<Job>) {
        let mut due = false;
        let mut fill = false;
        loop {
            let job = if due {
                inbox.recv_timeout(RETRY)
            } else {
                inbox.recv().map_err(Into::into)
            };
            match job {
                Ok(Job::Prepare) => fill = false,
                Ok(Job::Fill) => fill = true,
                Ok(Job::Release(lsn)) => self.release(core, lsn),
                Err(mpsc::RecvTimeoutError::Timeout) => {}
                Ok(Job::Close) | Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
            due = self.prepare(core, fill);
        }
    }

    /// Prepares a segment if none is ready; answers whether to try again for want of space.
    fn prepare(&mut self, core: &Core, fill: bool) -> bool {
        if !core.lock().needs_segment() {
            return false;
        }
        match self.advance(fill) {
            Ok(segment) => {
                let prepared = core.lock().segment_prepared(segment);
                for completion in prepared.of_free_disk {
                    completion.notify(Event::DiskFree);
                }
                for completion in prepared.of_room {
                    completion.notify(Event::Room);
                }
                false
            }
            Err(error) => {
                self.report(core, &error);
                true
            }
        }
    }

    fn report(&self, core: &Core, error: &std::io::Error) {
        let reason: Arc<str> = format!("cannot prepare a segment: {error}").into();
        let Some(completions) = core.lock().disk_is_full(reason.clone()) else {
            return;
        };
        tracing::warn!(%reason, "the journal cannot grow");
        for completion in completions {
            completion.notify(Event::DiskFull {
                reason: reason.clone(),
            });
        }
    }

    /// Takes a spare file at once. Without one it allocates blocks now, so that a full disk is known early, and fills
    /// them with zeros once `fill` is set.
    fn advance(&mut self, fill: bool) -> std::io::Result<Option<Arc<Segment>>> {
        if let Some(number) = self.spares.front().copied() {
            let name = segment::spare_name(number);
            let file = self.disk.open(&name)?;
            if file.bytes()? == self.options.segment_bytes {
                let segment = self.enter(&name, file)?;
                self.spares.pop_front();
                return Ok(Some(segment));
            }
            self.disk.remove(&name)?;
            self.spares.pop_front();
        }
        if self.allocated.is_none() {
            match self.disk.reserve(segment::NEW_NAME, self.options.segment_bytes) {
                Ok(file) => self.allocated = Some(file),
                Err(error) => {
                    // A part of the file may have been allocated: free it.
                    let _absent = self.disk.remove(segment::NEW_NAME).is_err();
                    return Err(error);
                }
            }
        }
        if !fill {
            return Ok(None);
        }
        let file = self.allocated.as_ref().expect("allocated above");
        self.disk.fill(file, 0..self.options.segment_bytes)?;
        let file = self.allocated.take().expect("allocated above");
        self.enter(segment::NEW_NAME, file).map(Some)
    }

    /// Gives the file its number. The rename is durable before any record relies on it.
    fn enter(&mut self, name: &str, file: DirectFile) -> std::io::Result<Arc<Segment>> {
        let number = self.next_number;
        self.disk.rename(name, &segment::segment_name(number))?;
        self.disk.sync_dir()?;
        self.next_number = number.checked_add(1).expect("fewer than 2^32 segments");
        Ok(Arc::new(Segment {
            number,
            salt: rand::random(),
            file,
            contents: Mutex::new(Contents::empty()),
        }))
    }

    /// The first segment of a journal.
    pub fn prepare_now(&mut self) -> std::io::Result<Arc<Segment>> {
        self.advance(true)?
            .ok_or_else(|| std::io::Error::other("no segment was prepared"))
    }

    fn release(&mut self, core: &Core, lsn: Lsn) {
        for segment in core.table.release_before(lsn) {
            let name = segment::segment_name(segment.number);
            let freed = if self.spares.len() < self.options.spare_segments_max {
                let spare = segment::spare_name(segment.number);
                self.disk
                    .rename(&name, &spare)
                    .map(|()| self.spares.push_back(segment.number))
            } else {
                self.disk.remove(&name)
            };
            if let Err(error) = freed {
                // The segment is scanned again at the next start, and released again.
                tracing::warn!(%name, %error, "cannot free a journal segment");
            }
        }
    }
}
