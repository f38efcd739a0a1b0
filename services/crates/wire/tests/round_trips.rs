//! Each message is decoded as it was encoded, alone and in a stream. No damaged frame is taken for a message.

use bytes::{BufMut, Bytes, BytesMut};
use proptest::collection::vec;
use proptest::prelude::*;
use quorate_types::limits::FRAME_BYTES_MAX;
use quorate_types::{GroupId, Versions};
use quorate_wire::client::{
    self, Append, Attached, Entries, EntriesBatch, HelloOk, Notice, Refused, StatusOk,
};
use quorate_wire::cursor::{POSITION_MAX, check_entries, entries, payload_of};
use quorate_wire::peer::{
    self, ChainAck, ChainNotice, Envelope, Handshake, Progress, Replicate, SyncReply, SyncRequest,
};
use quorate_wire::{Batch, BatchHeader, Frame, TraceContext, WireError, decode_frame, encode_frame};
use uuid::Uuid;

fn group() -> impl Strategy<Value = GroupId> {
    any::<u128>().prop_map(|id| GroupId(Uuid::from_u128(id)))
}

fn bytes(max: usize) -> impl Strategy<Value = Bytes> {
    vec(any::<u8>(), 0..max).prop_map(Bytes::from)
}

fn trace() -> impl Strategy<Value = Option<TraceContext>> {
    let some = (any::<[u8; 16]>(), any::<[u8; 8]>(), any::<u8>());
    proptest::option::of(some.prop_map(|(trace_id, span_id, flags)| TraceContext {
        trace_id,
        span_id,
        flags,
    }))
}

fn position() -> impl Strategy<Value = u64> {
    prop_oneof![0..10u64, 0..POSITION_MAX]
}

fn versions() -> impl Strategy<Value = Versions> {
    (any::<u16>(), any::<u16>()).prop_map(|(a, b)| Versions::between(a.min(b), a.max(b)))
}

fn hello() -> impl Strategy<Value = client::Message> {
    prop_oneof![
        (versions(), "[a-zé/0-9]{0,32}")
            .prop_map(|(versions, client)| client::Message::Hello { versions, client }),
        (any::<u16>(), any::<[u32; 5]>()).prop_map(|(version, n)| client::Message::HelloOk(HelloOk {
            version,
            server_id: n[0],
            frame_bytes_max: n[1],
            entry_bytes_max: n[2],
            batch_bytes_max: n[3],
            batch_entries_max: n[4],
        })),
        (group(), any::<u64>(), ".{0,300}").prop_map(|(group_id, session, token)| client::Message::Attach {
            group_id,
            session,
            token
        }),
        (any::<[u8; 3]>(), any::<u32>(), any::<[u64; 6]>(), ".{0,60}").prop_map(
            |(b, window_batches, n, head)| {
                client::Message::Attached(Attached {
                    epoch: n[0],
                    role: b[0],
                    durability: b[1],
                    state: b[2],
                    window_batches,
                    last_index: n[1],
                    next_seq: n[2],
                    commit_offset: n[3],
                    trim_offset: n[4],
                    rate_per_s: n[5],
                    head_address: head,
                })
            }
        ),
    ]
}

fn append() -> impl Strategy<Value = client::Message> {
    prop_oneof![
        (any::<[u64; 4]>(), any::<[u32; 3]>(), bytes(500)).prop_map(|(n, m, payload)| {
            client::Message::Append(Append {
                seq: n[0],
                floor_index: n[1],
                timeout_ms: m[0],
                entry_count: m[1],
                payload_crc: m[2],
                expected_offset: n[2],
                fencing_token: n[3],
                payload,
            })
        }),
        vec(any::<(u64, u64)>(), 0..40).prop_map(client::Message::Acked),
        (
            any::<[u8; 3]>(),
            any::<u16>(),
            any::<u32>(),
            any::<u64>(),
            ".{0,60}",
            ".{0,200}"
        )
            .prop_map(|(b, code, retry_after_ms, id, head_address, message)| {
                client::Message::Refused(Refused {
                    op: b[0],
                    outcome: b[1],
                    retry: b[2],
                    code,
                    retry_after_ms,
                    id,
                    head_address,
                    message,
                })
            }),
    ]
}

fn reading() -> impl Strategy<Value = client::Message> {
    let batch = (any::<[u64; 2]>(), any::<[u32; 2]>(), bytes(200)).prop_map(|(n, m, payload)| EntriesBatch {
        base_offset: n[0],
        timestamp_us: n[1],
        entry_count: m[0],
        payload_crc: m[1],
        payload,
    });
    prop_oneof![
        (any::<[u32; 4]>(), any::<u64>()).prop_map(|(n, offset)| client::Message::Read {
            request: n[0],
            max_bytes: n[1],
            max_entries: n[2],
            wait_ms: n[3],
            offset,
        }),
        (any::<u32>(), any::<[u64; 3]>(), vec(batch, 0..5)).prop_map(|(request, n, batches)| {
            let (next_offset, commit_offset, trim_offset) = (n[0], n[1], n[2]);
            client::Message::Entries(Entries {
                request,
                next_offset,
                commit_offset,
                trim_offset,
                batches,
            })
        }),
        any::<(u32, u32, u64)>().prop_map(|(request, credit_bytes, offset)| client::Message::Subscribe {
            request,
            credit_bytes,
            offset
        }),
        any::<(u32, u32)>().prop_map(|(request, bytes)| client::Message::Credit { request, bytes }),
        any::<u32>().prop_map(|request| client::Message::Cancel { request }),
    ]
}

fn control() -> impl Strategy<Value = client::Message> {
    prop_oneof![
        any::<u32>().prop_map(|request| client::Message::Status { request }),
        (any::<u32>(), any::<[u8; 2]>(), any::<[u64; 5]>(), ".{0,60}").prop_map(
            |(request, b, n, head_address)| {
                client::Message::StatusOk(StatusOk {
                    request,
                    role: b[0],
                    state: b[1],
                    epoch: n[0],
                    commit_offset: n[1],
                    durable_offset: n[2],
                    trim_offset: n[3],
                    next_offset: n[4],
                    head_address,
                })
            }
        ),
        any::<u64>().prop_map(|nonce| client::Message::Ping { nonce }),
        any::<u64>().prop_map(|nonce| client::Message::Pong { nonce }),
        (any::<u16>(), ".{0,200}").prop_map(|(code, message)| client::Message::Goodbye { code, message }),
        Just(client::Message::Detach),
        any::<(u32, u64)>().prop_map(|(request, before_offset)| client::Message::Trim {
            request,
            before_offset
        }),
        any::<(u32, u64)>()
            .prop_map(|(request, trim_offset)| client::Message::TrimOk { request, trim_offset }),
        (any::<[u64; 2]>(), any::<[u8; 2]>(), ".{0,60}").prop_map(|(n, b, head_address)| {
            let (epoch, rate_per_s, role, state) = (n[0], n[1], b[0], b[1]);
            client::Message::Notice(Notice {
                epoch,
                role,
                state,
                rate_per_s,
                head_address,
            })
        }),
    ]
}

fn any_client() -> impl Strategy<Value = client::Message> {
    prop_oneof![hello(), append(), reading(), control()]
}

fn batch() -> impl Strategy<Value = Batch> {
    let words = (any::<[u64; 4]>(), [position(), position(), position()]);
    (group(), words, vec(bytes(60), 0..5), trace()).prop_map(|(group_id, (n, p), made, trace)| {
        let payload = payload_of(made.iter().map(|entry| &entry[..]));
        let header = BatchHeader {
            group_id,
            epoch: n[0],
            index: p[0].max(1),
            base_offset: p[1],
            cumulative_bytes: p[2].max(payload.len() as u64),
            session: n[1].max(1),
            seq: n[2].max(1),
            timestamp_us: n[3],
            fencing_token: n[0],
            entry_count: made.len() as u32,
            payload_len: payload.len() as u32,
            payload_crc: crc32fast::hash(&payload),
        };
        Batch {
            header,
            payload,
            trace,
        }
    })
}

fn any_peer() -> impl Strategy<Value = Envelope> {
    let history = vec((any::<u64>(), 1..POSITION_MAX), 0..20);
    let message = prop_oneof![
        ([position(), position()], any::<bool>(), batch()).prop_map(|(n, storage_fault, batch)| {
            let (commit_index, last_index) = (n[0], n[1]);
            peer::Message::Replicate(Replicate {
                commit_index,
                last_index,
                storage_fault,
                batch,
            })
        }),
        (position(), any::<bool>(), position(), any::<u64>()).prop_map(
            |(acknowledged_index, storage_fault, trim_index, ring_pass)| {
                peer::Message::ChainAck(ChainAck {
                    acknowledged_index,
                    storage_fault,
                    trim_index,
                    ring_pass,
                })
            }
        ),
        ([position(), position(), position()], any::<bool>(), any::<u64>()).prop_map(
            |(n, storage_fault, ring_pass)| {
                peer::Message::ChainNotice(ChainNotice {
                    commit_index: n[0],
                    storage_fault,
                    trim_index: n[1],
                    trim_asked: n[2],
                    ring_pass,
                })
            }
        ),
        (any::<u32>(), position(), position(), history).prop_map(
            |(nonce, last_index, commit_index, history)| {
                peer::Message::SyncRequest(SyncRequest {
                    nonce,
                    last_index,
                    commit_index,
                    history,
                })
            }
        ),
        (
            any::<u32>(),
            [position(), position(), position()],
            proptest::option::of(bytes(100))
        )
            .prop_map(|(nonce, n, base)| peer::Message::SyncReply(SyncReply {
                nonce,
                common_index: n[0],
                last_index: n[1],
                commit_index: n[2],
                base,
            })),
        (position(), any::<bool>(), any::<u64>(), position()).prop_map(
            |(index, is_caught_up, ring_pass, trim_index)| {
                peer::Message::Progress(Progress {
                    index,
                    is_caught_up,
                    ring_pass,
                    trim_index,
                })
            }
        ),
        position().prop_map(|index| peer::Message::Fetch { index }),
        (position(), proptest::option::of(batch())).prop_map(|(index, batch)| {
            // A repair belongs to no request, so it carries no trace.
            let batch = batch.map(|batch| Batch { trace: None, ..batch });
            peer::Message::Fetched { index, batch }
        }),
    ];
    (group(), any::<u64>(), message).prop_map(|(group_id, epoch, message)| Envelope {
        group_id,
        epoch,
        message,
    })
}

fn only_frame(bytes: &[u8]) -> Frame {
    let mut stream = BytesMut::from(bytes);
    let frame = decode_frame(&mut stream, FRAME_BYTES_MAX)
        .expect("sound")
        .expect("whole");
    assert!(stream.is_empty());
    frame
}

fn understood(frame: &Frame) -> bool {
    client::Message::decode(frame).is_ok()
        || Envelope::decode(frame).is_ok()
        || Handshake::decode(frame).is_ok()
}

proptest! {
    #[test]
    fn client_messages(message in any_client(), channel: u32, trace in trace()) {
        let frame = only_frame(&message.to_bytes(channel, trace.as_ref()));
        prop_assert_eq!((frame.kind, frame.channel, frame.trace), (message.kind(), channel, trace));
        prop_assert_eq!(client::Message::decode(&frame), Ok(message));
    }

    #[test]
    fn peer_messages(envelope in any_peer()) {
        let bytes = envelope.to_bytes();
        let mut given_away = BytesMut::new();
        if let Some(payload) = envelope.clone().into_frame(&mut given_away) {
            given_away.extend_from_slice(&payload);
        }
        prop_assert_eq!(&bytes[..], &given_away[..]);
        prop_assert_eq!(Envelope::decode(&only_frame(&bytes)), Ok(envelope));
    }

    #[test]
    fn acks_without_a_message(acks in vec(any::<(u64, u64)>(), 0..40), channel: u32) {
        let mut frame = BytesMut::new();
        client::encode_acked(channel, acks.iter().copied(), &mut frame);
        prop_assert_eq!(&client::Message::Acked(acks).to_bytes(channel, None)[..], &frame[..]);
    }

    #[test]
    fn handshakes(versions in versions(), version: u16, server_id: u32, incarnation in "[0-9a-f]{0,32}", token in ".{0,400}") {
        for handshake in [
            Handshake::Hello { versions, server_id, incarnation: incarnation.clone(), token },
            Handshake::HelloOk { server_id, incarnation, version },
        ] {
            prop_assert_eq!(Handshake::decode(&only_frame(&handshake.to_bytes())), Ok(handshake));
        }
    }

    #[test]
    fn batch_headers(batch in batch()) {
        let bytes = batch.header.encode();
        prop_assert_eq!(BatchHeader::decode(&bytes), Ok(batch.header));
        prop_assert_eq!(batch.verify(), Ok(()));
        prop_assert_eq!(batch.to_bytes().len(), 96 + batch.payload.len());
    }

    /// A stream may be cut anywhere: frames come whole, in order, and nothing else does.
    #[test]
    fn a_stream_in_pieces(messages in vec(any_client(), 1..6), pieces in vec(1..40usize, 1..200)) {
        let whole: Vec<u8> = messages.iter().flat_map(|m| m.to_bytes(1, None)).collect();
        let (mut stream, mut at, mut found) = (BytesMut::new(), 0, Vec::new());
        let mut pieces = pieces.into_iter().cycle();
        while at < whole.len() {
            let end = (at + pieces.next().expect("endless")).min(whole.len());
            stream.put_slice(&whole[at..end]);
            at = end;
            while let Some(frame) = decode_frame(&mut stream, FRAME_BYTES_MAX).expect("sound") {
                found.push(client::Message::decode(&frame).expect("sound"));
            }
        }
        prop_assert_eq!(found, messages);
    }

    /// Every prefix of a frame is either incomplete or refused, by clients and peers alike.
    #[test]
    fn truncated(envelope in any_peer(), message in any_client()) {
        for bytes in [envelope.to_bytes(), message.to_bytes(3, None)] {
            for cut in 0..bytes.len() {
                prop_assert_eq!(decode_frame(&mut BytesMut::from(&bytes[..cut]), FRAME_BYTES_MAX), Ok(None));
            }
        }
    }

    /// A flipped bit in the head is always noticed; one in a batch's payload too.
    #[test]
    fn one_bit_flipped(envelope in any_peer(), at: proptest::sample::Index) {
        let mut bytes = envelope.to_bytes().to_vec();
        let bit = at.index(bytes.len() * 8);
        bytes[bit / 8] ^= 1 << (bit % 8);
        if let Ok(Some(frame)) = decode_frame(&mut BytesMut::from(&bytes[..]), FRAME_BYTES_MAX) {
            prop_assert!(Envelope::decode(&frame).is_err(), "bit {} of {:?}", bit, envelope);
        }
    }

    /// No bytes make a decoder panic.
    #[test]
    fn garbage(bytes in vec(any::<u8>(), 0..300)) {
        if let Ok(Some(frame)) = decode_frame(&mut BytesMut::from(&bytes[..]), FRAME_BYTES_MAX) {
            understood(&frame);
        }
        let _ = (BatchHeader::decode(&bytes), check_entries(&bytes));
    }

    /// Garbage behind a sound frame header, of every kind: the decoders see it.
    #[test]
    fn garbage_in_a_sound_frame(kind: u8, head in vec(any::<u8>(), 0..200), payload in bytes(50), has_trace: bool) {
        let trace = TraceContext { trace_id: [1; 16], span_id: [2; 8], flags: 1 };
        let mut out = BytesMut::new();
        let trace = has_trace.then_some(&trace);
        quorate_wire::encode_frame(&mut out, kind, 1, trace, payload.len(), |out| out.put_slice(&head));
        out.put_slice(&payload);
        let frame = only_frame(&out);
        prop_assert_eq!((&frame.head[..], &frame.payload), (&head[..], &payload));
        understood(&frame);
    }

    #[test]
    fn payloads(made in vec(bytes(50), 0..20), cut: proptest::sample::Index) {
        let payload = payload_of(made.iter().map(|entry| &entry[..]));
        let longest = made.iter().map(Bytes::len).max().unwrap_or(0) as u32;
        prop_assert_eq!(check_entries(&payload), Ok((made.len() as u32, longest)));
        prop_assert_eq!(entries(&payload, made.len() as u32), Ok(made.clone()));
        prop_assert!(entries(&payload, made.len() as u32 + 1).is_err());
        if !payload.is_empty() {
            let cut = payload.slice(..cut.index(payload.len()));
            let ends: Vec<usize> = made.iter().scan(0, |at, e| { *at += 4 + e.len(); Some(*at) }).collect();
            prop_assert_eq!(check_entries(&cut).is_ok(), cut.is_empty() || ends.contains(&cut.len()));
        }
    }
}

#[test]
fn a_frame_over_the_limit_is_refused_by_its_header() {
    for (len, max) in [
        (101u32, 100u32),
        (u32::MAX, FRAME_BYTES_MAX),
        (FRAME_BYTES_MAX + 1, FRAME_BYTES_MAX),
    ] {
        let mut header = [0u8; 16];
        header[..4].copy_from_slice(&len.to_le_bytes());
        let refused = decode_frame(&mut BytesMut::from(&header[..]), max);
        assert_eq!(
            refused,
            Err(WireError::TooLarge {
                len: u64::from(len),
                max
            })
        );
    }
}

/// As releases before ranges of versions said hello, and answered it.
#[test]
fn a_peer_without_a_range_of_versions_speaks_one() {
    let frame = |kind: u8, head: &[u8]| {
        let mut out = BytesMut::new();
        encode_frame(&mut out, kind, 0, None, 0, |out| out.put_slice(head));
        only_frame(&out.freeze())
    };
    let hello = frame(peer::kind::HELLO, b"QRT1\x02\0\0\0\x03\0\0\0\x02i1\x01\0t");
    let heard = Handshake::Hello {
        versions: Versions::only(2),
        server_id: 3,
        incarnation: "i1".to_string(),
        token: "t".to_string(),
    };
    assert_eq!(Handshake::decode(&hello), Ok(heard));
    let answer = Handshake::decode(&frame(peer::kind::HELLO_OK, b"\x03\0\0\0\x02i1"));
    let Ok(Handshake::HelloOk { version, .. }) = answer else {
        panic!("{answer:?}");
    };
    assert_eq!(version, 2);
    let backwards = frame(peer::kind::HELLO, b"QRT1\x02\0\x01\0\x03\0\0\0\x02i1\x01\0t");
    assert!(
        Handshake::decode(&backwards).is_err(),
        "a range that ends before it begins"
    );
}

#[test]
fn absurd_positions_are_refused() {
    let (group_id, storage_fault) = (GroupId(Uuid::nil()), false);
    for message in [
        peer::Message::ChainAck(ChainAck {
            acknowledged_index: u64::MAX,
            storage_fault,
            ..ChainAck::default()
        }),
        peer::Message::ChainNotice(ChainNotice {
            trim_asked: POSITION_MAX,
            ..ChainNotice::default()
        }),
        peer::Message::Progress(Progress {
            index: POSITION_MAX,
            is_caught_up: true,
            ..Progress::default()
        }),
        peer::Message::SyncRequest(SyncRequest {
            nonce: 0,
            last_index: 1,
            commit_index: 0,
            history: vec![(1, 0)],
        }),
    ] {
        let frame = only_frame(
            &Envelope {
                group_id,
                epoch: 1,
                message,
            }
            .to_bytes(),
        );
        assert!(matches!(
            Envelope::decode(&frame),
            Err(WireError::Malformed { .. })
        ));
    }
}
