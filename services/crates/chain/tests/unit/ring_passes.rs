//! A head's answers are true of the group: a ring pass confirms them, or they rest on committed batches.

use quorate_chain::{Asked, ReplicaEvent};
use quorate_types::limits::{HELD_REFUSALS_MAX, STATUS_WAIT_MS_MAX};
use quorate_types::{Code, Durability, GroupConfig, ServerId};

use crate::rig::{CLIENT, Fleet, TICK, acks, answers, append, config, refusals};

fn status(request: u32) -> ReplicaEvent {
    ReplicaEvent::Ask {
        client: CLIENT,
        request,
        asked: Asked::Status,
    }
}

fn expecting(session: u64, seq: u64, expected_offset: u64) -> ReplicaEvent {
    let mut request = append(session, seq);
    request.expected_offset = expected_offset;
    ReplicaEvent::Append(request)
}

#[test]
fn the_end_is_answered_after_a_ring_pass() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.event(1, status(1));
    assert_eq!(answers(&fleet.take_commands()), [(1, None)]);
    fleet.unreachable.push((2, 3));
    fleet.event(1, status(2));
    fleet.event(1, status(3));
    assert_eq!(
        answers(&fleet.take_commands()),
        [],
        "a head that cannot reach the ring does not know"
    );
    fleet.unreachable.clear();
    fleet.configure(2, &[1, 2, 3], &[]);
    assert_eq!(answers(&fleet.take_commands()), [(2, None), (3, None)]);
}

#[test]
fn questions_share_a_ring_pass() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    for request in 1..=100 {
        fleet.give(1, status(request));
    }
    let before = fleet.delivered;
    fleet.settle();
    assert_eq!(answers(&fleet.take_commands()).len(), 100);
    assert!(
        fleet.delivered - before <= 6,
        "two ring passes of three hops: {}",
        fleet.delivered - before
    );
}

#[test]
fn a_deposed_head_cannot_answer() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    for id in [2, 3] {
        fleet.give(id, ReplicaEvent::Configure(Box::new(config(2, &[2, 3], &[]))));
    }
    fleet.settle();
    fleet.event(1, status(1));
    fleet.event(1, expecting(1, 1, 8));
    let taken = fleet.take_commands();
    assert_eq!(
        (answers(&taken), refusals(&taken)),
        (vec![], vec![]),
        "it may hold less than there is"
    );
    fleet.now = STATUS_WAIT_MS_MAX * 1000;
    fleet.event(1, TICK);
    assert_eq!(answers(&fleet.take_commands()), [(1, Some(Code::Syncing))]);
    fleet.event(1, status(2));
    fleet.event(1, ReplicaEvent::Configure(Box::new(config(2, &[2, 3], &[]))));
    let taken = fleet.take_commands();
    assert_eq!(answers(&taken), [(2, Some(Code::NotHead))]);
    assert_eq!(refusals(&taken), [(1, Code::NotHead)], "the next head judges it");
}

#[test]
fn a_learner_about_to_join_is_asked_too() {
    let mut fleet = Fleet::new(Durability::InMemory, &[1, 4]);
    fleet.configure(1, &[1], &[4]);
    fleet.event(1, status(1));
    assert_eq!(answers(&fleet.take_commands()), [(1, None)]);
    fleet.unreachable.push((1, 4));
    fleet.event(1, status(2));
    assert_eq!(
        answers(&fleet.take_commands()),
        [],
        "it may be the head of a later epoch"
    );
}

/// The ring waits for the learner, which holds the batch and has not synced it. The new head has no acknowledgement
/// from before, since the tail did not reach it.
#[test]
fn a_new_head_knows_that_the_ring_may_acknowledge_less_than_was_committed() {
    let mut fleet = Fleet::new(Durability::Persistent, &[1, 2, 3, 4, 5]);
    fleet.configure(1, &[1, 2, 3, 4], &[]);
    fleet.append(1, append(1, 1));
    for id in [1, 2, 3] {
        fleet.sync(id);
    }
    for event in fleet.unsynced.remove(&4).expect("the tail wrote it") {
        fleet.give(4, event);
    }
    while fleet.node(1).commit_index() == 0 {
        assert!(fleet.deliver());
    }
    assert_eq!(acks(&fleet.take_commands()), [(1, 0)]);
    fleet.lose_on_the_way();
    fleet.unreachable.push((2, 4));
    fleet.configure(2, &[2, 3, 4], &[5]);
    fleet.sync(2);
    fleet.unreachable.clear();
    fleet.event(4, ReplicaEvent::LinkUp { server: ServerId(2) });
    fleet.event(2, status(1));
    let trim = ReplicaEvent::Ask {
        client: CLIENT,
        request: 2,
        asked: Asked::Trim { before_offset: 2 },
    };
    fleet.event(2, trim);
    assert!(fleet.node(2).chain_agrees(), "all agree with it");
    assert_eq!(
        fleet.node(2).commit_offset(),
        0,
        "and the ring has committed nothing yet"
    );
    assert_eq!(
        answers(&fleet.take_commands()),
        [],
        "acknowledged batches would not count"
    );
    fleet.sync(5);
    for id in [2, 3, 4, 5] {
        fleet.sync(id);
    }
    assert_eq!(answers(&fleet.take_commands()), [(1, None), (2, None)]);
    assert_eq!(fleet.node(2).commit_offset(), 2);
}

#[test]
fn below_min_replicas_a_new_head_does_not_know_what_was_committed() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.give(1, ReplicaEvent::Append(append(1, 1)));
    while fleet.node(1).commit_index() == 0 {
        assert!(fleet.deliver());
    }
    // All three have it; the followers have not heard that it is committed.
    let paused = GroupConfig {
        min_replicas: 3,
        ..config(2, &[2, 3], &[])
    };
    fleet.lose_on_the_way();
    for id in [2, 3] {
        fleet.give(id, ReplicaEvent::Configure(Box::new(paused.clone())));
    }
    fleet.settle();
    fleet.take_commands();
    assert!(fleet.node(2).commit_index() < fleet.node(2).log().last_index());
    fleet.event(2, status(1));
    assert_eq!(answers(&fleet.take_commands()), [(1, Some(Code::Paused))]);
}

#[test]
fn a_failed_expectation_waits_for_its_premise() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.append(1, append(1, 1));
    fleet.take_commands();
    fleet.unreachable.push((2, 3));
    fleet.append(1, append(1, 2));
    fleet.event(1, expecting(2, 1, 0));
    assert_eq!(
        refusals(&fleet.take_commands()),
        [(1, Code::ConditionFailed)],
        "committed beyond 0 long since"
    );
    fleet.event(1, expecting(2, 1, 2));
    fleet.event(1, expecting(3, 1, 8));
    assert_eq!(refusals(&fleet.take_commands()), []);
    assert_eq!(fleet.node(1).held_refusals(), 2);
    fleet.unreachable.clear();
    fleet.configure(2, &[1, 2, 3], &[]);
    let taken = fleet.take_commands();
    assert_eq!(acks(&taken), [(2, 2)]);
    assert_eq!(
        refusals(&taken),
        [(1, Code::ConditionFailed), (1, Code::ConditionFailed)]
    );
}

#[test]
fn an_append_judged_on_a_lost_batch_is_judged_again() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.unreachable.push((1, 2));
    fleet.append(1, append(1, 1));
    fleet.event(1, expecting(2, 1, 0));
    assert_eq!(refusals(&fleet.take_commands()), []);
    fleet.configure(2, &[2, 3], &[]);
    fleet.event(1, ReplicaEvent::Configure(Box::new(config(2, &[2, 3], &[]))));
    assert!(refusals(&fleet.take_commands()).contains(&(1, Code::NotHead)));
    fleet.event(2, expecting(2, 1, 0));
    assert_eq!(
        acks(&fleet.take_commands()),
        [(1, 0)],
        "and holds at the next head"
    );
}

#[test]
fn a_token_fences_when_it_is_committed() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    let with_token = |session, token| {
        let mut request = append(session, 1);
        request.fencing_token = token;
        ReplicaEvent::Append(request)
    };
    fleet.unreachable.push((2, 3));
    fleet.event(1, with_token(1, 9));
    fleet.event(1, with_token(2, 8));
    assert_eq!(refusals(&fleet.take_commands()), []);
    fleet.unreachable.clear();
    fleet.configure(2, &[1, 2, 3], &[]);
    assert_eq!(refusals(&fleet.take_commands()), [(1, Code::Fenced)]);
    fleet.event(1, with_token(3, 8));
    assert_eq!(refusals(&fleet.take_commands()), [(1, Code::Fenced)]);
}

#[test]
fn refusals_of_one_session_keep_their_order() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.unreachable.push((2, 3));
    fleet.append(1, append(1, 1));
    fleet.event(1, expecting(2, 1, 0));
    fleet.append(1, append(2, 2));
    fleet.append(1, append(3, 5));
    assert_eq!(
        refusals(&fleet.take_commands()),
        [(5, Code::SequenceGap)],
        "another session waits for nothing"
    );
    fleet.unreachable.clear();
    fleet.configure(2, &[1, 2, 3], &[]);
    assert_eq!(
        refusals(&fleet.take_commands()),
        [(1, Code::ConditionFailed), (2, Code::SequenceGap)]
    );
}

#[test]
fn held_refusals_are_bounded() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.unreachable.push((2, 3));
    fleet.append(1, append(1, 1));
    for session in 2..HELD_REFUSALS_MAX as u64 + 12 {
        fleet.event(1, expecting(session, 1, 0));
    }
    assert_eq!(fleet.node(1).held_refusals(), HELD_REFUSALS_MAX);
    assert_eq!(refusals(&fleet.take_commands()), [(1, Code::Overloaded); 10]);
    let mut out = Vec::new();
    fleet.nodes.get_mut(&1).expect("head").leave(&mut out);
    assert_eq!(fleet.node(1).held_refusals(), 0);
    assert_eq!(
        refusals(&out)
            .iter()
            .filter(|r| r.1 == Code::GroupNotHere)
            .count(),
        HELD_REFUSALS_MAX
    );
}

#[test]
fn a_sole_head_knows_by_itself() {
    let mut replica = crate::rig::sole(Durability::InMemory, &[], 1);
    assert_eq!(answers(&crate::rig::step(&mut replica, status(1))), [(1, None)]);
    assert_eq!(
        refusals(&crate::rig::step(&mut replica, expecting(1, 1, 4))),
        [(1, Code::ConditionFailed)]
    );
    assert_eq!(
        replica.config().and_then(|c| c.head()).map(|m| m.server_id),
        Some(ServerId(1))
    );
}
