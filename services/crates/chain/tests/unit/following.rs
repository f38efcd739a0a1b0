//! A follower takes its predecessor's batches in order, each once.

use quorate_chain::{Replica, ReplicaCommand, ReplicaEvent};
use quorate_types::limits::{CATCHUP_PROGRESS_BYTES, SYNC_RETRY_MS, SYNC_STALL_MS};
use quorate_types::{Durability, GroupState, Role, ServerId};
use quorate_wire::Batch;
use quorate_wire::peer::{ChainAck, ChainNotice, Message, Replicate, SyncReply};

use crate::rig::{Fleet, TICK, append, batch_after, batches, config, peer, sends, step, step_at};

fn follower() -> Replica {
    let mut replica = Replica::new(ServerId(2), Durability::InMemory);
    step(
        &mut replica,
        ReplicaEvent::Configure(Box::new(config(1, &[1, 2, 3], &[]))),
    );
    replica
}

fn reply(nonce: u32, common_index: u64) -> Message {
    let (last_index, commit_index) = (common_index, 0);
    Message::SyncReply(SyncReply {
        nonce,
        common_index,
        last_index,
        commit_index,
        base: None,
    })
}

fn replicate(batch: &Batch, commit_index: u64) -> Message {
    let last_index = batch.header.index;
    let batch = batch.clone();
    Message::Replicate(Replicate {
        commit_index,
        last_index,
        storage_fault: false,
        batch,
    })
}

fn settled() -> Replica {
    let mut replica = follower();
    peer(&mut replica, 1, reply(1, 0));
    replica
}

#[test]
fn it_takes_nothing_before_it_has_agreed() {
    let mut replica = follower();
    assert_eq!(
        (replica.role(), replica.state()),
        (Role::Follower, GroupState::Syncing)
    );
    peer(&mut replica, 1, replicate(&batches(&[1])[0], 0));
    assert_eq!(replica.log().last_index(), 0);
}

#[test]
fn it_believes_only_the_answer_to_its_last_question() {
    let mut replica = follower();
    for (from, nonce) in [(1, 2), (1, 0), (3, 1)] {
        peer(&mut replica, from, reply(nonce, 0));
        assert_eq!(replica.state(), GroupState::Syncing, "from {from}, nonce {nonce}");
    }
    peer(&mut replica, 1, reply(1, 0));
    assert_eq!(replica.state(), GroupState::Active);
}

#[test]
fn duplicates_are_passed_over() {
    let mut replica = settled();
    let made = batches(&[1, 1]);
    for batch in [&made[0], &made[0], &made[1], &made[0]] {
        peer(&mut replica, 1, replicate(batch, 1));
    }
    assert_eq!((replica.log().last_index(), replica.commit_index()), (2, 1));
}

#[test]
#[should_panic(expected = "two batches at index 1")]
fn two_batches_at_one_index_end_the_process() {
    let mut replica = settled();
    let mut other = batches(&[1]).remove(0);
    peer(&mut replica, 1, replicate(&other, 0));
    other.header.payload_crc += 1;
    peer(&mut replica, 1, replicate(&other, 0));
}

#[test]
fn a_gap_makes_it_ask_again() {
    let mut replica = settled();
    let commands = peer(&mut replica, 1, replicate(&batches(&[1, 1])[1], 0));
    assert!(
        matches!(&sends(&commands, 1)[..], [Message::SyncRequest(r)] if r.nonce == 2 && r.last_index == 0)
    );
    assert_eq!(replica.state(), GroupState::Syncing);
}

#[test]
fn it_listens_to_its_predecessor_alone() {
    let mut replica = settled();
    for from in [3, 9] {
        peer(&mut replica, from, replicate(&batches(&[1])[0], 0));
        peer(
            &mut replica,
            from,
            Message::ChainNotice(ChainNotice {
                commit_index: 9,
                storage_fault: true,
                ..ChainNotice::default()
            }),
        );
    }
    assert_eq!(
        (
            replica.log().last_index(),
            replica.commit_index(),
            replica.state()
        ),
        (0, 0, GroupState::Active)
    );
}

#[test]
fn it_commits_no_more_than_it_holds() {
    let mut replica = settled();
    peer(&mut replica, 1, replicate(&batches(&[1])[0], 40));
    assert_eq!(replica.commit_index(), 1);
    peer(
        &mut replica,
        1,
        Message::ChainNotice(ChainNotice {
            commit_index: 50,
            storage_fault: false,
            ..ChainNotice::default()
        }),
    );
    assert_eq!(replica.commit_index(), 1);
}

#[test]
fn it_asks_again_when_no_answer_comes_or_nothing_more_comes() {
    let mut replica = follower();
    assert!(step_at(&mut replica, SYNC_RETRY_MS * 1000 - 1, TICK).is_empty());
    assert_eq!(
        sends(&step_at(&mut replica, SYNC_RETRY_MS * 1000, TICK), 1).len(),
        1
    );

    let mut replica = settled();
    let notice = Message::ChainNotice(ChainNotice {
        commit_index: 5,
        storage_fault: false,
        ..ChainNotice::default()
    });
    peer(&mut replica, 1, notice);
    assert!(step_at(&mut replica, SYNC_STALL_MS * 1000 - 1, TICK).is_empty());
    assert_eq!(
        sends(&step_at(&mut replica, SYNC_STALL_MS * 1000, TICK), 1).len(),
        1,
        "it is behind"
    );
    let mut caught_up = settled();
    assert!(
        step_at(&mut caught_up, 3_600_000_000, TICK).is_empty(),
        "it is not behind"
    );
}

#[test]
fn a_new_link_is_a_new_agreement() {
    let mut replica = settled();
    let commands = step(&mut replica, ReplicaEvent::LinkUp { server: ServerId(3) });
    assert!(commands.is_empty());
    let commands = step(&mut replica, ReplicaEvent::LinkUp { server: ServerId(1) });
    assert!(matches!(&sends(&commands, 1)[..], [Message::SyncRequest(_)]));
}

#[test]
fn the_tail_repeats_itself_to_a_head_that_is_back() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.append(1, append(1, 1));
    let tail = fleet.nodes.get_mut(&3).expect("tail");
    let commands = step(tail, ReplicaEvent::LinkUp { server: ServerId(1) });
    assert_eq!(
        sends(&commands, 1),
        [Message::ChainAck(ChainAck {
            acknowledged_index: 1,
            storage_fault: false,
            ..ChainAck::default()
        })]
    );
}

#[test]
fn progress_opens_the_window_whatever_is_trimmed() {
    let mut replica = Replica::new(ServerId(2), Durability::InMemory);
    step(
        &mut replica,
        ReplicaEvent::Configure(Box::new(config(1, &[1, 2, 3], &[]))),
    );
    peer(&mut replica, 1, reply(1, 0));
    let (mut last, mut sent) = (None, 0);
    for seq in 1..=100 {
        let batch = batch_after(last.as_ref(), 1, 1, seq, 100_000);
        last = Some(batch.header);
        let commands = peer(&mut replica, 1, replicate(&batch, seq));
        sent += sends(&commands, 1)
            .iter()
            .filter(|m| matches!(m, Message::Progress(_)))
            .count();
        let notice = ChainNotice {
            commit_index: seq,
            trim_index: seq - 1,
            ..ChainNotice::default()
        };
        peer(&mut replica, 1, Message::ChainNotice(notice));
        assert!(replica.log().payload_bytes() <= 200_000);
    }
    assert!(
        sent as u64 >= 100 * 100_000 / CATCHUP_PROGRESS_BYTES - 1,
        "{sent} times for 10 MB"
    );
}

#[test]
fn a_configuration_is_adopted_once_and_never_back() {
    let mut replica = follower();
    let adopted = |commands: &[ReplicaCommand]| {
        commands
            .iter()
            .any(|c| matches!(c, ReplicaCommand::Adopted { epoch: 3 }))
    };
    assert!(adopted(&step(
        &mut replica,
        ReplicaEvent::Configure(Box::new(config(3, &[2], &[])))
    )));
    assert!(
        adopted(&step(
            &mut replica,
            ReplicaEvent::Configure(Box::new(config(3, &[1, 2], &[])))
        )),
        "said again"
    );
    assert_eq!(replica.role(), Role::Sole, "but not changed");
    assert!(
        step(
            &mut replica,
            ReplicaEvent::Configure(Box::new(config(2, &[1, 2], &[])))
        )
        .is_empty()
    );
    assert_eq!(replica.epoch(), 3);
}
