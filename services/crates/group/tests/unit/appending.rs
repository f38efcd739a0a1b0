//! Appends that are ordered, that wait, and that are refused.

use quorate_chain::ReplicaEvent;
use quorate_group::{Absence, Event, Output, Record, Request, refuse_absent};
use quorate_types::config::Beginning;
use quorate_types::limits::{JOURNAL_BUFFER_BYTES_MAX, QUEUE_WAIT_MS_MAX};
use quorate_types::{Code, Durability, GroupConfig, Index, Permission};
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
fn retries_of_one_round_are_answered_in_one_frame() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.append(3);
    rig.messages();
    for seq in 1..=3 {
        rig.ask(CLIENT, Message::Append(append(seq, payload())));
    }
    rig.append(1);
    let acks = vec![(1, 0), (2, 1), (3, 2), (4, 3)];
    assert_eq!(rig.messages(), [(CLIENT, Message::Acked(acks))]);
    // A channel that goes has no answer any more, the next of its number least of all.
    rig.ask(CLIENT, Message::Append(append(1, payload())));
    rig.request(CLIENT, Request::Gone);
    rig.flush();
    assert_eq!(rig.messages(), []);
}

#[test]
fn a_deposed_head_answers_retries_of_committed_batches_at_once() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.append(1);
    rig.ask(CLIENT, Message::Append(append(1, payload())));
    rig.messages();
    rig.step(Event::Configure(Box::new(config(2, &[OTHER, ME]))));
    let acked = (CLIENT, Message::Acked(vec![(1, 0)]));
    assert!(rig.messages().contains(&acked));
}

#[test]
fn a_group_that_leaves_answers_retries_of_committed_batches() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.append(1);
    rig.messages();
    rig.ask(CLIENT, Message::Append(append(1, payload())));
    rig.step(Event::Leave);
    assert_eq!(rig.messages(), [(CLIENT, Message::Acked(vec![(1, 0)]))]);
}

#[test]
fn no_refusal_of_a_batch_that_was_ordered_says_that_it_did_not_happen() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.append(2);
    rig.messages();
    send(&mut rig, malformed(2));
    assert_eq!(rig.refused(), [(2, Code::BatchMalformed as u16, true)]);
    send(&mut rig, malformed(3));
    assert_eq!(rig.refused(), [refusal(3, Code::BatchMalformed)]);
}

#[test]
fn a_deposed_head_does_not_know_what_becomes_of_batches_under_way_and_refuses_those_that_waited() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    rig.acknowledge(0);
    rig.append(RATE_PER_S + 1);
    rig.messages();
    rig.step(Event::Configure(Box::new(config(2, &[OTHER, ME]))));
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
fn a_replica_that_is_not_the_head_cannot_tell_whether_a_batch_was_ordered() {
    let mut learns = config(1, &[OTHER]);
    learns.learners = config(1, &[ME]).replicas;
    for config in [config(1, &[OTHER, ME]), learns] {
        let mut rig = Rig::new(config);
        send(&mut rig, append(1, payload()));
        assert_eq!(rig.refused(), [(1, Code::NotHead as u16, true)]);
        let permission = Permission {
            may_append: false,
            ..PERMISSION
        };
        rig.request(
            CLIENT,
            Request::Attach {
                number: 2,
                session: SESSION,
                permission,
            },
        );
        send(&mut rig, append(1, payload()));
        assert_eq!(rig.refused(), [(1, Code::PermissionDenied as u16, true)]);
    }
}

/// A batch that the checks refuse.
fn malformed(seq: u64) -> Append {
    Append {
        entry_count: 7,
        ..append(seq, payload())
    }
}

#[test]
fn a_head_can_tell_when_its_chain_has_agreed_with_it_until_it_may_have_been_deposed() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    let refused = |rig: &mut Rig| {
        send(rig, malformed(1));
        send(rig, append(2, payload()));
        let is_unknown = rig.refused().into_iter().map(|(_, _, is_unknown)| is_unknown);
        is_unknown.collect::<Vec<_>>()
    };
    assert_eq!(
        refused(&mut rig),
        [true, true],
        "the other replica may have the batch"
    );
    rig.acknowledge(0);
    assert_eq!(refused(&mut rig), [false, false]);
    rig.step(Event::Configure(Box::new(config(2, &[ME, OTHER]))));
    assert_eq!(refused(&mut rig), [false, false], "it was the head all the time");
    rig.step(Event::Configure(Box::new(config(4, &[ME, OTHER]))));
    assert_eq!(
        refused(&mut rig),
        [true, true],
        "the other may have been the head"
    );
    rig.acknowledge(0);
    assert_eq!(refused(&mut rig), [false, false]);
    rig.step(Event::Configure(Box::new(config(5, &[OTHER, ME]))));
    rig.step(Event::Configure(Box::new(config(6, &[ME, OTHER]))));
    assert_eq!(refused(&mut rig), [true, true], "the other was the head");
}

#[test]
fn only_the_last_attachment_of_a_session_appends() {
    let mut rig = Rig::new(config(1, &[ME]));
    // One waits in the queue when the session moves.
    rig.append(RATE_PER_S + 1);
    rig.messages();
    rig.attach(AGAIN, SESSION);
    assert_eq!(rig.refused(), [refusal(RATE_PER_S + 1, Code::SessionMoved)]);
    rig.turn.now_us += 1_000_000;
    rig.flush();
    assert_eq!(rig.ordered(), RATE_PER_S);
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
fn a_batch_whose_channel_is_gone_takes_no_budget_from_others() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.append(RATE_PER_S + 1);
    rig.messages();
    rig.request(CLIENT, Request::Gone);
    rig.attach(AGAIN, SESSION + 1);
    rig.messages();
    rig.turn.now_us += 1_000_000 / RATE_PER_S;
    rig.ask(AGAIN, Message::Append(append(1, payload())));
    rig.flush();
    assert_eq!(rig.messages(), [(AGAIN, Message::Acked(vec![(1, RATE_PER_S)]))]);
    assert_eq!(
        rig.group.totals().refused_entries,
        1,
        "and it counts as not ordered"
    );
}

#[test]
fn a_batch_that_waits_is_not_ordered_behind_the_next_attach_of_its_channel() {
    let mut rig = Rig::new(config(1, &[ME]));
    rig.append(RATE_PER_S + 1);
    rig.request(CLIENT, Request::Gone);
    rig.messages();
    rig.attach(CLIENT, SESSION);
    let messages = rig.messages();
    let is_next = |message: &Message| matches!(message, Message::Attached(a) if a.next_seq == RATE_PER_S + 1);
    assert!(messages.iter().any(|(_, message)| is_next(message)));
    rig.turn.now_us += 1_000_000;
    rig.flush();
    assert_eq!(rig.ordered(), RATE_PER_S, "its client builds on next_seq");
    assert_eq!(rig.messages(), []);
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
    refuse_absent(CLIENT, &request, Absence::NotHere, out);
    refuse_absent(
        CLIENT,
        &Request::Attach {
            number: 8,
            session: 1,
            permission: PERMISSION,
        },
        Absence::Lost,
        out,
    );
    refuse_absent(CLIENT, &Request::Gone, Absence::NotHere, out);
    let is_freed = |output: &Output| matches!(output, Output::NotAttached { number: 8, .. });
    assert!(out.list.iter().any(is_freed));
    refuse_absent(CLIENT, &request, Absence::Lost, out);
    let unknown = |code: Code| (3, code as u16, true);
    assert_eq!(
        rig.refused(),
        [
            unknown(Code::GroupNotHere),
            refusal(0, Code::GroupLost),
            unknown(Code::GroupLost)
        ],
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

/// The index of each base and of each end that is stated.
fn stated(rig: &mut Rig) -> (Vec<Index>, Vec<Index>) {
    rig.out.clear();
    rig.step(Event::Restate);
    let (mut bases, mut ends) = (Vec::new(), Vec::new());
    for record in rig.records() {
        match record {
            Record::Base { index, .. } => bases.push(index),
            Record::Truncated { index, number: 0 } => ends.push(index),
            other => panic!("{other:?} states nothing"),
        }
    }
    (bases, ends)
}

#[test]
fn a_persistent_group_states_anew_where_its_log_begins_and_ends() {
    let persistent = GroupConfig {
        durability: Durability::Persistent,
        ..config(1, &[ME])
    };
    let mut rig = Rig::new(persistent.clone());
    assert_eq!(stated(&mut rig), (vec![], vec![]), "its log is empty");
    rig.append(2);
    assert_eq!(stated(&mut rig), (vec![], vec![2]));
    let beginning = Beginning {
        epoch: 5,
        offset: 1 << 40,
        entries_before: 2,
        bytes_before: 2,
    };
    rig.step(Event::Configure(Box::new(GroupConfig {
        epoch: 5,
        beginning: Some(beginning),
        ..persistent
    })));
    let base = rig.group.replica().log().base().index;
    assert_eq!(stated(&mut rig), (vec![base], vec![base]));
    let mut in_memory = Rig::new(config(1, &[ME]));
    in_memory.append(1);
    assert_eq!(stated(&mut in_memory), (vec![], vec![]), "there is no journal");
}
