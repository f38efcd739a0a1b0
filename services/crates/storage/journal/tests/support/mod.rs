//! A journal with a waiting submitter, for tests.
#![allow(dead_code)]

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use bytes::Bytes;
use quorate_journal::{Event, Journal, JournalOptions, JournalRecord, Lsn, Recovery, Submitted, Submitter};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    pub lsn: Lsn,
    pub kind: u8,
    pub head: Vec<u8>,
    pub payload: Vec<u8>,
}

impl From<JournalRecord<'_>> for Owned {
    fn from(r: JournalRecord<'_>) -> Self {
        Owned {
            lsn: r.lsn,
            kind: r.kind,
            head: r.head.to_vec(),
            payload: r.payload.to_vec(),
        }
    }
}

pub fn small() -> JournalOptions {
    JournalOptions {
        segment_bytes: 32 << 10,
        reserve_bytes: 0,
        buffer_bytes_max: 1 << 20,
        mark_after: None,
        ..JournalOptions::default()
    }
}

pub fn open(dir: &Path, options: JournalOptions) -> (Journal, Recovery, Vec<Owned>) {
    let mut records = Vec::new();
    let (journal, recovery) = Journal::open(dir, options, |r| records.push(r.into())).expect("open");
    (journal, recovery, records)
}

#[derive(Default)]
pub struct Seen {
    pub events: Mutex<Vec<Event>>,
    changed: Condvar,
}

impl Seen {
    pub fn wait(&self, what: &str, mut until: impl FnMut(&Event) -> bool) {
        let events = self.events.lock().unwrap();
        let ready = |events: &mut Vec<Event>| !events.iter().any(&mut until);
        let (events, timeout) = self
            .changed
            .wait_timeout_while(events, Duration::from_secs(20), ready)
            .unwrap();
        assert!(!timeout.timed_out(), "waited in vain for {what}; saw {events:?}");
    }

    pub fn durable(&self, tag: u64) {
        self.wait(
            "durability",
            |e| matches!(e, Event::Durable { tag: t, .. } if *t >= tag),
        );
    }

    pub fn durable_tag(&self) -> u64 {
        let tag = |e: &Event| {
            if let Event::Durable { tag, .. } = e {
                *tag
            } else {
                0
            }
        };
        self.events.lock().unwrap().iter().map(tag).max().unwrap_or(0)
    }
}

pub fn submitter(journal: &Journal) -> (Submitter, Arc<Seen>) {
    let seen = Arc::new(Seen::default());
    let sink = seen.clone();
    let submitter = journal.submitter(Arc::new(move |event| {
        sink.events.lock().unwrap().push(event);
        sink.changed.notify_all();
    }));
    (submitter, seen)
}

/// Submits, waiting for room where the journal asks for it.
pub fn put(submitter: &Submitter, kind: u8, head: &[u8], payload: &[u8], tag: u64) -> Submitted {
    let payload = Bytes::copy_from_slice(payload);
    for _ in 0..2_000 {
        match submitter.submit(kind, head, &payload, tag) {
            Ok(submitted) => return submitted,
            Err(quorate_journal::SubmitError::Busy) => std::thread::sleep(Duration::from_millis(5)),
            Err(error) => panic!("{error}"),
        }
    }
    panic!("no room within ten seconds");
}

pub fn payload(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|i| (seed.wrapping_mul(31).wrapping_add(i * 7) >> 2) as u8)
        .collect()
}
