//! The durable log: whole records are read back, a torn end is truncated, damage stops the start.

use std::path::Path;
use std::sync::OnceLock;

use proptest::prelude::*;
use quorate_coordinator::disk::{DurableLog, LogError, Opened};
use quorate_coordinator_core::command::{Command, JoinTokenTerms, Timed};
use quorate_coordinator_core::coordinator::{encode_batch, read_state};
use quorate_coordinator_core::log::{Base, Contents, MemberDisk, encode_state};
use quorate_coordinator_core::state::{CoordinatorState, apply};
use quorate_placement::Profile;
use quorate_quorum::{
    Content, Entry, Member, MemberId, Members, Point, Position, Snapshot, Term, Vote, Write, WriteId,
};
use quorate_types::FleetId;

const OWN: MemberId = MemberId(0xabc);

fn state() -> CoordinatorState {
    CoordinatorState::new(Profile::default_profile())
}

fn base() -> Base {
    Base::first(OWN, FleetId(0xf1), "[::1]:7402".into())
}

fn entry(position: u64, content: Content) -> Entry {
    Entry {
        position: Position(position),
        term: Term(2),
        content,
    }
}

fn token(number: u64) -> Timed {
    let command = Command::IssueJoinToken {
        digest: format!("{number:064x}"),
        token: JoinTokenTerms {
            expires_at_ms: 1_000_000 + number,
            name: Some(format!("s{number}")),
            auxiliary: number.is_multiple_of(2),
        },
    };
    Timed {
        at_ms: number,
        command,
        issued: Some(Vec::new()),
    }
}

fn entries(entries: Vec<Entry>) -> Write {
    Write {
        id: WriteId::default(),
        vote: None,
        snapshot: None,
        cut_after: None,
        entries,
    }
}

/// A vote, entries of all kinds, and later ones in the place of two of them.
fn writes() -> Vec<Write> {
    let vote = Vote {
        term: Term(2),
        given_to: Some(OWN),
    };
    let batch = |number| Content::Payload(encode_batch(&[token(number), token(number + 100)]));
    let two = Members::from_parts([OWN, MemberId(7)].map(|id| {
        let (address, votes) = (format!("member-{id}"), id == OWN);
        (id, Member { address, votes })
    }));
    vec![
        Write {
            vote: Some(vote),
            ..entries(Vec::new())
        },
        entries(vec![
            entry(2, Content::Begin),
            entry(3, batch(1)),
            entry(4, batch(2)),
        ]),
        Write {
            cut_after: Some(Position(3)),
            ..entries(vec![entry(4, Content::Members(two))])
        },
        entries(vec![entry(5, batch(3))]),
    ]
}

/// A member's disk after the first writes.
fn expected(count: usize) -> (Vote, Vec<Entry>) {
    let (mut vote, mut found) = (base().vote, Vec::new());
    for write in writes().into_iter().take(count) {
        vote = write.vote.unwrap_or(vote);
        let cut = write.cut_after.unwrap_or(Position(u64::MAX));
        found.retain(|entry: &Entry| entry.position <= cut);
        found.extend(write.entries);
    }
    (vote, found)
}

fn open(dir: &Path) -> Result<Opened, LogError> {
    DurableLog::open(dir).map(|(_, opened)| opened)
}

fn disk(opened: Opened) -> MemberDisk {
    match opened.contents {
        Contents::Member(disk) => disk,
        other => panic!("{other:?}"),
    }
}

fn assert_has(opened: Opened, count: usize) {
    let disk = disk(opened);
    assert_eq!((disk.vote, disk.entries), expected(count));
    assert_eq!(disk.base, base());
    let state = read_state(&disk.state.expect("it began with one")).unwrap();
    assert_eq!(encode_state(&state), encode_state(&self::state()));
}

/// Gives the ends of the records.
fn written(dir: &Path, writes: &[Write]) -> Vec<u64> {
    let (mut log, _) = DurableLog::open(dir).unwrap();
    log.begin(base(), Some(&state())).unwrap();
    let size = || std::fs::metadata(dir.join("coordinator.log")).unwrap().len();
    let mut ends = vec![size()];
    for write in writes {
        log.write(std::slice::from_ref(write)).unwrap();
        ends.push(size());
    }
    ends
}

#[test]
fn writes_are_read_back_and_the_folder_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &writes());
    let (log, opened) = DurableLog::open(dir.path()).unwrap();
    assert_eq!(opened.cut_bytes, 0);
    assert_has(opened, 4);
    assert!(matches!(open(dir.path()), Err(LogError::InUse { .. })));
    drop(log);
    // Synced as one, they are the same.
    let (mut log, _) = DurableLog::open(dir.path()).unwrap();
    log.begin(base(), Some(&state())).unwrap();
    log.write(&writes()).unwrap();
    drop(log);
    assert_has(open(dir.path()).unwrap(), 4);
}

#[test]
fn an_empty_disk_has_a_member_that_nobody_has_taken_in() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(open(dir.path()).unwrap().contents, Contents::Nothing));
    let (mut log, _) = DurableLog::open(dir.path()).unwrap();
    let empty = Base::empty(OWN);
    log.begin(empty.clone(), None).unwrap();
    drop(log);
    let disk = disk(open(dir.path()).unwrap());
    assert_eq!((disk.base, disk.state), (empty, None));
}

#[test]
fn a_snapshot_takes_the_place_of_what_is_before_it_while_writes_go_on() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &writes()[..2]);
    let (mut log, _) = DurableLog::open(dir.path()).unwrap();
    let point = Point {
        term: Term(2),
        position: Position(3),
    };
    let mut later = state();
    apply(&mut later, 1, &token(1).command);
    let behind = expected(2).1.split_off(2);
    let begun = log.begin_snapshot(point, base().members, behind);
    log.write(&writes()[2..3]).unwrap();
    let stale = begun.write(&later).unwrap();
    let begun = log.begin_snapshot(point, base().members, expected(3).1.split_off(2));
    assert!(!log.put_in_place(stale).unwrap(), "a later one was begun");
    let snapshot = begun.write(&later).unwrap();
    log.write(&writes()[3..]).unwrap();
    assert!(log.put_in_place(snapshot).unwrap());
    assert_eq!(log.newest_snapshot().unwrap().base, point);
    drop(log);
    let disk = disk(open(dir.path()).unwrap());
    let (vote, entries) = expected(4);
    assert_eq!((disk.vote, &disk.entries[..]), (vote, &entries[2..]));
    let state = read_state(&disk.state.unwrap()).unwrap();
    assert_eq!(encode_state(&state), encode_state(&later));
}

#[test]
fn a_snapshot_of_another_member_takes_the_place_of_everything() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &writes());
    let (mut log, _) = DurableLog::open(dir.path()).unwrap();
    let point = Point {
        term: Term(2),
        position: Position(9),
    };
    let begun = log.begin_snapshot(base().point, base().members, Vec::new());
    let own = begun.write(&state()).unwrap();
    let mut later = state();
    apply(&mut later, 1, &token(1).command);
    let members = Members::first(MemberId(7), "seven".into());
    let snapshot = Snapshot {
        base: point,
        members: members.clone(),
        contents: encode_state(&later),
    };
    let install = Write {
        snapshot: Some(snapshot.into()),
        ..entries(Vec::new())
    };
    let next = entries(vec![entry(10, Content::Begin)]);
    log.write(&[install, next.clone()]).unwrap();
    assert!(!log.put_in_place(own).unwrap());
    drop(log);
    let disk = disk(open(dir.path()).unwrap());
    assert_eq!(
        disk.base,
        Base {
            vote: expected(4).0,
            point,
            members,
            ..base()
        }
    );
    assert_eq!(disk.entries, next.entries);
}

#[test]
fn a_tail_torn_anywhere_is_truncated_and_writing_goes_on() {
    let writes = writes();
    let whole = tempfile::tempdir().unwrap();
    let ends = written(whole.path(), &writes);
    let bytes = std::fs::read(whole.path().join("coordinator.log")).unwrap();
    let (last_start, end) = (ends[ends.len() - 2], ends[ends.len() - 1]);
    for cut in (last_start..end).step_by(7).chain([end - 1]) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("coordinator.log"), &bytes[..cut as usize]).unwrap();
        let (mut log, opened) = DurableLog::open(dir.path()).unwrap();
        assert_eq!(opened.cut_bytes, cut - last_start, "cut at {cut}");
        assert_has(opened, 3);
        log.write(&writes[3..]).unwrap();
        drop(log);
        assert_has(open(dir.path()).unwrap(), 4);
    }
}

/// Something had followed from the record: it was synced.
#[test]
fn a_damaged_last_record_that_was_synced_and_an_older_copy_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ends = written(dir.path(), &writes());
    let path = dir.path().join("coordinator.log");
    let bytes = std::fs::read(&path).unwrap();
    let mut rotten = bytes.clone();
    *rotten.last_mut().unwrap() ^= 1;
    let older = bytes[..ends[ends.len() - 2] as usize].to_vec();
    for content in [rotten, older, bytes[..ends[0] as usize].to_vec()] {
        std::fs::write(&path, &content).unwrap();
        let refused = open(dir.path());
        assert!(matches!(refused, Err(LogError::EndLost { .. })), "{refused:?}");
        assert_eq!(std::fs::read(&path).unwrap(), content, "nothing is changed");
    }
    std::fs::write(&path, &bytes).unwrap();
    open(dir.path()).unwrap();
}

/// The mark of a log that was replaced by a snapshot says nothing about the snapshot.
#[test]
fn a_snapshot_begins_a_mark_of_its_own_and_a_torn_record_behind_it_is_truncated() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &writes());
    let mark = std::fs::read(dir.path().join("coordinator.mark")).unwrap();
    let (mut log, _) = DurableLog::open(dir.path()).unwrap();
    let begun = log.begin_snapshot(base().point, base().members, Vec::new());
    let snapshot = begun.write(&state()).unwrap();
    log.put_in_place(snapshot).unwrap();
    drop(log);
    let own = std::fs::read(dir.path().join("coordinator.mark")).unwrap();
    for mark in [mark, own] {
        std::fs::write(dir.path().join("coordinator.mark"), mark).unwrap();
        let mut bytes = std::fs::read(dir.path().join("coordinator.log")).unwrap();
        bytes.extend_from_slice(b"QREC torn");
        std::fs::write(dir.path().join("coordinator.log"), bytes).unwrap();
        assert_eq!(open(dir.path()).unwrap().cut_bytes, 9);
    }
}

#[test]
fn a_file_of_another_kind_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("coordinator.log");
    std::fs::write(&path, "this is somebody's diary, not a log").unwrap();
    assert!(matches!(
        open(dir.path()),
        Err(LogError::Damaged { offset: 0, .. })
    ));
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        "this is somebody's diary, not a log"
    );
}

type Whole = (Vec<u64>, Vec<u8>);
/// The ends of the records, and the file: made once, since each is synced.
static WHOLE: OnceLock<Whole> = OnceLock::new();

fn whole() -> Whole {
    let dir = tempfile::tempdir().unwrap();
    let ends = written(dir.path(), &writes());
    let bytes = std::fs::read(dir.path().join("coordinator.log")).unwrap();
    (ends, bytes)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// One flipped byte before the last record is damage, with its position; in the last record it is a torn tail.
    /// It never becomes a wrong write or a panic, and a refused file stays as it was.
    #[test]
    fn a_flipped_byte_is_never_read_as_good(position in 0.0..1.0f64, flip in 1u8..) {
        let (ends, good) = WHOLE.get_or_init(whole);
        let (dir, mut bytes) = (tempfile::tempdir().unwrap(), good.clone());
        let path = dir.path().join("coordinator.log");
        let at = (position * bytes.len() as f64) as usize;
        bytes[at] ^= flip;
        std::fs::write(&path, &bytes).unwrap();
        let last_start = ends[ends.len() - 2] as usize;
        match open(dir.path()) {
            Ok(opened) => {
                prop_assert!(at >= last_start);
                assert_has(opened, 3);
            }
            Err(LogError::Damaged { offset, .. }) => {
                prop_assert!(at < last_start && offset as usize <= at);
                prop_assert_eq!(std::fs::read(&path).unwrap(), bytes);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
