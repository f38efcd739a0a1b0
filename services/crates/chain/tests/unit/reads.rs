//! Reading: whole committed batches, from any replica.

use quorate_chain::{ReadError, Replica, ReplicaEvent};
use quorate_types::{Code, Durability, GroupConfig};

use crate::rig::{Fleet, TICK, append, config, payload, sole, step};

fn with_batches(count: u64) -> Replica {
    let mut replica = sole(Durability::InMemory, &[], 1);
    for seq in 1..=count {
        step(&mut replica, ReplicaEvent::Append(append(1, seq)));
    }
    replica
}

fn offsets(replica: &Replica, offset: u64, max: (u32, u32, u32)) -> Vec<u64> {
    let page = replica.read(offset, max.0, max.1, max.2).expect("a page");
    page.pieces.iter().map(|p| p.base_offset).collect()
}

#[test]
fn a_page_ends_at_whichever_bound_comes_first() {
    let replica = with_batches(5);
    let max = u32::MAX;
    assert_eq!(offsets(&replica, 0, (max, max, max)), [0, 2, 4, 6, 8]);
    assert_eq!(offsets(&replica, 0, (max, max, 2)), [0, 2]);
    assert_eq!(offsets(&replica, 0, (60, max, max)), [0, 2, 4]);
    assert_eq!(offsets(&replica, 0, (59, max, max)), [0, 2]);
    assert_eq!(offsets(&replica, 0, (max, 4, max)), [0, 2]);
    assert_eq!(
        offsets(&replica, 3, (max, 3, max)),
        [2, 4],
        "entries are counted from the offset"
    );
    assert_eq!(offsets(&replica, 0, (1, 1, max)), [0], "one batch at least");
}

#[test]
fn the_next_page_begins_where_one_ended() {
    let replica = with_batches(5);
    let page = replica.read(3, u32::MAX, u32::MAX, 2).expect("a page");
    assert_eq!(
        (page.next_offset, page.commit_offset, page.trim_offset),
        (6, 10, 0)
    );
    let piece = &page.pieces[0];
    assert_eq!(
        (
            piece.index,
            piece.entry_count,
            piece.payload_len,
            piece.payload_crc
        ),
        (2, 2, 20, 1002)
    );
    assert_eq!(piece.payload, Some(payload(20)));
    let end = replica.read(10, u32::MAX, u32::MAX, 9).expect("a page");
    assert_eq!((end.pieces.len(), end.next_offset), (0, 10));
}

#[test]
fn only_committed_batches_are_read() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.append(1, append(1, 1));
    fleet.unreachable.push((2, 3));
    fleet.append(1, append(1, 2));
    let max = (u32::MAX, u32::MAX, 9);
    for id in [1, 2, 3] {
        assert_eq!(offsets(fleet.node(id), 0, max), [0]);
        assert_eq!(offsets(fleet.node(id), 2, max), [] as [u64; 0], "not yet");
    }
    assert_eq!(
        fleet.node(1).read(5, 1, 1, 1),
        Err(ReadError::BeyondEnd { commit_offset: 2 })
    );
    assert_eq!(
        fleet.node(3).read(5, 1, 1, 1).map(|p| p.pieces.len()),
        Ok(0),
        "a follower may be behind"
    );
}

#[test]
fn a_read_of_trimmed_entries_is_an_error() {
    let mut replica = with_batches(5);
    step(
        &mut replica,
        ReplicaEvent::Configure(Box::new(GroupConfig {
            retention_bytes: 2 * (20 + quorate_types::limits::BATCH_MEMORY_BYTES),
            ..config(2, &[1], &[])
        })),
    );
    step(&mut replica, TICK);
    let error = replica.read(5, 1, 1, 1).expect_err("trimmed");
    assert_eq!(
        (error, error.code()),
        (ReadError::Trimmed { trim_offset: 6 }, Code::Trimmed)
    );
    assert_eq!(offsets(&replica, 6, (u32::MAX, u32::MAX, 9)), [6, 8]);
}

#[test]
fn evicted_payloads_are_named_without_their_bytes() {
    let mut replica = sole(Durability::Persistent, &[], 1);
    for seq in 1..=20 {
        let mut request = append(1, seq);
        request.payload = payload(1 << 20);
        step(&mut replica, ReplicaEvent::Append(request));
        step(&mut replica, ReplicaEvent::Persisted { index: seq, epoch: 1 });
    }
    let page = replica.read(0, 1, 1, 1).expect("a page");
    assert_eq!(
        (page.pieces[0].payload.clone(), page.pieces[0].payload_len),
        (None, 1 << 20)
    );
    assert!(
        replica.read(38, 1, 1, 1).expect("a page").pieces[0]
            .payload
            .is_some()
    );
}
