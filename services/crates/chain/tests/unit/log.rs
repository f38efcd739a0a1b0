//! The log: dense, truncated from behind, trimmed from the front.

use bytes::Bytes;
use quorate_chain::{Base, Log, ReplicaCommand, ReplicaEvent};
use quorate_types::space::Terms;
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
        retention_bytes: 4 * (500 + quorate_types::limits::BATCH_MEMORY_BYTES),
        ..config(2, &[1], &[])
    };
    step(&mut replica, ReplicaEvent::Configure(Box::new(small)));
    for seq in 1..=10 {
        let mut request = append(1, seq);
        request.payload = payload(500);
        let commands = step(&mut replica, ReplicaEvent::Append(request));
        let trims = |c: &ReplicaCommand| matches!(c, ReplicaCommand::Trimmed { first_index } if *first_index == seq - 3);
        assert_eq!(commands.iter().any(trims), seq > 4 && seq - 3 > 1);
    }
    // It does not wait for a tick: a fast group would outgrow the memory that it was admitted with.
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

/// Whatever a client sends, a log and its sessions hold no more than admission charged for them.
#[test]
fn a_log_holds_no_more_memory_than_was_admitted() {
    for (entry_bytes, sessions) in [(1, 1), (64, 40), (4_096, 3), (9_000, 1), (300_000, 2)] {
        let terms = Terms {
            durability: Durability::InMemory,
            retention_bytes: 1 << 20,
            request_size_bytes: 64,
            rate_per_s: 100,
        };
        let mut replica = sole(Durability::InMemory, &[], 1);
        let mut small = config(2, &[1], &[]);
        small.retention_bytes = terms.retention_bytes;
        (small.budget.rate_per_s, small.budget.request_size_bytes) =
            (terms.rate_per_s, terms.request_size_bytes);
        step(&mut replica, ReplicaEvent::Configure(Box::new(small)));
        // The window is charged for what is not trimmed yet.
        let most = terms.space().memory_bytes;
        for n in 0..6_000 {
            let mut request = append(1 + n % sessions, 1 + n / sessions);
            (request.payload, request.entry_count) = (Bytes::from(vec![7; entry_bytes + 4]), 1);
            step(&mut replica, ReplicaEvent::Append(request));
            let held = replica.log().held_bytes();
            assert!(
                held <= most,
                "{held} of {most} with entries of {entry_bytes} bytes"
            );
        }
        assert!(replica.log().first_index() > 1, "it is full");
    }
}
