//! Recovery around holes: sound records before a hole stay, and records behind it count only with a reason.

use bytes::Bytes;
use quorate_chain::Base;
use quorate_group_log::{Found, LogLocation};
use quorate_journal::record::KIND_MARK;
use quorate_journal::{Damage, JournalRecord, Location, Lsn, Recovery};
use quorate_types::{GroupId, Index, ServerId};
use quorate_wire::BatchHeader;
use uuid::Uuid;

use crate::record::*;
use crate::{LogState, Place, Places, Recovered, Scan};

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
    /// Position of the next record in the first segment.
    position: u32,
}

impl Reader {
    fn new(next_lsn: Option<Lsn>) -> Self {
        let mut scan = Scan::new(ME);
        scan.expect_journal(next_lsn);
        Reader {
            scan,
            lsn: next_lsn.unwrap_or(1),
            position: 8192,
        }
    }

    fn record(&mut self, kind: u8, head: &[u8], payload: &[u8]) -> &mut Self {
        let location = Location {
            segment: 1,
            position: self.position,
            len: 64,
        };
        let record = JournalRecord {
            lsn: self.lsn,
            kind,
            head,
            payload,
            location,
        };
        self.lsn += 1;
        self.position += 64;
        self.scan.record(&record).unwrap();
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
        self.position += 64;
        self
    }

    fn finish(self) -> Recovered {
        let recovery = Recovery {
            next_lsn: self.lsn,
            ..Recovery::default()
        };
        self.scan.finish(&recovery)
    }
}

fn state(recovered: &Recovered, n: u128) -> (Index, bool) {
    let found = &recovered.groups[&group(n)];
    (found.replica.log().last_index(), found.state == LogState::Damaged)
}

/// The one range of records that is known to be missing.
fn missing(recovered: &Recovered) -> (Lsn, Lsn) {
    assert_eq!(recovered.missing.len(), 1);
    (recovered.missing[0].start, recovered.missing[0].end)
}

#[test]
fn a_group_keeps_what_it_had_before_a_hole() {
    let mut reader = Reader::new(Some(1));
    reader.batch(1, 1).batch(2, 1).batch(1, 2).hole();
    reader.batch(1, 3).batch(1, 4).batch(3, 2);
    let found = reader.finish();
    assert_eq!((state(&found, 1), state(&found, 2)), ((2, true), (1, true)));
    assert_eq!(state(&found, 3), (0, true), "an earlier record may be missing");
}

#[test]
fn a_log_that_is_reset_behind_a_hole_lacks_nothing() {
    let mut reader = Reader::new(Some(1));
    let empty = Base::default().encode();
    reader
        .batch(1, 1)
        .hole()
        .indexed(KIND_TRUNCATE, 1, 0, &[])
        .batch(1, 1)
        .batch(1, 2);
    reader
        .record(KIND_BASE, group(2).0.as_bytes(), &empty)
        .batch(2, 1);
    // The first batch of a group created behind the hole.
    reader.batch(3, 1).batch(3, 2);
    let found = reader.finish();
    assert_eq!((state(&found, 1), state(&found, 2)), ((2, false), (1, false)));
    assert_eq!(state(&found, 3), (2, false));
}

#[test]
fn a_first_batch_behind_a_hole_replaces_a_log_with_a_base() {
    let mut reader = Reader::new(Some(1));
    let base = Base {
        index: 5,
        epoch: 1,
        end_offset: 5,
        cumulative_bytes: 5,
        ..Base::default()
    };
    reader.record(KIND_BASE, group(1).0.as_bytes(), &base.encode());
    reader.batch(1, 6).batch(1, 7);
    // The record of the truncation is missing.
    reader.hole().batch(1, 1).batch(1, 2);
    let found = reader.finish();
    assert_eq!(state(&found, 1), (2, false));
    assert_eq!(found.groups[&group(1)].replica.log().base().index, 0);
}

#[test]
fn a_truncation_of_batches_that_were_freed_is_no_damage_where_a_later_base_says_so() {
    let base = |index| {
        let base = Base {
            index,
            epoch: 1,
            end_offset: index,
            cumulative_bytes: index,
            ..Base::default()
        };
        base.encode()
    };
    let freed = || {
        let mut reader = Reader::new(Some(1));
        reader.record(KIND_BASE, group(1).0.as_bytes(), &base(5));
        // Batches 6 to 8 lay in segments that are free.
        reader.indexed(KIND_TRUNCATE, 1, 7, &[]).batch(1, 8).batch(1, 9);
        reader
    };
    let mut reader = freed();
    reader
        .record(KIND_BASE, group(1).0.as_bytes(), &base(8))
        .batch(1, 10);
    assert_eq!(state(&reader.finish(), 1), (10, false));
    assert_eq!(state(&freed().finish(), 1), (5, true), "they may be lost");
    let mut reader = freed();
    reader
        .record(KIND_BASE, group(1).0.as_bytes(), &base(6))
        .batch(1, 10);
    assert_eq!(state(&reader.finish(), 1), (5, true), "batch 7 is not trimmed");
}

#[test]
fn a_repaired_log_continues_and_stays_damaged_until_it_is_whole() {
    let repaired = || {
        let mut reader = Reader::new(Some(1));
        reader.batch(1, 1).batch(1, 2).hole().batch(1, 4);
        reader.indexed(KIND_REPAIRED, 1, 2, &[1]).batch(1, 3);
        reader
    };
    assert_eq!(state(&repaired().finish(), 1), (3, true));
    let mut reader = repaired();
    reader.batch(1, 4).indexed(KIND_REPAIRED, 1, 4, &[0]).batch(1, 5);
    assert_eq!(state(&reader.finish(), 1), (5, false));
    // More is missing than when it was repaired.
    let mut reader = Reader::new(Some(1));
    reader
        .batch(1, 1)
        .hole()
        .batch(1, 4)
        .indexed(KIND_REPAIRED, 1, 2, &[1])
        .batch(1, 3);
    assert_eq!(state(&reader.finish(), 1), (1, true));
}

/// A base behind batches of epoch 1 with one entry of one byte each.
fn base(index: Index) -> Base {
    Base {
        index,
        epoch: 1,
        end_offset: index,
        cumulative_bytes: index,
        ..Base::default()
    }
}

/// A repaired record's bytes behind its index: of a whole log.
fn whole(epoch: u64, trimmed: u64) -> Vec<u8> {
    let numbers = [epoch.to_le_bytes(), trimmed.to_le_bytes()];
    [&[0], numbers.as_flattened()].concat()
}

#[test]
fn a_repaired_log_knows_of_trims_whose_records_are_missing() {
    let trimmed = |more: &[u8]| {
        let mut reader = Reader::new(Some(1));
        reader.batch(1, 1).batch(1, 2).hole();
        reader.indexed(KIND_REPAIRED, 1, 2, more);
        reader.finish().groups[&group(1)].replica.trimmed_through()
    };
    assert_eq!(trimmed(&whole(1, 2)), 2);
    assert_eq!(trimmed(&[0]), 0, "of an earlier version");
}

#[test]
fn a_repaired_log_is_no_old_one_whose_replacement_is_missing() {
    // A truncation to 1, and batch 2 of epoch 3, were behind the old batch 2, of epoch 1.
    let found = |epoch: u64| {
        let mut reader = Reader::new(Some(1));
        reader.batch(1, 1).batch(1, 2).hole();
        reader.indexed(KIND_REPAIRED, 1, 2, &whole(epoch, 0));
        state(&reader.finish(), 1).1
    };
    assert!(found(3), "it lacks the new batch");
    assert!(!found(1));
}

#[test]
fn a_repaired_log_whose_old_part_was_trimmed_is_whole() {
    // The good part of the repaired record was freed since; the hole is still there.
    let read = |base_index: Index, more: &[u8]| {
        let mut reader = Reader::new(Some(1));
        reader.batch(2, 1).hole().batch(1, 5);
        reader.indexed(KIND_REPAIRED, 1, 4, &[1]).batch(1, 5).batch(1, 6);
        reader.indexed(KIND_REPAIRED, 1, 6, more).batch(1, 7);
        reader.record(KIND_BASE, group(1).0.as_bytes(), &base(base_index).encode());
        reader.batch(1, 8);
        reader.finish()
    };
    let found = read(5, &[0]);
    assert_eq!((state(&found, 1), state(&found, 2)), ((8, false), (1, true)));
    let replica = &found.groups[&group(1)].replica;
    assert_eq!((replica.log().first_index(), replica.trim_offset()), (6, 5));
    assert_eq!(state(&read(5, &[1]), 1), (8, true));
    assert_eq!(state(&read(3, &[0]), 1), (0, true), "batch 4 is missing");
}

#[test]
fn a_repaired_log_is_the_one_learned_again_although_remains_of_the_old_one_end_alike() {
    // Batches 1 and 2, and the hole, were freed with the first files.
    let mut reader = Reader::new(None);
    reader.batch(1, 4).batch(1, 5);
    reader.indexed(KIND_REPAIRED, 1, 2, &[1]);
    reader.batch(1, 3).batch(1, 4).batch(1, 5);
    reader.indexed(KIND_REPAIRED, 1, 5, &whole(1, 0));
    reader.record(KIND_BASE, group(1).0.as_bytes(), &base(2).encode());
    let found = reader.finish();
    assert_eq!(state(&found, 1), (5, false));
    assert_eq!(found.groups[&group(1)].replica.log().first_index(), 3);
}

#[test]
fn a_dropped_group_is_gone_on_either_side_of_a_hole() {
    let mut reader = Reader::new(Some(1));
    reader.batch(1, 1).hole().indexed(KIND_DROPPED, 1, 0, &[]);
    assert!(reader.finish().groups.is_empty());
}

#[test]
fn missing_records_at_either_end_are_a_hole_too() {
    let mut reader = Reader::new(Some(5));
    reader.lsn = 7;
    reader.batch(1, 2);
    assert_eq!(
        state(&reader.finish(), 1),
        (0, true),
        "the journal begins too late"
    );

    let mut reader = Reader::new(None);
    reader.lsn = 7;
    reader.batch(1, 1);
    assert_eq!(
        state(&reader.finish(), 1),
        (1, false),
        "nothing was copied yet: the journal may begin anywhere"
    );

    // Nothing was copied yet, and the journal's first records are gone: a log's only record may be a truncation.
    let mut reader = Reader::new(None);
    reader.hole().indexed(KIND_TRUNCATE, 1, 3, &[]);
    assert_eq!(state(&reader.finish(), 1), (0, true), "the first record is lost");

    let mut reader = Reader::new(None);
    reader.lsn = 7;
    reader.indexed(KIND_TRUNCATE, 1, 3, &[]);
    let damage = Damage {
        segment: 1,
        bytes: 0..9,
        first_lsn: 1,
        end_lsn: Some(7),
    };
    let recovery = Recovery {
        next_lsn: 8,
        damages: vec![damage],
        ..Recovery::default()
    };
    let found = reader.scan.finish(&recovery);
    assert_eq!(state(&found, 1), (0, true), "the first segment is lost");

    let mut reader = Reader::new(Some(1));
    reader.batch(1, 1);
    let damage = Damage {
        segment: 2,
        bytes: 0..9,
        first_lsn: 2,
        end_lsn: None,
    };
    let recovery = Recovery {
        next_lsn: 3,
        damages: vec![damage],
        ..Recovery::default()
    };
    let found = reader.scan.finish(&recovery);
    assert_eq!(state(&found, 1), (1, true), "the last segment is lost");
    assert_eq!(missing(&found), (2, 3));
}

#[test]
fn a_lost_journal_is_noticed_at_each_start() {
    let copied = || {
        let mut reader = Reader::new(Some(5));
        let head = header(group(1), 1, 1);
        let place = LogLocation {
            file: 1,
            position: 4096,
            len: 133,
        };
        let found = Found::Record {
            lsn: 4,
            kind: KIND_BATCH,
            head: &head,
            payload: &[],
            place,
        };
        reader.scan.group_log(group(1), found).unwrap();
        // One number is skipped.
        reader.lsn = 6;
        reader
    };
    let first = copied().finish();
    assert_eq!((state(&first, 1), missing(&first)), ((1, true), (5, 6)));
    // Killed after another group's record was synced, and before the damaged group's.
    let mut reader = copied();
    reader.batch(2, 1);
    let second = reader.finish();
    assert_eq!((state(&second, 1), missing(&second)), ((1, true), (5, 6)));
}

#[test]
fn a_repeated_statement_of_a_log_does_not_make_it_whole() {
    let mut reader = Reader::new(Some(1));
    reader
        .batch(1, 1)
        .batch(1, 2)
        .hole()
        .indexed(KIND_TRUNCATE, 1, 3, &[]);
    assert_eq!(state(&reader.finish(), 1), (2, true), "batch 3 was in the hole");

    let empty = Base::default().encode();
    let mut reader = Reader::new(Some(1));
    reader
        .batch(1, 1)
        .hole()
        .record(KIND_BASE, group(1).0.as_bytes(), &empty);
    assert_eq!(state(&reader.finish(), 1), (0, false), "the log was empty then");

    let mut reader = Reader::new(Some(1));
    reader.batch(1, 1).indexed(KIND_TRUNCATE, 1, 3, &[]);
    assert_eq!(
        state(&reader.finish(), 1),
        (1, true),
        "it is truncated behind its last record"
    );
}

#[test]
fn a_log_without_its_beginning_is_of_no_use() {
    let mut reader = Reader::new(None);
    reader.batch(1, 3).batch(1, 4);
    let found = reader.finish();
    let useless = &found.groups[&group(1)];
    assert!(matches!(useless.state, LogState::Useless(_)));
    assert_eq!(useless.held(group(1)), None);
}

#[test]
fn written_records_are_read_back() {
    let id = group(9);
    let entries = [
        (GroupRecord::truncate(id, 7, 3), "Truncate { index: 7 }"),
        (GroupRecord::trim(id, 8), "Trim { index: 8 }"),
        (
            GroupRecord::repaired(id, 9, 3, true, 4),
            "Repaired { index: 9, damaged: true, epoch: 3, trimmed: 4 }",
        ),
        (
            GroupRecord::repaired(id, 9, 0, false, 0),
            "Repaired { index: 9, damaged: false, epoch: 0, trimmed: 0 }",
        ),
        (GroupRecord::dropped(id), "Dropped"),
    ];
    for (entry, content) in entries {
        let (owner, read) = decode(entry.kind(), &entry.head, &entry.payload).expect("a sound record");
        assert_eq!((owner, format!("{read:?}").as_str()), (id, content));
        assert!(classify(entry.kind(), &entry.head).is_some());
    }
    let cut = GroupRecord::truncate(id, 7, 3);
    let unknown = UnknownRecord { kind: KIND_TRUNCATE };
    assert_eq!(
        decode(KIND_TRUNCATE, &cut.head[..20], &[]).expect_err("too short"),
        unknown
    );
    assert!(decode(KIND_REPAIRED + 1, &cut.head, &[]).is_err());
}

#[test]
fn a_group_log_and_the_journal_behind_it_are_one_log() {
    let mut scan = Scan::new(ME);
    let at = |position| LogLocation {
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
        scan.group_log(group(1), found).unwrap();
    }
    scan.group_log(group(2), Found::Hole).unwrap();
    scan.expect_journal(Some(14));
    let mut reader = Reader {
        scan,
        lsn: 13,
        position: 8192,
    };
    // The first one is in the group's log already.
    reader.batch(1, 3).batch(1, 4);
    let found = reader.finish();
    assert_eq!((state(&found, 1), state(&found, 2)), ((4, false), (0, true)));
    let recovered = &found.groups[&group(1)];
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

/// Earlier versions wrote a reset without a drop.
#[test]
fn a_log_that_is_reset_has_its_places_and_no_trim_of_the_lost_one() {
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
        reader.indexed(KIND_TRUNCATE, 1, 0, &[]);
        reader.record(KIND_BASE, id.0.as_bytes(), &anew.encode());
        for index in 2..=4 {
            reader.record(KIND_BATCH, &header(id, index, 5), &[1, 0, 0, 0, 9]);
        }
        let scan = reader.finish();
        assert_eq!(state(&scan, 1), (4, false));
        let recovered = &scan.groups[&id];
        assert_eq!(recovered.replica.commit_index(), 1);
        for index in 2..=4 {
            assert!(recovered.places.get(index).is_some(), "batch {index}");
        }
    }
}

#[test]
fn a_drop_behind_a_hole_and_a_log_that_is_reset_lack_nothing() {
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
    reader.indexed(KIND_TRUNCATE, 1, 0, &[]);
    reader.record(KIND_BASE, group(1).0.as_bytes(), &anew.encode());
    reader.record(KIND_BATCH, &header(group(1), 2, 5), &[1, 0, 0, 0, 9]);
    assert_eq!(state(&reader.finish(), 1), (2, false));
}

#[test]
fn a_damaged_group_that_was_dropped_and_learned_again_is_whole_though_its_drop_is_lost() {
    let mut reader = Reader::new(Some(1));
    reader
        .batch(1, 1)
        .batch(1, 2)
        .hole()
        .indexed(KIND_REPAIRED, 1, 2, &[1])
        .hole();
    reader.batch(1, 1).batch(1, 2).batch(1, 3);
    assert_eq!(state(&reader.finish(), 1), (3, false));
}

#[test]
fn a_mark_of_the_journal_is_no_hole() {
    let mut reader = Reader::new(Some(1));
    reader.batch(1, 1).record(KIND_MARK, &[], &[]);
    reader.batch(1, 2);
    assert_eq!(state(&reader.finish(), 1), (2, false));
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
    // 7 and the batches behind it were truncated, and ordered again.
    places.note(7, 120, Place::Journal(location));
    let there = |file| LogLocation {
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
