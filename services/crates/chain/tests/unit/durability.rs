//! Persistent groups: committed means synced on every replica, and syncs overlap.

use quorate_chain::{Base, Replica, ReplicaCommand, ReplicaEvent};
use quorate_types::{Durability, GroupState, ServerId};
use quorate_wire::Batch;
use quorate_wire::peer::{ChainAck, Message, Replicate, SyncReply};

use crate::rig::{Fleet, TICK, acks, append, batches, config, peer, sends, step};

#[test]
fn every_order_of_syncs_commits_at_the_last() {
    for order in [[1, 2, 3], [1, 3, 2], [2, 1, 3], [2, 3, 1], [3, 1, 2], [3, 2, 1]] {
        let mut fleet = Fleet::of_three(Durability::Persistent);
        fleet.append(1, append(1, 1));
        assert_eq!(
            fleet.unsynced.len(),
            3,
            "the batch is on its way to every disk at once"
        );
        for id in order {
            assert_eq!(acks(&fleet.take_commands()), [], "{order:?} before {id}");
            fleet.sync(id);
        }
        assert_eq!(
            (acks(&fleet.take_commands()), fleet.commits(&[1, 2, 3])),
            (vec![(1, 0)], vec![1, 1, 1])
        );
    }
}

#[test]
fn a_chain_of_one_waits_for_its_own_disk() {
    let mut fleet = Fleet::new(Durability::Persistent, &[1]);
    fleet.configure(1, &[1], &[]);
    fleet.append(1, append(1, 1));
    assert_eq!(fleet.commits(&[1]), [0]);
    fleet.sync(1);
    assert_eq!(
        (fleet.commits(&[1]), fleet.node(1).durable_offset()),
        (vec![1], 2)
    );
}

#[test]
fn a_completion_covers_all_before_it_and_nothing_else() {
    let mut fleet = Fleet::new(Durability::Persistent, &[1]);
    fleet.configure(1, &[1], &[]);
    for seq in 1..=3 {
        fleet.append(1, append(1, seq));
    }
    fleet.event(1, ReplicaEvent::Persisted { index: 2, epoch: 9 });
    fleet.event(1, ReplicaEvent::Persisted { index: 7, epoch: 1 });
    assert_eq!(fleet.commits(&[1]), [0], "another batch at 2, or none at 7");
    fleet.event(1, ReplicaEvent::Persisted { index: 2, epoch: 1 });
    assert_eq!(fleet.commits(&[1]), [2]);
    fleet.event(1, ReplicaEvent::Persisted { index: 1, epoch: 1 });
    assert_eq!(fleet.commits(&[1]), [2]);
}

/// Server 1, an old head, with a suffix that was never committed; 2 and 3 went on without it.
fn with_old_suffix() -> Fleet {
    let mut fleet = Fleet::of_three(Durability::Persistent);
    fleet.append(1, append(1, 1));
    for id in [1, 2, 3] {
        fleet.sync(id);
    }
    fleet.unreachable = vec![(1, 2), (1, 3)];
    fleet.append(1, append(1, 2));
    fleet.append(1, append(1, 3));
    fleet.configure(2, &[2, 3], &[]);
    fleet.append(2, append(9, 1));
    fleet.sync(2);
    fleet.sync(3);
    fleet.unreachable.clear();
    fleet.take_commands();
    fleet
}

#[test]
fn a_truncation_is_written_and_waited_for() {
    let mut fleet = with_old_suffix();
    fleet.configure(3, &[2, 3], &[1]);
    assert_eq!(
        fleet.node(1).log().last_index(),
        2,
        "it goes on with the new log at once"
    );
    assert_eq!(
        fleet.node(1).state(),
        GroupState::Syncing,
        "but is not settled before the truncation is on disk"
    );
    let records = &fleet.unsynced[&1];
    assert!(
        matches!(records[2], ReplicaEvent::TruncationPersisted { number: 1 }),
        "{records:?}"
    );
    assert!(
        !fleet
            .take_commands()
            .iter()
            .any(|c| matches!(c, ReplicaCommand::LearnerCaughtUp { .. }))
    );
    fleet.sync(1);
    assert_eq!(
        (fleet.node(1).state(), fleet.node(1).durable_offset()),
        (GroupState::Degraded, 4)
    );
    assert!(
        fleet
            .take_commands()
            .iter()
            .any(|c| matches!(c, ReplicaCommand::LearnerCaughtUp { .. }))
    );
}

/// A chain of one whose log is empty, and a learner that held something of the group before it was dropped there.
fn with_learner_behind_drop(durability: Durability) -> Fleet {
    let mut fleet = Fleet::new(durability, &[1, 2]);
    fleet.nodes.get_mut(&2).expect("a server").wait_for_drop();
    fleet.configure(1, &[1], &[2]);
    fleet
}

fn learners_caught_up(fleet: &mut Fleet) -> usize {
    let taken = fleet.take_commands();
    taken
        .iter()
        .filter(|c| matches!(c, ReplicaCommand::LearnerCaughtUp { .. }))
        .count()
}

#[test]
fn a_later_replica_waits_for_the_drop_of_an_earlier_one() {
    let mut fleet = with_learner_behind_drop(Durability::Persistent);
    fleet.sync(1);
    fleet.event(2, TICK);
    assert_eq!(fleet.node(2).state(), GroupState::Syncing);
    assert_eq!(
        learners_caught_up(&mut fleet),
        0,
        "though there is nothing to catch up"
    );
    fleet.configure(2, &[1], &[2]);
    assert_eq!(
        fleet.node(2).state(),
        GroupState::Syncing,
        "also in a later epoch"
    );
    fleet.event(2, ReplicaEvent::DropPersisted);
    assert_eq!(fleet.node(2).state(), GroupState::Degraded);
    assert_eq!(learners_caught_up(&mut fleet), 1);
    let mut in_memory = with_learner_behind_drop(Durability::InMemory);
    assert_eq!(learners_caught_up(&mut in_memory), 1, "it rests on no disk");
}

#[test]
fn completions_from_before_a_truncation_count_for_nothing() {
    let mut fleet = with_old_suffix();
    fleet.configure(3, &[2, 3], &[1]);
    let durable = fleet.node(1).durable_offset();
    fleet.event(1, ReplicaEvent::Persisted { index: 2, epoch: 1 });
    fleet.event(1, ReplicaEvent::Persisted { index: 2, epoch: 2 });
    fleet.event(1, ReplicaEvent::TruncationPersisted { number: 0 });
    assert_eq!(fleet.node(1).durable_offset(), durable);
    assert_eq!(durable, 2, "batch 1, synced before and not truncated");
}

#[test]
fn the_truncation_covers_the_records_before_it() {
    let mut fleet = Fleet::of_three(Durability::Persistent);
    fleet.append(1, append(1, 1));
    fleet.sync(2);
    fleet.sync(3);
    fleet.unreachable = vec![(1, 2), (1, 3)];
    fleet.append(1, append(1, 2));
    fleet.configure(2, &[2, 3], &[]);
    fleet.unreachable.clear();
    fleet.configure(3, &[2, 3], &[1]);
    // The journal merges completions: only the last batch's comes, and that batch was truncated.
    fleet.event(1, ReplicaEvent::Persisted { index: 2, epoch: 1 });
    assert_eq!(fleet.node(1).durable_offset(), 0);
    fleet.event(1, ReplicaEvent::TruncationPersisted { number: 1 });
    assert_eq!(fleet.node(1).durable_offset(), 2);
}

#[test]
fn each_acknowledges_to_the_head_and_the_head_to_nobody() {
    let mut fleet = Fleet::of_three(Durability::Persistent);
    fleet.append(1, append(1, 1));
    for id in [2, 3] {
        let replica = fleet.nodes.get_mut(&id).expect("a replica");
        let commands = step(replica, ReplicaEvent::Persisted { index: 1, epoch: 1 });
        let ack = ChainAck {
            acknowledged_index: 1,
            ..ChainAck::default()
        };
        assert_eq!(sends(&commands, 1), [Message::ChainAck(ack)]);
        assert_eq!(commands.len(), 1, "{commands:?}");
        let again = step(replica, TICK);
        let is_ack = |m: &Message| matches!(m, Message::ChainAck(_));
        assert!(!sends(&again, 1).iter().any(is_ack), "sent once");
    }
    let head = fleet.nodes.get_mut(&1).expect("head");
    assert!(step(head, ReplicaEvent::Persisted { index: 1, epoch: 1 }).is_empty());
}

#[test]
fn a_restarted_middle_gets_the_rest_and_those_behind_it_too() {
    let mut fleet = Fleet::of_three(Durability::Persistent);
    fleet.append(1, append(1, 1));
    for id in [1, 2, 3] {
        fleet.sync(id);
    }
    fleet.append(1, append(1, 2));
    fleet.sync(3);
    // Server 2 comes back with its synced batches; 3 holds more than its predecessor now.
    let first = fleet.node(2).log().header(1).copied().expect("held");
    let mut restarted = quorate_chain::Replica::new(ServerId(2), Durability::Persistent);
    restarted.recover(quorate_wire::Batch {
        header: first,
        payload: crate::rig::payload(20),
        trace: None,
    });
    restarted.recovered_all().expect("whole");
    fleet.nodes.insert(2, restarted);
    fleet.unsynced.remove(&2);
    fleet.take_commands();
    fleet.configure(2, &[1, 2, 3], &[]);
    for id in [1, 2, 3, 2, 3] {
        fleet.sync(id);
    }
    assert_eq!(
        (acks(&fleet.take_commands()), fleet.commits(&[1, 2, 3])),
        (vec![(2, 2)], vec![2, 2, 2])
    );
}

#[test]
fn an_empty_replica_of_the_chain_is_on_disk_too() {
    let mut fleet = Fleet::new(Durability::Persistent, &[1, 2, 3]);
    fleet.configure(1, &[1, 2], &[3]);
    assert!(matches!(
        &fleet.unsynced[&1][..],
        [ReplicaEvent::Persisted { index: 0, epoch: 0 }]
    ));
    assert!(
        fleet.unsynced.contains_key(&2) && !fleet.unsynced.contains_key(&3),
        "a learner does not count"
    );
    let mut replica = quorate_chain::Replica::new(ServerId(1), Durability::Persistent);
    replica.recover_base(quorate_chain::Base::default());
    assert_eq!((replica.recovered_all(), replica.log().last_index()), (Ok(()), 0));
}

/// A learner truncated a batch, was given a base in place of its log, and then that very batch again. A completion of
/// the first writing says nothing of the second: the truncation and the base lie between.
#[test]
fn a_completion_from_before_a_base_does_not_count() {
    let made = batches(&[1, 1, 1, 1, 1]);
    let mut learner = Replica::new(ServerId(4), Durability::Persistent);
    let reply = |nonce, common_index, base| {
        let (last_index, commit_index) = (5, 3);
        Message::SyncReply(SyncReply {
            nonce,
            common_index,
            last_index,
            commit_index,
            base,
        })
    };
    let replicate = |batch: &Batch| {
        Message::Replicate(Replicate {
            commit_index: 3,
            last_index: 5,
            storage_fault: false,
            batch: batch.clone(),
        })
    };
    step(
        &mut learner,
        ReplicaEvent::Configure(Box::new(config(1, &[1], &[4]))),
    );
    peer(&mut learner, 1, reply(1, 0, None));
    for batch in &made {
        peer(&mut learner, 1, replicate(batch));
    }
    step(
        &mut learner,
        ReplicaEvent::Configure(Box::new(config(2, &[1], &[4]))),
    );
    peer(&mut learner, 1, reply(2, 3, None));
    step(&mut learner, ReplicaEvent::LinkUp { server: ServerId(1) });
    let mut base = Base::default();
    for batch in &made[..4] {
        base.apply(&batch.header);
    }
    peer(&mut learner, 1, reply(3, 4, Some(base.encode())));
    peer(&mut learner, 1, replicate(&made[4]));
    step(&mut learner, ReplicaEvent::Persisted { index: 5, epoch: 1 });
    assert_eq!(
        learner.durable_index(),
        0,
        "the truncation and the base are on their way"
    );
    for (event, durable) in [
        (ReplicaEvent::TruncationPersisted { number: 1 }, 0),
        (ReplicaEvent::TruncationPersisted { number: 2 }, 0),
        (ReplicaEvent::Persisted { index: 4, epoch: 1 }, 4),
        (ReplicaEvent::Persisted { index: 5, epoch: 1 }, 5),
    ] {
        step(&mut learner, event);
        assert_eq!(learner.durable_index(), durable);
    }
}
