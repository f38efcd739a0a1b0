//! A log that begins anew after its group was lost.

use quorate_chain::{Base, Command, Event, Replica};
use quorate_types::config::Beginning;
use quorate_types::{Durability, Epoch, GroupConfig, ServerId};

use crate::rig::{Fleet, acks, append, batches, config, sole, step};

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
        fleet.give(*id, Event::Configure(config));
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
fn offsets_go_on_above_those_of_the_lost_log_and_what_is_left_of_it_is_thrown_away() {
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
        fleet.take_told();
        fleet.append(1, append(7, 1));
        sync_all(&mut fleet);
        assert_eq!(acks(&fleet.take_told()), [(1, 1 << 40)]);
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
        let joins = |c: &Command| matches!(c, Command::LearnerCaughtUp { learner: ServerId(4) });
        assert!(fleet.take_told().iter().any(joins));
        configure(&mut fleet, 7, &[2, 3, 4], &[]);
        fleet.append(2, append(7, 2));
        sync_all(&mut fleet);
        assert_eq!(
            acks(&fleet.take_told()),
            [(2, (1 << 40) + 2)],
            "a later epoch begins nothing anew"
        );
        assert_eq!(fleet.node(4).log().sessions().next_seq(7), 3);
    }
}

#[test]
fn the_journal_is_told_so_that_a_restart_finds_the_new_log_only() {
    let mut replica = sole(Durability::Persistent, &batches(&[1, 2, 4]), 4);
    let anew = GroupConfig {
        durability: Durability::Persistent,
        beginning: Some(BEGINNING),
        ..config(5, &[1], &[])
    };
    let commands = step(&mut replica, Event::Configure(anew.clone()));
    let written: Vec<&Command> = commands
        .iter()
        .filter(|c| matches!(c, Command::Cut { .. } | Command::PersistBase { .. }))
        .collect();
    let [Command::Cut { index: 0, .. }, Command::PersistBase { base, .. }] = written[..] else {
        panic!("a cut of everything, then the base: {written:?}");
    };
    let mut restarted = Replica::new(ServerId(1), Durability::Persistent);
    batches(&[1, 2, 4])
        .into_iter()
        .for_each(|batch| restarted.recover(batch));
    restarted.recover_cut(0);
    restarted.recover_base(Base::decode(base).expect("a base"));
    assert_eq!(restarted.recovered_all(), Ok(()));
    let again = GroupConfig { epoch: 6, ..anew };
    let commands = step(&mut restarted, Event::Configure(again));
    assert!(!commands.iter().any(|c| matches!(c, Command::Cut { .. })));
    assert_eq!(
        (restarted.trim_offset(), restarted.commit_offset()),
        (1 << 40, 1 << 40)
    );
}
