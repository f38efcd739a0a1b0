//! What a start makes of holes: what is sound before stays, nothing behind is believed without a reason.

use bytes::Bytes;
use quorate_chain::Base;
use quorate_group_log::{Found, Place as LogPlace};
use quorate_journal::{Damage, Location, Lsn, Record, Recovery};
use quorate_types::{GroupId, Index, ServerId};
use quorate_wire::BatchHeader;
use uuid::Uuid;

use super::*;

const ME: ServerId = ServerId(1);

fn group(n: u128) -> GroupId {
    GroupId(Uuid::from_u128(n))
}

fn header(group_id: GroupId, index: Index, epoch: u64) -> [u8; 96] {
    BatchHeader {
        group_id,
        epoch,
        index,
        base_offset: index - 1,
        cumulative_bytes: index,
        session: 1,
        seq: index,
        timestamp_us: 1,
        fencing_token: 0,
        entry_count: 1,
        payload_len: 5,
        payload_crc: crc32fast::hash(&[1, 0, 0, 0, 9]),
    }
    .encode()
}

struct Reader {
    scan: Scan,
    lsn: Lsn,
}

impl Reader {
    fn new(next_lsn: Option<Lsn>) -> Self {
        let mut scan = Scan::default();
        scan.expect_journal(next_lsn);
        Reader {
            scan,
            lsn: next_lsn.unwrap_or(1),
        }
    }

    fn record(&mut self, kind: u8, head: &[u8], payload: &[u8]) -> &mut Self {
        let location = Location {
            segment: 1,
            position: 8192,
            len: 64,
        };
        let record = Record {
            lsn: self.lsn,
            kind,
            head,
            payload,
            location,
        };
        self.lsn += 1;
        self.scan.record(ME, &record).unwrap();
        self
    }

    fn batch(&mut self, n: u128, index: Index) -> &mut Self {
        self.record(KIND_BATCH, &header(group(n), index, 1), &[1, 0, 0, 0, 9])
    }

    fn indexed(&mut self, kind: u8, n: u128, index: Index, more: &[u8]) -> &mut Self {
        let head = [group(n).0.as_bytes(), &index.to_le_bytes()[..], more].concat();
        self.record(kind, &head, &[])
    }

    fn hole(&mut self) -> &mut Self {
        self.lsn += 1;
        self
    }

    fn finish(&mut self) -> &Scan {
        let recovery = Recovery {
            next_lsn: self.lsn,
            ..Recovery::default()
        };
        self.scan.finish(&recovery, false);
        &self.scan
    }
}

fn state(scan: &Scan, n: u128) -> (Index, bool) {
    let recovered = &scan.groups[&group(n)];
    (
        recovered.replica.log().last_index(),
        scan.damaged.contains(&group(n)),
    )
}

#[test]
fn a_group_keeps_what_it_had_before_a_hole() {
    let mut reader = Reader::new(Some(1));
    let scan = reader
        .batch(1, 1)
        .batch(2, 1)
        .batch(1, 2)
        .hole()
        .batch(1, 3)
        .batch(1, 4)
        .batch(3, 1)
        .finish();
    assert_eq!((state(scan, 1), state(scan, 2)), ((2, true), (1, true)));
    assert_eq!(
        state(scan, 3),
        (0, true),
        "what came before its first record here is not known"
    );
    assert!(scan.useless.is_empty());
}

#[test]
fn a_log_that_begins_anew_behind_a_hole_lacks_nothing() {
    let mut reader = Reader::new(Some(1));
    let empty = Base::default().encode();
    reader
        .batch(1, 1)
        .hole()
        .indexed(KIND_CUT, 1, 0, &[])
        .batch(1, 1)
        .batch(1, 2);
    reader
        .record(KIND_BASE, group(2).0.as_bytes(), &empty)
        .batch(2, 1);
    let scan = reader.finish();
    assert_eq!((state(scan, 1), state(scan, 2)), ((2, false), (1, false)));
}

#[test]
fn a_mended_log_goes_on_and_stays_damaged_until_it_is_whole() {
    let mut reader = Reader::new(Some(1));
    reader
        .batch(1, 1)
        .batch(1, 2)
        .hole()
        .batch(1, 4)
        .indexed(KIND_MENDED, 1, 2, &[1])
        .batch(1, 3);
    assert_eq!(state(reader.finish(), 1), (3, true));
    reader.batch(1, 4).indexed(KIND_MENDED, 1, 4, &[0]).batch(1, 5);
    assert_eq!(state(reader.finish(), 1), (5, false));
    // More is missing than when it was mended.
    let mut reader = Reader::new(Some(1));
    reader
        .batch(1, 1)
        .hole()
        .batch(1, 4)
        .indexed(KIND_MENDED, 1, 2, &[1])
        .batch(1, 3);
    assert_eq!(state(reader.finish(), 1), (1, true));
}

#[test]
fn a_dropped_group_is_gone_on_either_side_of_a_hole() {
    let mut reader = Reader::new(Some(1));
    reader.batch(1, 1).hole().indexed(KIND_DROPPED, 1, 0, &[]);
    assert!(reader.finish().groups.is_empty());
}

#[test]
fn what_is_missing_at_either_end_is_a_hole_too() {
    let mut reader = Reader::new(Some(5));
    reader.lsn = 7;
    assert_eq!(
        state(reader.batch(1, 1).finish(), 1),
        (0, true),
        "the journal begins too late"
    );

    let mut reader = Reader::new(None);
    reader.lsn = 7;
    assert_eq!(
        state(reader.batch(1, 1).finish(), 1),
        (1, false),
        "nothing was copied yet: it begins where it begins"
    );

    let mut reader = Reader::new(Some(1));
    reader.batch(1, 1);
    let damage = Damage {
        segment: 2,
        bytes: 0..9,
        first_lsn: 2,
        end_lsn: None,
    };
    let recovery = Recovery {
        next_lsn: 2,
        damages: vec![damage],
        ..Recovery::default()
    };
    reader.scan.finish(&recovery, false);
    assert_eq!(state(&reader.scan, 1), (1, true), "the last segment is lost");
}

#[test]
fn a_group_log_and_the_journal_behind_it_are_one_log() {
    let mut scan = Scan::default();
    let at = |position| LogPlace {
        file: 1,
        position,
        len: 133,
    };
    for index in 1..=3 {
        let head = header(group(1), index, 1);
        let found = Found::Record {
            lsn: 10 + index,
            kind: KIND_BATCH,
            head: &head,
            payload: &[],
            place: at(index as u32),
        };
        scan.group_log(ME, group(1), found).unwrap();
    }
    scan.group_log(ME, group(2), Found::Hole).unwrap();
    scan.expect_journal(Some(14));
    let mut reader = Reader { scan, lsn: 13 };
    // The first one is in the group's log already.
    let scan = reader.batch(1, 3).batch(1, 4).finish();
    assert_eq!((state(scan, 1), state(scan, 2)), ((4, false), (0, true)));
    let recovered = &scan.groups[&group(1)];
    assert_eq!(recovered.places.get(3), Some((13, Place::Log(at(3)))));
    assert!(matches!(recovered.places.get(4), Some((14, Place::Journal(_)))));
    let in_memory: Vec<bool> = (1..=4)
        .map(|index| recovered.replica.payload(index).is_some())
        .collect();
    assert_eq!(in_memory, [false, false, false, true]);
    assert_eq!(
        recovered.replica.payload(4),
        Some(&Bytes::from_static(&[1, 0, 0, 0, 9]))
    );
}

/// As it was written before a reset was written as a drop, too.
#[test]
fn a_log_that_begins_anew_has_its_places_and_no_trim_of_the_lost_one() {
    for is_dropped in [false, true] {
        let mut reader = Reader::new(Some(1));
        for index in 1..=6 {
            reader.batch(1, index);
        }
        let id = group(1);
        let mut base = Base::default();
        for index in 1..=4 {
            base.apply(&BatchHeader::decode(&header(id, index, 1)).unwrap());
        }
        reader.indexed(KIND_TRIM, 1, 6, &[]);
        reader.record(KIND_BASE, id.0.as_bytes(), &base.encode());
        if is_dropped {
            reader.record(KIND_DROPPED, id.0.as_bytes(), &[]);
        }
        let anew = Base {
            index: 1,
            epoch: 5,
            end_offset: 1,
            cumulative_bytes: 1,
            ..Base::default()
        };
        reader.indexed(KIND_CUT, 1, 0, &[]);
        reader.record(KIND_BASE, id.0.as_bytes(), &anew.encode());
        for index in 2..=4 {
            reader.record(KIND_BATCH, &header(id, index, 5), &[1, 0, 0, 0, 9]);
        }
        let scan = reader.finish();
        assert_eq!(state(scan, 1), (4, false));
        let recovered = &scan.groups[&id];
        assert_eq!(recovered.replica.commit_index(), 1);
        for index in 2..=4 {
            assert!(recovered.places.get(index).is_some(), "batch {index}");
        }
    }
}

#[test]
fn a_drop_behind_a_hole_and_a_log_that_begins_anew_lack_nothing() {
    let mut reader = Reader::new(Some(1));
    let anew = Base {
        index: 1,
        epoch: 5,
        end_offset: 1,
        cumulative_bytes: 1,
        ..Base::default()
    };
    reader.batch(1, 1).hole();
    reader.record(KIND_DROPPED, group(1).0.as_bytes(), &[]);
    reader.indexed(KIND_CUT, 1, 0, &[]);
    reader.record(KIND_BASE, group(1).0.as_bytes(), &anew.encode());
    reader.record(KIND_BATCH, &header(group(1), 2, 5), &[1, 0, 0, 0, 9]);
    assert_eq!(state(reader.finish(), 1), (2, false));
}

/// What was dropped may come again before its last records are durable.
#[test]
fn completions_of_a_dropped_group_are_not_told_to_the_one_that_comes_after_it() {
    let dir = std::env::temp_dir().join(format!("quorate-port-{}", std::process::id()));
    let options = quorate_journal::Options {
        segment_bytes: 20 << 20,
        ..quorate_journal::Options::default()
    };
    let (journal, _) = Journal::open(&dir, options, |_| {}).unwrap();
    let (told, events) = std::sync::mpsc::channel();
    let mut port = JournalPort::new(Arc::new(journal), move |event| told.send(event).unwrap());
    let batch = |n: u128, index| Batch {
        header: BatchHeader::decode(&header(group(n), index, 1)).unwrap(),
        payload: Bytes::from_static(&[1, 0, 0, 0, 9]),
        trace: None,
    };
    let mut placed = Vec::new();
    port.batch(&batch(1, 1));
    port.batch(&batch(2, 1));
    placed.extend(port.submit().0);
    // Not even submitted when the group is dropped.
    port.trim(group(1), 1);
    port.batch(&batch(1, 2));
    port.dropped(group(1));
    port.batch(&batch(1, 1));
    port.batch(&batch(2, 2));
    placed.extend(port.submit().0);
    let mut done = Vec::new();
    while !done
        .iter()
        .any(|d: &Durable| (d.group_id, d.index) == (group(2), 2))
    {
        let event = events.recv_timeout(std::time::Duration::from_secs(20)).unwrap();
        if let quorate_journal::Event::Durable { tag, .. } = event {
            done.extend(port.completed(tag));
        }
    }
    let of = |all: &[Durable], n: u128| -> Vec<(u8, Index)> {
        let own = all.iter().filter(|d| d.group_id == group(n));
        own.map(|d| (d.kind, d.index)).collect()
    };
    let placed: Vec<Durable> = placed.iter().map(|p| p.durable).collect();
    assert_eq!(
        of(&placed, 1),
        [(KIND_BATCH, 1), (KIND_BATCH, 1)],
        "before the drop, and behind it"
    );
    assert_eq!(of(&placed, 2), [(KIND_BATCH, 1), (KIND_BATCH, 2)]);
    assert_eq!(of(&done, 1), [(KIND_BATCH, 1)], "only what came behind the drop");
    assert_eq!(port.drops, HashMap::new(), "nothing is remembered of it");
    drop(port);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn places_follow_records_into_the_group_log() {
    let mut places = Places::default();
    let location = Location {
        segment: 1,
        position: 8192,
        len: 64,
    };
    for index in 5..=9 {
        places.note(index, 100 + index, Place::Journal(location));
    }
    // 7 and what lay behind it was cut, and ordered anew.
    places.note(7, 120, Place::Journal(location));
    let there = |file| LogPlace {
        file,
        position: 4096,
        len: 64,
    };
    places.moved(&[(105, there(1)), (107, there(2)), (108, there(3)), (120, there(4))]);
    assert_eq!(places.get(5), Some((105, Place::Log(there(1)))));
    assert_eq!(places.get(6), Some((106, Place::Journal(location))));
    assert_eq!(places.get(7), Some((120, Place::Log(there(4)))));
    assert_eq!(places.get(8), None);
    assert_eq!(places.in_journal(&(100..200)), [(6, 106)]);
    assert_eq!(
        (places.index_at(4, 4096), places.index_at(2, 4096)),
        (Some(7), None)
    );
}
