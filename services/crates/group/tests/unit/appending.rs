//! Appends that are ordered, that wait, and that are refused.

use quorate_chain::ReplicaEvent;
use quorate_group::{Event, Output, Request, refuse_absent};
use quorate_types::limits::{JOURNAL_BUFFER_BYTES_MAX, QUEUE_WAIT_MS_MAX};
use quorate_types::{Code, Durability, GroupConfig, Permission};
use quorate_wire::client::{Append, Message};

use crate::rig::{
    AGAIN, CLIENT, ME, OTHER, PERMISSION, RATE_PER_S, Rig, SESSION, append, config, payload, refusal,
};

fn send(rig: &mut Rig, append: Append) {
    rig.ask(CLIENT, Message::Append(append));
    rig.flush();
}

#[test]
fn an_append_is_acknowledged_when_the_chain_has_it() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    rig.acknowledge(0);
    rig.append(1);
    rig.messages();
    rig.flush();
    assert_eq!(rig.messages(), [], "the other replica lacks it");
    rig.acknowledge(1);
    rig.flush();
    assert_eq!(rig.messages(), [(CLIENT, Message::Acked(vec![(1, 0)]))]);
}

#[test]
fn a_batch_behind_a_refused_one_is_refused_at_once_and_takes_nothing() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.append(200);
    let refused = rig.refused();
    let first_gap = refused
        .iter()
        .position(|(_, code, _)| *code == Code::SequenceGap as u16);
    let throttled = refused
        .iter()
        .filter(|(_, code, _)| *code == Code::Throttled as u16)
        .count();
    assert_eq!(
        (throttled, first_gap),
        (1, Some(1)),
        "one is throttled, all behind it leave a gap"
    );
    let offered = rig.group.totals().offered_entries;
    assert_eq!(offered, 200);
    // It comes again, and those behind it are ordered after it.
    let seq = refused[0].0;
    for _ in 0..=QUEUE_WAIT_MS_MAX / 100 {
        rig.turn.now_us += 100_000;
        rig.flush();
    }
    // The last one may reach its deadline first.
    let seq = rig.refused().first().map_or(seq, |(expired, _, _)| *expired);
    rig.turn.now_us += 1_000_000;
    send(&mut rig, append(seq, payload()));
    send(&mut rig, append(seq + 1, payload()));
    assert_eq!(rig.refused(), []);
    assert_eq!(rig.ordered(), seq + 1);
}

#[test]
fn a_retry_of_an_ordered_batch_costs_nothing_and_is_answered_with_its_place() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.append(RATE_PER_S);
    rig.messages();
    send(&mut rig, append(3, payload()));
    assert_eq!(
        rig.messages(),
        [(CLIENT, Message::Acked(vec![(3, 2)]))],
        "though the budget is used up"
    );
}

#[test]
fn no_refusal_of_a_batch_that_was_ordered_says_that_it_did_not_happen() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.append(2);
    rig.messages();
    let mut malformed = append(2, payload());
    malformed.entry_count = 7;
    send(&mut rig, malformed);
    assert_eq!(rig.refused(), [(2, Code::BatchMalformed as u16, true)]);
    let mut new = append(3, payload());
    new.entry_count = 7;
    send(&mut rig, new);
    assert_eq!(rig.refused(), [refusal(3, Code::BatchMalformed)]);
}

#[test]
fn a_deposed_head_does_not_know_what_becomes_of_batches_under_way_and_refuses_those_that_waited() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    rig.append(RATE_PER_S + 1);
    rig.messages();
    rig.step(Event::Configure(config(2, &[OTHER, ME])));
    let refused = rig.refused();
    let under_way = refused
        .iter()
        .filter(|one| one.1 == Code::EpochChanged as u16 && one.2)
        .count();
    assert_eq!(under_way as u64, RATE_PER_S);
    assert!(
        refused.contains(&refusal(RATE_PER_S + 1, Code::NotHead)),
        "{refused:?}"
    );
}

#[test]
fn only_the_last_attachment_of_a_session_appends() {
    let mut rig = Rig::new(config(1, &[ME]));
    // One waits in the queue when the session moves.
    rig.append(RATE_PER_S + 1);
    rig.attach(AGAIN, SESSION);
    rig.messages();
    rig.turn.now_us += 1_000_000;
    rig.flush();
    assert_eq!(rig.refused(), [refusal(RATE_PER_S + 1, Code::SessionMoved)]);
    send(&mut rig, append(RATE_PER_S + 1, payload()));
    assert_eq!(rig.refused(), [refusal(RATE_PER_S + 1, Code::SessionMoved)]);
    // The former attachment goes: the session stays with the later one.
    rig.request(CLIENT, Request::Gone);
    rig.ask(AGAIN, Message::Append(append(RATE_PER_S + 1, payload())));
    rig.flush();
    assert_eq!(
        rig.messages(),
        [(AGAIN, Message::Acked(vec![(RATE_PER_S + 1, RATE_PER_S)]))]
    );
}

#[test]
fn a_client_appends_with_permission_and_before_its_token_expires() {
    let mut rig = Rig::new(config(1, &[ME]));
    let expires_at_s = rig.turn.wall_us / 1_000_000;
    let wrong = [
        (
            Permission {
                may_append: false,
                ..PERMISSION
            },
            Code::PermissionDenied,
        ),
        (
            Permission {
                expires_at_s: expires_at_s - 1,
                ..PERMISSION
            },
            Code::TokenExpired,
        ),
    ];
    for (permission, code) in wrong {
        rig.request(
            CLIENT,
            Request::Attach {
                number: 1,
                session: SESSION,
                permission,
            },
        );
        rig.messages();
        send(&mut rig, append(1, payload()));
        assert_eq!(rig.refused(), [refusal(1, code)]);
        rig.ask(
            CLIENT,
            Message::Trim {
                request: 4,
                before_offset: 0,
            },
        );
        assert_eq!(rig.refused(), [refusal(4, code)]);
    }
}

#[test]
fn heads_stop_ordering_while_the_journal_is_behind() {
    let persistent = GroupConfig {
        durability: Durability::Persistent,
        ..config(1, &[ME])
    };
    let mut rig = Rig::new(persistent);
    rig.turn.journal_waiting_bytes = JOURNAL_BUFFER_BYTES_MAX;
    rig.flush();
    rig.append(1);
    assert_eq!(rig.ordered(), 0);
    rig.turn.journal_waiting_bytes = 0;
    rig.flush();
    assert_eq!(rig.ordered(), 1);
    assert_eq!(rig.records().len(), 1, "and the journal gets it");
    rig.replica_event(ReplicaEvent::Persisted { index: 1, epoch: 1 });
    rig.flush();
    assert_eq!(rig.messages(), [(CLIENT, Message::Acked(vec![(1, 0)]))]);
}

#[test]
fn a_group_that_is_not_here_refuses_what_is_asked_of_it_and_frees_the_channel() {
    let mut rig = Rig::new(config(1, &[ME]));
    let out = &mut rig.out;
    let request = Request::Message {
        message: Message::Append(append(3, payload())),
        trace: None,
    };
    refuse_absent(CLIENT, &request, false, out);
    refuse_absent(
        CLIENT,
        &Request::Attach {
            number: 8,
            session: 1,
            permission: PERMISSION,
        },
        true,
        out,
    );
    refuse_absent(CLIENT, &Request::Gone, false, out);
    let is_freed = |output: &Output| matches!(output, Output::NotAttached { number: 8, .. });
    assert!(out.list.iter().any(is_freed));
    let unknown = (3, Code::GroupNotHere as u16, true);
    assert_eq!(
        rig.refused(),
        [unknown, refusal(0, Code::GroupLost)],
        "it may be a retry"
    );
}

#[test]
fn a_batch_on_a_channel_that_is_not_attached_may_be_a_retry() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.ask(AGAIN, Message::Append(append(1, payload())));
    assert_eq!(rig.refused(), [(1, Code::UnknownChannel as u16, true)]);
    rig.attach(AGAIN, 0);
    rig.messages();
    rig.ask(AGAIN, Message::Append(append(1, payload())));
    assert_eq!(rig.refused(), [refusal(1, Code::SessionMissing)]);
}

#[test]
fn without_isolation_nothing_waits_and_nothing_is_counted() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.turn.is_unmetered = true;
    rig.append(200);
    assert_eq!((rig.ordered(), rig.group.totals().offered_entries), (200, 0));
}
