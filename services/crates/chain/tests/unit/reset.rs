//! Reset: a lost group's log begins again.

use quorate_chain::{Asked, Base, Replica, ReplicaCommand, ReplicaEvent};
use quorate_types::config::Beginning;
use quorate_types::{Durability, Epoch, GroupConfig, ServerId};

use crate::rig::{CLIENT, Fleet, TICK, acks, append, batches, config, sole, step};

const BEGINNING: Beginning = Beginning {
    epoch: 5,
    offset: 1 << 40,
    entries_before: 100,
    bytes_before: 4_000,
};

fn configure(fleet: &mut Fleet, epoch: Epoch, replicas: &[u32], learners: &[u32]) {
    for id in replicas.iter().chain(learners) {
        let config = GroupConfig {
            durability: fleet.durability,
            beginning: Some(BEGINNING),
            ..config(epoch, replicas, learners)
        };
        fleet.give(*id, ReplicaEvent::Configure(Box::new(config)));
    }
    fleet.settle();
}

fn sync_all(fleet: &mut Fleet) {
    for _ in 0..3 {
        for id in 1..=4 {
            fleet.sync(id);
        }
    }
}

#[test]
fn offsets_go_on_above_those_of_the_lost_log_and_its_rest_is_discarded() {
    for durability in [Durability::InMemory, Durability::Persistent] {
        let mut fleet = Fleet::new(durability, &[1, 2, 3, 4]);
        // Server 2, and 4 that learns later, still hold a part of the lost log: longer than the new one will be.
        for id in [2, 4] {
            fleet.nodes.insert(id, {
                let mut stale = Replica::recovered(ServerId(id), durability, Base::default());
                batches(&[1, 2, 4])
                    .into_iter()
                    .for_each(|batch| stale.recover(batch));
                stale.recovered_all().expect("whole");
                stale
            });
        }
        configure(&mut fleet, 5, &[1, 2, 3], &[]);
        sync_all(&mut fleet);
        fleet.take_commands();
        fleet.append(1, append(7, 1));
        sync_all(&mut fleet);
        assert_eq!(acks(&fleet.take_commands()), [(1, 1 << 40)]);
        for id in [1, 2, 3] {
            let replica = fleet.node(id);
            assert_eq!(
                (replica.trim_offset(), replica.commit_offset()),
                (1 << 40, (1 << 40) + 2)
            );
            assert_eq!(
                (replica.committed_entries(), replica.committed_bytes()),
                (102, 4_012)
            );
        }
        configure(&mut fleet, 6, &[1, 2, 3], &[4]);
        sync_all(&mut fleet);
        let joins =
            |c: &ReplicaCommand| matches!(c, ReplicaCommand::LearnerCaughtUp { learner: ServerId(4) });
        assert!(fleet.take_commands().iter().any(joins));
        configure(&mut fleet, 7, &[2, 3, 4], &[]);
        fleet.append(2, append(7, 2));
        sync_all(&mut fleet);
        assert_eq!(
            acks(&fleet.take_commands()),
            [(2, (1 << 40) + 2)],
            "a later epoch resets nothing"
        );
        assert_eq!(fleet.node(4).log().sessions().next_seq(7), 3);
    }
}

#[test]
fn the_journal_records_it_so_that_a_restart_finds_the_new_log_only() {
    let mut replica = sole(Durability::Persistent, &batches(&[1, 2, 4]), 4);
    let reset = GroupConfig {
        durability: Durability::Persistent,
        beginning: Some(BEGINNING),
        ..config(5, &[1], &[])
    };
    let commands = step(&mut replica, ReplicaEvent::Configure(Box::new(reset.clone())));
    let written: Vec<&ReplicaCommand> = commands
        .iter()
        .filter(|c| {
            matches!(
                c,
                ReplicaCommand::Truncate { .. } | ReplicaCommand::PersistBase { .. }
            )
        })
        .collect();
    let [
        ReplicaCommand::Truncate { index: 0, .. },
        ReplicaCommand::PersistBase { base, .. },
    ] = written[..]
    else {
        panic!("a truncation to 0, then the base: {written:?}");
    };
    let mut restarted = Replica::new(ServerId(1), Durability::Persistent);
    batches(&[1, 2, 4])
        .into_iter()
        .for_each(|batch| restarted.recover(batch));
    restarted.recover_truncation(0);
    restarted.recover_base(Base::decode(base).expect("a base"));
    assert_eq!(restarted.recovered_all(), Ok(()));
    let again = GroupConfig { epoch: 6, ..reset };
    let commands = step(&mut restarted, ReplicaEvent::Configure(Box::new(again)));
    assert!(
        !commands
            .iter()
            .any(|c| matches!(c, ReplicaCommand::Truncate { .. }))
    );
    assert_eq!(
        (restarted.trim_offset(), restarted.commit_offset()),
        (1 << 40, 1 << 40)
    );
}

/// The replica that a journal of these commands is read back as.
fn restarted(written: &[ReplicaCommand]) -> Replica {
    let mut replica = Replica::new(ServerId(1), Durability::Persistent);
    for command in written {
        match command {
            ReplicaCommand::Persist(batch) => replica.recover(batch.clone()),
            ReplicaCommand::PersistBase { base, .. } => {
                replica.recover_base(Base::decode(base).expect("a base"))
            }
            ReplicaCommand::PersistTrim { index } => replica.recover_trim(*index),
            ReplicaCommand::Truncate { index, .. } => replica.recover_truncation(*index),
            ReplicaCommand::Forget => replica = Replica::new(ServerId(1), Durability::Persistent),
            _ => {}
        }
    }
    assert_eq!(replica.recovered_all(), Ok(()));
    replica
}

/// A replica of a group that was trimmed and then lost, and its writes since.
fn with_a_trimmed_log(durability: Durability) -> (Replica, Vec<ReplicaCommand>) {
    let mut replica = Replica::new(ServerId(1), durability);
    let first = GroupConfig {
        durability,
        ..config(1, &[1], &[])
    };
    let mut written = step(&mut replica, ReplicaEvent::Configure(Box::new(first)));
    written.extend(batches_of(&mut replica, 1..=8));
    written.extend(step(
        &mut replica,
        ReplicaEvent::Ask {
            client: CLIENT,
            request: 1,
            asked: Asked::Trim { before_offset: 12 },
        },
    ));
    step(&mut replica, ReplicaEvent::TrimPersisted { index: 6 });
    assert_eq!((replica.trim_offset(), replica.commit_offset()), (12, 16));
    (replica, written)
}

/// Appends to a replica that is alone, and has its disk keep up.
fn batches_of(replica: &mut Replica, seqs: std::ops::RangeInclusive<u64>) -> Vec<ReplicaCommand> {
    let mut written = Vec::new();
    for seq in seqs {
        written.extend(step(replica, ReplicaEvent::Append(append(7, seq))));
        let index = replica.log().last_index();
        let epoch = replica.log().epoch_at(index).expect("held");
        written.extend(step(replica, ReplicaEvent::Persisted { index, epoch }));
    }
    written
}

fn reset(durability: Durability, epoch: Epoch) -> ReplicaEvent {
    ReplicaEvent::Configure(Box::new(GroupConfig {
        durability,
        beginning: Some(BEGINNING),
        ..config(epoch, &[1], &[])
    }))
}

#[test]
fn trims_of_the_lost_log_trim_nothing_of_the_new_one() {
    for durability in [Durability::InMemory, Durability::Persistent] {
        let (mut replica, _) = with_a_trimmed_log(durability);
        for command in step(&mut replica, reset(durability, 5)) {
            if let ReplicaCommand::Truncate { number, .. } = command {
                step(&mut replica, ReplicaEvent::TruncationPersisted { number });
            }
        }
        assert_eq!(acks(&batches_of(&mut replica, 1..=4)).len(), 4);
        step(&mut replica, TICK);
        assert_eq!(
            (replica.trim_offset(), replica.commit_offset()),
            (1 << 40, (1 << 40) + 8)
        );
        assert_eq!(replica.log().first_index(), 2, "every entry is held");
        assert_eq!(replica.trimmed_through(), 1);
    }
}

#[test]
fn a_stale_holder_that_learns_passes_no_trim_point_of_the_lost_log_on() {
    let mut fleet = Fleet::new(Durability::InMemory, &[1, 2]);
    let (stale, _) = with_a_trimmed_log(Durability::InMemory);
    fleet.nodes.insert(1, stale);
    configure(&mut fleet, 5, &[2], &[1]);
    configure(&mut fleet, 6, &[2, 1], &[]);
    configure(&mut fleet, 7, &[1, 2], &[]);
    for seq in 1..=4 {
        fleet.append(1, append(7, seq));
    }
    for id in [1, 2] {
        fleet.event(id, TICK);
        assert_eq!(fleet.node(id).trim_offset(), 1 << 40);
        assert_eq!(fleet.node(id).log().first_index(), 2);
    }
}

#[test]
fn a_restart_commits_nothing_of_the_new_log_by_a_trim_of_the_lost_one() {
    let (mut replica, mut written) = with_a_trimmed_log(Durability::Persistent);
    written.extend(step(&mut replica, reset(Durability::Persistent, 5)));
    // Ordered, on disk, and not committed: the chain has a second replica by then.
    for seq in 1..=4 {
        written.extend(step(&mut replica, ReplicaEvent::Append(append(7, seq))));
    }
    let mut found = restarted(&written);
    assert_eq!((found.log().last_index(), found.commit_index()), (5, 1));
    // So it was written before there was such a record.
    written.retain(|command| !matches!(command, ReplicaCommand::Forget));
    assert_eq!(restarted(&written).commit_index(), 1);
    // Its predecessor has less: its own suffix is truncated.
    let mut fleet = Fleet::new(Durability::Persistent, &[1, 2]);
    step(&mut found, TICK);
    fleet.nodes.insert(1, found);
    configure(&mut fleet, 6, &[2, 1], &[]);
    sync_all_of(&mut fleet, &[1, 2]);
    assert_eq!(fleet.node(1).log().last_index(), 1);
}

fn sync_all_of(fleet: &mut Fleet, ids: &[u32]) {
    for _ in 0..3 {
        ids.iter().for_each(|id| fleet.sync(*id));
    }
}
