//! The process dies at each point between journal and group log, and unsynced bytes are scrambled. After a restart
//! every record is there once, in order, and copying continues to its end.

use std::path::Path;

use crate::GroupLogOptions;
use crate::disk::Disk;
use crate::manifest::Manifest;
use crate::rig::{
    self, BASE, BATCH, Contents, DROPPED, Dying, TRUNCATE, Writer, assert_same, copy_dir, files, group,
    memory_dir, payload, start,
};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// Fills a journal for three groups, one of which is dropped and returns; answers the expected contents.
fn workload(dir: &Path) -> Contents {
    let (journal, _) =
        quorate_journal::Journal::open(&dir.join("journal"), rig::journal_options(), |_| {}).unwrap();
    let writer = Writer::new(&journal);
    let mut expected = Contents::new();
    for i in 1..=180u64 {
        let id = group([1, 2, 3][(i % 3) as usize]);
        let kind = if i % 40 == 0 {
            BASE
        } else if i % 31 == 0 {
            TRUNCATE
        } else {
            BATCH
        };
        let record = writer.put(kind, id, i, &payload(i, (i as usize * 97) % 2_500));
        expected.entry(id).or_default().push(record);
        if i == 100 {
            writer.put(DROPPED, group(3), 0, &[]);
            expected.remove(&group(3));
        }
    }
    writer.wait_durable();
    expected
}

/// Scrambles unsynced bytes: after a loss of power they may be anything.
fn scramble(dir: &Path, seed: u64) {
    let groups = dir.join("groups");
    let manifest = Manifest::load(&Disk::new(&groups, None))
        .unwrap()
        .unwrap_or_default();
    for id in 1..=3 {
        let entry = manifest.groups.iter().find(|entry| entry.group == group(id));
        for path in files(dir, group(id)) {
            let number = u32::from_str_radix(&path.file_name().unwrap().to_string_lossy(), 16).unwrap();
            let keep = match entry {
                Some(e) if number < e.last_file => continue,
                Some(e) if number == e.last_file => e.end as usize,
                _ => 0,
            };
            let mut bytes = std::fs::read(&path).unwrap();
            let len = if seed.is_multiple_of(3) {
                keep
            } else {
                bytes.len().max(keep)
            };
            bytes.resize(len.max(keep), 0);
            for (i, byte) in bytes.iter_mut().enumerate().skip(keep) {
                *byte = byte
                    .wrapping_mul(seed as u8 | 1)
                    .wrapping_add((i as u64 * seed) as u8);
            }
            std::fs::write(&path, bytes).unwrap();
        }
    }
}

/// Runs until everything is copied or the disk fails; answers the number of operations done.
fn run_until_dead(dir: &Path, fail_from: usize) -> usize {
    let faults = Arc::new(Dying {
        fail_from,
        ..Dying::default()
    });
    let options = GroupLogOptions {
        faults: Some(faults.clone()),
        ..rig::options()
    };
    // The disk may fail before the start is complete.
    if let Ok(rig) = start(dir, options, |_| {})
        && let Some(logs) = &rig.logs
    {
        logs.trim(group(1), 80, 100);
        let deadline = Instant::now() + Duration::from_secs(20);
        while rig.journal.stats().segments > 1 && faults.done.load(Ordering::SeqCst) < fail_from {
            assert!(
                Instant::now() < deadline,
                "neither done nor dead: {:?}",
                logs.stats()
            );
            std::thread::sleep(Duration::from_micros(200));
        }
    }
    faults.done.load(Ordering::SeqCst)
}

#[test]
fn nothing_is_lost_or_doubled_whenever_the_process_dies() {
    let origin = memory_dir();
    let expected = workload(origin.path());
    let whole = memory_dir();
    copy_dir(origin.path(), whole.path());
    let operations = run_until_dead(whole.path(), usize::MAX);
    assert!(
        operations > 60,
        "{operations} operations are too few to say anything"
    );
    for fail_from in 0..operations {
        let dir = memory_dir();
        copy_dir(origin.path(), dir.path());
        run_until_dead(dir.path(), fail_from);
        scramble(dir.path(), fail_from as u64 + 2);
        // Twice: the second start finds the first one's results.
        for _ in 0..2 {
            let mut rig =
                start(dir.path(), rig::options(), |_| {}).unwrap_or_else(|e| panic!("{fail_from}: {e}"));
            rig.read_back();
            assert_eq!(rig.holes, [], "died at operation {fail_from}");
            assert_same(&trimmed_as(&expected, &rig.contents), &rig.contents);
            rig.settle();
        }
    }
}

/// Leaves out trimmed records of group 1.
fn trimmed_as(expected: &Contents, found: &Contents) -> Contents {
    let mut expected = expected.clone();
    let first = found[&group(1)].first().map_or(0, |record| record.lsn);
    assert!(first <= 100, "trimmed too far: {first}");
    expected
        .get_mut(&group(1))
        .unwrap()
        .retain(|record| record.lsn >= first);
    expected
}
