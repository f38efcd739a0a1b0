//! Control messages between servers and the coordinator, JSON in `u32` frames: no bytes cause a panic. A decoded
//! message encodes to the same again.

#![cfg_attr(fuzzing, no_main)]

use bytes::BytesMut;
use quorate_fuzz::Input;
use quorate_types::control::{ToCoordinator, ToServer};
use quorate_types::limits::CONTROL_MESSAGE_BYTES_MAX;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio_util::codec::{Decoder, Encoder, LengthDelimitedCodec};

quorate_fuzz::program!(run);

fn run(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 2 {
        0 => stream(input.rest()),
        _ => message(input.rest()),
    }
}

fn codec() -> LengthDelimitedCodec {
    LengthDelimitedCodec::builder()
        .max_frame_length(CONTROL_MESSAGE_BYTES_MAX)
        .new_codec()
}

fn stream(bytes: &[u8]) {
    let mut codec = codec();
    let mut stream = BytesMut::from(bytes);
    while let Ok(Some(frame)) = codec.decode(&mut stream) {
        message(&frame);
    }
    assert!(
        stream.capacity() <= bytes.len() + CONTROL_MESSAGE_BYTES_MAX + 64,
        "no more than a message"
    );
}

fn message(bytes: &[u8]) {
    says_the_same::<ToCoordinator>(bytes);
    says_the_same::<ToServer>(bytes);
}

fn says_the_same<T: DeserializeOwned + Serialize>(bytes: &[u8]) {
    let Ok(message) = serde_json::from_slice::<T>(bytes) else {
        return;
    };
    let json = serde_json::to_vec(&message).expect("a message is plain data");
    let mut framed = BytesMut::new();
    codec()
        .encode(bytes::Bytes::from(json.clone()), &mut framed)
        .expect("it fits");
    let frame = codec().decode(&mut framed).expect("sound").expect("whole");
    let again: T = serde_json::from_slice(&frame).expect("what was said is understood");
    let said_again = serde_json::to_vec(&again).expect("plain data");
    assert_eq!(
        String::from_utf8_lossy(&said_again),
        String::from_utf8_lossy(&json)
    );
}
