//! Reads against a simulated replica: no socket, no clock.

use bytes::Bytes;
use quorate_wire::client::{EntriesBatch, Refused, kind};
use quorate_wire::cursor;

use super::*;

fn attached() -> Attached {
    Attached {
        epoch: 1,
        role: Role::Follower as u8,
        durability: 1,
        state: GroupState::Active as u8,
        window_batches: 256,
        last_index: 0,
        next_seq: 1,
        commit_offset: 0,
        trim_offset: 0,
        rate_per_s: 0,
        head_address: String::new(),
    }
}

fn reads() -> Reads<&'static str, &'static str> {
    let mut reads = Reads::new();
    assert_eq!(reads.on_attached(&attached()), None);
    reads
}

fn read(offset: Offset) -> Ask {
    Ask::Read {
        offset,
        max_bytes: 0,
        max_entries: 0,
        wait_until: 5_000,
    }
}

fn page(request: u32, base_offset: Offset, entries: &[&[u8]]) -> Message {
    let payload: Bytes = cursor::payload_of(entries.iter().copied());
    let batch = EntriesBatch {
        base_offset,
        timestamp_us: 1,
        entry_count: entries.len() as u32,
        payload_crc: crc32fast::hash(&payload),
        payload,
    };
    let next_offset = base_offset + entries.len() as u64;
    let (commit_offset, trim_offset) = (next_offset, 0);
    Message::Entries(Entries {
        request,
        next_offset,
        commit_offset,
        trim_offset,
        batches: vec![batch],
    })
}

fn refusal(request: u32, code: Code, retry: u8) -> Message {
    Message::Refused(Refused {
        op: kind::READ,
        outcome: 1,
        retry,
        code: code as u16,
        retry_after_ms: 30,
        id: u64::from(request),
        head_address: "h:1".into(),
        message: String::new(),
    })
}

#[test]
fn a_read_is_sent_again_on_a_new_connection_and_answered_once() {
    let mut reads = reads();
    let mut actions = Vec::new();
    reads.ask(9_000_000, read(7), "r").unwrap();
    let sent = Message::Read {
        request: 1,
        max_bytes: 0,
        max_entries: 0,
        wait_ms: 5,
        offset: 7,
    };
    assert_eq!(reads.next_message(0), Some(sent));
    assert_eq!(reads.next_message(0), None);
    reads.on_detached(Failure::new(client_side::NO_CONNECTION, ""));
    assert_eq!(reads.next_message(0), None);
    reads.on_attached(&attached());
    assert!(matches!(
        reads.next_message(4_000),
        Some(Message::Read {
            wait_ms: 1,
            offset: 7,
            ..
        })
    ));
    reads.on_message(page(1, 7, &[b"x"]), 0, &mut actions).unwrap();
    assert!(matches!(
        actions.pop(),
        Some(ReadAction::Page {
            ticket: "r",
            offset: 7,
            ..
        })
    ));
    reads.on_message(page(1, 7, &[b"x"]), 0, &mut actions).unwrap();
    assert!(actions.is_empty() && reads.is_idle());
}

#[test]
fn a_replica_that_is_behind_is_asked_again_later_until_the_deadline() {
    let mut reads = reads();
    let mut actions = Vec::new();
    reads.ask(100_000, read(7), "r").unwrap();
    assert!(reads.next_message(0).is_some());
    reads
        .on_message(refusal(1, Code::Syncing, 1), 1_000, &mut actions)
        .unwrap();
    assert_eq!(reads.next_message(30_999), None);
    assert_eq!(reads.wake_at(), 31_000);
    assert!(reads.next_message(31_000).is_some());
    reads.on_time(100_000, &mut actions);
    let Some(ReadAction::Failed { ticket: "r", failure }) = actions.pop() else {
        panic!("not ended")
    };
    assert!(failure.is(Code::Syncing), "the reason is what the server said");
}

#[test]
fn refusals_end_a_read_or_send_it_elsewhere() {
    let mut reads = reads();
    let mut actions = Vec::new();
    reads.ask(NEVER, read(7), "a").unwrap();
    reads.ask(NEVER, Ask::Status, "b").unwrap();
    assert!(reads.next_message(0).is_some() && reads.next_message(0).is_some());
    reads
        .on_message(refusal(1, Code::Trimmed, 0), 0, &mut actions)
        .unwrap();
    assert!(matches!(&actions[..], [ReadAction::Failed { ticket: "a", .. }]));
    actions.clear();
    reads
        .on_message(refusal(2, Code::NotHead, 2), 0, &mut actions)
        .unwrap();
    assert!(matches!(&actions[..], [ReadAction::Reroute(Reroute { to: Target::Head(h), .. })] if h == "h:1"));
    assert!(!reads.is_idle());
}

#[test]
fn a_trim_is_repeated_until_a_head_answers() {
    let mut reads = reads();
    let mut actions = Vec::new();
    let trim = Ask::Trim { before_offset: 9 };
    reads.ask(NEVER, trim, "t").unwrap();
    let sent = Message::Trim {
        request: 1,
        before_offset: 9,
    };
    assert_eq!(reads.next_message(0), Some(sent.clone()));
    reads
        .on_message(refusal(1, Code::EpochChanged, 2), 0, &mut actions)
        .unwrap();
    assert!(matches!(&actions[..], [ReadAction::Reroute(_)]));
    actions.clear();
    reads.on_detached(Failure::new(client_side::NO_CONNECTION, "gone"));
    assert!(reads.on_attached(&attached()).is_none());
    assert_eq!(reads.next_message(0), Some(sent));
    let answer = Message::TrimOk {
        request: 1,
        trim_offset: 8,
    };
    reads.on_message(answer, 0, &mut actions).unwrap();
    assert!(matches!(
        &actions[..],
        [ReadAction::Trimmed {
            ticket: "t",
            trim_offset: 8
        }]
    ));
    assert!(reads.is_idle());
}

#[test]
fn a_tail_continues_at_its_offset_and_returns_credit() {
    let mut reads = reads();
    let mut actions = Vec::new();
    reads.subscribe(5, 40, "t").unwrap();
    assert_eq!(
        reads.next_message(0),
        Some(Message::Subscribe {
            request: 1,
            credit_bytes: 40,
            offset: 5
        })
    );
    reads
        .on_message(page(1, 4, &[b"a", b"b", b"c"]), 0, &mut actions)
        .unwrap();
    let Some(ReadAction::Tailed { entries, bytes, .. }) = actions.pop() else {
        panic!("nothing came")
    };
    assert_eq!((entries.len(), entries[0].offset, bytes), (2, 5, 15));
    reads.on_detached(Failure::new(client_side::NO_CONNECTION, ""));
    reads.on_attached(&attached());
    let again = Message::Subscribe {
        request: 1,
        credit_bytes: 25,
        offset: 7,
    };
    assert_eq!(reads.next_message(0), Some(again));
    reads.consumed(1, 9);
    assert_eq!(reads.next_message(0), None);
    reads.consumed(1, 6);
    assert_eq!(
        reads.next_message(0),
        Some(Message::Credit {
            request: 1,
            bytes: 15
        })
    );
    assert!(
        reads.on_message(page(1, 8, &[b"e"]), 0, &mut actions).is_err(),
        "a gap"
    );
    reads.cancel(1);
    assert_eq!(reads.next_message(0), Some(Message::Cancel { request: 1 }));
    assert!(reads.is_idle());
}
