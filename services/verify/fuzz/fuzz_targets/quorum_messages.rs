//! Messages between coordinators: no bytes cause a panic, or more memory than they have. A decoded message encodes to the
//! same again.

#![cfg_attr(fuzzing, no_main)]

use quorate_quorum::{decode_message, encode_message};

quorate_fuzz::program!(run);

fn run(data: &[u8]) {
    let Ok(message) = decode_message(data) else {
        return;
    };
    let encoded = encode_message(&message);
    assert!(
        encoded.len() <= data.len(),
        "bytes behind a message alone are left out"
    );
    assert_eq!(
        decode_message(&encoded),
        Ok(message),
        "what was said is understood"
    );
}
