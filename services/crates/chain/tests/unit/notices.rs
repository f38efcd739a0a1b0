//! Notices that are held back: what waits for the next batch, what is told at once, what is told late.

use quorate_chain::Event;
use quorate_types::Durability;
use quorate_wire::peer::Message;

use crate::rig::{Fleet, TICK, acks, append, sends};

fn holding(durability: Durability) -> Fleet {
    let mut fleet = Fleet::new(durability, &[1, 2, 3]);
    for replica in fleet.nodes.values_mut() {
        replica.hold_notices();
    }
    fleet.configure(1, &[1, 2, 3], &[]);
    for id in [1, 2] {
        fleet.event(id, Event::NoticeDue);
    }
    fleet
}

#[test]
fn the_next_batch_carries_what_is_committed_and_no_message_is_spent_on_it() {
    let mut fleet = holding(Durability::InMemory);
    fleet.append(1, append(1, 1));
    assert_eq!(acks(&fleet.take_told()), [(1, 0)], "nobody waits for a notice");
    assert_eq!(fleet.commits(&[1, 2, 3]), [1, 0, 0]);
    let before = fleet.delivered;
    fleet.append(1, append(1, 2));
    assert_eq!(fleet.commits(&[1, 2, 3]), [2, 1, 1]);
    assert_eq!(fleet.delivered - before, 3, "the batch twice, and the answer");
}

#[test]
fn what_no_batch_carries_is_told_when_it_is_due() {
    let ways: [fn() -> Event; 2] = [|| Event::NoticeDue, || TICK];
    for due in ways {
        let mut fleet = holding(Durability::InMemory);
        fleet.append(1, append(1, 1));
        assert!(fleet.node(1).owes_notice() && !fleet.node(2).owes_notice());
        fleet.event(1, due());
        assert_eq!(fleet.commits(&[1, 2, 3]), [1, 1, 0]);
        assert!(!fleet.node(1).owes_notice() && fleet.node(2).owes_notice());
        fleet.event(2, due());
        assert_eq!(fleet.commits(&[1, 2, 3]), [1, 1, 1]);
        assert!(!fleet.node(2).owes_notice() && !fleet.node(3).owes_notice());
    }
}

#[test]
fn a_batch_pays_what_was_owed() {
    let mut fleet = holding(Durability::InMemory);
    fleet.append(1, append(1, 1));
    assert!(fleet.node(1).owes_notice());
    fleet.give(1, Event::Append(append(1, 2)));
    assert!(!fleet.node(1).owes_notice());
    let delivered = fleet.delivered;
    fleet.give(1, Event::NoticeDue);
    fleet.settle();
    assert_eq!(fleet.delivered - delivered, 3, "no notice besides");
}

#[test]
fn levels_and_questions_are_told_at_once() {
    let mut fleet = holding(Durability::Persistent);
    for id in [1, 2, 3] {
        fleet.sync(id);
    }
    fleet.append(1, append(1, 1));
    fleet.sync(3);
    fleet.sync(2);
    assert_eq!(acks(&fleet.take_told()), [], "the head's disk does not have it");
    // The last to sync is the head: its level goes down the chain without a batch.
    fleet.sync(1);
    assert_eq!(acks(&fleet.take_told()), [(1, 0)]);
    let asked = quorate_chain::Asked::Status;
    let head = fleet.nodes.get_mut(&1).expect("head");
    let commands = crate::rig::step(
        head,
        Event::Ask {
            client: crate::rig::CLIENT,
            request: 1,
            asked,
        },
    );
    assert!(
        matches!(sends(&commands, 2)[..], [Message::ChainNotice(notice)] if (notice.round, notice.commit_index) == (1, 1)),
        "the head's question, and what it owed with it: {commands:?}"
    );
}
