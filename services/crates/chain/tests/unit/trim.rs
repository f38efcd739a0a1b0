//! Trimming: the head decides, every replica follows, and a client gets its answer when all have it.

use quorate_chain::{Asked, ReadError, Replica, ReplicaCommand, ReplicaEvent};
use quorate_types::config::Beginning;
use quorate_types::{Code, Durability, GroupConfig, ServerId};

use crate::rig::{CLIENT, Fleet, TICK, answers, append, config, step};

const SECOND_US: u64 = 1_000_000;

fn trim(request: u32, before_offset: u64) -> ReplicaEvent {
    ReplicaEvent::Ask {
        client: CLIENT,
        request,
        asked: Asked::Trim { before_offset },
    }
}

fn with_batches(durability: Durability, count: u64) -> Fleet {
    let mut fleet = Fleet::of_three(durability);
    for seq in 1..=count {
        fleet.append(1, append(1, seq));
    }
    sync_all(&mut fleet);
    fleet.take_commands();
    fleet
}

fn sync_all(fleet: &mut Fleet) {
    for id in [1, 2, 3, 4] {
        fleet.sync(id);
    }
}

fn trim_offsets(fleet: &Fleet) -> Vec<u64> {
    [1, 2, 3].map(|id| fleet.node(id).trim_offset()).to_vec()
}

#[test]
fn every_replica_trims_whole_batches() {
    let mut fleet = with_batches(Durability::InMemory, 5);
    fleet.event(1, trim(7, 5));
    assert_eq!(answers(&fleet.take_commands()), [(7, None)]);
    assert_eq!(
        trim_offsets(&fleet),
        [4, 4, 4],
        "the third batch holds offsets 4 and 5"
    );
    let error = fleet.node(3).read(3, 1, 1, 1).expect_err("gone");
    assert_eq!(error, ReadError::Trimmed { trim_offset: 4 });
    for id in [1, 2, 3] {
        fleet.event(id, TICK);
        assert_eq!(
            fleet.node(id).log().first_index(),
            3,
            "and is held no more at {id}"
        );
    }
}

#[test]
fn the_client_is_answered_when_the_last_replica_has_it() {
    let mut fleet = with_batches(Durability::InMemory, 5);
    fleet.unreachable.push((2, 3));
    fleet.event(1, trim(7, 10));
    assert_eq!(answers(&fleet.take_commands()), []);
    fleet.configure(2, &[1, 2], &[]);
    assert_eq!(
        answers(&fleet.take_commands()),
        [(7, None)],
        "the next epoch has no third"
    );
}

#[test]
fn a_persistent_group_has_it_on_every_disk() {
    let mut fleet = with_batches(Durability::Persistent, 5);
    fleet.event(1, trim(7, 10));
    assert_eq!(trim_offsets(&fleet), [10, 10, 10], "readers see it at once");
    for id in [3, 1] {
        fleet.sync(id);
        assert_eq!(answers(&fleet.take_commands()), []);
    }
    fleet.sync(2);
    assert_eq!(answers(&fleet.take_commands()), [(7, None)]);
}

#[test]
fn it_outlasts_the_head() {
    let mut fleet = with_batches(Durability::InMemory, 5);
    fleet.event(1, trim(7, 6));
    fleet.take_commands();
    fleet.configure(2, &[2, 3], &[]);
    assert_eq!(fleet.node(2).trim_offset(), 6);
    fleet.event(2, trim(8, 2));
    assert_eq!(
        answers(&fleet.take_commands()),
        [(8, None)],
        "trimming less changes nothing"
    );
    assert_eq!(fleet.node(2).trim_offset(), 6);
}

#[test]
fn only_committed_entries_are_trimmed_and_only_at_the_head() {
    let mut fleet = with_batches(Durability::InMemory, 2);
    fleet.event(2, trim(1, 2));
    assert_eq!(answers(&fleet.take_commands()), [(1, Some(Code::NotHead))]);
    fleet.event(1, trim(2, 5));
    assert_eq!(
        answers(&fleet.take_commands()),
        [(2, Some(Code::TrimBeyondCommit))]
    );
    // The head's last batch is not committed, and may become so: judged after a ring pass.
    fleet.unreachable.push((1, 2));
    fleet.append(1, append(1, 3));
    fleet.event(1, trim(3, 6));
    assert_eq!(answers(&fleet.take_commands()), []);
    fleet.unreachable.clear();
    fleet.configure(2, &[1, 2, 3], &[]);
    assert_eq!(answers(&fleet.take_commands()), [(3, None)]);
}

#[test]
fn a_deposed_head_does_not_know() {
    let mut fleet = with_batches(Durability::InMemory, 2);
    fleet.unreachable.push((1, 2));
    fleet.event(1, trim(1, 2));
    fleet.event(1, trim(2, 99));
    fleet.event(1, ReplicaEvent::Configure(Box::new(config(2, &[2, 3], &[]))));
    let taken = answers(&fleet.take_commands());
    assert_eq!(taken, [(2, Some(Code::NotHead)), (1, Some(Code::EpochChanged))]);
}

/// Nobody but head 1 hears of a request. Then 2 is the head of 3, and 1 learns from them.
fn with_a_former_head_that_alone_knows_a_trim() -> Fleet {
    let mut fleet = with_batches(Durability::InMemory, 5);
    fleet.unreachable.extend([(1, 2), (1, 3)]);
    fleet.event(1, trim(7, 10));
    fleet.configure(2, &[2, 3], &[]);
    fleet.unreachable.clear();
    fleet.configure(3, &[2, 3], &[1]);
    fleet
}

#[test]
fn a_former_head_at_the_tail_does_not_vouch_for_those_before_it() {
    let mut fleet = with_a_former_head_that_alone_knows_a_trim();
    fleet.configure(4, &[2, 3, 1], &[]);
    fleet.take_commands();
    fleet.unreachable.push((2, 3));
    fleet.event(2, trim(8, 10));
    assert_eq!(
        answers(&fleet.take_commands()),
        [],
        "the second has not heard of it"
    );
    fleet.unreachable.clear();
    fleet.configure(5, &[2, 3, 1], &[]);
    assert_eq!(answers(&fleet.take_commands()), [(8, None)]);
    assert_eq!(trim_offsets(&fleet), [10, 10, 10]);
}

#[test]
fn a_former_head_in_the_middle_does_not_let_the_tail_vouch_for_those_before_it() {
    let mut fleet = with_a_former_head_that_alone_knows_a_trim();
    fleet.configure(4, &[2, 3, 1], &[4]);
    assert_eq!(
        fleet.node(4).trim_offset(),
        10,
        "a learner gets all that its tail has"
    );
    fleet.configure(5, &[2, 3, 1, 4], &[]);
    fleet.take_commands();
    fleet.unreachable.push((2, 3));
    fleet.event(2, trim(8, 10));
    assert_eq!(
        answers(&fleet.take_commands()),
        [],
        "the second has not heard of it"
    );
    fleet.unreachable.clear();
    fleet.configure(6, &[2, 3, 1, 4], &[]);
    assert_eq!(answers(&fleet.take_commands()), [(8, None)]);
}

#[test]
fn a_learner_joins_behind_a_former_head_whose_trim_nobody_else_knows() {
    for durability in [Durability::InMemory, Durability::Persistent] {
        let mut fleet = with_batches(durability, 5);
        fleet.unreachable.extend([(1, 2), (1, 3)]);
        fleet.event(1, trim(7, 10));
        fleet.configure(2, &[2, 3], &[]);
        fleet.unreachable.clear();
        fleet.configure(3, &[2, 3], &[1]);
        sync_all(&mut fleet);
        fleet.configure(4, &[2, 3, 1], &[4]);
        fleet.take_commands();
        sync_all(&mut fleet);
        fleet.event(1, TICK);
        let taken = fleet.take_commands();
        let joins = |c: &ReplicaCommand| matches!(c, ReplicaCommand::LearnerCaughtUp { .. });
        assert!(taken.iter().any(joins), "{durability:?}");
    }
}

#[test]
fn a_restart_finds_it() {
    let mut fleet = with_batches(Durability::Persistent, 4);
    fleet.event(1, trim(1, 4));
    let mut replica = Replica::new(ServerId(2), Durability::Persistent);
    for batch in crate::rig::batches(&[1, 1, 1, 1]) {
        replica.recover(batch);
    }
    replica.recover_trim(2);
    replica.recovered_all().expect("whole");
    assert_eq!(
        (replica.trim_offset(), replica.commit_index()),
        (4, 2),
        "trimmed batches were committed"
    );
}

#[test]
fn a_learner_keeps_the_tail_from_freeing_but_not_from_trimming() {
    let mut fleet = with_batches(Durability::InMemory, 5);
    fleet.nodes.get_mut(&3).expect("tail").pace_catchup();
    fleet.configure(2, &[1, 2, 3], &[4]);
    fleet.event(1, trim(1, 10));
    assert_eq!(answers(&fleet.take_commands()), [(1, None)]);
    assert_eq!(trim_offsets(&fleet), [10, 10, 10]);
    fleet.event(1, TICK);
    fleet.event(3, TICK);
    assert_eq!(fleet.node(1).log().first_index(), 6);
    assert_eq!(
        fleet.node(3).log().first_index(),
        1,
        "the learner still has to get it"
    );
    fleet.event(3, ReplicaEvent::CatchupAllowance { bytes: 1 << 20 });
    assert_eq!(fleet.node(4).trim_offset(), 10);
    fleet.event(4, TICK);
    fleet.event(3, TICK);
    assert_eq!(fleet.node(3).log().first_index(), 6);
}

#[test]
fn a_learner_does_not_join_without_it() {
    let mut fleet = with_batches(Durability::Persistent, 3);
    fleet.event(1, trim(1, 4));
    sync_all(&mut fleet);
    fleet.configure(2, &[1, 2, 3], &[4]);
    fleet.take_commands();
    let joins = |fleet: &mut Fleet| {
        let taken = fleet.take_commands();
        taken
            .iter()
            .any(|c| matches!(c, ReplicaCommand::LearnerCaughtUp { .. }))
    };
    let writes = fleet.unsynced.remove(&4).expect("it writes");
    let (trims, batches): (Vec<_>, Vec<_>) = writes
        .into_iter()
        .partition(|e| matches!(e, ReplicaEvent::TrimPersisted { .. }));
    assert_eq!(trims.len(), 1);
    for event in batches {
        fleet.event(4, event);
    }
    assert!(!joins(&mut fleet));
    for event in trims {
        fleet.event(4, event);
    }
    assert!(joins(&mut fleet));
}

fn with_age(epoch: u64, retention_age_s: u64) -> GroupConfig {
    GroupConfig {
        retention_age_s: Some(retention_age_s),
        ..config(epoch, &[1], &[])
    }
}

/// A head with three batches, ordered when its clock read so many seconds, and whether that was in doubt.
fn stamped(stamps: [(u64, bool); 3]) -> Replica {
    let mut replica = crate::rig::sole(Durability::InMemory, &[], 1);
    for (seq, (wall_s, is_clock_doubted)) in (1..).zip(stamps) {
        let mut request = append(1, seq);
        request.wall_us = wall_s * SECOND_US;
        request.is_clock_doubted = is_clock_doubted;
        step(&mut replica, ReplicaEvent::Append(request));
    }
    step(&mut replica, ReplicaEvent::Configure(Box::new(with_age(2, 60))));
    replica
}

/// The trim offset after a tick, when the process has run so long and its clock is believed to read this.
fn tick(replica: &mut Replica, now_s: u64, vouched_s: Option<u64>) -> u64 {
    let vouched_us = vouched_s.map(|vouched_s| vouched_s * SECOND_US);
    crate::rig::step_at(replica, now_s * SECOND_US, ReplicaEvent::Tick { vouched_us });
    replica.trim_offset()
}

#[test]
fn retention_by_age_goes_by_the_heads_clock() {
    let mut replica = stamped([(1_000, false), (1_010, false), (1_020, false)]);
    assert_eq!(
        tick(&mut replica, 0, Some(1_060)),
        0,
        "a minute old is not older than a minute"
    );
    assert_eq!(tick(&mut replica, 1, Some(1_061)), 2);
    assert_eq!(
        tick(&mut replica, 2, Some(9_999)),
        2,
        "a clock that leaps is not believed at once"
    );
    assert_eq!(
        tick(&mut replica, 3, Some(1_063)),
        2,
        "and does no harm when it is set right"
    );
    assert_eq!(tick(&mut replica, 11, Some(1_071)), 4);
}

#[test]
fn a_leap_of_the_clock_before_the_replica_was_the_head_is_known() {
    let mut replica = stamped([(1_000, false), (1_010, false), (1_020, false)]);
    let behind = GroupConfig {
        retention_age_s: Some(60),
        ..config(3, &[2, 1], &[])
    };
    step(&mut replica, ReplicaEvent::Configure(Box::new(behind)));
    tick(&mut replica, 0, Some(1_030));
    tick(&mut replica, 1, Some(9_999));
    step(&mut replica, ReplicaEvent::Configure(Box::new(with_age(4, 60))));
    assert_eq!(tick(&mut replica, 2, Some(10_000)), 0);
    assert_eq!(
        tick(&mut replica, 41, Some(1_071)),
        4,
        "and does no harm when it is set right"
    );
}

#[test]
fn a_reset_of_the_log_leaves_the_clock_as_it_is_known() {
    let mut replica = stamped([(1_000, false), (1_010, false), (1_020, false)]);
    tick(&mut replica, 0, Some(1_030));
    tick(&mut replica, 1, Some(9_999));
    let beginning = Beginning {
        epoch: 3,
        offset: 1 << 40,
        entries_before: 0,
        bytes_before: 0,
    };
    let reset = GroupConfig {
        beginning: Some(beginning),
        ..with_age(3, 60)
    };
    step(&mut replica, ReplicaEvent::Configure(Box::new(reset)));
    let mut request = append(1, 1);
    request.wall_us = 1_031 * SECOND_US;
    step(&mut replica, ReplicaEvent::Append(request));
    assert_eq!(replica.commit_offset(), (1 << 40) + 2);
    assert_eq!(tick(&mut replica, 2, Some(10_000)), 1 << 40);
}

#[test]
fn in_doubt_only_batches_held_for_as_long_as_is_retained_are_old() {
    let mut replica = stamped([(1_000, false), (1_010, false), (1_020, false)]);
    for now_s in 0..60 {
        assert_eq!(tick(&mut replica, now_s, None), 0, "after {now_s} s");
    }
    assert_eq!(tick(&mut replica, 60, None), 6);
    let mut request = append(1, 4);
    request.wall_us = 1;
    step(&mut replica, ReplicaEvent::Append(request));
    for now_s in 61..121 {
        assert_eq!(tick(&mut replica, now_s, None), 6, "after {now_s} s");
    }
    let late_s = 60 / 8;
    assert_eq!(
        tick(&mut replica, 121 + late_s, None),
        8,
        "late by an eighth at most"
    );
}

#[test]
fn a_doubtful_stamp_proves_no_age_and_the_next_good_one_does() {
    // The first head's clock is far behind, the second's far ahead; the third's is right.
    let mut replica = stamped([(10, true), (90_000, true), (1_020, false)]);
    assert_eq!(tick(&mut replica, 0, Some(1_079)), 0);
    assert_eq!(tick(&mut replica, 2, Some(1_081)), 6);
    let mut replica = stamped([(10, false), (20, true), (30, true)]);
    assert_eq!(
        tick(&mut replica, 0, Some(1_000)),
        2,
        "no good one is behind them"
    );
}

#[test]
fn a_follower_trims_by_the_heads_decision_alone() {
    let mut fleet = with_batches(Durability::InMemory, 5);
    let small = GroupConfig {
        retention_bytes: 2 * (20 + quorate_types::limits::BATCH_MEMORY_BYTES),
        ..config(2, &[1, 2, 3], &[])
    };
    for id in [2, 3] {
        fleet.event(id, ReplicaEvent::Configure(Box::new(small.clone())));
        fleet.event(id, TICK);
    }
    assert_eq!(trim_offsets(&fleet), [0, 0, 0]);
    fleet.give(1, ReplicaEvent::Configure(Box::new(small)));
    fleet.settle();
    fleet.event(1, TICK);
    assert_eq!(trim_offsets(&fleet), [6, 6, 6]);
}
