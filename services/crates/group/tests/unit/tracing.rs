//! Spans of sampled appends.

use quorate_group::{Event, Output, Request, Span, SpanKind};
use quorate_wire::client::Message;
use quorate_wire::peer::{self, Replicate, SyncReply};
use quorate_wire::{Batch, BatchHeader, TraceContext};

use crate::rig::{CLIENT, GROUP, ME, OTHER, Rig, SESSION, append, config, payload};

const SAMPLED: TraceContext = TraceContext {
    trace_id: [3; 16],
    span_id: [4; 8],
    flags: 1,
};

fn spans(rig: &mut Rig) -> Vec<Span> {
    let outputs: Vec<Output> = rig.out.list.drain(..).collect();
    rig.out.clear();
    let spans = outputs.into_iter().filter_map(|output| match output {
        Output::Span(span) => Some(span),
        _ => None,
    });
    spans.collect()
}

fn append_traced(rig: &mut Rig, seq: u64, trace: TraceContext) {
    let message = Message::Append(append(seq, payload()));
    let trace = Some(trace);
    rig.request(CLIENT, Request::Message { message, trace });
    rig.flush();
}

#[test]
fn a_head_times_a_sampled_append_from_its_arrival_to_its_commitment() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    rig.acknowledge(0);
    append_traced(&mut rig, 1, SAMPLED);
    assert_eq!(spans(&mut rig), [], "nobody exports spans");
    rig.turn.exports_spans = true;
    let began_us = rig.turn.wall_us;
    append_traced(&mut rig, 2, SAMPLED);
    append_traced(&mut rig, 3, TraceContext { flags: 0, ..SAMPLED });
    rig.turn.wall_us += 70;
    rig.acknowledge(1);
    rig.flush();
    assert_eq!(spans(&mut rig), [], "batch 2 is not committed");
    rig.turn.wall_us += 7;
    rig.acknowledge(3);
    rig.flush();
    let expected = Span {
        kind: SpanKind::Order,
        trace: SAMPLED,
        began_us,
        ended_us: began_us + 77,
        epoch: 1,
        index: 2,
        entry_count: 1,
    };
    assert_eq!(spans(&mut rig), [expected]);
    append_traced(&mut rig, 2, SAMPLED);
    assert_eq!(spans(&mut rig), [], "a retry orders nothing");
}

fn from_head(rig: &mut Rig, message: peer::Message) {
    rig.step(Event::Peer {
        from: OTHER,
        epoch: 1,
        message,
    });
}

#[test]
fn a_follower_times_a_sampled_batch_until_it_holds_it() {
    let mut rig = Rig::new(config(1, &[OTHER, ME]));
    rig.turn.exports_spans = true;
    let reply = SyncReply {
        nonce: 1,
        common_index: 0,
        last_index: 0,
        commit_index: 0,
        base: None,
    };
    from_head(&mut rig, peer::Message::SyncReply(reply));
    let payload = payload();
    let header = BatchHeader {
        group_id: GROUP,
        epoch: 1,
        index: 1,
        base_offset: 0,
        cumulative_bytes: 1,
        session: SESSION,
        seq: 1,
        timestamp_us: rig.turn.wall_us,
        fencing_token: 0,
        entry_count: 1,
        payload_len: payload.len() as u32,
        payload_crc: crc32fast::hash(&payload),
    };
    let batch = Batch {
        header,
        payload,
        trace: Some(SAMPLED),
    };
    let replicate = Replicate {
        commit_index: 0,
        last_index: 1,
        storage_fault: false,
        batch,
    };
    from_head(&mut rig, peer::Message::Replicate(replicate));
    assert_eq!(rig.ordered(), 1);
    rig.flush();
    let spans = spans(&mut rig);
    let [span] = spans[..] else {
        panic!("one span, not {spans:?}")
    };
    assert_eq!((span.kind, span.index), (SpanKind::Replicate, 1));
}
