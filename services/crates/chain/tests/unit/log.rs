//! The log: dense, truncated from behind, trimmed from the front.

use quorate_chain::{Base, Log, ReplicaEvent};
use quorate_types::{Durability, GroupConfig};

use crate::rig::{TICK, append, batches, config, payload, sole, step};

fn log_of(epochs: &[u64]) -> Log {
    let mut log = Log::new(Base::default());
    for batch in batches(epochs) {
        log.push(batch);
    }
    log
}

#[test]
fn offsets_and_bytes_add_up() {
    let log = log_of(&[1, 1, 3]);
    assert_eq!(
        (log.first_index(), log.last_index(), log.next_offset()),
        (1, 3, 6)
    );
    assert_eq!((log.cumulative_bytes(), log.payload_bytes()), (36, 60));
    assert_eq!((log.end_offset(0), log.end_offset(2)), (0, 4));
    assert_eq!(
        (log.epoch_at(0), log.epoch_at(3), log.epoch_at(4)),
        (Some(0), Some(3), None)
    );
}

/// The buffer that a batch came in would be held as long as the batch.
#[test]
fn a_short_payload_does_not_keep_the_buffer_that_it_came_in() {
    let mut log = Log::new(Base::default());
    let mut batch = batches(&[1]).remove(0);
    let came_in = bytes::Bytes::from([&batch.payload[..], &[0; 60_000]].concat());
    batch.payload = came_in.slice(..batch.payload.len());
    log.push(batch);
    assert!(came_in.is_unique(), "nobody else holds it");
}

#[test]
fn truncation_takes_the_end_off() {
    let mut log = log_of(&[1, 1, 2, 2]);
    log.truncate(9);
    assert_eq!(log.last_index(), 4);
    log.truncate(2);
    assert_eq!(
        (log.last_index(), log.next_offset(), log.payload_bytes()),
        (2, 4, 40)
    );
    assert_eq!((log.cumulative_bytes(), log.sessions().next_seq(1)), (24, 3));
    log.truncate(0);
    assert_eq!((log.last_index(), log.sessions().len()), (0, 0));
}

#[test]
#[should_panic(expected = "batches are dense")]
fn a_gap_is_not_taken() {
    let mut log = log_of(&[1]);
    log.push(batches(&[1, 1, 1]).remove(2));
}

#[test]
#[should_panic(expected = "epochs only grow")]
fn an_older_epoch_is_not_taken() {
    let mut log = log_of(&[1, 5]);
    log.push(batches(&[1, 1, 4]).remove(2));
}

#[test]
#[should_panic(expected = "below the base")]
fn a_truncation_below_the_base_is_an_error() {
    let base = Base {
        index: 5,
        epoch: 1,
        ..Base::default()
    };
    let mut log = Log::new(base);
    // With a batch behind the base, a truncation below the base would remove something.
    let mut next = batches(&[1; 6]).remove(5);
    next.header.base_offset = 0;
    next.header.cumulative_bytes = 12;
    log.push(next);
    log.truncate(4);
}

#[test]
fn retention_trims_committed_batches() {
    let mut replica = sole(Durability::InMemory, &[], 1);
    let small = GroupConfig {
        retention_bytes: 2_000,
        ..config(2, &[1], &[])
    };
    step(&mut replica, ReplicaEvent::Configure(small));
    for seq in 1..=10 {
        let mut request = append(1, seq);
        request.payload = payload(500);
        step(&mut replica, ReplicaEvent::Append(request));
    }
    assert_eq!(replica.log().first_index(), 1);
    let commands = step(&mut replica, TICK);
    assert!(
        commands
            .iter()
            .any(|c| matches!(c, quorate_chain::ReplicaCommand::Trimmed { first_index: 7 }))
    );
    assert_eq!(
        (replica.log().first_index(), replica.log().payload_bytes()),
        (7, 2_000)
    );
    assert_eq!(
        (replica.trim_offset(), replica.log().sessions().next_seq(1)),
        (12, 11)
    );
    assert!(step(&mut replica, TICK).is_empty(), "nothing is trimmed twice");
}
