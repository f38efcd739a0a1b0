//! An isolated head sends its clients elsewhere. A head is not isolated while the ring or the coordinator answers.

use quorate_chain::{Asked, Happened, ReplicaCommand, ReplicaEvent};
use quorate_types::limits::RING_STALL_MS;
use quorate_types::{Code, Durability, ServerId};

use crate::rig::{CLIENT, Fleet, TICK, acks, answers, append, config, refusals};

const TICK_US: u64 = 100_000;

/// Ticks of server 1 for so long.
fn pass(fleet: &mut Fleet, coordinator_silent: bool, time_ms: u64) {
    let end = fleet.now + time_ms * 1_000;
    while fleet.now < end {
        fleet.now += TICK_US;
        fleet.event(1, ReplicaEvent::CoordinatorSilent(coordinator_silent));
        fleet.event(1, TICK);
    }
}

/// The head of three reaches neither of the others.
fn alone(durability: Durability) -> Fleet {
    let mut fleet = Fleet::of_three(durability);
    fleet.unreachable = vec![(1, 2), (1, 3)];
    fleet.take_commands();
    fleet
}

#[test]
fn a_head_that_reaches_nobody_sends_its_clients_elsewhere() {
    let mut fleet = alone(Durability::InMemory);
    fleet.append(1, append(1, 1));
    fleet.append(1, append(1, 2));
    pass(&mut fleet, true, RING_STALL_MS);
    assert_eq!(refusals(&fleet.take_commands()), [], "not before its time");
    pass(&mut fleet, true, TICK_US / 1_000);
    let taken = fleet.take_commands();
    assert_eq!(refusals(&taken), [(1, Code::CutOff), (2, Code::CutOff)]);
    for command in &taken {
        if let ReplicaCommand::Refuse { happened, .. } = command {
            assert_eq!(*happened, Happened::Unknown, "they may be committed yet");
        }
    }
    assert!(fleet.node(1).is_isolated());
    fleet.append(1, append(1, 3));
    let taken = fleet.take_commands();
    assert_eq!(refusals(&taken), [(3, Code::CutOff)]);
    let never = |c: &ReplicaCommand| matches!(c, ReplicaCommand::Refuse { happened, .. } if *happened == Happened::No);
    assert!(taken.iter().all(never), "what comes later is not ordered");
}

#[test]
fn a_head_that_knows_of_a_later_one_sends_its_clients_elsewhere() {
    let mut fleet = alone(Durability::InMemory);
    fleet.append(1, append(1, 1));
    fleet.event(1, ReplicaEvent::Deposed { by: 1 });
    assert!(!fleet.node(1).is_isolated(), "it is this epoch's head");
    fleet.event(1, ReplicaEvent::Deposed { by: 2 });
    assert_eq!(refusals(&fleet.take_commands()), [(1, Code::CutOff)]);
    fleet.append(1, append(1, 2));
    assert_eq!(refusals(&fleet.take_commands()), [(2, Code::CutOff)]);
    fleet.event(2, ReplicaEvent::Deposed { by: 2 });
    assert!(!fleet.node(2).is_isolated(), "others are no heads");
}

#[test]
fn a_ring_that_gets_on_needs_no_coordinator() {
    let mut fleet = Fleet::of_three(Durability::Persistent);
    for id in [1, 2, 3] {
        fleet.sync(id);
    }
    fleet.take_commands();
    for seq in 1..=40 {
        fleet.append(1, append(1, seq));
        // Never caught up with all appends, but on its way.
        for id in [1, 2, 3] {
            if seq % 5 == 0 {
                fleet.sync(id);
            }
        }
        pass(&mut fleet, true, 100);
        assert!(!fleet.node(1).is_isolated(), "after batch {seq}");
    }
    let taken = fleet.take_commands();
    assert_eq!(refusals(&taken), []);
    assert_eq!(acks(&taken).len(), 40);
}

#[test]
fn an_idle_head_whose_link_to_its_successor_broke_is_stalled() {
    let mut fleet = alone(Durability::InMemory);
    pass(&mut fleet, false, RING_STALL_MS);
    assert_eq!(fleet.node(1).stalled_since(), None);
    fleet.event(1, ReplicaEvent::LinkDown { server: ServerId(2) });
    let broke_at = fleet.now + TICK_US;
    pass(&mut fleet, false, 2 * RING_STALL_MS);
    assert_eq!(fleet.node(1).stalled_since(), Some(broke_at));
    assert!(!fleet.node(1).is_isolated(), "the coordinator answers");
    pass(&mut fleet, true, TICK_US / 1_000);
    assert!(fleet.node(1).is_isolated());
    fleet.append(1, append(1, 1));
    assert_eq!(refusals(&fleet.take_commands()), [(1, Code::CutOff)]);
    fleet.unreachable.clear();
    fleet.event(2, ReplicaEvent::LinkUp { server: ServerId(1) });
    fleet.event(1, ReplicaEvent::LinkUp { server: ServerId(2) });
    fleet.event(2, TICK);
    pass(&mut fleet, true, TICK_US / 1_000);
    assert_eq!(fleet.node(1).stalled_since(), None, "its successor follows again");
    assert!(!fleet.node(1).is_isolated());
}

#[test]
fn an_idle_ring_is_not_stalled() {
    let mut fleet = alone(Durability::InMemory);
    pass(&mut fleet, true, 10 * RING_STALL_MS);
    assert!(!fleet.node(1).is_isolated());
    fleet.append(1, append(1, 1));
    pass(&mut fleet, true, RING_STALL_MS);
    assert!(!fleet.node(1).is_isolated(), "its time began with the append");
}

#[test]
fn while_the_coordinator_answers_it_is_the_judge() {
    let mut fleet = alone(Durability::InMemory);
    fleet.append(1, append(1, 1));
    pass(&mut fleet, false, 10 * RING_STALL_MS);
    assert!(!fleet.node(1).is_isolated());
    pass(&mut fleet, true, TICK_US / 1_000);
    assert!(fleet.node(1).is_isolated());
    pass(&mut fleet, false, TICK_US / 1_000);
    assert!(!fleet.node(1).is_isolated());
}

#[test]
fn an_append_sent_elsewhere_is_ordered_once_when_the_ring_is_back() {
    let mut fleet = alone(Durability::InMemory);
    fleet.append(1, append(1, 1));
    pass(&mut fleet, true, 2 * RING_STALL_MS);
    fleet.take_commands();
    fleet.unreachable.clear();
    fleet.configure(2, &[1, 2, 3], &[]);
    assert!(!fleet.node(1).is_isolated(), "a new epoch is judged afresh");
    fleet.append(1, append(1, 1));
    fleet.append(1, append(1, 2));
    assert_eq!(acks(&fleet.take_commands()), [(1, 0), (2, 2)]);
}

#[test]
fn questions_and_trims_are_sent_elsewhere_too() {
    let mut fleet = alone(Durability::InMemory);
    let ask = |request, asked| ReplicaEvent::Ask {
        client: CLIENT,
        request,
        asked,
    };
    fleet.event(1, ask(1, Asked::Trim { before_offset: 0 }));
    fleet.append(1, append(1, 1));
    fleet.event(1, ask(2, Asked::Trim { before_offset: 2 }));
    fleet.take_commands();
    pass(&mut fleet, true, RING_STALL_MS + 100);
    assert_eq!(answers(&fleet.take_commands()), [(2, Some(Code::CutOff))]);
}

#[test]
fn a_head_that_stood_still_itself_does_not_blame_the_ring() {
    let mut fleet = alone(Durability::InMemory);
    fleet.append(1, append(1, 1));
    pass(&mut fleet, true, 300);
    fleet.now += 10 * RING_STALL_MS * 1_000;
    pass(&mut fleet, true, 100);
    assert!(!fleet.node(1).is_isolated(), "it slept");
    pass(&mut fleet, true, RING_STALL_MS);
    assert!(fleet.node(1).is_isolated());
}

#[test]
fn a_follower_and_a_sole_replica_are_never_isolated() {
    let mut fleet = Fleet::new(Durability::Persistent, &[1]);
    fleet.configure(1, &[1], &[]);
    fleet.append(1, append(1, 1));
    pass(&mut fleet, true, 10 * RING_STALL_MS);
    assert!(!fleet.node(1).is_isolated(), "it waits for its own disk alone");
    let mut fleet = alone(Durability::InMemory);
    fleet.append(1, append(1, 1));
    fleet.event(1, ReplicaEvent::Configure(Box::new(config(2, &[2, 1, 3], &[]))));
    pass(&mut fleet, true, 10 * RING_STALL_MS);
    assert!(!fleet.node(1).is_isolated());
}
