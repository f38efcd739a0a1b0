//! Partitions: clients append by the layout that they know, and the end of a layout is told once it is committed.

use quorate_chain::ClientRef;
use quorate_group::{Event, Output, Request};
use quorate_types::control::ToCoordinator;
use quorate_types::{Code, GroupConfig, Layout, Permission};
use quorate_wire::client::Message;

use crate::rig::{CLIENT, GROUP, ME, OTHER, PERMISSION, RATE_PER_S, Rig, append, config, payload, refusal};

const SECOND: ClientRef = ClientRef {
    connection: 9,
    channel: 1,
};

fn with(epoch: u64, layout: u32) -> GroupConfig {
    GroupConfig {
        layout: Layout(layout),
        ..config(epoch, &[ME])
    }
}

fn attach(rig: &mut Rig, client: ClientRef, session: u64, layout: u32) {
    let permission = Permission {
        layout: Layout(layout),
        ..PERMISSION
    };
    rig.request(
        client,
        Request::Attach {
            number: 2,
            session,
            permission,
        },
    );
    rig.flush();
    rig.messages();
}

fn sealed(rig: &mut Rig) -> Vec<(u32, u64)> {
    let mut sealed = Vec::new();
    rig.out.list.retain(|output| {
        if let Output::Coordinator(ToCoordinator::LayoutSealed {
            group_id,
            layout,
            end_offset,
        }) = output
        {
            assert_eq!(*group_id, GROUP);
            sealed.push((layout.0, *end_offset));
            return false;
        }
        true
    });
    sealed
}

#[test]
fn a_client_of_another_layout_may_not_append() {
    let mut rig = Rig::new(with(1, 1));
    rig.append(1);
    assert_eq!(
        rig.refused(),
        [refusal(1, Code::LayoutChanged)],
        "a token without a layout"
    );
    attach(&mut rig, SECOND, 8, 1);
    rig.ask(SECOND, Message::Append(append(1, payload())));
    rig.flush();
    assert_eq!(rig.ordered(), 1);
}

#[test]
fn a_batch_that_was_ordered_before_is_acknowledged_under_another_layout() {
    let mut rig = Rig::new(with(1, 0));
    rig.append(1);
    rig.step(Event::Configure(Box::new(with(2, 1))));
    rig.messages();
    rig.ask(CLIENT, Message::Append(append(1, payload())));
    rig.flush();
    let is_acked = |message: &Message| *message == Message::Acked(vec![(1, 0)]);
    assert!(rig.messages().iter().any(|(_, message)| is_acked(message)));
}

#[test]
fn another_layout_ends_what_waits() {
    let mut rig = Rig::new(with(1, 0));
    rig.append(RATE_PER_S);
    let ordered = rig.ordered();
    rig.messages();
    let waiting = quorate_wire::client::Append {
        timeout_ms: 1_000,
        ..append(rig.seq + 1, payload())
    };
    rig.ask(CLIENT, Message::Append(waiting));
    rig.flush();
    rig.step(Event::Configure(Box::new(with(2, 1))));
    rig.flush();
    assert_eq!(sealed(&mut rig), [(1, ordered)]);
    assert_eq!(rig.refused(), [refusal(rig.seq + 1, Code::LayoutChanged)]);
    assert_eq!(rig.ordered(), ordered);
}

#[test]
fn a_head_tells_the_end_of_a_layout_once_and_again_when_it_is_configured_again() {
    let mut rig = Rig::new(with(1, 0));
    rig.append(3);
    assert_eq!(sealed(&mut rig), [], "no layout, no end");
    rig.step(Event::Configure(Box::new(with(2, 1))));
    rig.flush();
    rig.flush();
    assert_eq!(sealed(&mut rig), [(1, 3)]);
    rig.step(Event::Configure(Box::new(with(2, 1))));
    rig.flush();
    assert_eq!(sealed(&mut rig), [(1, 3)], "the coordinator may not have heard");
}

#[test]
fn the_end_waits_for_the_chain() {
    let two = |epoch, layout| GroupConfig {
        layout: Layout(layout),
        ..config(epoch, &[ME, OTHER])
    };
    let mut rig = Rig::new(two(1, 1));
    rig.flush();
    assert_eq!(
        sealed(&mut rig),
        [],
        "the other may know of entries that this one lacks"
    );
}
