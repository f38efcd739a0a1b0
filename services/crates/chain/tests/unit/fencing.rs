//! Every kind of message is fenced: a message of another epoch changes nothing.

use quorate_chain::{Replica, ReplicaEvent};
use quorate_types::{Durability, Epoch, ServerId};
use quorate_wire::peer::{ChainAck, ChainNotice, Message, Progress, Replicate, SyncReply, SyncRequest};

use crate::rig::{Fleet, append, batches, config, step};

fn kinds() -> Vec<Message> {
    let batch = batches(&[5]).remove(0);
    let (commit_index, acknowledged_index, last_index, storage_fault) = (1, 1, 1, true);
    let mut kinds = vec![
        Message::Replicate(Replicate {
            commit_index,
            last_index,
            storage_fault,
            batch,
        }),
        Message::ChainAck(ChainAck {
            acknowledged_index,
            storage_fault,
            ..ChainAck::default()
        }),
        Message::ChainNotice(ChainNotice {
            commit_index,
            storage_fault,
            ..ChainNotice::default()
        }),
        Message::Progress(Progress {
            index: 1,
            is_caught_up: true,
            ..Progress::default()
        }),
    ];
    for nonce in 0..4 {
        let (common_index, base) = (0, None);
        kinds.push(Message::SyncReply(SyncReply {
            nonce,
            common_index,
            last_index,
            commit_index,
            base,
        }));
    }
    kinds
}

fn state(replica: &Replica) -> String {
    format!("{replica:?}")
}

#[test]
fn other_epochs_change_nothing() {
    for epoch in [0, 4, 6, u64::MAX] {
        for me in [1, 2, 3, 4] {
            let mut fleet = Fleet::new(Durability::InMemory, &[1, 2, 3, 4]);
            fleet.configure(5, &[1, 2, 3], &[4]);
            fleet.append(1, append(1, 1));
            let replica = fleet.nodes.get_mut(&me).expect("a server");
            let before = state(replica);
            for message in kinds() {
                for from in [1, 2, 3, 4] {
                    let event = ReplicaEvent::Peer {
                        from: ServerId(from),
                        epoch,
                        message: message.clone(),
                    };
                    assert_eq!(
                        step(replica, event).len(),
                        0,
                        "s{me}: {message:?} of epoch {epoch}"
                    );
                }
            }
            assert_eq!(state(replica), before, "s{me}, epoch {epoch}");
        }
    }
}

#[test]
fn a_question_of_an_older_epoch_is_not_answered() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.configure(5, &[1, 2, 3], &[]);
    let head = fleet.nodes.get_mut(&1).expect("head");
    let request = SyncRequest {
        nonce: 1,
        last_index: 0,
        commit_index: 0,
        history: vec![],
    };
    for epoch in [0, 1, 4] {
        let message = Message::SyncRequest(request.clone());
        assert!(
            step(
                head,
                ReplicaEvent::Peer {
                    from: ServerId(2),
                    epoch,
                    message
                }
            )
            .is_empty()
        );
    }
}

#[test]
fn a_deposed_head_that_has_not_heard_commits_nothing() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    for id in [2, 3] {
        fleet.give(id, ReplicaEvent::Configure(Box::new(config(2, &[2, 3], &[]))));
    }
    fleet.settle();
    fleet.append(1, append(1, 1));
    assert_eq!(fleet.commits(&[1, 2, 3]), [0, 0, 0]);
    assert_eq!(fleet.node(2).log().last_index(), 0);
    fleet.append(2, append(2, 1));
    assert_eq!(fleet.commits(&[1, 2, 3]), [0, 1, 1]);
}

#[test]
fn before_any_configuration_nobody_is_believed() {
    let mut replica = Replica::new(ServerId(2), Durability::InMemory);
    for epoch in [0, 1 as Epoch] {
        for message in kinds() {
            assert!(
                step(
                    &mut replica,
                    ReplicaEvent::Peer {
                        from: ServerId(1),
                        epoch,
                        message
                    }
                )
                .is_empty()
            );
        }
    }
    assert_eq!(replica.log().last_index(), 0);
}
