//! What a head says of the group is true of the group: confirmed by a round, or resting on what is committed.

use quorate_chain::{Asked, Event};
use quorate_types::limits::{HELD_REFUSALS_MAX, STATUS_WAIT_MS_MAX};
use quorate_types::{Code, Durability, GroupConfig, ServerId};

use crate::rig::{CLIENT, Fleet, TICK, acks, answers, append, config, refusals};

fn status(request: u32) -> Event {
    Event::Ask {
        client: CLIENT,
        request,
        asked: Asked::Status,
    }
}

fn expecting(session: u64, seq: u64, expected_offset: u64) -> Event {
    let mut request = append(session, seq);
    request.expected_offset = expected_offset;
    Event::Append(request)
}

#[test]
fn the_tail_is_told_after_a_round() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.event(1, status(1));
    assert_eq!(answers(&fleet.take_told()), [(1, None)]);
    fleet.cut.push((2, 3));
    fleet.event(1, status(2));
    fleet.event(1, status(3));
    assert_eq!(
        answers(&fleet.take_told()),
        [],
        "who cannot reach the ring does not know"
    );
    fleet.cut.clear();
    fleet.configure(2, &[1, 2, 3], &[]);
    assert_eq!(answers(&fleet.take_told()), [(2, None), (3, None)]);
}

#[test]
fn questions_share_a_round() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    for request in 1..=100 {
        fleet.give(1, status(request));
    }
    let before = fleet.delivered;
    fleet.settle();
    assert_eq!(answers(&fleet.take_told()).len(), 100);
    assert!(
        fleet.delivered - before <= 6,
        "two rounds of three hops: {}",
        fleet.delivered - before
    );
}

#[test]
fn a_deposed_head_cannot_answer() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    for id in [2, 3] {
        fleet.give(id, Event::Configure(config(2, &[2, 3], &[])));
    }
    fleet.settle();
    fleet.event(1, status(1));
    fleet.event(1, expecting(1, 1, 8));
    let told = fleet.take_told();
    assert_eq!(
        (answers(&told), refusals(&told)),
        (vec![], vec![]),
        "it may hold less than there is"
    );
    fleet.now = STATUS_WAIT_MS_MAX * 1000;
    fleet.event(1, TICK);
    assert_eq!(answers(&fleet.take_told()), [(1, Some(Code::Syncing))]);
    fleet.event(1, status(2));
    fleet.event(1, Event::Configure(config(2, &[2, 3], &[])));
    let told = fleet.take_told();
    assert_eq!(answers(&told), [(2, Some(Code::NotHead))]);
    assert_eq!(refusals(&told), [(1, Code::NotHead)], "the next head judges it");
}

#[test]
fn a_learner_about_to_join_is_asked_too() {
    let mut fleet = Fleet::new(Durability::InMemory, &[1, 4]);
    fleet.configure(1, &[1], &[4]);
    fleet.event(1, status(1));
    assert_eq!(answers(&fleet.take_told()), [(1, None)]);
    fleet.cut.push((1, 4));
    fleet.event(1, status(2));
    assert_eq!(
        answers(&fleet.take_told()),
        [],
        "it may be the head of a later epoch"
    );
}

/// The ring waits for the learner, which holds the batch and has not synced it; the new head was not told of the ring
/// before, since the tail did not reach it.
#[test]
fn a_new_head_told_less_than_was_committed_knows_that() {
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
    assert_eq!(acks(&fleet.take_told()), [(1, 0)]);
    fleet.lose_on_the_way();
    fleet.cut.push((2, 4));
    fleet.configure(2, &[2, 3, 4], &[5]);
    fleet.sync(2);
    fleet.cut.clear();
    fleet.event(4, Event::LinkUp { server: ServerId(2) });
    fleet.event(2, status(1));
    let trim = Event::Ask {
        client: CLIENT,
        request: 2,
        asked: Asked::Trim { before_offset: 2 },
    };
    fleet.event(2, trim);
    assert!(fleet.node(2).ring_closed(), "all agree with it");
    assert_eq!(
        fleet.node(2).commit_offset(),
        0,
        "and the ring has committed nothing yet"
    );
    assert_eq!(
        answers(&fleet.take_told()),
        [],
        "what was acknowledged would not count"
    );
    fleet.sync(5);
    for id in [2, 3, 4, 5] {
        fleet.sync(id);
    }
    assert_eq!(answers(&fleet.take_told()), [(1, None), (2, None)]);
    assert_eq!(fleet.node(2).commit_offset(), 2);
}

#[test]
fn below_min_replicas_a_new_head_does_not_know_what_was_committed() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.give(1, Event::Append(append(1, 1)));
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
        fleet.give(id, Event::Configure(paused.clone()));
    }
    fleet.settle();
    fleet.take_told();
    assert!(fleet.node(2).commit_index() < fleet.node(2).log().last_index());
    fleet.event(2, status(1));
    assert_eq!(answers(&fleet.take_told()), [(1, Some(Code::Paused))]);
}

#[test]
fn a_failed_expectation_waits_for_what_it_was_judged_on() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.append(1, append(1, 1));
    fleet.take_told();
    fleet.cut.push((2, 3));
    fleet.append(1, append(1, 2));
    fleet.event(1, expecting(2, 1, 0));
    assert_eq!(
        refusals(&fleet.take_told()),
        [(1, Code::ConditionFailed)],
        "committed beyond 0 long since"
    );
    fleet.event(1, expecting(2, 1, 2));
    fleet.event(1, expecting(3, 1, 8));
    assert_eq!(refusals(&fleet.take_told()), []);
    assert_eq!(fleet.node(1).held_refusals(), 2);
    fleet.cut.clear();
    fleet.configure(2, &[1, 2, 3], &[]);
    let told = fleet.take_told();
    assert_eq!(acks(&told), [(2, 2)]);
    assert_eq!(
        refusals(&told),
        [(1, Code::ConditionFailed), (1, Code::ConditionFailed)]
    );
}

#[test]
fn what_was_judged_on_a_lost_batch_is_judged_anew() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.cut.push((1, 2));
    fleet.append(1, append(1, 1));
    fleet.event(1, expecting(2, 1, 0));
    assert_eq!(refusals(&fleet.take_told()), []);
    fleet.configure(2, &[2, 3], &[]);
    fleet.event(1, Event::Configure(config(2, &[2, 3], &[])));
    assert!(refusals(&fleet.take_told()).contains(&(1, Code::NotHead)));
    fleet.event(2, expecting(2, 1, 0));
    assert_eq!(acks(&fleet.take_told()), [(1, 0)], "and holds at the next head");
}

#[test]
fn a_token_fences_when_it_is_committed() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    let with_token = |session, token| {
        let mut request = append(session, 1);
        request.fencing_token = token;
        Event::Append(request)
    };
    fleet.cut.push((2, 3));
    fleet.event(1, with_token(1, 9));
    fleet.event(1, with_token(2, 8));
    assert_eq!(refusals(&fleet.take_told()), []);
    fleet.cut.clear();
    fleet.configure(2, &[1, 2, 3], &[]);
    assert_eq!(refusals(&fleet.take_told()), [(1, Code::Fenced)]);
    fleet.event(1, with_token(3, 8));
    assert_eq!(refusals(&fleet.take_told()), [(1, Code::Fenced)]);
}

#[test]
fn refusals_of_one_session_keep_their_order() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.cut.push((2, 3));
    fleet.append(1, append(1, 1));
    fleet.event(1, expecting(2, 1, 0));
    fleet.append(1, append(2, 2));
    fleet.append(1, append(3, 5));
    assert_eq!(
        refusals(&fleet.take_told()),
        [(5, Code::SequenceGap)],
        "another session waits for nothing"
    );
    fleet.cut.clear();
    fleet.configure(2, &[1, 2, 3], &[]);
    assert_eq!(
        refusals(&fleet.take_told()),
        [(1, Code::ConditionFailed), (2, Code::SequenceGap)]
    );
}

#[test]
fn what_is_held_is_bounded() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.cut.push((2, 3));
    fleet.append(1, append(1, 1));
    for session in 2..HELD_REFUSALS_MAX as u64 + 12 {
        fleet.event(1, expecting(session, 1, 0));
    }
    assert_eq!(fleet.node(1).held_refusals(), HELD_REFUSALS_MAX);
    assert_eq!(refusals(&fleet.take_told()), [(1, Code::Overloaded); 10]);
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
