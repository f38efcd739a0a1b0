//! The contract of `lib.rs`, clause by clause, on real files.

mod support;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use quorate_journal::{
    Event, Faults, Journal, JournalOptions, JournalReadError, OpenError, Operation, Submission, SubmitError,
};
use support::{open, payload, put, small, submitter};

#[test]
fn records_come_back_in_order_over_many_segments() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, recovery, _) = open(dir.path(), small());
    assert_eq!((recovery.records, recovery.next_lsn), (0, 1));
    let (submitter, seen) = submitter(&journal);
    let mut expected = Vec::new();
    for i in 1..=300u64 {
        let body = payload(i, (i as usize * 37) % 5_000);
        let head = payload(i, (i % 60) as usize);
        let at = put(&submitter, (i % 250) as u8 + 1, &head, &body, i);
        assert_eq!(at.lsn, i);
        expected.push((at, (i % 250) as u8 + 1, head, body));
    }
    seen.durable(300);
    assert!(journal.stats().segments > 5);
    for (at, kind, head, body) in &expected {
        let record = journal.read(at.location).unwrap();
        assert_eq!((record.lsn, record.kind), (at.lsn, *kind));
        assert_eq!((&record.head[..], &record.payload[..]), (&head[..], &body[..]));
    }
    drop(journal);
    let (_journal, recovery, records) = open(dir.path(), small());
    assert_eq!((recovery.records, recovery.next_lsn), (300, 301));
    assert!(
        recovery.damages.is_empty() && recovery.torn.is_none(),
        "{recovery:?}"
    );
    for (record, (at, kind, head, body)) in records.iter().zip(&expected) {
        assert_eq!(
            (record.lsn, record.kind, &record.head, &record.payload),
            (at.lsn, *kind, head, body)
        );
    }
}

#[test]
fn writing_goes_on_in_the_same_segment_after_opening() {
    let dir = tempfile::tempdir().unwrap();
    for start in 0..20u64 {
        let (journal, recovery, records) = open(dir.path(), small());
        assert_eq!((records.len() as u64, recovery.next_lsn), (start, start + 1));
        let (submitter, seen) = submitter(&journal);
        let at = put(&submitter, 1, b"head", &payload(start, 100), 1);
        assert_eq!(at.location.segment, 1);
        seen.durable(1);
    }
}

#[test]
fn dropping_the_journal_writes_what_was_submitted() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, ..) = open(dir.path(), small());
    let (submitter, _) = submitter(&journal);
    for i in 1..=50 {
        put(&submitter, 1, &[], &payload(i, 10), i);
    }
    drop(journal);
    assert!(matches!(
        submitter.submit(1, &[], &Bytes::new(), 51),
        Err(SubmitError::Closing)
    ));
    assert_eq!(open(dir.path(), small()).2.len(), 50);
}

#[test]
fn old_segments_are_reused_and_their_old_records_never_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, ..) = open(dir.path(), small());
    let (submitter, seen) = submitter(&journal);
    let mut first = None;
    for i in 1..=2_000u64 {
        let at = put(&submitter, 1, &[], &payload(i, 500), i);
        first.get_or_insert(at.location);
        if i % 50 == 0 {
            seen.durable(i);
            journal.release_before(i - 20);
        }
    }
    seen.durable(2_000);
    let files = std::fs::read_dir(dir.path()).unwrap().count();
    assert!(files <= 9, "{files} files: segments are reused, not piled up");
    assert!(matches!(
        journal.read(first.unwrap()),
        Err(JournalReadError::Released)
    ));
    drop(journal);
    let (_journal, recovery, records) = open(dir.path(), small());
    assert!(
        recovery.damages.is_empty() && recovery.torn.is_none(),
        "{recovery:?}"
    );
    let lsns: Vec<u64> = records.iter().map(|r| r.lsn).collect();
    assert!(lsns[0] <= 1_980, "nothing above the bound was released");
    assert_eq!(lsns, (lsns[0]..=2_000).collect::<Vec<_>>());
}

#[test]
fn only_one_process_opens_a_directory() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, ..) = open(dir.path(), small());
    assert!(matches!(
        Journal::open(dir.path(), small(), |_| {}),
        Err(OpenError::Locked(_))
    ));
    drop(journal);
    open(dir.path(), small());
}

#[test]
fn each_submitter_receives_its_own_tags() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, ..) = open(
        dir.path(),
        JournalOptions {
            segment_bytes: 4 << 20,
            ..small()
        },
    );
    let threads: Vec<_> = (0..4u64)
        .map(|shard| {
            let (submitter, seen) = submitter(&journal);
            std::thread::spawn(move || {
                let body = Bytes::from(payload(shard, 64));
                for i in 0..100u64 {
                    let many: Vec<_> = (0..10)
                        .map(|k| Submission {
                            kind: 1,
                            head: &[1],
                            payload: &body,
                            payload_crc: None,
                            tag: shard * 10_000 + i * 10 + k,
                            reserved: false,
                        })
                        .collect();
                    let mut lsns = Vec::new();
                    submitter.submit_many(&many, |at| lsns.push(at.lsn)).unwrap();
                    assert!(lsns.windows(2).all(|w| w[1] == w[0] + 1) && lsns.len() == 10);
                }
                seen.durable(shard * 10_000 + 999);
                assert_eq!(seen.durable_tag(), shard * 10_000 + 999);
            })
        })
        .collect();
    threads.into_iter().for_each(|t| t.join().unwrap());
    let stats = journal.stats();
    assert_eq!((stats.records, stats.durable_lsn), (4_000, 4_000));
    assert!(stats.syncs < 4_000, "group commit: {} syncs", stats.syncs);
}

/// Counts operations and fails the chosen ones.
#[derive(Default)]
struct Faulty {
    sync_in: AtomicU64,
    write_in: AtomicU64,
    allocate_fails: std::sync::atomic::AtomicBool,
    syncs: AtomicU64,
    slow_sync_ms: AtomicU64,
}

impl Faulty {
    fn countdown(counter: &AtomicU64, error: i32) -> io::Result<()> {
        let before = counter
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| Some(n.saturating_sub(1)))
            .unwrap();
        if before == 1 {
            Err(io::Error::from_raw_os_error(error))
        } else {
            Ok(())
        }
    }
}

const EIO: i32 = 5;
const ENOSPC: i32 = 28;

impl Faults for Faulty {
    fn before(&self, operation: Operation) -> io::Result<()> {
        match operation {
            Operation::Sync => {
                self.syncs.fetch_add(1, Ordering::SeqCst);
                std::thread::sleep(Duration::from_millis(self.slow_sync_ms.load(Ordering::SeqCst)));
                Self::countdown(&self.sync_in, EIO)
            }
            Operation::Write { .. } => Self::countdown(&self.write_in, EIO),
            Operation::Allocate { .. } if self.allocate_fails.load(Ordering::SeqCst) => {
                Err(io::Error::from_raw_os_error(ENOSPC))
            }
            _ => Ok(()),
        }
    }
}

/// A killed process leaves its writes in the device's cache: they have to be synced before they count as durable.
#[test]
fn records_found_at_a_start_are_synced_before_they_count_as_durable() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, ..) = open(dir.path(), small());
    let (submitter, seen) = submitter(&journal);
    put(&submitter, 1, &[], b"good", 1);
    seen.durable(1);
    drop(journal);
    let faults = Arc::new(Faulty::default());
    faults.sync_in.store(1, Ordering::SeqCst);
    let options = JournalOptions {
        faults: Some(faults),
        ..small()
    };
    let opened = Journal::open(dir.path(), options, |_| {});
    assert!(matches!(opened, Err(OpenError::Io { .. })), "{:?}", opened.err());
}

#[test]
fn a_failed_sync_is_final_and_acknowledges_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(Faulty::default());
    let (journal, ..) = open(
        dir.path(),
        JournalOptions {
            faults: Some(faults.clone()),
            ..small()
        },
    );
    let (submitter, seen) = submitter(&journal);
    put(&submitter, 1, &[], b"good", 1);
    seen.durable(1);
    faults.sync_in.store(1, Ordering::SeqCst);
    put(&submitter, 1, &[], b"lost", 2);
    seen.wait("failure", |e| matches!(e, Event::Failed { .. }));
    let syncs = faults.syncs.load(Ordering::SeqCst);
    assert!(matches!(
        submitter.submit(1, &[], &Bytes::new(), 3),
        Err(SubmitError::Failed(_))
    ));
    assert_eq!(seen.durable_tag(), 1);
    assert_eq!(journal.stats().durable_lsn, 1);
    drop(journal);
    assert_eq!(
        faults.syncs.load(Ordering::SeqCst),
        syncs,
        "no sync is tried again"
    );
    assert_eq!(open(dir.path(), small()).2[0].payload, b"good");
}

#[test]
fn a_failed_write_is_final() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(Faulty::default());
    let (journal, ..) = open(
        dir.path(),
        JournalOptions {
            faults: Some(faults.clone()),
            ..small()
        },
    );
    let (submitter, seen) = submitter(&journal);
    put(&submitter, 1, &[], b"good", 1);
    seen.durable(1);
    faults.write_in.store(1, Ordering::SeqCst);
    put(&submitter, 1, &[], b"lost", 2);
    seen.wait("failure", |e| matches!(e, Event::Failed { .. }));
    assert_eq!(seen.durable_tag(), 1);
}

#[test]
fn a_full_disk_refuses_and_takes_again_when_segments_are_released() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(Faulty::default());
    let options = JournalOptions {
        faults: Some(faults.clone()),
        reserve_bytes: 4096,
        ..small()
    };
    let (journal, ..) = open(dir.path(), options.clone());
    let (submitter, seen) = submitter(&journal);
    for i in 1..=100 {
        put(&submitter, 1, &[], &payload(i, 1000), i);
    }
    faults.allocate_fails.store(true, Ordering::SeqCst);
    let body = Bytes::from(payload(9, 1000));
    let mut tag = 100;
    let error = loop {
        match submitter.submit(1, &[], &body, tag + 1) {
            Ok(_) => tag += 1,
            Err(SubmitError::Busy) => std::thread::sleep(Duration::from_millis(2)),
            Err(error) => break error,
        }
    };
    assert!(matches!(&error, SubmitError::DiskFull(_)), "{error}");
    seen.wait("the warning", |e| matches!(e, Event::DiskFull { .. }));
    let freeing = Submission {
        kind: 2,
        head: b"trim",
        payload: &Bytes::new(),
        payload_crc: None,
        tag: tag + 1,
        reserved: true,
    };
    submitter
        .submit_many(&[freeing], |_| {})
        .expect("the reserve is there for this");
    seen.durable(tag + 1);
    journal.release_before(50);
    seen.wait("room", |e| matches!(e, Event::Room));
    put(&submitter, 1, &[], b"again", tag + 2);
    seen.durable(tag + 2);
    drop(journal);
    let (_journal, recovery, records) = open(dir.path(), small());
    assert!(
        recovery.damages.is_empty() && recovery.torn.is_none(),
        "{recovery:?}"
    );
    assert_eq!(records.last().unwrap().payload, b"again");
    assert_eq!(records.last().unwrap().lsn, tag + 2);
}

#[test]
fn a_full_buffer_is_refused_and_room_is_announced() {
    let dir = tempfile::tempdir().unwrap();
    let faults = Arc::new(Faulty::default());
    let options = JournalOptions {
        faults: Some(faults.clone()),
        buffer_bytes_max: 10_000,
        segment_bytes: 1 << 20,
        ..small()
    };
    let (journal, ..) = open(dir.path(), options);
    let (submitter, seen) = submitter(&journal);
    faults.slow_sync_ms.store(100, Ordering::SeqCst);
    let body = Bytes::from(payload(1, 3000));
    let mut accepted = 0;
    while submitter.submit(1, &[], &body, accepted + 1).is_ok() {
        accepted += 1;
    }
    assert_eq!(accepted, 3, "three records of 3 KB fit 10 KB");
    seen.wait("room", |e| matches!(e, Event::Room));
    put(&submitter, 1, &[], &body, accepted + 1);
    let too_long = Bytes::from(vec![0; 20_000]);
    assert!(matches!(
        submitter.submit(1, &[], &too_long, 9),
        Err(SubmitError::TooLong { .. })
    ));
}

/// A real file system of 3 MB runs full under a journal with segments of 1 MB.
#[test]
fn a_really_full_file_system_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let mount = std::process::Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=3m", "quorate-journal-test"])
        .arg(dir.path())
        .status();
    if !mount.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED a_really_full_file_system_loses_nothing: mounting a tmpfs needs root");
        return;
    }
    struct Unmount<'a>(&'a std::path::Path);
    impl Drop for Unmount<'_> {
        fn drop(&mut self) {
            let _status = std::process::Command::new("umount")
                .arg("-l")
                .arg(self.0)
                .status();
        }
    }
    let _unmount = Unmount(dir.path());
    let options = JournalOptions {
        segment_bytes: 1 << 20,
        reserve_bytes: 8192,
        ..JournalOptions::default()
    };
    let (journal, ..) = open(dir.path(), options.clone());
    let (submitter, seen) = submitter(&journal);
    let body = Bytes::from(payload(3, 4000));
    let mut tag = 0;
    loop {
        match submitter.submit(1, &[], &body, tag + 1) {
            Ok(_) => tag += 1,
            Err(SubmitError::Busy) => std::thread::sleep(Duration::from_millis(2)),
            Err(SubmitError::DiskFull(reason)) => {
                assert!(reason.contains("No space left"), "{reason}");
                break;
            }
            Err(error) => panic!("{error}"),
        }
    }
    seen.durable(tag);
    assert!(tag > 400, "{tag} records fit two segments");
    drop(journal);
    let (_journal, recovery, _) = open(dir.path(), options);
    assert!(
        recovery.damages.is_empty() && recovery.torn.is_none(),
        "{recovery:?}"
    );
    assert_eq!(recovery.records, tag);
}

#[test]
fn a_damaged_record_is_written_again_in_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, ..) = open(dir.path(), small());
    let (s, seen) = submitter(&journal);
    let places: Vec<_> = (1..=3)
        .map(|i| put(&s, 7, b"head", &payload(i, 3_000), i).location)
        .collect();
    seen.durable(3);
    let sound = journal.read(places[1]).unwrap();
    let path = dir.path().join(format!("segment-{:08x}", places[1].segment));
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[places[1].position as usize + 100] ^= 1;
    std::fs::write(&path, &bytes).unwrap();
    assert!(matches!(
        journal.read(places[1]),
        Err(JournalReadError::Damaged(_))
    ));
    journal.rewrite(places[1], &sound).unwrap();
    assert_eq!(journal.read(places[1]).unwrap(), sound);
    drop(journal);
    let (_journal, recovery, records) = open(dir.path(), small());
    assert_eq!((records.len(), recovery.damages.len()), (3, 0));
}

#[test]
fn a_new_journal_can_begin_at_a_later_number() {
    let dir = tempfile::tempdir().unwrap();
    let options = JournalOptions {
        first_lsn: 100,
        ..small()
    };
    let (journal, recovery, _) = open(dir.path(), options.clone());
    assert_eq!(recovery.next_lsn, 100);
    let (s, seen) = submitter(&journal);
    assert_eq!(put(&s, 1, &[], b"x", 1).lsn, 100);
    seen.durable(1);
    drop(journal);
    let (_journal, recovery, records) = open(dir.path(), options);
    assert_eq!(
        (recovery.next_lsn, recovery.damages.len(), records[0].lsn),
        (101, 0, 100)
    );
}

/// Delays every sync until the lock is released.
struct SlowDisk(std::sync::Mutex<()>);

impl Faults for SlowDisk {
    fn before(&self, operation: Operation) -> io::Result<()> {
        if operation == Operation::Sync {
            drop(self.0.lock().unwrap());
        }
        Ok(())
    }
}

#[test]
fn a_slow_disk_shows_in_the_age_of_the_oldest_submission() {
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(SlowDisk(std::sync::Mutex::new(())));
    let options = JournalOptions {
        faults: Some(disk.clone()),
        ..small()
    };
    let (journal, ..) = open(dir.path(), options);
    let (s, seen) = submitter(&journal);
    assert_eq!(journal.oldest_unsynced(), None);
    let held = disk.0.lock().unwrap();
    put(&s, 1, &[], b"waits", 1);
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    while journal.oldest_unsynced().unwrap() < Duration::from_millis(20) {
        assert!(std::time::Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(1));
    }
    drop(held);
    seen.durable(1);
    assert_eq!(journal.oldest_unsynced(), None);
}
