//! Segment files: their names, and the table of those in use.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use crate::contents::Contents;
use crate::direct::DirectFile;
use crate::record::{Lsn, SegmentHead};

/// One use of a segment file.
pub(crate) struct Segment {
    pub number: u32,
    /// Random per use; mixed into every checksum.
    pub salt: u64,
    pub file: DirectFile,
    /// Filled in by the writer.
    pub contents: Mutex<Contents>,
}

impl Segment {
    pub fn head(&self, first_lsn: Lsn) -> SegmentHead {
        SegmentHead {
            segment: self.number,
            salt: self.salt,
            first_lsn,
        }
    }
}

/// Segments that hold records, oldest first.
#[derive(Default)]
pub(crate) struct Table {
    begun: Mutex<BTreeMap<u32, (Lsn, Arc<Segment>)>>,
}

impl Table {
    pub fn begin(&self, segment: Arc<Segment>, first_lsn: Lsn) {
        let mut begun = self.begun.lock().expect("table");
        let last = begun.last_key_value();
        assert!(
            last.is_none_or(|(number, _)| *number < segment.number),
            "segments begin in order"
        );
        begun.insert(segment.number, (first_lsn, segment));
    }

    pub fn get(&self, number: u32) -> Option<Arc<Segment>> {
        self.begun
            .lock()
            .expect("table")
            .get(&number)
            .map(|(_, segment)| segment.clone())
    }

    /// Removes the segments without a record from `lsn` on; never the newest.
    pub fn release_before(&self, lsn: Lsn) -> Vec<Arc<Segment>> {
        let mut begun = self.begun.lock().expect("table");
        let mut released = Vec::new();
        while let Some(next_first_lsn) = begun.values().nth(1).map(|(first, _)| *first)
            && next_first_lsn <= lsn
        {
            let (_, (_, segment)) = begun.pop_first().expect("two segments");
            released.push(segment);
        }
        released
    }

    /// Segments with records from `lsn` on, each with its first lsn and its successor's. Each has a successor, so all
    /// its records are durable.
    pub fn sealed_from(&self, lsn: Lsn) -> Vec<(Arc<Segment>, Lsn, Lsn)> {
        let begun = self.begun.lock().expect("table");
        let firsts = begun.values().map(|(first, _)| *first).skip(1);
        begun
            .values()
            .zip(firsts)
            .filter(|(_, end)| *end > lsn)
            .map(|((first, segment), end)| (segment.clone(), *first, end))
            .collect()
    }

    /// Runs `act` on a segment in use, which is not released before `act` returns.
    pub fn with<T>(&self, number: u32, act: impl FnOnce(&Segment) -> T) -> Option<T> {
        let begun = self.begun.lock().expect("table");
        begun.get(&number).map(|(_, segment)| act(segment))
    }

    pub fn len(&self) -> usize {
        self.begun.lock().expect("table").len()
    }

    pub fn first_lsn(&self) -> Option<Lsn> {
        self.begun
            .lock()
            .expect("table")
            .values()
            .next()
            .map(|(first, _)| *first)
    }
}

pub(crate) const LOCK_NAME: &str = "LOCK";
/// A file under allocation; removed when the journal is opened.
pub(crate) const NEW_NAME: &str = "new";

pub(crate) fn segment_name(number: u32) -> String {
    format!("segment-{number:08x}")
}

/// A file free for reuse keeps the number of its last use: no number is ever used twice.
pub(crate) fn spare_name(number: u32) -> String {
    format!("spare-{number:08x}")
}

pub(crate) enum Name {
    Segment(u32),
    Spare(u32),
    Other,
}

pub(crate) fn parse_name(name: &str) -> Name {
    let number = |hex: &str| {
        (hex.len() == 8)
            .then(|| u32::from_str_radix(hex, 16).ok())
            .flatten()
    };
    if let Some(number) = name.strip_prefix("segment-").and_then(number) {
        Name::Segment(number)
    } else if let Some(number) = name.strip_prefix("spare-").and_then(number) {
        Name::Spare(number)
    } else {
        Name::Other
    }
}
