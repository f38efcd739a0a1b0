//! The answers to ATTACH, and their time.

use quorate_group::{Event, Output, Request};
use quorate_types::limits::RING_STALL_MS;
use quorate_types::{Code, Micros};
use quorate_wire::client::Message;

use crate::rig::{AGAIN, CLIENT, ME, OTHER, Rig, SESSION, append, config, payload};

fn attached(rig: &mut Rig) -> usize {
    let messages = rig.messages();
    messages
        .iter()
        .filter(|(_, message)| matches!(message, Message::Attached(_)))
        .count()
}

#[test]
fn a_head_answers_when_its_chain_agrees_with_it_and_others_at_once() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    assert_eq!(attached(&mut rig), 0, "the ring has not closed");
    rig.acknowledge(0);
    rig.flush();
    assert_eq!(attached(&mut rig), 1);
    rig.step(Event::Configure(Box::new(config(2, &[OTHER, ME]))));
    rig.messages();
    rig.attach(AGAIN, 9);
    assert_eq!(attached(&mut rig), 1, "a follower says where the head is");
}

#[test]
fn no_notice_comes_before_the_answer_to_an_attach() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    rig.step(Event::Configure(Box::new(config(2, &[ME, OTHER]))));
    assert_eq!(rig.messages(), [], "the ring has not closed");
    rig.acknowledge(0);
    rig.flush();
    let messages = rig.messages();
    assert!(
        matches!(messages.as_slice(), [(CLIENT, Message::Attached(answer))] if answer.epoch == 2),
        "{messages:?}"
    );
    rig.step(Event::Configure(Box::new(config(3, &[ME, OTHER]))));
    let messages = rig.messages();
    assert!(
        matches!(messages.as_slice(), [(CLIENT, Message::Notice(notice))] if notice.epoch == 3),
        "{messages:?}"
    );
}

#[test]
fn an_isolated_head_turns_away_whoever_waits_and_whoever_comes() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    let stall_us: Micros = RING_STALL_MS * 1_000;
    for _ in 0..=8 {
        rig.step(Event::Tick {
            is_coordinator_silent: true,
        });
        rig.turn.now_us += stall_us / 4;
    }
    assert!(rig.group.replica().is_isolated());
    let refused: Vec<_> = rig.refused();
    assert_eq!(refused, [(0, Code::CutOff as u16, false)], "the one that waited");
    assert_eq!(rig.group.session_of(CLIENT), None);
    rig.attach(AGAIN, 9);
    let is_refused = |output: &Output| matches!(output, Output::NotAttached { client: AGAIN, .. });
    assert!(rig.out.list.iter().any(is_refused));
    assert_eq!(attached(&mut rig), 0);
}

#[test]
fn a_client_whose_attach_waits_is_refused_when_the_group_leaves() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    rig.step(Event::Leave);
    assert_eq!(rig.refused(), [(0, Code::GroupNotHere as u16, false)]);
    assert_eq!(rig.group.session_of(CLIENT), None);
}

#[test]
fn requests_behind_an_attach_that_waits_are_answered_before_it_when_the_head_is_isolated() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.append(1);
    rig.step(Event::Configure(Box::new(config(2, &[ME, OTHER]))));
    rig.request(CLIENT, Request::Gone);
    rig.messages();
    rig.attach(CLIENT, SESSION);
    rig.ask(CLIENT, wait_to_read(7));
    rig.flush();
    let stall_us: Micros = RING_STALL_MS * 1_000;
    while !rig.group.replica().is_isolated() {
        rig.flush();
        rig.messages();
        rig.ask(CLIENT, Message::Append(append(1, payload())));
        rig.step(Event::Tick {
            is_coordinator_silent: true,
        });
        rig.turn.now_us += stall_us / 4;
    }
    let answers = rig.messages().into_iter().map(|(_, message)| match message {
        Message::Acked(acks) => (acks[0].0, 0),
        Message::Refused(refused) => (refused.id, refused.code),
        other => panic!("{other:?}"),
    });
    let code = Code::CutOff as u16;
    assert_eq!(answers.collect::<Vec<_>>(), [(1, 0), (7, code), (0, code)]);
}

fn wait_to_read(request: u32) -> Message {
    Message::Read {
        request,
        max_bytes: 0,
        max_entries: 0,
        wait_ms: 60_000,
        offset: 1,
    }
}

#[test]
fn requests_behind_an_attach_that_waits_are_answered_before_it_when_the_group_leaves() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    rig.ask(CLIENT, Message::Append(append(1, payload())));
    rig.ask(CLIENT, wait_to_read(7));
    rig.ask(CLIENT, Message::Status { request: 8 });
    rig.flush();
    assert_eq!(rig.messages(), [], "the ring has not closed");
    rig.step(Event::Leave);
    let last = rig.out.list.last();
    assert!(matches!(last, Some(Output::NotAttached { client: CLIENT, .. })));
    let mut refused = rig.refused();
    assert_eq!(refused.pop(), Some((0, Code::GroupNotHere as u16, false)));
    refused.sort_unstable();
    let (ordered, read, asked) = (refused[0], refused[1], refused[2]);
    assert_eq!(
        ordered,
        (1, Code::EpochChanged as u16, true),
        "it may be committed yet"
    );
    assert_eq!(read, (7, Code::GroupNotHere as u16, false));
    assert_eq!(asked.0, 8);
}
