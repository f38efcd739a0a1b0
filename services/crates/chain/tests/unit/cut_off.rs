//! Who waits at a head that reaches nobody is sent elsewhere; nobody is while either the ring or the coordinator answers.

use quorate_chain::{Asked, Command, Event, Happened};
use quorate_types::limits::RING_STALL_MS;
use quorate_types::{Code, Durability};

use crate::rig::{CLIENT, Fleet, TICK, acks, answers, append, config, refusals};

const TICK_US: u64 = 100_000;

/// Ticks of server 1 for so long.
fn pass(fleet: &mut Fleet, coordinator_silent: bool, time_ms: u64) {
    let end = fleet.now + time_ms * 1_000;
    while fleet.now < end {
        fleet.now += TICK_US;
        fleet.event(1, Event::CoordinatorSilent(coordinator_silent));
        fleet.event(1, TICK);
    }
}

/// The head of three reaches neither of the others.
fn alone(durability: Durability) -> Fleet {
    let mut fleet = Fleet::of_three(durability);
    fleet.cut = vec![(1, 2), (1, 3)];
    fleet.take_told();
    fleet
}

#[test]
fn a_head_that_reaches_nobody_sends_its_clients_elsewhere() {
    let mut fleet = alone(Durability::InMemory);
    fleet.append(1, append(1, 1));
    fleet.append(1, append(1, 2));
    pass(&mut fleet, true, RING_STALL_MS);
    assert_eq!(refusals(&fleet.take_told()), [], "not before its time");
    pass(&mut fleet, true, TICK_US / 1_000);
    let told = fleet.take_told();
    assert_eq!(refusals(&told), [(1, Code::CutOff), (2, Code::CutOff)]);
    for command in &told {
        if let Command::Refuse { happened, .. } = command {
            assert_eq!(*happened, Happened::Unknown, "they may be committed yet");
        }
    }
    assert!(fleet.node(1).is_cut_off());
    fleet.append(1, append(1, 3));
    let told = fleet.take_told();
    assert_eq!(refusals(&told), [(3, Code::CutOff)]);
    let never = |c: &Command| matches!(c, Command::Refuse { happened, .. } if *happened == Happened::No);
    assert!(told.iter().all(never), "what comes later is not ordered");
}

#[test]
fn a_ring_that_gets_on_needs_no_coordinator() {
    let mut fleet = Fleet::of_three(Durability::Persistent);
    for id in [1, 2, 3] {
        fleet.sync(id);
    }
    fleet.take_told();
    for seq in 1..=40 {
        fleet.append(1, append(1, seq));
        // Never level with all that was appended, but on its way.
        for id in [1, 2, 3] {
            if seq % 5 == 0 {
                fleet.sync(id);
            }
        }
        pass(&mut fleet, true, 100);
        assert!(!fleet.node(1).is_cut_off(), "after batch {seq}");
    }
    let told = fleet.take_told();
    assert_eq!(refusals(&told), []);
    assert_eq!(acks(&told).len(), 40);
}

#[test]
fn an_idle_ring_is_not_stalled() {
    let mut fleet = alone(Durability::InMemory);
    pass(&mut fleet, true, 10 * RING_STALL_MS);
    assert!(!fleet.node(1).is_cut_off());
    fleet.append(1, append(1, 1));
    pass(&mut fleet, true, RING_STALL_MS);
    assert!(!fleet.node(1).is_cut_off(), "its time began with the append");
}

#[test]
fn while_the_coordinator_answers_it_is_the_judge() {
    let mut fleet = alone(Durability::InMemory);
    fleet.append(1, append(1, 1));
    pass(&mut fleet, false, 10 * RING_STALL_MS);
    assert!(!fleet.node(1).is_cut_off());
    pass(&mut fleet, true, TICK_US / 1_000);
    assert!(fleet.node(1).is_cut_off());
    pass(&mut fleet, false, TICK_US / 1_000);
    assert!(!fleet.node(1).is_cut_off());
}

#[test]
fn what_was_sent_away_is_ordered_once_when_the_ring_is_back() {
    let mut fleet = alone(Durability::InMemory);
    fleet.append(1, append(1, 1));
    pass(&mut fleet, true, 2 * RING_STALL_MS);
    fleet.take_told();
    fleet.cut.clear();
    fleet.configure(2, &[1, 2, 3], &[]);
    assert!(!fleet.node(1).is_cut_off(), "a new epoch begins anew");
    fleet.append(1, append(1, 1));
    fleet.append(1, append(1, 2));
    assert_eq!(acks(&fleet.take_told()), [(1, 0), (2, 2)]);
}

#[test]
fn questions_and_trims_are_sent_elsewhere_too() {
    let mut fleet = alone(Durability::InMemory);
    let ask = |request, asked| Event::Ask {
        client: CLIENT,
        request,
        asked,
    };
    fleet.event(1, ask(1, Asked::Trim { before_offset: 0 }));
    fleet.append(1, append(1, 1));
    fleet.event(1, ask(2, Asked::Trim { before_offset: 2 }));
    fleet.take_told();
    pass(&mut fleet, true, RING_STALL_MS + 100);
    assert_eq!(answers(&fleet.take_told()), [(2, Some(Code::CutOff))]);
}

#[test]
fn who_stood_still_itself_does_not_blame_the_ring() {
    let mut fleet = alone(Durability::InMemory);
    fleet.append(1, append(1, 1));
    pass(&mut fleet, true, 300);
    fleet.now += 10 * RING_STALL_MS * 1_000;
    pass(&mut fleet, true, 100);
    assert!(!fleet.node(1).is_cut_off(), "it slept");
    pass(&mut fleet, true, RING_STALL_MS);
    assert!(fleet.node(1).is_cut_off());
}

#[test]
fn a_follower_and_a_sole_replica_are_never_cut_off() {
    let mut fleet = Fleet::new(Durability::Persistent, &[1]);
    fleet.configure(1, &[1], &[]);
    fleet.append(1, append(1, 1));
    pass(&mut fleet, true, 10 * RING_STALL_MS);
    assert!(
        !fleet.node(1).is_cut_off(),
        "its own disk is all that it waits for"
    );
    let mut fleet = alone(Durability::InMemory);
    fleet.append(1, append(1, 1));
    fleet.event(1, Event::Configure(config(2, &[2, 1, 3], &[])));
    pass(&mut fleet, true, 10 * RING_STALL_MS);
    assert!(!fleet.node(1).is_cut_off());
}
