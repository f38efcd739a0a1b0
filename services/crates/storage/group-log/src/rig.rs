//! A journal, group logs and their expected contents, for tests.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_journal::{Faults, Journal, Lsn, Operation, Submitter};
use quorate_types::GroupId;
use uuid::Uuid;

use crate::errors::OpenError;
use crate::events::Event;
use crate::format::LogLocation;
use crate::handle::GroupLogs;
use crate::open::{Found, Opened};
use crate::options::{GroupLogOptions, Meaning};

pub const BATCH: u8 = 1;
pub const BASE: u8 = 2;
pub const DROPPED: u8 = 3;
pub const TRUNCATE: u8 = 4;

pub fn group(n: u8) -> GroupId {
    GroupId(Uuid::from_u128(u128::from(n) << 100 | u128::from(n)))
}

pub fn classify(kind: u8, head: &[u8]) -> Option<(GroupId, Meaning)> {
    let group = GroupId(Uuid::from_slice(head.get(..16)?).ok()?);
    let meaning = match kind {
        BATCH => Meaning::Batch {
            index: u64::from_le_bytes(head[16..24].try_into().ok()?),
        },
        DROPPED => Meaning::Dropped,
        _ => Meaning::Other,
    };
    Some((group, meaning))
}

pub fn options() -> GroupLogOptions {
    GroupLogOptions {
        file_bytes: 12 << 10,
        pass_bytes: 96 << 10,
        copy_bytes_per_s: 1 << 40,
        reserve_bytes: 0,
        keep_segments: 0,
        poll: Duration::from_millis(2),
        ..GroupLogOptions::new(classify)
    }
}

pub fn journal_options() -> quorate_journal::JournalOptions {
    quorate_journal::JournalOptions {
        segment_bytes: 32 << 10,
        reserve_bytes: 0,
        buffer_bytes_max: 1 << 20,
        owner_of: Some(|kind, head| {
            let (group, meaning) = classify(kind, head)?;
            let place = if let Meaning::Batch { index } = meaning {
                index
            } else {
                0
            };
            Some((group.0.as_u128(), place))
        }),
        ..quorate_journal::JournalOptions::default()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owned {
    pub lsn: Lsn,
    pub kind: u8,
    pub head: Vec<u8>,
    /// Empty for a batch in a group log.
    pub payload: Vec<u8>,
    pub place: Option<LogLocation>,
}

pub fn payload(seed: u64, len: usize) -> Vec<u8> {
    (0..len as u64)
        .map(|i| (seed.wrapping_mul(37).wrapping_add(i * 11) >> 1) as u8)
        .collect()
}

pub fn head_of(group: GroupId, index: u64) -> Vec<u8> {
    [group.0.as_bytes(), &index.to_le_bytes()[..]].concat()
}

/// Fails each operation from the `fail_from`th on, as if the process had died there.
#[derive(Default)]
pub struct Dying {
    pub done: AtomicUsize,
    pub fail_from: usize,
}

impl Faults for Dying {
    fn before(&self, operation: Operation) -> io::Result<()> {
        let is_read = operation == Operation::Read;
        let is_dead = self.done.load(Ordering::SeqCst) >= self.fail_from;
        if is_dead && !is_read {
            return Err(io::Error::other("dead"));
        }
        self.done.fetch_add(usize::from(!is_read), Ordering::SeqCst);
        Ok(())
    }
}

pub struct Writer {
    submitter: Submitter,
    durable: Arc<(Mutex<u64>, Condvar)>,
}

impl Writer {
    pub fn new(journal: &Journal) -> Self {
        let durable = Arc::new((Mutex::new(0), Condvar::new()));
        let sink = durable.clone();
        let submitter = journal.submitter(Arc::new(move |event| {
            if let quorate_journal::Event::Durable { tag, .. } = event {
                *sink.0.lock().unwrap() = tag;
                sink.1.notify_all();
            }
        }));
        Self { submitter, durable }
    }

    pub fn put(&self, kind: u8, group: GroupId, index: u64, payload: &[u8]) -> Owned {
        let (head, body) = (head_of(group, index), Bytes::copy_from_slice(payload));
        let deadline = Instant::now() + Duration::from_secs(10);
        loop {
            match self.submitter.submit(kind, &head, &body, 1) {
                Ok(at) => {
                    let payload = payload.to_vec();
                    return Owned {
                        lsn: at.lsn,
                        kind,
                        head,
                        payload,
                        place: None,
                    };
                }
                Err(quorate_journal::SubmitError::Busy) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub fn wait_durable(&self) {
        self.submitter
            .submit(TRUNCATE, &head_of(group(99), 0), &Bytes::new(), 2)
            .unwrap();
        let (lock, changed) = &*self.durable;
        let seen = lock.lock().unwrap();
        let (_seen, late) = changed
            .wait_timeout_while(seen, Duration::from_secs(20), |tag| *tag < 2)
            .unwrap();
        assert!(!late.timed_out());
    }
}

pub type Contents = BTreeMap<GroupId, Vec<Owned>>;

pub struct Rig {
    pub logs: Option<GroupLogs>,
    pub journal: Arc<Journal>,
    pub contents: Contents,
    pub holes: Vec<GroupId>,
    pub copied_lsn: Lsn,
    pub events: Arc<Mutex<Vec<Event>>>,
}

/// `respond` handles each event on the group logs' thread.
pub fn start(
    dir: &Path,
    options: GroupLogOptions,
    respond: impl Fn(&Event) + Send + Sync + 'static,
) -> Result<Rig, OpenError> {
    start_after(dir, options, |_| {}, respond)
}

/// Copying starts after `prepare` has returned.
pub fn start_after(
    dir: &Path,
    options: GroupLogOptions,
    prepare: impl FnOnce(&Journal),
    respond: impl Fn(&Event) + Send + Sync + 'static,
) -> Result<Rig, OpenError> {
    start_on(dir, options, journal_options(), prepare, respond)
}

pub fn start_on(
    dir: &Path,
    options: GroupLogOptions,
    journal_options: quorate_journal::JournalOptions,
    prepare: impl FnOnce(&Journal),
    respond: impl Fn(&Event) + Send + Sync + 'static,
) -> Result<Rig, OpenError> {
    let (mut contents, mut holes) = (Contents::new(), Vec::new());
    let (groups, pair) = (dir.join("groups"), dir.join("pair"));
    let opened = Opened::open(&groups, &pair, options, |group, found| match found {
        Found::Hole => holes.push(group),
        record => keep_copied(&mut contents, group, record),
    })?;
    let copied_lsn = opened.copied_lsn();
    let (journal, recovery) = Journal::open(&dir.join("journal"), journal_options, |record| {
        if record.lsn > copied_lsn && record.kind != quorate_journal::record::KIND_MARK {
            keep_journaled(
                &mut contents,
                record.lsn,
                record.kind,
                record.head,
                record.payload,
            );
        }
    })
    .unwrap();
    let journal = Arc::new(journal);
    let damages = recovery
        .damages
        .iter()
        .map(|d| d.first_lsn..d.end_lsn.unwrap_or(Lsn::MAX))
        .collect();
    prepare(&journal);
    let events = Arc::new(Mutex::new(Vec::new()));
    let sink = events.clone();
    let logs = opened.start(
        journal.clone(),
        damages,
        Arc::new(move |event| {
            respond(&event);
            sink.lock().unwrap().push(event);
        }),
    );
    // Logs that could not be started count as dead.
    let logs = logs.ok();
    Ok(Rig {
        logs,
        journal,
        contents,
        holes,
        copied_lsn,
        events,
    })
}

/// A batch's payload stays in its file.
fn keep_copied(contents: &mut Contents, group: GroupId, found: Found) {
    let Found::Record {
        lsn,
        kind,
        head,
        payload,
        place,
    } = found
    else {
        return;
    };
    let payload = if kind == BATCH { vec![] } else { payload.to_vec() };
    let record = Owned {
        lsn,
        kind,
        head: head.to_vec(),
        payload,
        place: Some(place),
    };
    contents.entry(group).or_default().push(record);
}

fn keep_journaled(contents: &mut Contents, lsn: Lsn, kind: u8, head: &[u8], payload: &[u8]) {
    let (group, meaning) = classify(kind, head).unwrap();
    if meaning == Meaning::Dropped {
        contents.remove(&group);
        return;
    }
    let record = Owned {
        lsn,
        kind,
        head: head.to_vec(),
        payload: payload.to_vec(),
        place: None,
    };
    contents.entry(group).or_default().push(record);
}

impl Rig {
    pub fn logs(&self) -> &GroupLogs {
        self.logs.as_ref().expect("started")
    }

    pub fn wait(&self, what: &str, mut until: impl FnMut(&Rig) -> bool) {
        let deadline = Instant::now() + Duration::from_secs(20);
        while !until(self) {
            assert!(
                Instant::now() < deadline,
                "waited in vain for {what}: {:?}",
                self.logs().stats()
            );
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits until all full segments are copied and released.
    pub fn settle(&self) {
        self.wait("the journal to be copied", |rig| {
            rig.journal.stats().segments <= 1
        });
    }

    /// Reads all batches in group logs back, and fills in their payloads.
    pub fn read_back(&mut self) {
        for (group, records) in &mut self.contents {
            let on_disk: Vec<&mut Owned> = records
                .iter_mut()
                .filter(|r| r.kind == BATCH && r.place.is_some())
                .collect();
            let places: Vec<_> = on_disk.iter().map(|r| (r.lsn, r.place.unwrap())).collect();
            let read = self.logs.as_ref().unwrap().read(*group, &places);
            for (record, read) in on_disk.into_iter().zip(read) {
                let read = read.unwrap();
                assert_eq!((read.lsn, &read.head[..]), (record.lsn, &record.head[..]));
                record.payload = read.payload.to_vec();
            }
        }
    }
}

/// A record's lsn, kind, head, payload.
type Stripped = (Lsn, u8, Vec<u8>, Vec<u8>);

pub fn assert_same(expected: &Contents, found: &Contents) {
    let strip = |contents: &Contents| -> BTreeMap<GroupId, Vec<Stripped>> {
        let own = |r: &Owned| (r.lsn, r.kind, r.head.clone(), r.payload.clone());
        let kept = contents.iter().filter(|(id, _)| **id != group(99));
        kept.map(|(id, records)| (*id, records.iter().map(own).collect()))
            .collect()
    };
    let (expected, found) = (strip(expected), strip(found));
    assert_eq!(
        expected.keys().collect::<Vec<_>>(),
        found.keys().collect::<Vec<_>>()
    );
    for (id, records) in &expected {
        let lsns =
            |records: &[(Lsn, u8, Vec<u8>, Vec<u8>)]| records.iter().map(|r| (r.0, r.1)).collect::<Vec<_>>();
        assert_eq!(lsns(records), lsns(&found[id]), "group {id}");
        assert!(*records == found[id], "contents of group {id}");
    }
}

pub fn files(dir: &Path, group: GroupId) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(dir.join("groups").join(group.0.to_string())) else {
        return Vec::new();
    };
    let mut files: Vec<_> = entries.map(|e| e.unwrap().path()).collect();
    files.sort();
    files
}

/// A directory in memory: these tests stop no kernel, so syncs need not take their time.
pub fn memory_dir() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

pub fn copy_dir(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_dir(&path, &target);
        } else {
            std::fs::copy(&path, &target).unwrap();
        }
    }
}
