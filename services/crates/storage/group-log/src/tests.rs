//! Copying, trimming, damage and a full device, on real files with a real journal.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use quorate_journal::{Faults, Journal, Operation, StoredRecord};
use quorate_types::GroupId;

use crate::errors::{GroupLogReadError, OpenError};
use crate::events::{Answer, Event, Rescued};
use crate::options::GroupLogOptions;
use crate::rig::{
    BASE, BATCH, Contents, DROPPED, Owned, Rig, TRUNCATE, Writer, assert_same, files, group, head_of,
    memory_dir, options, payload, start, start_after, start_on,
};

/// Writes batches of one group until the journal has filled some segments.
fn fill(rig: &Rig, id: GroupId, from: u64, count: u64) -> Vec<Owned> {
    fill_journal(&rig.journal, id, from, count)
}

fn fill_journal(journal: &Journal, id: GroupId, from: u64, count: u64) -> Vec<Owned> {
    let writer = Writer::new(journal);
    let written = (from..from + count)
        .map(|i| writer.put(BATCH, id, i, &payload(i, 900)))
        .collect();
    writer.wait_durable();
    written
}

#[test]
fn the_journal_stays_short_and_everything_is_found_again() {
    let dir = memory_dir();
    let rig = start(dir.path(), options(), |_| {}).unwrap();
    let mut expected = Contents::new();
    for part in 0..6 {
        expected
            .entry(group(1))
            .or_default()
            .extend(fill(&rig, group(1), part * 60 + 1, 60));
        rig.settle();
    }
    expected.insert(group(2), fill(&rig, group(2), 1, 3));
    let moved: usize = rig
        .events
        .lock()
        .unwrap()
        .iter()
        .map(|event| {
            if let Event::Moved { records, .. } = event {
                records.len()
            } else {
                0
            }
        })
        .sum();
    assert!(moved > 250, "{moved} records were said to have moved");
    drop(rig);
    let mut rig = start(dir.path(), options(), |_| {}).unwrap();
    assert!(
        rig.contents[&group(1)]
            .iter()
            .filter(|r| r.place.is_some())
            .count()
            > 250
    );
    rig.read_back();
    assert_same(&expected, &rig.contents);
}

/// Several writes of one group in one copy pass, each beginning within the page in which the last one ended.
#[test]
fn a_long_part_is_written_in_pieces_that_fit_together() {
    let dir = memory_dir();
    let mut expected = Contents::new();
    let prepare = |journal: &Journal| {
        let writer = Writer::new(journal);
        for i in 1..=60u64 {
            for id in [1, 2].map(group) {
                let record = writer.put(BATCH, id, i, &payload(i, (i as usize * 97) % 900));
                expected.entry(id).or_default().push(record);
            }
        }
        writer.wait_durable();
    };
    let in_pieces = GroupLogOptions {
        pending_bytes: 1_500,
        ..options()
    };
    let rig = start_after(dir.path(), in_pieces, prepare, |_| {}).unwrap();
    rig.settle();
    drop(rig);
    let mut rig = start(dir.path(), options(), |_| {}).unwrap();
    let is_copied = |r: &&Owned| r.place.is_some();
    assert!(rig.contents[&group(1)].iter().filter(is_copied).count() > 20);
    assert_eq!(rig.holes, []);
    rig.read_back();
    assert_same(&expected, &rig.contents);
}

#[test]
fn an_idle_group_pins_no_segment_and_a_dropped_one_leaves_no_file() {
    let dir = memory_dir();
    let rig = start(dir.path(), options(), |_| {}).unwrap();
    fill(&rig, group(1), 1, 1);
    for part in 0..4 {
        fill(&rig, group(2), part * 60 + 1, 60);
        rig.settle();
    }
    assert!(rig.journal.first_lsn().unwrap() > 150);
    assert_eq!(files(dir.path(), group(1)).len(), 1);
    Writer::new(&rig.journal).put(DROPPED, group(2), 0, &[]);
    fill(&rig, group(3), 1, 60);
    rig.settle();
    assert_eq!(files(dir.path(), group(2)), Vec::<std::path::PathBuf>::new());
}

#[test]
fn trimming_frees_whole_files_and_only_below_the_base() {
    let dir = memory_dir();
    let rig = start(dir.path(), options(), |_| {}).unwrap();
    let written = fill(&rig, group(1), 1, 200);
    rig.settle();
    let before = files(dir.path(), group(1)).len();
    let base_lsn = written[149].lsn;
    rig.logs().trim(group(1), 100, base_lsn);
    rig.wait("files to be freed", |_| {
        files(dir.path(), group(1)).len() <= before - 7
    });
    drop(rig);
    let rig = start(dir.path(), options(), |_| {}).unwrap();
    let first = rig.contents[&group(1)][0].lsn;
    assert!(first > 80 && first <= written[100].lsn, "the oldest is {first}");
}

#[test]
fn reads_are_joined_and_wrong_bytes_never_given() {
    let dir = memory_dir();
    let rig = start(dir.path(), options(), |_| {}).unwrap();
    fill(&rig, group(1), 1, 120);
    rig.settle();
    drop(rig);
    let rig = start(dir.path(), options(), |_| {}).unwrap();
    let records: Vec<_> = rig.contents[&group(1)]
        .iter()
        .filter(|r| r.place.is_some())
        .cloned()
        .collect();
    let places: Vec<_> = records.iter().map(|r| (r.lsn, r.place.unwrap())).collect();
    let victim = places[3].1;
    let path = files(dir.path(), group(1))[0].clone();
    let mut bytes = std::fs::read(&path).unwrap();
    bytes[victim.position as usize + 300] ^= 0x10;
    std::fs::write(&path, bytes).unwrap();
    let read = rig.logs().read(group(1), &places);
    for (i, (record, read)) in records.iter().zip(read).enumerate() {
        match read {
            Ok(read) => assert_eq!(read.payload, payload(record_index(record), 900)),
            Err(GroupLogReadError::Damaged(place)) => assert_eq!((i, place), (3, victim)),
            Err(error) => panic!("{error}"),
        }
    }
    let sound = StoredRecord {
        lsn: records[3].lsn,
        kind: BATCH,
        head: records[3].head.clone().into(),
        payload: payload(record_index(&records[3]), 900).into(),
    };
    rig.logs().rewrite(group(1), victim, &sound).unwrap();
    assert_eq!(rig.logs().read(group(1), &places[3..4]).remove(0).unwrap(), sound);
    // A full file ends with its last record, whatever was repaired in it.
    let last = places
        .iter()
        .rposition(|(_, place)| place.file == victim.file)
        .unwrap();
    assert!(
        places[last].1.file < places[places.len() - 1].1.file,
        "it is full"
    );
    let bytes_before = std::fs::metadata(&path).unwrap().len();
    assert_ne!(bytes_before % 4096, 0, "it ends within a page");
    let repaired = rig.logs().read(group(1), &places[last..=last]).remove(0).unwrap();
    rig.logs().rewrite(group(1), places[last].1, &repaired).unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().len(), bytes_before);
    let other = (places[3].0 + 1, victim);
    assert!(matches!(
        rig.logs().read(group(1), &[other])[0],
        Err(GroupLogReadError::Released)
    ));
    drop(rig);
    assert_eq!(start(dir.path(), options(), |_| {}).unwrap().holes, []);
}

fn record_index(record: &Owned) -> u64 {
    u64::from_le_bytes(record.head[16..24].try_into().unwrap())
}

/// Flips a byte of the journal's oldest segment, somewhere in the record whose payload is this.
fn harm_journal(dir: &std::path::Path, payload: &[u8]) {
    let mut segments: Vec<_> = std::fs::read_dir(dir.join("journal"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    segments.retain(|p| p.file_name().unwrap().to_string_lossy().starts_with("segment-"));
    for path in segments {
        let mut bytes = std::fs::read(&path).unwrap();
        if let Some(at) = bytes.windows(payload.len()).position(|w| w == payload) {
            bytes[at + 5] ^= 1;
            std::fs::write(&path, bytes).unwrap();
            return;
        }
    }
    panic!("the record is not in the journal");
}

#[test]
fn records_that_the_journal_has_lost_are_asked_for() {
    for is_available in [true, false] {
        let dir = memory_dir();
        let written = Arc::new(OnceLock::new());
        let known = written.clone();
        let prepare = |journal: &Journal| {
            let written = written.get_or_init(|| fill_journal(journal, group(1), 1, 60));
            harm_journal(dir.path(), &written[6].payload);
        };
        let respond = move |event: &Event| {
            if let Event::Lost { lsns, answer } = event {
                let lost: &Owned = &known.get().unwrap()[6];
                assert_eq!(*lsns, lost.lsn..lost.lsn + 1);
                let rescued = Rescued {
                    group: group(1),
                    lsn: lost.lsn,
                    kind: BATCH,
                    head: lost.head.clone().into(),
                    payload: if is_available {
                        Ok(lost.payload.clone().into())
                    } else {
                        Err(900)
                    },
                };
                answer.send(Answer::Record(rescued)).unwrap();
                answer.send(Answer::Done).unwrap();
            }
        };
        let rig = start_after(dir.path(), options(), prepare, respond).unwrap();
        rig.settle();
        assert!(
            !rig.events
                .lock()
                .unwrap()
                .iter()
                .any(|e| matches!(e, Event::Incomplete { .. }))
        );
        drop(rig);
        let mut rig = start(dir.path(), options(), |_| {}).unwrap();
        assert_eq!(rig.holes, []);
        if is_available {
            rig.read_back();
            let written = written.get().unwrap().clone();
            assert_same(&Contents::from([(group(1), written)]), &rig.contents);
        } else {
            let at = &rig.contents[&group(1)][6];
            let read = rig.logs().read(group(1), &[(at.lsn, at.place.unwrap())]);
            assert!(
                matches!(read[0], Err(GroupLogReadError::Damaged(_))),
                "its place is kept, and nothing wrong is read"
            );
        }
    }
}

/// Nobody can say that the lost record was not one of the stopped group's.
#[test]
fn the_log_of_a_group_that_nobody_answers_for_has_a_hole_where_records_stay_lost() {
    for is_rescued in [true, false] {
        let dir = memory_dir();
        let prepare = |journal: &Journal| {
            fill_journal(journal, group(2), 1, 10);
            let written = fill_journal(journal, group(1), 1, 60);
            harm_journal(dir.path(), &written[6].payload);
        };
        let respond = move |event: &Event| {
            if let Event::Lost { lsns, answer } = event {
                if is_rescued {
                    let rescued = Rescued {
                        group: group(1),
                        lsn: lsns.start,
                        kind: BATCH,
                        head: head_of(group(1), 7).into(),
                        payload: Ok(payload(7, 900).into()),
                    };
                    answer.send(Answer::Record(rescued)).unwrap();
                }
                answer.send(Answer::Stopped(group(2))).unwrap();
                answer.send(Answer::Done).unwrap();
            }
        };
        let rig = start_after(dir.path(), options(), prepare, respond).unwrap();
        rig.settle();
        drop(rig);
        let rig = start(dir.path(), options(), |_| {}).unwrap();
        let marked = if is_rescued { vec![] } else { vec![group(2)] };
        assert_eq!(rig.holes, marked);
    }
}

#[test]
fn lost_records_that_arrive_slowly_are_waited_for() {
    let dir = memory_dir();
    let timeout = Duration::from_millis(400);
    let respond = move |event: &Event| {
        let Event::Lost { lsns, answer } = event else {
            return;
        };
        let (lsns, answer) = (lsns.clone(), answer.clone());
        // Longer than the timeout in total, and never silent for as long.
        std::thread::spawn(move || {
            for lsn in lsns {
                std::thread::sleep(timeout * 2 / 3);
                let rescued = Rescued {
                    group: group(1),
                    lsn,
                    kind: BATCH,
                    head: head_of(group(1), lsn).into(),
                    payload: Ok(payload(lsn, 900).into()),
                };
                answer.send(Answer::Record(rescued)).unwrap();
            }
            std::thread::sleep(timeout * 2 / 3);
            answer.send(Answer::Done).unwrap();
        });
    };
    let options = GroupLogOptions {
        rescue_timeout: timeout,
        ..options()
    };
    let prepare = |journal: &Journal| {
        let written = fill_journal(journal, group(1), 1, 60);
        harm_journal(dir.path(), &written[6].payload);
    };
    let rig = start_after(dir.path(), options, prepare, respond).unwrap();
    rig.settle();
    let events = rig.events.lock().unwrap();
    let asked = events.iter().filter(|e| matches!(e, Event::Lost { .. })).count();
    assert_eq!(asked, 1, "no copy pass was repeated");
}

/// Writes fail until the gate is open.
struct Gate(Arc<AtomicBool>);

impl Faults for Gate {
    fn before(&self, operation: Operation) -> std::io::Result<()> {
        // The first manifest is written at the start.
        let is_record = matches!(operation, Operation::Write { bytes } if bytes > 1_000);
        if is_record && !self.0.load(Ordering::SeqCst) {
            return Err(std::io::ErrorKind::StorageFull.into());
        }
        Ok(())
    }
}

#[test]
fn a_hole_known_from_the_start_is_marked_in_every_log_and_not_asked_for() {
    let dir = memory_dir();
    let gate = || GroupLogOptions {
        faults: Some(Arc::new(Gate(Arc::default()))),
        ..options()
    };
    let rig = start(dir.path(), gate(), |_| {}).unwrap();
    let written = fill(&rig, group(1), 1, 60);
    drop(rig);
    harm_journal(dir.path(), &written[6].payload);
    let never = |event: &Event| assert!(!matches!(event, Event::Lost { .. }));
    let rig = start(dir.path(), options(), never).unwrap();
    rig.settle();
    drop(rig);
    let rig = start(dir.path(), options(), never).unwrap();
    assert_eq!(rig.holes, [group(1)]);
}

#[test]
fn a_segment_that_is_gone_is_marked_in_every_log() {
    let dir = memory_dir();
    let gate = GroupLogOptions {
        faults: Some(Arc::new(Gate(Arc::default()))),
        ..options()
    };
    let rig = start(dir.path(), gate, |_| {}).unwrap();
    fill(&rig, group(1), 1, 150);
    drop(rig);
    let names = std::fs::read_dir(dir.path().join("journal")).unwrap();
    let mut segments: Vec<_> = names.map(|entry| entry.unwrap().path()).collect();
    segments.retain(|path| path.to_string_lossy().contains("segment-"));
    segments.sort();
    assert!(segments.len() > 3, "some are before and behind it");
    std::fs::remove_file(&segments[1]).unwrap();
    let rig = start(dir.path(), options(), |_| {}).unwrap();
    rig.settle();
    drop(rig);
    let rig = start(dir.path(), options(), |_| {}).unwrap();
    assert_eq!(rig.holes, [group(1)]);
}

#[test]
fn a_full_device_stops_the_copying_and_loses_nothing() {
    let dir = memory_dir();
    let go = Arc::new(AtomicBool::new(false));
    let faults = Arc::new(Gate(go.clone()));
    let rig = start(
        dir.path(),
        GroupLogOptions {
            faults: Some(faults),
            ..options()
        },
        |_| {},
    )
    .unwrap();
    let written = fill(&rig, group(1), 1, 150);
    let is = |rig: &Rig, wanted: fn(&Event) -> bool| rig.events.lock().unwrap().iter().any(wanted);
    rig.wait("the stall to be reported", |rig| {
        is(rig, |e| matches!(e, Event::Stalled { .. }))
    });
    assert!(
        rig.journal.stats().segments > 3,
        "the journal keeps records that are not copied"
    );
    go.store(true, Ordering::SeqCst);
    rig.settle();
    assert!(is(&rig, |e| matches!(e, Event::Resumed)));
    drop(rig);
    let mut rig = start(dir.path(), options(), |_| {}).unwrap();
    rig.read_back();
    assert_same(&Contents::from([(group(1), written)]), &rig.contents);
}

#[test]
fn too_little_space_is_reported_before_it_does_harm() {
    let dir = memory_dir();
    let rig = start(
        dir.path(),
        GroupLogOptions {
            reserve_bytes: u64::MAX / 2,
            ..options()
        },
        |_| {},
    )
    .unwrap();
    fill(&rig, group(1), 1, 60);
    rig.wait("the stall to be reported", |rig| {
        let events = rig.events.lock().unwrap();
        events
            .iter()
            .any(|e| matches!(e, Event::Stalled { reason } if reason.contains("free space")))
    });
    assert_eq!(files(dir.path(), group(1)).len(), 0);
}

#[test]
fn the_scrubber_finds_damage_and_closes_unneeded_holes() {
    let dir = memory_dir();
    let fast = || GroupLogOptions {
        scrub_bytes_per_s: 1 << 30,
        ..options()
    };
    let rig = start(dir.path(), fast(), |_| {}).unwrap();
    let written = fill(&rig, group(1), 1, 20);
    let writer = Writer::new(&rig.journal);
    let truncation = writer.put(TRUNCATE, group(1), 20, &[0xcc; 700]);
    fill(&rig, group(1), 21, 60);
    rig.settle();
    drop(rig);
    let rig = start(dir.path(), options(), |_| {}).unwrap();
    let place_of = |lsn: u64| {
        rig.contents[&group(1)]
            .iter()
            .find(|r| r.lsn == lsn)
            .unwrap()
            .place
            .unwrap()
    };
    let (batch, unneeded) = (place_of(written[4].lsn), place_of(truncation.lsn));
    drop(rig);
    for place in [batch, unneeded] {
        let path = dir
            .path()
            .join(format!("groups/{}/{:08x}", group(1).0, place.file));
        let mut bytes = std::fs::read(&path).unwrap();
        bytes[place.position as usize + 20] ^= 1; // In the header: only the place is known.
        std::fs::write(&path, bytes).unwrap();
    }
    let found = Arc::new(Mutex::new(Vec::new()));
    let sink = found.clone();
    let respond = move |event: &Event| {
        if let Event::Damaged { place, answer, .. } = event {
            sink.lock().unwrap().push((place.file, place.position));
            answer
                .send((place.file, place.position) == (batch.file, batch.position))
                .unwrap();
        }
    };
    let rig = start(dir.path(), fast(), respond).unwrap();
    assert!(rig.holes.len() >= 2, "found at the start, too");
    rig.wait("both to be found", |_| {
        let found = found.lock().unwrap();
        found.contains(&(batch.file, batch.position)) && found.contains(&(unneeded.file, unneeded.position))
    });
    let sound = StoredRecord {
        lsn: written[4].lsn,
        kind: BATCH,
        head: Bytes::from(written[4].head.clone()),
        payload: Bytes::from(written[4].payload.clone()),
    };
    rig.logs().rewrite(group(1), batch, &sound).unwrap();
    rig.wait("the other to be closed", |rig| rig.logs().stats().rewritten >= 2);
    let scrubs = rig.logs().stats().scrubs;
    rig.wait("two more passes", |rig| rig.logs().stats().scrubs >= scrubs + 2);
    let was_asked = rig
        .events
        .lock()
        .unwrap()
        .iter()
        .any(|e| matches!(e, Event::Incomplete { group: Some(_) }));
    assert!(was_asked, "the group must state its log's bounds again");
    drop(rig);
    assert_eq!(start(dir.path(), options(), |_| {}).unwrap().holes, []);
}

#[test]
fn logs_of_another_journal_are_refused_and_lost_ones_noticed() {
    let (one, two) = (memory_dir(), memory_dir());
    for dir in [&one, &two] {
        let rig = start(dir.path(), options(), |_| {}).unwrap();
        fill(&rig, group(1), 1, 60);
        rig.settle();
    }
    let swap = one.path().join("aside");
    std::fs::rename(one.path().join("groups"), &swap).unwrap();
    std::fs::rename(two.path().join("groups"), one.path().join("groups")).unwrap();
    assert!(matches!(
        start(one.path(), options(), |_| {}),
        Err(OpenError::Mismatched(_))
    ));
    std::fs::remove_dir_all(one.path().join("groups")).unwrap();
    let rig = start(one.path(), options(), |_| {}).unwrap();
    assert_eq!(rig.copied_lsn, 0);
    assert!(
        rig.journal.first_lsn().unwrap() > 1,
        "so its reader sees that something is missing"
    );
    assert!(matches!(
        start(one.path(), options(), |_| {}),
        Err(OpenError::Locked(_))
    ));
}

#[test]
fn records_trimmed_before_they_are_copied_never_are() {
    let dir = memory_dir();
    let keeping = |keep_segments| GroupLogOptions {
        keep_segments,
        keep_for: Duration::from_secs(3_600),
        ..options()
    };
    let rig = start(dir.path(), keeping(3), |_| {}).unwrap();
    let mut written = fill(&rig, group(1), 1, 200);
    rig.wait("all but the kept segments to be copied", |rig| {
        rig.journal.stats().segments == 4
    });
    let copied = rig.logs().stats().copied_lsn;
    assert!((60..180).contains(&copied), "{copied}");
    // The trim covers all copied records and the ones not copied yet.
    let base = written[189].lsn;
    rig.logs().trim(group(1), 190, base);
    written.extend(fill(&rig, group(1), 201, 120));
    rig.wait("the records behind the base to be copied", |rig| {
        rig.logs().stats().copied_lsn > base && rig.journal.stats().segments == 4
    });
    let records = rig.logs().stats().records;
    drop(rig);
    let mut rig = start(dir.path(), keeping(3), |_| {}).unwrap();
    assert_eq!(rig.holes, []);
    let first = rig.contents[&group(1)][0].lsn;
    assert_eq!(first, base, "all from the base on, and nothing before it");
    let was_copied = |lsn: &u64| *lsn < copied || *lsn >= base;
    let expected = (1..=rig.copied_lsn).filter(was_copied).count() as u64;
    assert!(
        records.abs_diff(expected) <= 2,
        "{records} records copied, of {expected}"
    );
    rig.read_back();
    written.retain(|record| record.lsn >= base);
    assert_same(&Contents::from([(group(1), written)]), &rig.contents);
}

/// Truncated batches lie before the base, one of them with a greater index: the base does not cover the group's log.
#[test]
fn a_base_does_not_cover_batches_truncated_before_it() {
    let dir = memory_dir();
    let keeping = GroupLogOptions {
        keep_segments: 6,
        keep_for: Duration::from_secs(3_600),
        ..options()
    };
    let rig = start(dir.path(), keeping.clone(), |_| {}).unwrap();
    let writer = Writer::new(&rig.journal);
    (1..=20).for_each(|i| drop(writer.put(BATCH, group(1), i, &payload(i, 900))));
    let truncate = writer.put(TRUNCATE, group(1), 5, &[]).lsn;
    (6..=9).for_each(|i| drop(writer.put(BATCH, group(1), i, &payload(i, 900))));
    let base = writer.put(BASE, group(1), 8, &[]).lsn;
    writer.wait_durable();
    assert_eq!(rig.logs().stats().records, 0);
    rig.logs().trim(group(1), 8, base);
    fill(&rig, group(1), 10, 300);
    rig.wait("all but the kept segments to be copied", |rig| {
        rig.journal.stats().segments == 7
    });
    drop(rig);
    let rig = start(dir.path(), keeping, |_| {}).unwrap();
    let kinds: Vec<_> = rig.contents[&group(1)].iter().map(|r| (r.lsn, r.kind)).collect();
    assert_eq!(
        kinds[0],
        (9, BATCH),
        "the first truncated batch behind the base's index"
    );
    assert!(kinds.contains(&(truncate, TRUNCATE)), "its truncation follows");
    assert!(kinds.contains(&(base, BASE)));
}

#[test]
fn a_segment_that_waits_long_is_copied_though_few_are_full() {
    let dir = memory_dir();
    let patient = GroupLogOptions {
        keep_segments: 1_000,
        keep_for: Duration::from_millis(50),
        ..options()
    };
    let rig = start(dir.path(), patient, |_| {}).unwrap();
    fill(&rig, group(1), 1, 120);
    rig.settle();
    assert!(rig.logs().stats().records > 60);
}

/// Kept segments are released when the journal needs them, even if nothing can be copied.
#[test]
fn a_full_journal_does_not_wait_for_trimmed_records() {
    struct Full(AtomicBool);
    impl Faults for Full {
        fn before(&self, operation: Operation) -> std::io::Result<()> {
            let is_growing = matches!(operation, Operation::Allocate { .. });
            if is_growing && self.0.load(Ordering::SeqCst) {
                return Err(std::io::Error::other("no space"));
            }
            Ok(())
        }
    }
    let dir = memory_dir();
    let full = Arc::new(Full(AtomicBool::new(false)));
    let keeping = GroupLogOptions {
        keep_segments: 1_000,
        keep_for: Duration::from_secs(3_600),
        // More than the device has left.
        reserve_bytes: 1 << 60,
        ..options()
    };
    let journal_options = quorate_journal::JournalOptions {
        faults: Some(full.clone()),
        ..crate::rig::journal_options()
    };
    let rig = start_on(dir.path(), keeping, journal_options, |_| {}, |_| {}).unwrap();
    let written = fill(&rig, group(1), 1, 120);
    let before = rig.journal.stats().segments;
    assert!(before >= 4 && rig.journal.first_lsn() == Some(1));
    rig.logs().trim(group(1), 120, written[119].lsn + 1);
    full.0.store(true, Ordering::SeqCst);
    let submitter = rig.journal.submitter(Arc::new(|_| {}));
    let (head, body) = (head_of(group(1), 121), Bytes::from(payload(121, 900)));
    rig.wait("the journal to be full", |rig| {
        let _refused = submitter.submit(BATCH, &head, &body, 1).is_err();
        rig.journal.is_disk_full() || rig.journal.first_lsn() > Some(1)
    });
    rig.wait("the segments to be released", |rig| {
        rig.journal.first_lsn() > Some(60)
    });
    assert_eq!(rig.logs().stats().records, 0);
    rig.wait("the journal to continue", |rig| !rig.journal.is_disk_full());
}
