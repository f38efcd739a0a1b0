//! Commit notices held back: the next batch carries them, or the flush after they are due. All else is sent at once.

use quorate_chain::ReplicaEvent;
use quorate_types::Durability;
use quorate_wire::peer::Message;

use crate::rig::{Fleet, TICK, acks, append, sends};

fn holding(durability: Durability) -> Fleet {
    let mut fleet = Fleet::new(durability, &[1, 2, 3]);
    for replica in fleet.nodes.values_mut() {
        replica.hold_commit_notices();
    }
    fleet.configure(1, &[1, 2, 3], &[]);
    for id in [1, 2] {
        fleet.event(id, ReplicaEvent::CommitNoticeDue);
    }
    fleet
}

#[test]
fn the_next_batch_carries_the_commit_index_without_a_message() {
    let mut fleet = holding(Durability::InMemory);
    fleet.append(1, append(1, 1));
    assert_eq!(
        acks(&fleet.take_commands()),
        [(1, 0)],
        "nobody waits for a notice"
    );
    assert_eq!(fleet.commits(&[1, 2, 3]), [1, 0, 0]);
    let before = fleet.delivered;
    fleet.append(1, append(1, 2));
    assert_eq!(fleet.commits(&[1, 2, 3]), [2, 1, 1]);
    assert_eq!(fleet.delivered - before, 3, "the batch twice, and the answer");
}

#[test]
fn a_commit_notice_that_no_batch_carries_is_sent_when_it_is_due() {
    let ways: [fn() -> ReplicaEvent; 2] = [|| ReplicaEvent::CommitNoticeDue, || TICK];
    for due in ways {
        let mut fleet = holding(Durability::InMemory);
        fleet.append(1, append(1, 1));
        assert!(fleet.node(1).is_commit_notice_pending() && !fleet.node(2).is_commit_notice_pending());
        fleet.event(1, due());
        assert_eq!(fleet.commits(&[1, 2, 3]), [1, 1, 0]);
        assert!(!fleet.node(1).is_commit_notice_pending() && fleet.node(2).is_commit_notice_pending());
        fleet.event(2, due());
        assert_eq!(fleet.commits(&[1, 2, 3]), [1, 1, 1]);
        assert!(!fleet.node(2).is_commit_notice_pending() && !fleet.node(3).is_commit_notice_pending());
    }
}

#[test]
fn a_batch_replaces_a_pending_notice() {
    let mut fleet = holding(Durability::InMemory);
    fleet.append(1, append(1, 1));
    assert!(fleet.node(1).is_commit_notice_pending());
    fleet.give(1, ReplicaEvent::Append(append(1, 2)));
    assert!(!fleet.node(1).is_commit_notice_pending());
    let delivered = fleet.delivered;
    fleet.give(1, ReplicaEvent::CommitNoticeDue);
    fleet.settle();
    assert_eq!(fleet.delivered - delivered, 3, "no notice besides");
}

#[test]
fn a_ring_pass_is_sent_at_once_with_the_pending_commit() {
    let mut fleet = holding(Durability::Persistent);
    for id in [1, 2, 3] {
        fleet.sync(id);
    }
    fleet.append(1, append(1, 1));
    fleet.sync(3);
    fleet.sync(2);
    assert_eq!(
        acks(&fleet.take_commands()),
        [],
        "the head's disk does not have it"
    );
    // The head syncs last: no batch carries the commit index down the chain.
    fleet.sync(1);
    assert_eq!(acks(&fleet.take_commands()), [(1, 0)]);
    let asked = quorate_chain::Asked::Status;
    let head = fleet.nodes.get_mut(&1).expect("head");
    let commands = crate::rig::step(
        head,
        ReplicaEvent::Ask {
            client: crate::rig::CLIENT,
            request: 1,
            asked,
        },
    );
    assert!(
        matches!(sends(&commands, 2)[..], [Message::ChainNotice(notice)] if (notice.ring_pass, notice.commit_index) == (1, 1)),
        "the head's ring pass, with the pending commit index: {commands:?}"
    );
}
