//! Frames from a client or a server: decoding never panics and allocates in proportion. A decoded frame encodes to the
//! same bytes again.

#![cfg_attr(fuzzing, no_main)]

use bytes::{BufMut, BytesMut};
use quorate_fuzz::{Input, allocation};
use quorate_types::limits::FRAME_BYTES_MAX;
use quorate_wire::client::Message;
use quorate_wire::cursor::{check_entries, entries};
use quorate_wire::{Frame, decode_frame, encode_frame};

/// Longer texts are truncated by encoding.
const TEXT_BYTES_MAX: usize = 8_192;

quorate_fuzz::program!(run);

fn run(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 2 {
        0 => stream(input.rest()),
        _ => sound_frame(input),
    }
}

/// Bytes as they come from a socket.
fn stream(bytes: &[u8]) {
    let mut stream = BytesMut::from(bytes);
    loop {
        let left = stream.len();
        let decoded = allocation::bounded(left, || decode_frame(&mut stream, FRAME_BYTES_MAX));
        match decoded {
            Ok(Some(frame)) => {
                assert!(stream.len() < left, "a frame takes bytes");
                check(&frame);
            }
            Ok(None) => {
                assert_eq!(stream.len(), left, "a part of a frame stays");
                return;
            }
            Err(_) => return,
        }
    }
}

/// A frame with a right checksum and any content: checksums must not stand between the fuzzer and the fields.
fn sound_frame(mut input: Input<'_>) {
    let (kind, channel) = (input.byte(), u32::from(input.byte()));
    let head_len = usize::from(input.u16()) % 10_000;
    let head = input.bytes(head_len);
    let payload = input.rest();
    let mut bytes = BytesMut::new();
    encode_frame(&mut bytes, kind, channel, None, payload.len(), |out| {
        out.put_slice(head);
    });
    bytes.put_slice(payload);
    let frame = decode_frame(&mut bytes, FRAME_BYTES_MAX).expect("a sound frame");
    let frame = frame.expect("a whole frame");
    assert_eq!((&frame.head[..], &frame.payload[..]), (head, payload));
    check(&frame);
}

fn check(frame: &Frame) {
    let given_bytes = frame.head.len() + frame.payload.len();
    let Ok(message) = allocation::bounded(given_bytes, || Message::decode(frame)) else {
        return;
    };
    if let Message::Append(append) = &message {
        let counted = check_entries(&append.payload);
        let taken = entries(&append.payload, append.entry_count);
        let agrees = counted.is_ok_and(|(count, _)| count == append.entry_count);
        assert_eq!(taken.is_ok(), agrees, "both agree on a payload's shape");
    }
    if frame.head.len() > TEXT_BYTES_MAX {
        return;
    }
    let mut again = BytesMut::from(&message.to_bytes(frame.channel, frame.trace.as_ref())[..]);
    let second = decode_frame(&mut again, u32::MAX).expect("what is encoded is sound");
    let second = second.expect("what is encoded is whole");
    assert_eq!((second.channel, second.trace), (frame.channel, frame.trace));
    assert_eq!(Message::decode(&second), Ok(message));
}
