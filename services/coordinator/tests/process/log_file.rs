//! The durable log: whole records are read back, a torn end is truncated, damage stops the start.

use std::path::Path;
use std::sync::OnceLock;

use proptest::prelude::*;
use quorate_coordinator::log_file::{DurableLog, LogError};
use quorate_coordinator_core::command::{Command, JoinTokenTerms, PlacementPolicy, Timed};
use quorate_coordinator_core::log::Recovered;
use quorate_coordinator_core::state::{CoordinatorState, apply};
use quorate_placement::Profile;

/// A history, in batches as they would be synced.
fn batches() -> Vec<Vec<Timed>> {
    let settings = [
        Command::UseProfile {
            profile: Box::new(Profile::default_profile()),
        },
        Command::UsePlacement {
            policy: PlacementPolicy::default(),
        },
    ];
    let tokens = (0..8).map(|number| Command::IssueJoinToken {
        digest: format!("{number:064x}"),
        token: JoinTokenTerms {
            expires_at_ms: 1_000_000 + number,
            name: Some(format!("s{number}")),
            auxiliary: number % 2 == 0,
        },
    });
    let commands: Vec<Timed> = (1_000..)
        .zip(settings.into_iter().chain(tokens))
        .map(|(at_ms, command)| Timed {
            at_ms,
            command,
            issued: None,
        })
        .collect();
    commands.chunks(3).map(<[Timed]>::to_vec).collect()
}

fn open(dir: &Path) -> Result<Recovered, LogError> {
    DurableLog::open(dir).map(|(_, recovered)| recovered)
}

fn written(dir: &Path, batches: &[Vec<Timed>]) -> Vec<u64> {
    let (mut log, _) = DurableLog::open(dir).unwrap();
    let size = || std::fs::metadata(dir.join("coordinator.log")).unwrap().len();
    let mut ends = vec![size()];
    for batch in batches {
        log.append(batch.clone()).unwrap();
        ends.push(size());
    }
    ends
}

#[test]
fn what_was_appended_is_read_back_and_the_folder_is_locked() {
    let dir = tempfile::tempdir().unwrap();
    written(dir.path(), &batches());
    let (log, recovered) = DurableLog::open(dir.path()).unwrap();
    assert_eq!(recovered.commands, batches().concat());
    assert!(recovered.snapshot.is_none() && recovered.cut_bytes == 0);
    assert!(matches!(open(dir.path()), Err(LogError::InUse { .. })));
    drop(log);
    open(dir.path()).unwrap();
}

#[test]
fn a_snapshot_replaces_the_commands_before_it() {
    let dir = tempfile::tempdir().unwrap();
    let mut state = CoordinatorState::new(Profile::default_profile());
    let batches = batches();
    let (before, after) = batches.split_at(batches.len() / 2);
    let (mut log, _) = DurableLog::open(dir.path()).unwrap();
    for timed in before.concat() {
        apply(&mut state, timed.at_ms, &timed.command);
    }
    log.append(before.concat()).unwrap();
    log.rewrite(&state).unwrap();
    for timed in after.concat() {
        apply(&mut state, timed.at_ms, &timed.command);
    }
    log.append(after.concat()).unwrap();
    drop(log);
    let recovered = open(dir.path()).unwrap();
    assert_eq!(recovered.commands, after.concat());
    let mut restored = recovered.snapshot.unwrap();
    restored.restore();
    for timed in &recovered.commands {
        apply(&mut restored, timed.at_ms, &timed.command);
    }
    assert_eq!(
        serde_json::to_value(&restored).unwrap(),
        serde_json::to_value(&state).unwrap()
    );
}

#[test]
fn a_tail_torn_anywhere_is_truncated_and_writing_goes_on() {
    let batches = batches();
    let whole = tempfile::tempdir().unwrap();
    let ends = written(whole.path(), &batches);
    let bytes = std::fs::read(whole.path().join("coordinator.log")).unwrap();
    let (last_start, end) = (ends[ends.len() - 2], ends[ends.len() - 1]);
    for cut in (last_start..end).step_by(7).chain([end - 1]) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("coordinator.log"), &bytes[..cut as usize]).unwrap();
        let (mut log, recovered) = DurableLog::open(dir.path()).unwrap();
        assert_eq!(
            recovered.commands,
            batches[..batches.len() - 1].concat(),
            "cut at {cut}"
        );
        assert_eq!(recovered.cut_bytes, cut - last_start);
        log.append(batches[batches.len() - 1].clone()).unwrap();
        drop(log);
        assert_eq!(open(dir.path()).unwrap().commands, batches.concat());
    }
}

/// Something had followed from the record: it was synced.
#[test]
fn a_damaged_last_record_that_was_synced_and_an_older_copy_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let ends = written(dir.path(), &batches());
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
    written(dir.path(), &batches());
    let mark = std::fs::read(dir.path().join("coordinator.mark")).unwrap();
    let (mut log, _) = DurableLog::open(dir.path()).unwrap();
    log.rewrite(&CoordinatorState::new(Profile::default_profile()))
        .unwrap();
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

type Whole = (Vec<Vec<Timed>>, Vec<u64>, Vec<u8>);
/// Batches, the ends of their records, and the file: made once, since each batch is synced.
static WHOLE: OnceLock<Whole> = OnceLock::new();

fn whole() -> Whole {
    let (batches, dir) = (batches(), tempfile::tempdir().unwrap());
    let ends = written(dir.path(), &batches);
    let bytes = std::fs::read(dir.path().join("coordinator.log")).unwrap();
    (batches, ends, bytes)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    /// One flipped byte before the last record is damage, with its position; in the last record it is a torn tail.
    /// It never becomes a wrong command or a panic, and a refused file stays as it was.
    #[test]
    fn a_flipped_byte_is_never_read_as_good(position in 0.0..1.0f64, flip in 1u8..) {
        let (batches, ends, good) = WHOLE.get_or_init(whole);
        let (dir, mut bytes) = (tempfile::tempdir().unwrap(), good.clone());
        let path = dir.path().join("coordinator.log");
        let at = (position * bytes.len() as f64) as usize;
        bytes[at] ^= flip;
        std::fs::write(&path, &bytes).unwrap();
        let last_start = ends[ends.len() - 2] as usize;
        match open(dir.path()) {
            Ok(recovered) => {
                prop_assert!(at >= last_start);
                prop_assert_eq!(recovered.commands, batches[..batches.len() - 1].concat());
            }
            Err(LogError::Damaged { offset, .. }) => {
                prop_assert!(at < last_start && offset as usize <= at);
                prop_assert_eq!(std::fs::read(&path).unwrap(), bytes);
            }
            Err(other) => prop_assert!(false, "{}", other),
        }
    }
}
