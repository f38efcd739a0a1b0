//! The session against a simulated head: no socket, no clock.

use proptest::prelude::*;
use quorate_types::config::Role;
use quorate_types::cost::{Charges, EntryCost, ShortBatch};
use quorate_types::{Code, Micros};
use quorate_wire::client::{Append, Attached, Notice, Refused, kind};

use super::*;

const FAR: Micros = 1_000_000_000;

fn attached(next_seq: u64) -> Attached {
    Attached {
        epoch: 1,
        role: Role::Head as u8,
        durability: 1,
        state: 1,
        window_batches: 256,
        last_index: 40,
        next_seq,
        commit_offset: 0,
        trim_offset: 0,
        rate_per_s: 9,
        head_address: "head:1".to_string(),
    }
}

fn refused(seq: u64, code: Code, retry: u8, retry_after_ms: u32) -> Refused {
    let (op, outcome, code) = (kind::APPEND, 1, code as u16);
    Refused {
        op,
        outcome,
        retry,
        code,
        retry_after_ms,
        id: seq,
        head_address: "head:2".into(),
        message: String::new(),
    }
}

fn writer_with(batching: Batching) -> Writer<u32> {
    let mut writer = Writer::new(HandleLimits::default(), batching, 7);
    let mut actions = Vec::new();
    writer.on_attached(&attached(1), &mut actions);
    assert_eq!(actions, []);
    writer
}

/// One entry in each batch, so that batches are easy to count.
fn writer() -> Writer<u32> {
    writer_with(Batching {
        entries_max: 1,
        ..Batching::default()
    })
}

fn append(writer: &mut Writer<u32>, tickets: std::ops::Range<u32>) {
    for ticket in tickets {
        writer.append(FAR, ticket, &ticket.to_le_bytes()).expect("room");
    }
}

fn take(writer: &mut Writer<u32>, now: Micros) -> Vec<Append> {
    std::iter::from_fn(|| writer.next_append(now))
        .map(|(append, _)| append)
        .collect()
}

fn seqs(appends: &[Append]) -> Vec<u64> {
    appends.iter().map(|append| append.seq).collect()
}

fn acked(writer: &mut Writer<u32>, acks: &[(u64, u64)]) -> Vec<Action<u32>> {
    let mut actions = Vec::new();
    writer.on_acked(acks, &mut actions);
    actions
}

fn refuse(writer: &mut Writer<u32>, now: Micros, refusal: Refused) -> Vec<Action<u32>> {
    let mut actions = Vec::new();
    writer.on_refused(&refusal, now, &mut actions);
    actions
}

/// (ticket, offset) of acks; (ticket, is_unknown) of failures.
type Outcomes = (Vec<(u32, u64)>, Vec<(u32, bool)>);

fn outcomes(actions: &[Action<u32>]) -> Outcomes {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    for action in actions {
        match action {
            Action::Acked { shares, base_offset } => {
                good.extend(
                    shares
                        .iter()
                        .map(|share| (share.ticket, base_offset + u64::from(share.first))),
                );
            }
            Action::Failed {
                shares, is_unknown, ..
            } => {
                bad.extend(shares.iter().map(|share| (share.ticket, *is_unknown)));
            }
            Action::Reroute(_) => {}
        }
    }
    (good, bad)
}

fn target(actions: &[Action<u32>]) -> Option<&Target> {
    actions.iter().find_map(|action| match action {
        Action::Reroute(reroute) => Some(&reroute.to),
        _ => None,
    })
}

fn reason() -> Failure {
    Failure::new(client_side::NO_CONNECTION, "gone")
}

#[test]
fn appends_that_come_together_share_a_batch_and_get_consecutive_offsets() {
    let mut writer = writer_with(Batching::default());
    append(&mut writer, 0..3);
    let sent = take(&mut writer, 0);
    assert_eq!(sent.len(), 1);
    assert_eq!(
        (sent[0].seq, sent[0].entry_count, sent[0].floor_index),
        (1, 3, 40)
    );
    assert_eq!(sent[0].payload_crc, crc32fast::hash(&sent[0].payload));
    assert_eq!(
        sent[0].payload,
        quorate_wire::cursor::payload_of([0u32, 1, 2].map(u32::to_le_bytes).iter().map(|e| &e[..]))
    );
    assert_eq!(
        outcomes(&acked(&mut writer, &[(1, 100)])).0,
        [(0, 100), (1, 101), (2, 102)]
    );
    assert!(writer.is_idle() && writer.pending_calls() == 0 && writer.pending_bytes() == 0);
}

#[test]
fn while_batches_are_outstanding_the_next_one_is_filled() {
    let mut writer = writer_with(Batching::default());
    for ticket in 0..EAGER_BATCHES as u32 {
        append(&mut writer, ticket..ticket + 1);
        assert_eq!(take(&mut writer, 0).len(), 1, "few are outstanding: sent at once");
    }
    append(&mut writer, 10..20);
    assert_eq!(take(&mut writer, 0), []);
    append(&mut writer, 20..30);
    acked(&mut writer, &[(1, 0)]);
    let sent = take(&mut writer, 0);
    assert_eq!((sent.len(), sent[0].entry_count), (1, 20));
    let large = vec![0; EAGER_BATCH_BYTES as usize];
    writer.append(FAR, 30, &large).unwrap();
    assert_eq!(
        take(&mut writer, 0).len(),
        1,
        "a large batch does not wait to be filled"
    );
}

#[test]
fn the_window_and_the_bytes_in_flight_are_bounded() {
    let mut writer = writer_with(Batching {
        entries_max: 1,
        window_batches: 3,
        ..Batching::default()
    });
    append(&mut writer, 0..5);
    assert_eq!(seqs(&take(&mut writer, 0)), [1, 2, 3]);
    acked(&mut writer, &[(1, 0), (2, 1)]);
    assert_eq!(seqs(&take(&mut writer, 0)), [4, 5]);

    let mut writer = writer_with(Batching {
        entries_max: 1,
        inflight_bytes_max: 20,
        ..Batching::default()
    });
    append(&mut writer, 0..5);
    assert_eq!(seqs(&take(&mut writer, 0)), [1, 2]);
}

#[test]
fn a_run_fills_batches_in_place() {
    let mut writer = writer_with(Batching {
        entries_max: 10,
        ..Batching::default()
    });
    let mut number = 0u64;
    let mut put = |buffer: &mut BytesMut| {
        buffer.extend_from_slice(&u64::to_le_bytes(number));
        number += 1;
    };
    assert_eq!(writer.append_run(FAR, 1, 7, 8, &mut put), 7);
    assert_eq!(writer.append_run(FAR, 2, 7, 8, &mut put), 3);
    assert_eq!(writer.append_run(FAR, 3, 4, 8, &mut put), 4);
    let sent = take(&mut writer, 0);
    assert_eq!(
        sent.iter().map(|append| append.entry_count).collect::<Vec<_>>(),
        [10, 4]
    );
    assert_eq!(
        outcomes(&acked(&mut writer, &[(1, 50), (2, 60)])).0,
        [(1, 50), (2, 57), (3, 60)]
    );
    assert_eq!(writer.pending_bytes(), 0);
}

#[test]
fn after_a_throttled_batch_all_later_ones_are_sent_again_in_order() {
    let mut writer = writer();
    append(&mut writer, 0..4);
    let first = take(&mut writer, 0);
    assert_eq!(seqs(&first), [1, 2, 3, 4]);
    assert_eq!(outcomes(&acked(&mut writer, &[(1, 0)])).0, [(0, 0)]);
    assert_eq!(refuse(&mut writer, 1_000, refused(2, Code::Throttled, 1, 30)), []);
    refuse(&mut writer, 1_000, refused(3, Code::SequenceGap, 1, 0));
    append(&mut writer, 9..10);
    assert_eq!(
        take(&mut writer, 40_000),
        [],
        "the answer to the last one is still out"
    );
    refuse(&mut writer, 1_000, refused(4, Code::SequenceGap, 1, 0));
    assert_eq!(take(&mut writer, 30_999), []);
    assert_eq!(writer.wake_at(), 31_000);
    let again = take(&mut writer, 31_000);
    assert_eq!(seqs(&again), [2, 3, 4, 5]);
    assert_eq!(again[0].payload, first[1].payload);
    let (good, bad) = outcomes(&acked(&mut writer, &[(2, 1), (3, 2), (4, 3), (5, 4)]));
    assert_eq!((good, bad), (vec![(1, 1), (2, 2), (3, 3), (9, 4)], vec![]));
}

/// The head's queue had no room for 2 and for 4, and took in 3 between them: its answer comes last.
#[test]
fn nothing_is_sent_again_before_each_later_batch_has_been_answered() {
    let mut writer = writer();
    append(&mut writer, 0..4);
    take(&mut writer, 0);
    acked(&mut writer, &[(1, 0)]);
    refuse(&mut writer, 1_000, refused(2, Code::Throttled, 1, 30));
    refuse(&mut writer, 1_000, refused(4, Code::Throttled, 1, 30));
    assert_eq!(take(&mut writer, 90_000), [], "3 waits in the head's queue");
    refuse(&mut writer, 1_000, refused(3, Code::SequenceGap, 1, 0));
    assert_eq!(seqs(&take(&mut writer, 90_000)), [2, 3, 4]);
}

#[test]
fn a_batch_refused_for_good_gives_its_seq_to_the_next() {
    let mut writer = writer();
    append(&mut writer, 0..3);
    take(&mut writer, 0);
    let actions = refuse(&mut writer, 0, refused(1, Code::ConditionFailed, 0, 0));
    assert_eq!(outcomes(&actions).1, [(0, false)]);
    refuse(&mut writer, 0, refused(2, Code::SequenceGap, 1, 0));
    refuse(&mut writer, 0, refused(3, Code::SequenceGap, 1, 0));
    let again = take(&mut writer, 0);
    assert_eq!(seqs(&again), [1, 2]);
    assert_eq!(
        outcomes(&acked(&mut writer, &[(1, 0), (2, 1)])).0,
        [(1, 0), (2, 1)]
    );
}

#[test]
fn overload_without_a_time_is_met_with_growing_patience() {
    let mut writer = writer();
    append(&mut writer, 0..1);
    let mut now = 1;
    let mut waits = Vec::new();
    for _ in 0..5 {
        assert_eq!(seqs(&take(&mut writer, now)), [1]);
        refuse(&mut writer, now, refused(1, Code::Overloaded, 1, 0));
        waits.push(writer.wake_at() - now);
        now = writer.wake_at();
    }
    assert!(waits.is_sorted() && waits[4] >= 200_000, "{waits:?}");
}

#[test]
fn a_lost_connection_leaves_doubt_that_the_next_head_resolves() {
    let mut writer = writer();
    append(&mut writer, 0..3);
    take(&mut writer, 0);
    acked(&mut writer, &[(1, 0)]);
    writer.on_detached(reason());
    assert_eq!(take(&mut writer, 0), []);
    let mut actions = Vec::new();
    writer.on_attached(
        &Attached {
            epoch: 2,
            ..attached(3)
        },
        &mut actions,
    );
    assert_eq!(actions, []);
    // 2 was ordered, 3 was not: both are sent again, and each is acknowledged once.
    assert_eq!(seqs(&take(&mut writer, 0)), [2, 3]);
    assert_eq!(
        outcomes(&acked(&mut writer, &[(2, 1), (3, 2)])).0,
        [(1, 1), (2, 2)]
    );
    assert_eq!(
        outcomes(&acked(&mut writer, &[(3, 2)])),
        (vec![], vec![]),
        "answered before"
    );
}

#[test]
fn past_its_deadline_a_sent_append_is_unknown_and_an_unsent_one_did_not_happen() {
    let mut writer = writer_with(Batching {
        entries_max: 1,
        window_batches: 1,
        ..Batching::default()
    });
    writer.append(1_000, 0, b"sent").unwrap();
    writer.append(1_000, 1, b"queued").unwrap();
    take(&mut writer, 0);
    let mut actions = Vec::new();
    writer.on_time(999, &mut actions);
    assert_eq!(actions, []);
    writer.on_time(1_000 + BATCH_DEADLINE_SPREAD_US, &mut actions);
    assert_eq!(outcomes(&actions).1, [(0, true), (1, false)]);
    assert_eq!((writer.pending_calls(), writer.pending_bytes()), (0, 0));
    assert!(
        !writer.is_idle(),
        "the session needs the orphaned batch's outcome"
    );
    append(&mut writer, 2..3);
    let (good, _) = outcomes(&acked(&mut writer, &[(1, 0)]));
    assert_eq!(good, [], "its caller was answered");
    assert_eq!(seqs(&take(&mut writer, 0)), [2]);
}

#[test]
fn an_orphaned_batch_is_sent_again_on_a_new_connection_before_later_batches() {
    let mut writer = writer();
    writer.append(1_000, 0, b"sent").unwrap();
    take(&mut writer, 0);
    writer.on_detached(reason());
    let mut actions = Vec::new();
    writer.on_time(900_000, &mut actions);
    assert_eq!(outcomes(&actions).1, [(0, true)]);
    append(&mut writer, 1..2);
    writer.on_attached(&attached(1), &mut Vec::new());
    let sent = take(&mut writer, 900_000);
    assert_eq!((seqs(&sent), sent[0].timeout_ms), (vec![1, 2], 1));
    assert_eq!(outcomes(&acked(&mut writer, &[(1, 0), (2, 1)])).0, [(1, 1)]);
}

#[test]
fn a_session_ended_for_an_orphaned_batch_leaves_batches_on_their_way_unknown() {
    let mut writer = writer();
    let old = writer.session();
    writer.append(1_000, 0, b"orphan").unwrap();
    take(&mut writer, 0);
    let (mut now, mut sent) = (1_000, Vec::new());
    writer.on_time(now, &mut Vec::new());
    let mut actions = Vec::new();
    for ticket in 1.. {
        assert!(ticket < 40, "sent again for ever");
        append(&mut writer, ticket..ticket + 1);
        // On this connection for the first time: not in doubt, but on its way.
        sent.extend(take(&mut writer, now).into_iter().map(|append| append.payload));
        now = writer.wake_at();
        actions.clear();
        writer.on_time(now, &mut actions);
        if writer.session() != old {
            break;
        }
        if target(&actions).is_none() {
            continue; // woken by an outdated deadline
        }
        writer.on_detached(reason());
        writer.on_attached(&attached(1), &mut Vec::new());
        take(&mut writer, now);
    }
    let unknown = outcomes(&actions).1;
    assert!(
        unknown.len() > 1 && unknown.iter().all(|(_, is_unknown)| *is_unknown),
        "{unknown:?}"
    );
    let is_unanswered = |action: &Action<u32>| match action {
        Action::Failed { failure, .. } => failure.code == client_side::NO_ANSWER,
        _ => true,
    };
    assert!(actions.iter().all(is_unanswered), "{actions:?}");
    writer.on_attached(&attached(1), &mut Vec::new());
    for append in take(&mut writer, now) {
        assert!(!sent.contains(&append.payload), "it may be in the log already");
    }
}

#[test]
fn a_forgotten_session_makes_doubtful_batches_unknown_and_sends_the_rest_in_a_new_one() {
    let mut writer = writer();
    let old = writer.session();
    append(&mut writer, 0..3);
    take(&mut writer, 0);
    acked(&mut writer, &[(1, 0)]);
    writer.on_detached(reason());
    append(&mut writer, 3..4);
    let mut actions = Vec::new();
    writer.on_attached(&attached(1), &mut actions);
    assert_eq!(outcomes(&actions).1, [(1, true), (2, true)]);
    assert!(
        matches!(&actions[0], Action::Failed { failure, .. } if failure.is(Code::SessionExpired)),
        "the head said so"
    );
    assert_eq!(target(&actions), Some(&Target::Again));
    assert_ne!(writer.session(), old);
    writer.on_attached(&attached(1), &mut Vec::new());
    assert_eq!(seqs(&take(&mut writer, 0)), [1]);
    assert_eq!(outcomes(&acked(&mut writer, &[(1, 7)])).0, [(3, 7)]);
}

#[test]
fn a_session_that_expired_under_way_keeps_batches_that_were_not_ordered() {
    let mut writer = writer();
    append(&mut writer, 0..2);
    take(&mut writer, 0);
    let actions = refuse(&mut writer, 0, refused(1, Code::SessionExpired, 0, 0));
    assert_eq!(
        (outcomes(&actions), target(&actions)),
        ((vec![], vec![]), Some(&Target::Again))
    );
    writer.on_attached(&attached(1), &mut Vec::new());
    assert_eq!(seqs(&take(&mut writer, 0)), [1, 2]);
}

#[test]
fn redirects_name_the_head_and_stale_epochs_are_avoided() {
    let mut writer = writer();
    append(&mut writer, 0..1);
    take(&mut writer, 0);
    let actions = refuse(&mut writer, 0, refused(1, Code::NotHead, 2, 0));
    assert_eq!(target(&actions), Some(&Target::Head("head:2".into())));
    writer.on_detached(reason());
    let mut actions = Vec::new();
    let follower = Attached {
        role: Role::Follower as u8,
        epoch: 3,
        ..attached(1)
    };
    writer.on_attached(&follower, &mut actions);
    assert_eq!(target(&actions), Some(&Target::Head("head:1".into())));
    actions.clear();
    writer.on_attached(
        &Attached {
            epoch: 2,
            ..attached(1)
        },
        &mut actions,
    );
    assert_eq!(target(&actions), Some(&Target::Other));
    actions.clear();
    writer.on_attached(
        &Attached {
            epoch: 3,
            ..attached(1)
        },
        &mut actions,
    );
    assert_eq!(seqs(&take(&mut writer, 0)), [1]);
    let notice = Notice {
        epoch: 4,
        role: Role::None as u8,
        state: 1,
        rate_per_s: 5,
        head_address: "head:3".into(),
    };
    writer.on_notice(&notice, &mut actions);
    assert_eq!(target(&actions), Some(&Target::Head("head:3".into())));
}

#[test]
fn after_another_head_in_between_the_floor_is_asked_for_again() {
    let notice = |epoch, role| Notice {
        epoch,
        role: role as u8,
        state: 1,
        rate_per_s: 5,
        head_address: "head:1".into(),
    };
    let attached_at = |epoch, last_index| Attached {
        epoch,
        last_index,
        ..attached(1)
    };
    for deposed in [Some(notice(2, Role::Follower)), None] {
        let mut writer = Writer::new(HandleLimits::default(), Batching::default(), 7);
        let mut actions = Vec::new();
        writer.on_attached(&attached_at(1, 100), &mut actions);
        let seen = deposed.is_some();
        for notice in deposed.iter().chain([&notice(3, Role::Head)]) {
            writer.on_notice(notice, &mut actions);
        }
        let again = if seen {
            Target::Head("head:1".into())
        } else {
            Target::Again
        };
        assert_eq!(target(&actions), Some(&again));
        append(&mut writer, 0..1);
        assert_eq!(writer.next_append(0), None, "the floor may be too high by now");
        actions.clear();
        writer.on_detached(Failure::new(client_side::NO_CONNECTION, "left"));
        writer.on_attached(&attached_at(3, 50), &mut actions);
        let (sent, _) = writer.next_append(0).expect("attached anew");
        assert_eq!((sent.seq, sent.floor_index), (1, 50));
        actions.clear();
        writer.on_notice(&notice(4, Role::Sole), &mut actions);
        assert_eq!(actions, [], "who stays head keeps its log");
    }
}

#[test]
fn a_head_that_answers_unsent_batches_or_out_of_order_is_left() {
    let mut writer = writer();
    append(&mut writer, 0..3);
    take(&mut writer, 0);
    assert_eq!(target(&acked(&mut writer, &[(9, 0)])), Some(&Target::Other));
    assert_eq!(
        target(&refuse(&mut writer, 0, refused(9, Code::Throttled, 1, 0))),
        Some(&Target::Other)
    );
    let actions = acked(&mut writer, &[(2, 1)]);
    assert_eq!(
        (outcomes(&actions).0, target(&actions)),
        (vec![(1, 1)], Some(&Target::Again))
    );
}

#[test]
fn too_large_and_too_many_appends_are_refused_with_their_tickets() {
    let limits = HandleLimits {
        max_entry_bytes: 4,
        max_batch_bytes: 20,
        max_batch_entries: 2,
    };
    let mut writer = Writer::new(limits, Batching::default(), 1);
    let (ticket, failure) = writer.append(FAR, 5u32, b"12345").unwrap_err();
    assert!(ticket == 5 && failure.is(Code::EntryTooLarge));
    let three: &[&[u8]] = &[b"1", b"2", b"3"];
    let (_, failure) = writer
        .append_many(FAR, 6, three, Condition::NONE, None)
        .unwrap_err();
    assert!(failure.is(Code::BatchTooLarge) && failure.message.contains("at most 20 bytes and 2 entries"));
    let mut writer = Writer::new(HandleLimits::default(), Batching::default(), 1);
    let large = vec![0; 1 << 20];
    let refused = (0..300)
        .find_map(|ticket| writer.append(FAR, ticket, &large).err())
        .expect("a bound");
    assert_eq!(refused.1.code, client_side::QUEUE_FULL);
}

#[test]
fn closing_answers_every_caller() {
    let mut writer = writer_with(Batching {
        entries_max: 1,
        window_batches: 1,
        ..Batching::default()
    });
    append(&mut writer, 0..2);
    take(&mut writer, 0);
    let mut actions = Vec::new();
    writer.fail_all(&Failure::new(client_side::CLIENT_CLOSED, ""), &mut actions);
    assert_eq!(outcomes(&actions).1, [(0, true), (1, false)]);
    assert!(writer.is_idle() && target(&actions).is_none());
}

/// A head as in the protocol's description, which keeps the session over lost connections.
#[derive(Default)]
struct Head {
    log: Vec<u32>,
    bases: Vec<u64>,
    /// The connection has refused a batch: later ones are refused too, until the refused seq comes again.
    answers: std::collections::VecDeque<Result<(u64, u64), Refused>>,
}

impl Head {
    fn receive(&mut self, append: &Append, throttle: bool) {
        let next = self.bases.len() as u64 + 1;
        let answer = if append.seq < next {
            Ok((append.seq, self.bases[append.seq as usize - 1]))
        } else if append.seq > next {
            Err(refused(append.seq, Code::SequenceGap, 1, 0))
        } else if throttle {
            Err(refused(append.seq, Code::Throttled, 1, 1))
        } else {
            let base = self.log.len() as u64;
            let entries = quorate_wire::cursor::entries(&append.payload, append.entry_count).unwrap();
            self.log.extend(
                entries
                    .iter()
                    .map(|e| u32::from_le_bytes(e[..].try_into().unwrap())),
            );
            self.bases.push(base);
            Ok((append.seq, base))
        };
        self.answers.push_back(answer);
    }
}

proptest! {
    /// Every entry is in the log once, in order, at the offset reported, whatever is throttled or lost.
    #[test]
    fn every_append_is_ordered_once_and_in_order(
        steps in prop::collection::vec((0u8..6, 0u32..5), 1..120),
        entries_max in 1u32..4,
    ) {
        let mut writer = writer_with(Batching { entries_max, window_batches: 5, ..Batching::default() });
        let mut head = Head::default();
        let mut wire: std::collections::VecDeque<Append> = Default::default();
        let (mut now, mut next_ticket, mut actions) = (0, 0, Vec::new());
        let drain = steps.iter().copied().chain(std::iter::repeat_n([(1, 5), (2, 5), (3, 5)], 400).flatten());
        for (step, count) in drain {
            now += 1_000;
            match step {
                0 => { append(&mut writer, next_ticket..next_ticket + count); next_ticket += count; }
                1 => wire.extend(take(&mut writer, now)),
                2 => for append in wire.drain(..(count as usize).min(wire.len())) { head.receive(&append, false) },
                3 => for answer in head.answers.drain(..(count as usize).min(head.answers.len())) {
                    match answer {
                        Ok(ack) => writer.on_acked(&[ack], &mut actions),
                        Err(refusal) => writer.on_refused(&refusal, now, &mut actions),
                    }
                },
                4 => if let Some(append) = wire.pop_front() { head.receive(&append, true) },
                _ => {
                    wire.clear();
                    head.answers.clear();
                    writer.on_detached(reason());
                    writer.on_attached(&attached(head.bases.len() as u64 + 1), &mut actions);
                }
            }
            prop_assert!(target(&actions).is_none(), "{actions:?}");
        }
        let (good, bad) = outcomes(&actions);
        prop_assert!(bad.is_empty());
        prop_assert_eq!(&head.log, &(0..next_ticket).collect::<Vec<_>>());
        prop_assert_eq!(good, (0..next_ticket).map(|ticket| (ticket, u64::from(ticket))).collect::<Vec<_>>());
        prop_assert!(writer.is_idle());
    }
}

/// A token for each entry, at 16 a second.
fn charges() -> Charges {
    Charges {
        rate_per_s: 16,
        tokens_per_s_milli: [16_000, 0, 0],
        cost: EntryCost {
            fixed_milli: [1_000, 0, 0],
            per_byte_milli: [0; 3],
        },
        short_batch: ShortBatch::default(),
    }
}

fn paced_writer() -> Writer<u32> {
    let mut writer =
        Writer::new(HandleLimits::default(), Batching::default(), 7).with_pacing(Some(charges()));
    let attached = Attached {
        rate_per_s: 16,
        ..attached(1)
    };
    let mut actions = Vec::new();
    writer.on_attached(&attached, &mut actions);
    assert_eq!(actions, []);
    writer
}

fn append_run(writer: &mut Writer<u32>, deadline: Micros, count: u32) {
    let put = |buffer: &mut BytesMut| buffer.extend_from_slice(&[0; 64]);
    assert_eq!(writer.append_run(deadline, 0, count, 64, put), count);
}

/// Sent batches: (seq, entries) of each.
fn sent_at(writer: &mut Writer<u32>, now: Micros) -> Vec<(u64, u32)> {
    std::iter::from_fn(|| writer.next_append(now))
        .map(|(append, _)| (append.seq, append.entry_count))
        .collect()
}

#[test]
fn a_batch_beyond_the_rate_waits_in_the_client_and_takes_no_further_entries() {
    let mut writer = paced_writer();
    append_run(&mut writer, FAR, 17);
    assert_eq!(sent_at(&mut writer, 0), [(1, 17)]);
    append_run(&mut writer, FAR, 1);
    assert_eq!(sent_at(&mut writer, 0), []);
    assert_eq!(writer.wake_at(), 58_824);
    append_run(&mut writer, FAR, 16);
    assert_eq!(sent_at(&mut writer, 58_824), [(2, 1)]);
    assert_eq!(sent_at(&mut writer, 900_000), []);
    assert_eq!(sent_at(&mut writer, 1_000_001), [(3, 16)]);
    let (earliest, mut actions) = (FAR + BATCH_DEADLINE_SPREAD_US, Vec::new());
    assert_eq!(writer.wake_at(), earliest);
    writer.on_notice(&notice_of(1_600), &mut actions);
    append_run(&mut writer, FAR, 17);
    assert_eq!(sent_at(&mut writer, 1_000_001), []);
    assert_eq!(writer.wake_at(), 1_010_001, "a new rate holds at once");
    assert_eq!(actions, []);
}

fn notice_of(rate_per_s: u64) -> Notice {
    Notice {
        epoch: 1,
        role: Role::Head as u8,
        state: 1,
        rate_per_s,
        head_address: "head:1".into(),
    }
}

#[test]
fn an_append_that_waits_past_its_deadline_is_refused_and_a_repeated_batch_takes_no_tokens() {
    let mut writer = paced_writer();
    append_run(&mut writer, FAR, 17);
    assert_eq!(sent_at(&mut writer, 0), [(1, 17)]);
    let mut actions = Vec::new();
    let throttled = refused(1, Code::Throttled, 1, 10);
    writer.on_refused(&throttled, 0, &mut actions);
    assert_eq!(sent_at(&mut writer, 9_000), []);
    assert_eq!(sent_at(&mut writer, 20_000), [(1, 17)], "its tokens were taken");
    append_run(&mut writer, 500_000, 17);
    assert_eq!(sent_at(&mut writer, 20_000), []);
    assert_eq!(actions, []);
    writer.on_time(writer.wake_at(), &mut actions);
    let [
        Action::Failed {
            failure, is_unknown, ..
        },
    ] = actions.as_slice()
    else {
        panic!("{actions:?}")
    };
    assert_eq!(
        (failure.code, *is_unknown),
        (Code::DeadlineExceeded as u16, false)
    );
    append_run(&mut writer, FAR, 17);
    assert_eq!(sent_at(&mut writer, 1_000_001), [(2, 17)], "it took no tokens");
}
