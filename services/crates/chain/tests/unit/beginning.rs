//! A log that begins anew after its group was lost.

use quorate_chain::{Asked, Base, Command, Event, Replica};
use quorate_types::config::Beginning;
use quorate_types::{Durability, Epoch, GroupConfig, ServerId};

use crate::rig::{CLIENT, Fleet, acks, append, batches, config, sole, step};

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

/// A trim of two batches of the lost log, as its client was told.
fn trim_before_the_reset(replica: &mut Replica) {
    let asked = Asked::Trim { before_offset: 4 };
    let commands = step(
        replica,
        Event::Ask {
            client: CLIENT,
            request: 1,
            asked,
        },
    );
    let is_trim = |c: &Command| matches!(c, Command::PersistTrim { index: 2 });
    assert!(replica.durability() == Durability::InMemory || commands.iter().any(is_trim));
}

#[test]
fn what_was_trimmed_of_the_lost_log_is_not_trimmed_of_the_new_one() {
    for durability in [Durability::InMemory, Durability::Persistent] {
        for is_persisted_before in [true, false] {
            let mut replica = sole(durability, &batches(&[1, 2, 4]), 4);
            trim_before_the_reset(&mut replica);
            let is_persistent = durability == Durability::Persistent;
            if is_persistent && is_persisted_before {
                step(&mut replica, Event::TrimPersisted { index: 2 });
            }
            let anew = GroupConfig {
                durability,
                beginning: Some(BEGINNING),
                ..config(5, &[1], &[])
            };
            let commands = step(&mut replica, Event::Configure(anew));
            let cut = commands.iter().find_map(|c| match c {
                Command::Cut { number, .. } => Some(*number),
                _ => None,
            });
            if is_persistent && !is_persisted_before {
                // Of the lost log, and late.
                step(&mut replica, Event::TrimPersisted { index: 2 });
            }
            if let Some(number) = cut {
                step(&mut replica, Event::CutPersisted { number });
            }
            for seq in 1..=3 {
                step(&mut replica, Event::Append(append(7, seq)));
            }
            for index in [1, 4] {
                step(&mut replica, Event::Persisted { index, epoch: 5 });
            }
            assert_eq!(
                (replica.trim_offset(), replica.commit_offset()),
                (1 << 40, (1 << 40) + 6),
                "{durability:?}, the old trim was durable before: {is_persisted_before}"
            );
        }
    }
}

#[test]
fn a_restart_after_a_reset_forgets_the_trims_of_the_lost_log_and_keeps_those_of_the_new_one() {
    let recovered = |trims_behind: &[u64]| {
        let mut restarted = Replica::new(ServerId(1), Durability::Persistent);
        batches(&[1, 2, 4])
            .into_iter()
            .for_each(|batch| restarted.recover(batch));
        restarted.recover_trim(3);
        restarted.recover_cut(0);
        restarted.recover_base(Base::of_beginning(&BEGINNING));
        for index in trims_behind {
            restarted.recover_trim(*index);
        }
        // A log that is taught from its beginning again is the same log.
        restarted.recover_cut(0);
        restarted.recover_base(Base::of_beginning(&BEGINNING));
        restarted.recovered_all().expect("whole");
        restarted.trimmed_through()
    };
    assert_eq!(recovered(&[]), 1);
    assert_eq!(recovered(&[2]), 2);
}
