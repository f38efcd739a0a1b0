//! A process is killed with -9 while it writes: everything it acknowledged is there afterwards.

mod support;

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_journal::record::KIND_MARK;
use quorate_journal::{Event, Journal, JournalOptions, SubmitError};
use support::{open, payload};

const DIR_VARIABLE: &str = "QUORATE_JOURNAL_CRASH_DIR";
const KILLS: usize = 5;

fn options() -> JournalOptions {
    JournalOptions {
        segment_bytes: 2 << 20,
        reserve_bytes: 0,
        ..JournalOptions::default()
    }
}

fn body(lsn: u64) -> Vec<u8> {
    payload(lsn, (lsn as usize * 61) % 3_000)
}

/// Not a test of its own: the killed process runs this. Prints each lsn that became durable.
#[test]
fn child_writes_until_it_is_killed() {
    let Some(dir) = std::env::var_os(DIR_VARIABLE) else {
        return;
    };
    let (journal, recovery) = Journal::open(dir.as_ref(), options(), |_| {}).expect("open");
    let submitter = journal.submitter(std::sync::Arc::new(|event| {
        if let Event::Durable { lsn, .. } = event {
            let mut out = std::io::stderr().lock();
            writeln!(out, "durable {lsn}").expect("parent reads");
        }
    }));
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut lsn = recovery.next_lsn;
    while Instant::now() < deadline {
        match submitter.submit(1, &lsn.to_le_bytes(), &Bytes::from(body(lsn)), lsn) {
            Ok(submitted) => {
                assert_eq!(submitted.lsn, lsn);
                lsn += 1;
            }
            Err(SubmitError::Busy) => std::thread::sleep(Duration::from_millis(1)),
            Err(error) => panic!("{error}"),
        }
        if lsn.is_multiple_of(50) {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

#[test]
fn nothing_acknowledged_is_lost_when_the_process_is_killed() {
    let dir = tempfile::tempdir().unwrap();
    for kill in 0..KILLS {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "child_writes_until_it_is_killed", "--nocapture"])
            .env(DIR_VARIABLE, dir.path())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let acknowledged =
            |line: std::io::Result<String>| line.ok()?.strip_prefix("durable ")?.parse::<u64>().ok();
        let mut last = lines.find_map(acknowledged).expect("the child writes");
        std::thread::sleep(Duration::from_millis(30 + 37 * kill as u64));
        child.kill().unwrap();
        last = lines.filter_map(acknowledged).fold(last, u64::max);
        child.wait().unwrap();
        let (_journal, recovery, records) = open(dir.path(), options());
        assert!(recovery.damages.is_empty(), "{recovery:?}");
        assert!(
            recovery.next_lsn > last,
            "kill {kill}: lsn {last} was acknowledged; {recovery:?}"
        );
        let records: Vec<_> = records.into_iter().filter(|r| r.kind != KIND_MARK).collect();
        assert!(records.windows(2).all(|pair| pair[0].lsn < pair[1].lsn));
        assert!(records.iter().all(|r| r.payload == body(r.lsn)));
        // At most two marks for each kill: one of the child, one of this test.
        let marks = recovery.next_lsn - 1 - records.len() as u64;
        assert!(marks <= 2 * (kill as u64 + 1), "{marks} marks");
    }
}
