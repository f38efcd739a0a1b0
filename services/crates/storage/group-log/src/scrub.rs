//! Scrubbing: reading group logs slowly and for ever, so that damage is found while other replicas can repair it.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use quorate_types::GroupId;

use crate::core::Core;
use crate::disk::OpenFile;
use crate::events::{Event, Listener};
use crate::format::{HEADER_BYTES, Header, KIND_OWN_FROM, KIND_VOID, LogLocation};
use crate::group_files::GroupFiles;
use crate::walk::{Payload, Step, Walk};

/// Longest wait for the answer about a damaged place.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(20);
/// Most places remembered as unneeded; the others are found again later.
const SUSPECTS_MAX: usize = 1_024;

#[derive(Default)]
pub(crate) struct Scrub {
    reading: Option<Reading>,
    /// Group and number of the last file.
    group: Option<GroupId>,
    file: u32,
    last_step: Option<Instant>,
    /// Damaged places that an earlier pass learned to be unneeded; voided when found again.
    unneeded: HashSet<(GroupId, LogLocation)>,
}

struct Reading {
    group: GroupId,
    walk: Walk<OpenFile>,
}

impl Scrub {
    /// Reads as many bytes as the rate allows since the last step.
    pub fn step(&mut self, core: &Core, groups: &BTreeMap<GroupId, GroupFiles>, events: &Listener) {
        let elapsed = self
            .last_step
            .replace(Instant::now())
            .map_or(Duration::ZERO, |at| at.elapsed());
        let rate = core.options.scrub_bytes_per_s as f64;
        let mut left = (rate * elapsed.as_secs_f64().min(1.0)) as u64;
        while left > 0 && !core.is_stopping() {
            if self.reading.is_none() && !self.open_next(core, groups) {
                return;
            }
            let Some(reading) = &mut self.reading else { return };
            let before = reading.walk.position();
            let found = reading.next();
            let read = u64::from(reading.walk.position() - before);
            left = left.saturating_sub(read.max(1));
            core.counters.bytes_scrubbed.fetch_add(read, Ordering::Relaxed);
            let group = reading.group;
            match found {
                Ok(Finding::Sound) => {}
                Ok(Finding::End) => self.reading = None,
                Ok(Finding::Damaged(place)) => self.damaged(core, events, group, place),
                Err(error) => {
                    tracing::warn!(%group, %error, "a file of a group log cannot be scrubbed");
                    self.reading = None;
                }
            }
        }
    }

    /// Opens the file behind the last one, by group and number. Answers false at the end, and when a file cannot be
    /// opened.
    fn open_next(&mut self, core: &Core, groups: &BTreeMap<GroupId, GroupFiles>) -> bool {
        let from = self.group.unwrap_or(GroupId(uuid::Uuid::nil()));
        let next = groups.range(from..).find_map(|(group, files)| {
            let above = if *group == from { self.file } else { 0 };
            let last = files.files.back()?.number;
            let file = files.files.iter().find(|file| file.number > above)?;
            Some((*group, file.number, (file.number == last).then_some(files.end)))
        });
        let Some((group, number, end)) = next else {
            if self.group.take().is_some() {
                core.counters.scrubs.fetch_add(1, Ordering::Release);
            }
            self.file = 0;
            return false;
        };
        (self.group, self.file) = (Some(group), number);
        match core.disk.open(&core.disk.path(group, number)) {
            Ok(file) => {
                file.forget_cached();
                let bytes = quorate_journal::Source::bytes(&file);
                let end = end.unwrap_or_else(|| u32::try_from(bytes).unwrap_or(u32::MAX));
                let walk = Walk::new(file, core.seal(group, number), number, end);
                self.reading = Some(Reading { group, walk });
            }
            Err(error) => tracing::error!(%group, number, %error, "a file of a group log cannot be opened"),
        }
        self.reading.is_some()
    }

    fn damaged(&mut self, core: &Core, events: &Listener, group: GroupId, place: LogLocation) {
        tracing::error!(%group, ?place, "a record of a group log is damaged");
        let (answer, answers) = mpsc::channel();
        events(Event::Damaged { group, place, answer });
        match answers.recv_timeout(ANSWER_TIMEOUT) {
            Ok(true) => {}
            Ok(false) if self.unneeded.remove(&(group, place)) => {
                if let Err(error) = void(core, group, place) {
                    tracing::warn!(%group, ?place, %error, "cannot write over a damaged record");
                }
            }
            Ok(false) => {
                // The group states its log's bounds again; they are durable long before the next pass.
                events(Event::Incomplete { group: Some(group) });
                if self.unneeded.len() < SUSPECTS_MAX {
                    self.unneeded.insert((group, place));
                }
            }
            // No answer: found again at the next pass.
            Err(_) => {}
        }
    }
}

enum Finding {
    Sound,
    Damaged(LogLocation),
    End,
}

impl Reading {
    fn next(&mut self) -> io::Result<Finding> {
        Ok(match self.walk.next(|_| true)? {
            None => Finding::End,
            Some(Step::Hole { place }) => Finding::Damaged(place),
            Some(Step::Record {
                kind,
                place,
                payload: Payload::Damaged,
                ..
            }) if kind < KIND_OWN_FROM => Finding::Damaged(place),
            Some(Step::Record { .. }) => Finding::Sound,
        })
    }
}

/// Closes a hole without needed records.
fn void(core: &Core, group: GroupId, place: LogLocation) -> io::Result<()> {
    // A hole reaches to the next record; a record is shorter than its stride.
    let len = place.len.next_multiple_of(8).max(HEADER_BYTES as u32);
    let payload = vec![0; len as usize - HEADER_BYTES];
    let header = Header {
        lsn: 0,
        body_len: payload.len() as u32,
        payload_crc: crc32fast::hash(&payload),
        position: place.position,
        head_len: 0,
        kind: KIND_VOID,
    };
    core.write_over(group, place.file, &header, &[], &payload)
}
