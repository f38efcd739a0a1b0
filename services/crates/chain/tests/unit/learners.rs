//! A learner catches up behind the tail; before it joins, nothing is committed that it lacks.

use quorate_chain::{Replica, ReplicaCommand, ReplicaEvent};
use quorate_types::{Durability, GroupConfig, Role, ServerId};

use crate::rig::{Fleet, TICK, acks, append, config};

fn reports(fleet: &mut Fleet) -> usize {
    let taken = fleet.take_commands();
    taken
        .iter()
        .filter(|c| matches!(c, ReplicaCommand::LearnerCaughtUp { learner: ServerId(4) }))
        .count()
}

#[test]
fn it_learns_and_is_reported_by_the_tail_once_and_at_ticks() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    for seq in 1..=5 {
        fleet.append(1, append(1, seq));
    }
    fleet.take_commands();
    fleet.configure(2, &[1, 2, 3], &[4]);
    assert_eq!(fleet.node(4).role(), Role::Learner);
    assert_eq!(
        (fleet.node(4).log().last_index(), fleet.node(4).commit_index()),
        (5, 5)
    );
    assert_eq!(reports(&mut fleet), 1);
    for id in [1, 2, 4] {
        fleet.event(id, TICK);
        assert_eq!(reports(&mut fleet), 0, "{id} is not the tail");
    }
    fleet.event(3, TICK);
    assert_eq!(reports(&mut fleet), 1, "the coordinator may have missed it");
    fleet.configure(3, &[1, 2, 3, 4], &[]);
    fleet.event(3, TICK);
    assert_eq!(reports(&mut fleet), 0);
    fleet.append(1, append(1, 6));
    assert_eq!(fleet.commits(&[1, 2, 3, 4]), [6, 6, 6, 6]);
}

#[test]
fn commitment_does_not_wait_while_it_catches_up() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.unreachable.push((3, 4));
    fleet.configure(2, &[1, 2, 3], &[4]);
    fleet.append(1, append(1, 1));
    assert_eq!(acks(&fleet.take_commands()), [(1, 0)]);
}

#[test]
fn once_caught_up_nothing_is_committed_without_it() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.configure(2, &[1, 2, 3], &[4]);
    assert_eq!(reports(&mut fleet), 1);
    fleet.unreachable.push((3, 4));
    fleet.append(1, append(1, 1));
    assert_eq!(
        acks(&fleet.take_commands()),
        [],
        "it may be the tail of the next epoch, and lacks it"
    );
    fleet.event(3, ReplicaEvent::LinkDown { server: ServerId(4) });
    assert_eq!(
        acks(&fleet.take_commands()),
        [],
        "also when it is gone: the report cannot be taken back"
    );
    fleet.configure(3, &[1, 2, 3], &[]);
    assert_eq!(acks(&fleet.take_commands()), [(1, 0)], "the next epoch decides");
}

#[test]
fn a_persistent_learner_counts_by_its_disk() {
    let mut fleet = Fleet::of_three(Durability::Persistent);
    for seq in 1..=2 {
        fleet.append(1, append(1, seq));
    }
    for id in [1, 2, 3] {
        fleet.sync(id);
    }
    fleet.configure(2, &[1, 2, 3], &[4]);
    assert_eq!(
        (fleet.node(4).log().last_index(), reports(&mut fleet)),
        (2, 0),
        "held is not enough"
    );
    fleet.sync(4);
    assert_eq!(reports(&mut fleet), 1);
    fleet.append(1, append(1, 3));
    for id in [1, 2, 3] {
        fleet.sync(id);
    }
    assert_eq!(acks(&fleet.take_commands()), []);
    fleet.sync(4);
    assert_eq!(acks(&fleet.take_commands()), [(3, 4)]);
}

#[test]
fn commitment_does_not_wait_for_a_learner_whose_disk_takes_nothing() {
    let mut fleet = Fleet::of_three(Durability::Persistent);
    fleet.append(1, append(1, 1));
    for id in [1, 2, 3] {
        fleet.sync(id);
    }
    fleet.take_commands();
    fleet.give(4, ReplicaEvent::StorageFault(true));
    fleet.configure(2, &[1, 2, 3], &[4]);
    fleet.append(1, append(1, 2));
    for id in [1, 2, 3] {
        fleet.sync(id);
    }
    assert_eq!(acks(&fleet.take_commands()), [(2, 2)]);
    fleet.event(4, ReplicaEvent::StorageFault(false));
    fleet.sync(4);
    assert_eq!(reports(&mut fleet), 1, "it learns on once its disk does");
}

#[test]
fn a_learner_of_a_chain_of_one_is_waited_for_too() {
    let mut fleet = Fleet::new(Durability::InMemory, &[1, 4]);
    fleet.configure(1, &[1], &[4]);
    assert_eq!(reports(&mut fleet), 1);
    fleet.unreachable.push((1, 4));
    fleet.append(1, append(1, 1));
    assert_eq!(acks(&fleet.take_commands()), []);
    fleet.event(1, ReplicaEvent::Configure(Box::new(config(2, &[1], &[]))));
    assert_eq!(acks(&fleet.take_commands()), [(1, 0)]);
}

#[test]
fn a_learner_too_far_behind_gets_a_base() {
    for durability in [Durability::InMemory, Durability::Persistent] {
        let mut fleet = Fleet::new(durability, &[1, 4]);
        fleet.configure(1, &[1], &[]);
        for seq in 1..=10 {
            fleet.append(1, append(1, seq));
        }
        fleet.sync(1);
        let trimming = |epoch, learners: &[u32]| GroupConfig {
            retention_bytes: 3 * (20 + quorate_types::limits::BATCH_MEMORY_BYTES),
            durability,
            ..config(epoch, &[1], learners)
        };
        fleet.event(1, ReplicaEvent::Configure(Box::new(trimming(2, &[]))));
        fleet.event(1, TICK);
        assert_eq!(fleet.node(1).log().first_index(), 8);
        fleet.take_commands();
        for id in [1, 4] {
            fleet.event(id, ReplicaEvent::Configure(Box::new(trimming(3, &[4]))));
        }
        let (head, learner) = (fleet.node(1).log(), fleet.node(4).log());
        assert_eq!((learner.first_index(), learner.last_index()), (8, 10));
        assert_eq!(
            (learner.base(), learner.sessions()),
            (head.base(), head.sessions())
        );
        assert!(fleet.node(4).commit_index() >= 7);
        if durability == Durability::Persistent {
            assert_eq!(reports(&mut fleet), 0, "not before the base is on its disk");
            let first = fleet.unsynced[&4].first().cloned();
            assert!(
                matches!(first, Some(ReplicaEvent::TruncationPersisted { .. })),
                "what was before is void: {first:?}"
            );
            fleet.sync(4);
        }
        assert_eq!(reports(&mut fleet), 1);
    }
}

#[test]
fn a_tail_whose_disk_lost_its_log_lets_no_learner_join_that_lacks_it_too() {
    let mut fleet = Fleet::new(Durability::Persistent, &[1, 2, 4]);
    fleet.configure(1, &[1, 2], &[]);
    for seq in 1..=3 {
        fleet.append(1, append(1, seq));
    }
    for id in [1, 2] {
        fleet.sync(id);
    }
    // The head reads what it sends from its disk, which takes a while.
    fleet.nodes.get_mut(&1).expect("head").keep_recent(0);
    fleet.event(1, TICK);
    fleet
        .nodes
        .insert(2, Replica::new(ServerId(2), Durability::Persistent));
    fleet.configure(2, &[1, 2], &[4]);
    for id in [2, 4] {
        fleet.sync(id);
        fleet.event(id, TICK);
    }
    assert_eq!(fleet.node(2).log().last_index(), 0);
    assert_eq!(reports(&mut fleet), 0, "the head has said that there is more");
    // It asks the head again, and gets no answer.
    fleet.unreachable.push((1, 2));
    fleet.event(2, ReplicaEvent::LinkUp { server: ServerId(1) });
    fleet.event(4, ReplicaEvent::LinkUp { server: ServerId(2) });
    fleet.event(2, TICK);
    assert_eq!(reports(&mut fleet), 0, "what the head has said is not forgotten");
    fleet.unreachable.clear();
    fleet.event(2, ReplicaEvent::LinkUp { server: ServerId(1) });
    let batches = (1..=3).map(|seq| (seq, append(1, seq).payload)).collect();
    fleet.event(1, ReplicaEvent::Loaded { batches });
    for id in [2, 4] {
        fleet.sync(id);
    }
    assert_eq!(fleet.node(4).log().last_index(), 3);
    fleet.event(2, TICK);
    assert!(reports(&mut fleet) > 0);
}
