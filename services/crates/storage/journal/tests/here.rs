//! A submitter that writes and syncs itself, beside the journal's thread.

mod support;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_journal::{Event, Faults, JournalOptions, Operation, Submission, SubmitError, Submitter};
use support::{open, payload, put, small, submitter};

/// Waits while the next segment is being prepared.
fn place(submitter: &Submitter, body: &Bytes, tag: u64) -> Result<(), SubmitError> {
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        match try_place(submitter, body, tag) {
            Err(SubmitError::Busy) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(1))
            }
            outcome => return outcome,
        }
    }
}

fn try_place(submitter: &Submitter, body: &Bytes, tag: u64) -> Result<(), SubmitError> {
    let one = Submission {
        kind: 1,
        head: &[],
        payload: body,
        payload_crc: None,
        tag,
        reserved: false,
    };
    submitter.place_many(&[one], |_| ())
}

#[test]
fn records_written_here_are_durable_and_reported_when_the_call_returns() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, ..) = open(dir.path(), small());
    let (submitter, seen) = submitter(&journal);
    for tag in 1..=200 {
        place(&submitter, &Bytes::from(payload(tag, 300)), tag).unwrap();
        assert_eq!(
            journal.stats().records,
            tag - 1,
            "no other thread was called to write it"
        );
        assert!(submitter.commit_here());
        assert_eq!((seen.durable_tag(), journal.stats().durable_lsn), (tag, tag));
        assert!(!submitter.commit_here(), "there is nothing more to write");
    }
    assert_eq!(journal.stats().syncs, 200 + journal.stats().segments - 1);
    drop(journal);
    let (_journal, recovery, records) = open(dir.path(), small());
    assert!(
        recovery.damages.is_empty() && recovery.torn.is_none(),
        "{recovery:?}"
    );
    let found: Vec<_> = records.into_iter().map(|record| record.payload).collect();
    assert_eq!(found, (1..=200).map(|tag| payload(tag, 300)).collect::<Vec<_>>());
}

#[test]
fn here_and_the_journals_thread_take_turns_and_keep_one_order() {
    let dir = tempfile::tempdir().unwrap();
    let options = JournalOptions {
        segment_bytes: 1 << 20,
        ..small()
    };
    let (journal, ..) = open(dir.path(), options.clone());
    let threads: Vec<_> = (0..4u64)
        .map(|shard| {
            let (submitter, seen) = submitter(&journal);
            std::thread::spawn(move || {
                for tag in 1..=300 {
                    if (tag + shard) % 3 == 0 {
                        put(&submitter, 1, &[], &payload(shard, 40), tag);
                        continue;
                    }
                    place(&submitter, &Bytes::from(payload(shard, 40)), tag).unwrap();
                    if !submitter.commit_here() {
                        submitter.commit();
                    }
                }
                seen.durable(300);
                let tags: Vec<u64> = seen.events.lock().unwrap().iter().map(tag_of).collect();
                assert!(tags.is_sorted(), "completions come in order");
            })
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(journal.stats().durable_lsn, 1_200);
    drop(journal);
    let (_journal, recovery, records) = open(dir.path(), options);
    assert!(
        recovery.damages.is_empty() && recovery.torn.is_none(),
        "{recovery:?}"
    );
    assert_eq!(records.len(), 1_200);
}

fn tag_of(event: &Event) -> u64 {
    match event {
        Event::Durable { tag, .. } => *tag,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_mark_follows_records_written_here() {
    let dir = tempfile::tempdir().unwrap();
    let options = JournalOptions {
        mark_after: Some(Duration::from_millis(20)),
        ..small()
    };
    let (journal, ..) = open(dir.path(), options);
    let (submitter, _) = submitter(&journal);
    for tag in 1..=2 {
        place(&submitter, &Bytes::from(payload(tag, 30)), tag).unwrap();
        let deadline = Instant::now() + Duration::from_secs(20);
        // The journal's thread may not have ended with the last mark yet.
        while !submitter.commit_here() {
            assert!(Instant::now() < deadline, "the journal's thread still writes");
            std::thread::sleep(Duration::from_millis(1));
        }
        let marked = 2 * tag;
        while journal.stats().durable_lsn < marked {
            assert!(Instant::now() < deadline, "no mark was written");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// A sync that does not return while the flag is set.
#[derive(Default)]
struct HangingSync(AtomicBool);

impl Faults for HangingSync {
    fn before(&self, operation: Operation) -> io::Result<()> {
        while matches!(operation, Operation::Sync) && self.0.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_millis(1));
        }
        Ok(())
    }
}

#[test]
fn a_sync_that_does_not_return_is_seen_from_outside_in_whichever_thread_it_runs() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(HangingSync::default());
    let options = JournalOptions {
        faults: Some(faults.clone()),
        ..small()
    };
    let (journal, ..) = open(dir.path(), options);
    let (submitter, seen) = submitter(&journal);
    for (tag, is_here) in [(1, true), (2, false)] {
        assert_eq!(journal.call_under_way(), None);
        faults.0.store(true, Ordering::SeqCst);
        place(&submitter, &Bytes::new(), tag).unwrap();
        let syncing = submitter.clone();
        let thread = std::thread::spawn(move || match is_here {
            true => assert!(syncing.commit_here()),
            false => syncing.commit(),
        });
        // The write goes by, and the sync stays under way: one number that lasts.
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut since = (journal.call_under_way(), Instant::now());
        while since.0.is_none() || since.1.elapsed() < Duration::from_millis(200) {
            assert!(Instant::now() < deadline, "no call lasts");
            let now = journal.call_under_way();
            if now != since.0 {
                since = (now, Instant::now());
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(seen.durable_tag(), tag - 1);
        faults.0.store(false, Ordering::SeqCst);
        thread.join().unwrap();
        seen.durable(tag);
    }
    assert_eq!(journal.call_under_way(), None);
}

#[derive(Default)]
struct FailingSync(AtomicBool);

impl Faults for FailingSync {
    fn before(&self, operation: Operation) -> io::Result<()> {
        let fails = matches!(operation, Operation::Sync) && self.0.load(Ordering::SeqCst);
        if fails {
            Err(io::Error::from_raw_os_error(5))
        } else {
            Ok(())
        }
    }
}

#[test]
fn a_sync_that_fails_here_is_final() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(FailingSync::default());
    let options = JournalOptions {
        faults: Some(faults.clone()),
        ..small()
    };
    let (journal, ..) = open(dir.path(), options);
    let (submitter, seen) = submitter(&journal);
    place(&submitter, &Bytes::new(), 1).unwrap();
    assert!(submitter.commit_here());
    faults.0.store(true, Ordering::SeqCst);
    place(&submitter, &Bytes::new(), 2).unwrap();
    assert!(!submitter.commit_here());
    seen.wait("failure", |event| matches!(event, Event::Failed { .. }));
    faults.0.store(false, Ordering::SeqCst);
    submitter.commit();
    assert!(
        !submitter.commit_here(),
        "a sync that failed is never tried again"
    );
    assert!(matches!(
        place(&submitter, &Bytes::new(), 3),
        Err(SubmitError::Failed(_))
    ));
    drop(journal);
    assert_eq!(seen.durable_tag(), 1);
}
