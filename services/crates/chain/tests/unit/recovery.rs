//! A journal read back, whatever part of it is still there.

use quorate_chain::{Base, RecoverError, Replica, ReplicaEvent};
use quorate_types::{Durability, Epoch, ServerId};
use quorate_wire::Batch;

use crate::rig::{batch_after, batches, config, step};

fn empty() -> Replica {
    Replica::new(ServerId(1), Durability::Persistent)
}

fn base_at(held: &[Batch], index: u64) -> Base {
    let mut base = Base::default();
    held.iter()
        .take(index as usize)
        .for_each(|b| base.apply(&b.header));
    base
}

fn recover(replica: &mut Replica, held: &[Batch]) {
    held.iter().for_each(|batch| replica.recover(batch.clone()));
}

fn epochs(replica: &Replica) -> Vec<Epoch> {
    let log = replica.log();
    (log.first_index()..=log.last_index())
        .map(|i| log.epoch_at(i).expect("held"))
        .collect()
}

#[test]
fn batches_alone() {
    let mut replica = empty();
    recover(&mut replica, &batches(&[1, 1, 2]));
    assert_eq!(replica.recovered_all(), Ok(()));
    assert_eq!(
        (epochs(&replica), replica.durable_offset(), replica.commit_index()),
        (vec![1, 1, 2], 6, 0)
    );
}

#[test]
fn a_batch_ordered_later_replaces_an_earlier_one() {
    let held = batches(&[1, 1, 1, 1]);
    let mut replica = empty();
    recover(&mut replica, &held);
    recover(&mut replica, &[batch_after(Some(&held[1].header), 5, 8, 1, 20)]);
    assert_eq!(replica.recovered_all(), Ok(()));
    assert_eq!(epochs(&replica), [1, 1, 5]);
    assert_eq!(replica.log().sessions().next_seq(1), 3);
}

#[test]
fn a_truncation_lasts() {
    let mut replica = empty();
    recover(&mut replica, &batches(&[1, 1, 1, 1]));
    replica.recover_truncation(2);
    assert_eq!(
        (
            replica.recovered_all(),
            epochs(&replica),
            replica.durable_offset()
        ),
        (Ok(()), vec![1, 1], 4)
    );
}

#[test]
fn a_base_of_this_log_trims_it() {
    let held = batches(&[1, 1, 2, 2]);
    let mut replica = empty();
    recover(&mut replica, &held);
    replica.recover_base(base_at(&held, 3));
    assert_eq!(replica.recovered_all(), Ok(()));
    assert_eq!(
        (
            replica.log().first_index(),
            replica.commit_index(),
            epochs(&replica)
        ),
        (4, 3, vec![2])
    );
    assert_eq!(replica.log().sessions().next_seq(1), 5);
}

#[test]
fn the_journals_front_may_be_gone() {
    let held = batches(&[1, 1, 2, 2, 2, 3]);
    for first in 1..=3 {
        for base_after in 3..=6 {
            let mut replica = empty();
            recover(&mut replica, &held[first..base_after]);
            replica.recover_base(base_at(&held, 3));
            recover(&mut replica, &held[base_after..]);
            assert_eq!(
                replica.recovered_all(),
                Ok(()),
                "from {first}, base after {base_after}"
            );
            assert_eq!(
                (replica.log().first_index(), epochs(&replica)),
                (4, vec![2, 2, 3])
            );
            assert_eq!(replica.log().base(), &base_at(&held, 3));
            assert_eq!(
                replica.log().sessions().next_seq(1),
                7,
                "the base's sessions count, with what follows"
            );
        }
    }
}

#[test]
fn an_older_base_may_be_met_without_its_batches() {
    let held = batches(&[1; 8]);
    let mut replica = empty();
    replica.recover_base(base_at(&held, 2));
    recover(&mut replica, &held[4..7]);
    replica.recover_base(base_at(&held, 6));
    recover(&mut replica, &held[7..]);
    assert_eq!(replica.recovered_all(), Ok(()));
    assert_eq!((replica.log().first_index(), replica.log().last_index()), (7, 8));
}

#[test]
fn a_log_that_began_again_forgets_the_remains() {
    let (old, new) = (batches(&[1; 9]), batches(&[2; 7]));
    let mut replica = empty();
    // The remains of the old log end just where the new base lies, or reach beyond it.
    recover(&mut replica, &old[5..9]);
    replica.recover_truncation(0);
    replica.recover_base(base_at(&new, 5));
    assert_eq!((replica.log().last_index(), replica.durable_offset()), (5, 10));
    recover(&mut replica, &new[5..]);
    assert_eq!(replica.recovered_all(), Ok(()));
    assert_eq!(epochs(&replica), [2, 2]);
}

#[test]
fn a_missing_part_is_reported() {
    let held = batches(&[1; 9]);
    let mut replica = empty();
    recover(&mut replica, &held[..3]);
    recover(&mut replica, &held[5..]);
    assert_eq!(
        replica.recovered_all(),
        Err(RecoverError {
            index: 6,
            expected: 4
        })
    );
    let mut replica = empty();
    recover(&mut replica, &held[5..]);
    assert_eq!(
        replica.recovered_all(),
        Err(RecoverError {
            index: 6,
            expected: 1
        })
    );
}

#[test]
#[should_panic(expected = "not recovered to its end")]
fn a_damaged_log_does_not_serve() {
    let mut replica = empty();
    recover(&mut replica, &batches(&[1; 9])[5..]);
    step(
        &mut replica,
        ReplicaEvent::Configure(Box::new(config(3, &[1], &[]))),
    );
}
