//! A learner is fed at the allowed rate, and no faster than its disk. A replica that falls behind is seen.

use quorate_chain::{Lags, Replica, ReplicaCommand, ReplicaEvent};
use quorate_types::limits::{CATCHUP_WINDOW_BYTES, SYNC_STALL_MS};
use quorate_types::{Durability, GroupConfig, ServerId};

use crate::rig::{Fleet, TICK, acks, append, config, payload};

const MIB: usize = 1 << 20;

/// The only replica of a chain has so many batches of a MiB; server 4 is to learn them.
fn with_learner(durability: Durability, count: u64, is_paced: bool) -> Fleet {
    let mut fleet = Fleet::new(durability, &[1, 4]);
    fleet.configure(1, &[1], &[]);
    for seq in 1..=count {
        let mut request = append(1, seq);
        request.payload = payload(MIB);
        fleet.append(1, request);
    }
    fleet.sync(1);
    if is_paced {
        fleet.nodes.get_mut(&1).expect("it is there").pace_catchup();
    }
    fleet.configure(2, &[1], &[4]);
    fleet
}

fn held(fleet: &Fleet) -> u64 {
    fleet.node(4).log().last_index()
}

#[test]
fn a_learner_is_sent_its_allowance() {
    let mut fleet = with_learner(Durability::InMemory, 12, true);
    assert_eq!(held(&fleet), 0);
    let wanted = fleet.node(1).catchup_wanted_bytes();
    assert!(
        wanted <= CATCHUP_WINDOW_BYTES && wanted > 3 * MIB as u64,
        "a window: {wanted}"
    );
    for allowed in 1..=3 {
        fleet.event(1, ReplicaEvent::CatchupAllowance { bytes: MIB as u64 });
        assert_eq!(held(&fleet), allowed, "a MiB is allowed, a batch is sent");
    }
    fleet.event(1, ReplicaEvent::CatchupAllowance { bytes: u64::MAX >> 1 });
    assert_eq!(held(&fleet), 7, "an allowance is not saved up");
}

#[test]
fn appends_meanwhile_do_not_count() {
    let mut fleet = with_learner(Durability::InMemory, 3, true);
    let before = held(&fleet);
    for seq in 4..=6 {
        let mut request = append(1, seq);
        request.payload = payload(MIB);
        fleet.append(1, request);
    }
    assert_eq!(held(&fleet), before + 3, "it lacks as much as before");
    assert_eq!(fleet.node(1).catchup_wanted_bytes() >> 20, 3);
}

#[test]
fn a_replica_of_the_chain_and_a_learner_about_to_join_are_not_held_back() {
    let mut fleet = with_learner(Durability::InMemory, 1, true);
    fleet.event(1, ReplicaEvent::CatchupAllowance { bytes: 1 });
    assert_eq!((held(&fleet), fleet.node(1).catchup_wanted_bytes()), (1, 0));
    for seq in 2..=20 {
        let mut request = append(1, seq);
        request.payload = payload(MIB);
        fleet.append(1, request);
        assert_eq!(held(&fleet), seq);
    }
    fleet.configure(3, &[1, 4], &[]);
    fleet.append(1, append(1, 21));
    assert_eq!(held(&fleet), 21);
}

#[test]
fn a_learner_whose_disk_is_slow_is_not_made_to_buffer_the_log() {
    let mut fleet = with_learner(Durability::Persistent, 14, false);
    let window = CATCHUP_WINDOW_BYTES / MIB as u64;
    assert_eq!(held(&fleet), window, "no more than a window is in its memory");
    let mut rounds = 0;
    while held(&fleet) < 14 {
        let before = held(&fleet);
        fleet.sync(4);
        assert!(held(&fleet) > before, "durable batches open the window");
        assert!(held(&fleet) - before <= window);
        rounds += 1;
        assert!(rounds < 20);
    }
}

fn lags_at(replica: &mut Replica, now: u64) -> Lags {
    crate::rig::step_at(replica, now, TICK);
    replica.lags(now)
}

#[test]
fn a_successor_that_does_not_get_on_is_seen() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.append(1, append(1, 1));
    let head = fleet.nodes.get_mut(&1).expect("head");
    assert_eq!(lags_at(head, 0), Lags::default(), "all is committed");
    fleet.unreachable.push((1, 2));
    fleet.append(1, append(1, 2));
    let head = fleet.nodes.get_mut(&1).expect("head");
    lags_at(head, 100);
    fleet.append(1, append(1, 3));
    let head = fleet.nodes.get_mut(&1).expect("head");
    assert_eq!(lags_at(head, 700).successor, Some((ServerId(2), 600)));
    fleet.unreachable.clear();
    fleet.event(2, ReplicaEvent::LinkUp { server: ServerId(1) });
    let head = fleet.nodes.get_mut(&1).expect("head");
    assert_eq!(head.lags(800), Lags::default());
}

#[test]
fn only_the_slow_one_is_blamed() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.unreachable.push((2, 3));
    fleet.append(1, append(1, 1));
    for now in [0, 100, 200, 300] {
        fleet.now = now;
        for id in [1, 2] {
            fleet.event(id, TICK);
        }
    }
    assert_eq!(
        fleet.node(1).lags(300).successor,
        None,
        "2 has said at its ticks that it has it"
    );
    assert_eq!(fleet.node(2).lags(300).successor, Some((ServerId(3), 300)));
}

#[test]
fn a_slow_disk_is_seen() {
    let mut fleet = Fleet::of_three(Durability::Persistent);
    fleet.append(1, append(1, 1));
    let tail = fleet.nodes.get_mut(&3).expect("tail");
    lags_at(tail, 0);
    assert_eq!(lags_at(tail, 500).journal, Some(500));
    fleet.sync(3);
    let tail = fleet.nodes.get_mut(&3).expect("tail");
    assert_eq!((tail.lags(600).journal, lags_at(tail, 700).journal), (None, None));
}

#[test]
fn a_learner_that_was_dropped_holds_no_commit_back_and_asks_again() {
    let mut fleet = with_learner(Durability::Persistent, 3, false);
    let trimming = GroupConfig {
        retention_bytes: 1,
        durability: Durability::Persistent,
        ..config(3, &[1], &[4])
    };
    for id in [4, 1] {
        fleet.event(id, ReplicaEvent::Configure(Box::new(trimming.clone())));
    }
    fleet.append(1, append(1, 4));
    fleet.sync(1);
    assert_eq!(held(&fleet), 4);
    fleet.event(1, TICK);
    assert_eq!(
        fleet.node(1).log().first_index(),
        4,
        "the learner holds the trim up"
    );
    fleet.nodes.get_mut(&1).expect("head").set_memory_short(true);
    fleet.event(1, TICK);
    assert!(fleet.node(1).log().first_index() > 4, "it was dropped");
    fleet.sync(4);
    fleet.take_commands();
    fleet.append(1, append(1, 5));
    fleet.sync(1);
    assert_eq!(
        acks(&fleet.take_commands()),
        [(5, 8)],
        "what it has said is of no use now"
    );
    fleet.now += SYNC_STALL_MS * 1_000;
    fleet.event(4, TICK);
    fleet.sync(4);
    let taken = fleet.take_commands();
    let is_load = |c: &ReplicaCommand| matches!(c, ReplicaCommand::Load { from_index: 5, .. });
    assert!(taken.iter().any(is_load), "it asked, and is fed again");
}
