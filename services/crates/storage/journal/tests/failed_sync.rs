//! A sync fails, and the kernel takes the pages for written. A restart finds the records in the page cache: they count only
//! when they have been written again.

mod support;

use std::io::{Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use quorate_journal::record::PAGE_BYTES;
use quorate_journal::{Event, Faults, Journal, JournalOptions, Operation};
use support::{open, payload, put, small, submitter};

#[derive(Default)]
struct Disk {
    seen: Mutex<Vec<Operation>>,
    fails_syncs: AtomicBool,
    fails_writes: AtomicBool,
}

impl Faults for Disk {
    fn before(&self, operation: Operation) -> Result<()> {
        self.seen.lock().unwrap().push(operation);
        let fails = match operation {
            Operation::Sync => &self.fails_syncs,
            Operation::Write { .. } => &self.fails_writes,
            _ => return Ok(()),
        };
        match fails.load(Ordering::SeqCst) {
            true => Err(Error::other("as the test wants")),
            false => Ok(()),
        }
    }
}

impl Disk {
    fn options(self: &Arc<Self>) -> JournalOptions {
        JournalOptions {
            faults: Some(self.clone()),
            ..small()
        }
    }

    /// Bytes that were written before the last sync; nothing was written behind it.
    fn written_before_sync(&self) -> usize {
        let seen = self.seen.lock().unwrap();
        let writes = seen.iter().filter_map(|operation| match operation {
            Operation::Write { bytes } => Some(*bytes),
            _ => None,
        });
        let order: Vec<&Operation> = (seen.iter())
            .filter(|operation| matches!(operation, Operation::Write { .. } | Operation::Sync))
            .collect();
        assert_eq!(order.last(), Some(&&Operation::Sync), "{order:?}");
        writes.sum()
    }
}

/// Three durable records, and a fourth whose sync failed.
fn journal_with_a_failed_sync(dir: &std::path::Path) {
    let disk = Arc::new(Disk::default());
    let (journal, ..) = open(dir, disk.options());
    let (submitter, seen) = submitter(&journal);
    for lsn in 1..=3 {
        put(&submitter, 1, b"head", &payload(lsn, 6_000), lsn);
        seen.durable(lsn);
    }
    disk.fails_syncs.store(true, Ordering::SeqCst);
    put(&submitter, 1, b"head", &payload(4, 6_000), 4);
    seen.wait("the failure", |event| matches!(event, Event::Failed { .. }));
}

#[test]
fn a_restart_writes_again_what_no_sync_is_known_to_have_reached() {
    let dir = tempfile::tempdir().unwrap();
    journal_with_a_failed_sync(dir.path());
    let disk = Arc::new(Disk::default());
    let (_journal, recovery, records) = open(dir.path(), disk.options());
    assert_eq!((recovery.next_lsn, records.len()), (5, 4), "{recovery:?}");
    // The fourth record states that three were durable. It shares its first page with the third.
    let written = disk.written_before_sync();
    assert!(
        (6_000..6_000 + 3 * PAGE_BYTES as usize).contains(&written),
        "{written} bytes"
    );
}

#[test]
fn a_journal_that_cannot_write_them_again_does_not_open() {
    for fails_writes in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        journal_with_a_failed_sync(dir.path());
        let disk = Arc::new(Disk::default());
        disk.fails_writes.store(fails_writes, Ordering::SeqCst);
        disk.fails_syncs.store(!fails_writes, Ordering::SeqCst);
        let opened = Journal::open(dir.path(), disk.options(), |_| {});
        assert!(opened.is_err());
    }
}

#[test]
fn a_segment_in_which_no_sync_is_proved_is_written_again_with_its_head() {
    let dir = tempfile::tempdir().unwrap();
    {
        let (journal, ..) = open(dir.path(), small());
        let (submitter, seen) = submitter(&journal);
        put(&submitter, 1, b"head", &payload(1, 100), 1);
        seen.durable(1);
    }
    let disk = Arc::new(Disk::default());
    let (_journal, recovery, _) = open(dir.path(), disk.options());
    assert_eq!(recovery.next_lsn, 2);
    assert_eq!(
        disk.written_before_sync(),
        3 * PAGE_BYTES as usize,
        "head and record"
    );
}
