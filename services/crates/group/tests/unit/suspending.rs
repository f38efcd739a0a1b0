//! Groups whose clients may use a part of the service alone.

use quorate_group::{Event, Grant};
use quorate_types::{Access, Code, GroupConfig};
use quorate_wire::client::{Message, Refused};

use crate::rig::{CLIENT, ME, RATE_PER_S, Rig, SECOND_US, append, config, payload, refusal};

fn with(epoch: u64, access: Access) -> GroupConfig {
    GroupConfig {
        access,
        ..config(epoch, &[ME])
    }
}

fn tail(rig: &mut Rig, request: u32) {
    let offset = rig.ordered();
    let subscribe = Message::Subscribe {
        request,
        credit_bytes: 1_000,
        offset,
    };
    rig.ask(CLIENT, subscribe);
    rig.flush();
}

fn codes(rig: &mut Rig) -> Vec<u16> {
    let messages = rig.messages().into_iter();
    let codes = messages.filter_map(|(_, message)| match message {
        Message::Refused(Refused { code, .. }) => Some(code),
        _ => None,
    });
    codes.collect()
}

#[test]
fn a_suspended_group_refuses_appends_and_knows_that_they_did_not_happen() {
    let mut rig = Rig::new(with(1, Access::Suspended));
    rig.append(1);
    assert_eq!(rig.refused(), [refusal(1, Code::GroupSuspended)]);
    assert_eq!(rig.ordered(), 0);
}

#[test]
fn a_batch_that_was_ordered_before_is_acknowledged_in_a_suspended_group() {
    let mut rig = Rig::new(with(1, Access::Full));
    rig.append(1);
    rig.step(Event::Configure(Box::new(with(2, Access::Suspended))));
    rig.messages();
    rig.ask(CLIENT, Message::Append(append(1, payload())));
    rig.flush();
    let messages = rig.messages();
    let is_acked = |message: &Message| *message == Message::Acked(vec![(1, 0)]);
    assert!(
        messages.iter().any(|(_, message)| is_acked(message)),
        "{messages:?}"
    );
}

#[test]
fn suspending_ends_what_waits_and_resuming_lets_it_go_on() {
    let mut rig = Rig::new(with(1, Access::Full));
    rig.append(RATE_PER_S);
    let ordered = rig.ordered();
    rig.messages();
    rig.ask(CLIENT, Message::Append(timed_append(rig.seq + 1)));
    rig.flush();
    tail(&mut rig, 9);
    assert_eq!(codes(&mut rig), [0; 0], "the append waits, and the tail too");
    rig.step(Event::Configure(Box::new(with(2, Access::Suspended))));
    rig.flush();
    assert_eq!(codes(&mut rig), [Code::GroupSuspended as u16; 2]);
    tail(&mut rig, 10);
    assert_eq!(codes(&mut rig), [Code::GroupSuspended as u16]);
    rig.step(Event::Configure(Box::new(with(3, Access::Full))));
    rig.turn.now_us += SECOND_US;
    rig.append(1);
    assert_eq!(rig.ordered(), ordered + 1);
}

/// An append beyond the budget, which may wait for a second.
fn timed_append(seq: u64) -> quorate_wire::client::Append {
    quorate_wire::client::Append {
        timeout_ms: 1_000,
        ..append(seq, payload())
    }
}

#[test]
fn a_group_with_its_reservation_alone_takes_no_grant_and_wants_none() {
    for access in [Access::Full, Access::Reserved] {
        let mut rig = Rig::new(with(1, access));
        rig.load();
        let grant = Grant {
            epoch: 1,
            rate_per_s: 1_000 * RATE_PER_S,
            until_us: rig.turn.now_us + 10 * SECOND_US,
        };
        rig.step(Event::Grant(grant));
        rig.append(3 * RATE_PER_S);
        let is_full = access == Access::Full;
        assert_eq!(rig.ordered() > RATE_PER_S, is_full, "{access}: {}", rig.ordered());
        rig.turn.now_us += SECOND_US;
        let measured = rig.load().measured;
        assert_eq!(measured.beyond_per_s > 0, is_full, "{measured:?}");
    }
}
