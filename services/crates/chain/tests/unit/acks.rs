//! Commitment: the ring acknowledges, then every replica commits.

use quorate_chain::{ReplicaCommand, ReplicaEvent};
use quorate_types::{Code, Durability, GroupState};
use quorate_wire::peer::{ChainAck, Message};

use crate::rig::{Fleet, acks, append, config, peer, refusals};

#[test]
fn a_batch_is_acked_when_the_tail_has_it() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.give(1, ReplicaEvent::Append(append(1, 1)));
    assert_eq!(fleet.commits(&[1, 2, 3]), [0, 0, 0]);
    fleet.settle();
    assert_eq!(
        fleet.commits(&[1, 2, 3]),
        [1, 1, 1],
        "a notice carries the commit index when no batch follows"
    );
    assert_eq!(acks(&fleet.take_commands()), [(1, 0)]);
}

#[test]
fn nothing_is_acked_while_the_tail_is_away() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.unreachable.push((2, 3));
    fleet.append(1, append(1, 1));
    assert_eq!(
        (acks(&fleet.take_commands()), fleet.commits(&[1, 2])),
        (vec![], vec![0, 0])
    );
}

#[test]
fn a_chain_of_one_acks_itself() {
    let mut fleet = Fleet::new(Durability::InMemory, &[1]);
    fleet.configure(1, &[1], &[]);
    fleet.append(1, append(1, 1));
    assert_eq!(acks(&fleet.take_commands()), [(1, 0)]);
}

#[test]
fn a_lost_tail_commits_what_its_predecessor_holds() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.unreachable.push((2, 3));
    fleet.append(1, append(1, 1));
    fleet.configure(2, &[1, 2], &[]);
    assert_eq!(acks(&fleet.take_commands()), [(1, 0)]);
}

#[test]
fn a_lost_middle_is_resent_around() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.append(1, append(1, 1));
    fleet.unreachable.push((1, 2));
    for seq in 2..=5 {
        fleet.append(1, append(1, seq));
    }
    fleet.take_commands();
    fleet.configure(2, &[1, 3], &[]);
    assert_eq!(acks(&fleet.take_commands()), [(2, 2), (3, 4), (4, 6), (5, 8)]);
    assert_eq!(fleet.commits(&[1, 3]), [5, 5]);
}

#[test]
fn a_lost_heads_successor_commits_all_that_it_has() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.append(1, append(1, 1));
    fleet.unreachable.push((2, 3));
    fleet.append(1, append(1, 2));
    fleet.unreachable = vec![(1, 2), (1, 3)];
    fleet.configure(2, &[2, 3], &[]);
    assert_eq!(fleet.commits(&[2, 3]), [2, 2], "the second commits its whole log");
    fleet.take_commands();
    fleet.append(2, append(1, 2));
    assert_eq!(
        acks(&fleet.take_commands()),
        [(2, 2)],
        "the retry is not ordered twice"
    );
}

#[test]
fn the_rest_commits_its_log_when_several_are_lost_at_once() {
    for (rest, server) in [([2, 4], 2), ([1, 5], 1), ([4, 5], 4), ([1, 2], 1)] {
        let mut fleet = Fleet::new(Durability::InMemory, &[1, 2, 3, 4, 5]);
        fleet.configure(1, &[1, 2, 3, 4, 5], &[]);
        fleet.append(1, append(1, 1));
        fleet.unreachable.push((3, 4));
        fleet.append(1, append(1, 2));
        fleet.take_commands();
        fleet.unreachable.clear();
        fleet.configure(2, &rest, &[]);
        let last = fleet.node(rest[0]).log().last_index();
        assert!(last >= 1, "acked batches are in {rest:?}");
        assert_eq!(fleet.commits(&rest), [last; 2], "{rest:?} agree");
        fleet.append(server, append(1, last + 1));
        assert_eq!(fleet.commits(&rest), [last + 1; 2], "and {rest:?} go on");
    }
}

#[test]
fn only_the_tail_of_this_epoch_agrees_for_the_ring() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.unreachable.push((2, 3));
    fleet.append(1, append(1, 1));
    let ack = Message::ChainAck(ChainAck {
        acknowledged_index: 1,
        storage_fault: false,
        ..ChainAck::default()
    });
    let head = fleet.nodes.get_mut(&1).expect("head");
    for from in [2, 4] {
        peer(head, from, ack.clone());
        assert_eq!(head.commit_index(), 0, "{from} is not the tail");
    }
    peer(head, 3, ack);
    assert_eq!(head.commit_index(), 1);
}

#[test]
fn an_acknowledgement_of_an_earlier_epoch_counts_for_nothing() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    let paused = quorate_types::GroupConfig {
        min_replicas: 3,
        ..config(2, &[1, 2], &[])
    };
    for id in [1, 2] {
        fleet.give(id, ReplicaEvent::Configure(Box::new(paused.clone())));
    }
    fleet.settle();
    let head = fleet.nodes.get_mut(&1).expect("head");
    peer(
        head,
        2,
        Message::ChainAck(ChainAck {
            acknowledged_index: 9,
            storage_fault: false,
            ..ChainAck::default()
        }),
    );
    assert_eq!((head.commit_index(), head.state()), (0, GroupState::Paused));
    // Alone with another log, it must not commit by an acknowledgement of that epoch.
    fleet.unreachable = vec![(1, 2), (1, 3)];
    fleet.configure(3, &[1, 2, 3], &[]);
    fleet.append(1, append(1, 1));
    assert_eq!(fleet.commits(&[1]), [0]);
}

#[test]
fn a_storage_fault_anywhere_makes_the_head_read_only() {
    for id in [1, 2, 3] {
        let mut fleet = Fleet::of_three(Durability::Persistent);
        fleet.event(id, ReplicaEvent::StorageFault(true));
        fleet.append(1, append(1, 1));
        assert_eq!(
            refusals(&fleet.take_commands()),
            [(1, Code::ReadOnly)],
            "fault at {id}"
        );
        assert_eq!(fleet.node(1).state(), GroupState::ReadOnly);
        fleet.event(id, ReplicaEvent::StorageFault(false));
        fleet.append(1, append(1, 1));
        let taken = fleet.take_commands();
        assert!(
            !taken.iter().any(|c| matches!(c, ReplicaCommand::Refuse { .. })),
            "fault gone at {id}"
        );
        assert_eq!(fleet.node(1).state(), GroupState::Active);
    }
}

#[test]
fn an_in_memory_group_does_not_care_for_disks() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.event(2, ReplicaEvent::StorageFault(true));
    fleet.append(1, append(1, 1));
    assert_eq!(acks(&fleet.take_commands()), [(1, 0)]);
}

#[test]
fn in_a_persistent_group_each_acknowledges_for_itself() {
    for missing in [1, 2, 3] {
        let mut fleet = Fleet::of_three(Durability::Persistent);
        for id in [1, 2, 3] {
            fleet.sync(id);
        }
        fleet.append(1, append(1, 1));
        for id in [1, 2, 3].into_iter().filter(|id| *id != missing) {
            fleet.sync(id);
        }
        assert_eq!(
            acks(&fleet.take_commands()),
            [],
            "the disk of {missing} does not have it"
        );
        fleet.sync(missing);
        assert_eq!(
            acks(&fleet.take_commands()),
            [(1, 0)],
            "nor was anything else missing than {missing}"
        );
    }
}

#[test]
fn a_persistent_ring_needs_all_of_this_epochs_chain_and_nobody_else() {
    let mut head = quorate_chain::Replica::new(quorate_types::ServerId(1), Durability::Persistent);
    crate::rig::step(
        &mut head,
        ReplicaEvent::Configure(Box::new(config(1, &[1, 2, 3], &[4]))),
    );
    let ack = || Message::ChainAck(ChainAck::default());
    for from in [3, 4, 9, 3] {
        peer(&mut head, from, ack());
        assert!(!head.chain_agrees(), "{from} does not speak for 2");
    }
    peer(&mut head, 2, ack());
    assert!(head.chain_agrees());
}

#[test]
fn one_replicas_fault_is_not_taken_back_by_another() {
    let mut fleet = Fleet::of_three(Durability::Persistent);
    fleet.event(2, ReplicaEvent::StorageFault(true));
    fleet.event(3, ReplicaEvent::StorageFault(true));
    fleet.event(3, ReplicaEvent::StorageFault(false));
    assert_eq!(fleet.node(1).state(), GroupState::ReadOnly);
    fleet.event(2, ReplicaEvent::StorageFault(false));
    assert_eq!(fleet.node(1).state(), GroupState::Active);
}
