//! The scan of the coordinator's log: no bytes cause a panic. A torn end loses only the torn record, and damage before
//! a good record is reported.

#![cfg_attr(fuzzing, no_main)]

use quorate_fuzz::Input;
use quorate_fuzz::damage::damage;
use quorate_record_file::{HEADER_BYTES, RECORD_HEADER_BYTES, encode, header, scan};

const PAYLOAD_BYTES_MAX: u64 = 1 << 20;

quorate_fuzz::program!(run);

fn run(data: &[u8]) {
    let mut input = Input::new(data);
    match input.byte() % 3 {
        0 => any_bytes(input.rest()),
        1 => cut(input),
        _ => damaged(input),
    }
}

fn any_bytes(bytes: &[u8]) {
    let Ok(scanned) = scan(bytes, PAYLOAD_BYTES_MAX) else {
        return;
    };
    let mut at = HEADER_BYTES;
    for payload in scanned.payloads {
        assert_eq!(payload.start, at + RECORD_HEADER_BYTES, "one behind the other");
        at = payload.end;
    }
    assert_eq!(scanned.end, at);
}

/// A sound file, the positions of its records, and the end of the last.
fn sound(input: &mut Input<'_>) -> (Vec<u8>, Vec<usize>) {
    let mut file = header(b"QRTCLOG\0", 1).to_vec();
    let mut ends = vec![file.len()];
    for _ in 0..input.byte() % 6 {
        let len = usize::from(input.u16() % 900);
        // Text, as the coordinator writes it: nothing in it looks like a record.
        let mut payload: Vec<u8> = input.bytes(len).iter().map(|byte| (*byte).max(b' ')).collect();
        payload.resize(len, b'{');
        file.extend(encode(&payload));
        ends.push(file.len());
    }
    (file, ends)
}

/// A crash leaves a part of the last write.
fn cut(mut input: Input<'_>) {
    let (file, ends) = sound(&mut input);
    let cut = HEADER_BYTES + usize::from(input.u16()) % (file.len() + 1 - HEADER_BYTES);
    let whole = ends.iter().filter(|end| **end <= cut).count() - 1;
    let scanned = scan(&file[..cut], PAYLOAD_BYTES_MAX).expect("a torn end is no damage");
    assert_eq!((scanned.payloads.len(), scanned.end), (whole, ends[whole]));
}

fn damaged(mut input: Input<'_>) {
    let (mut file, ends) = sound(&mut input);
    let before = file.clone();
    damage(&mut file, &[], &mut input);
    file[..HEADER_BYTES].copy_from_slice(&before[..HEADER_BYTES]);
    let is_whole = |at: usize| file[ends[at]..ends[at + 1]] == before[ends[at]..ends[at + 1]];
    let count = ends.len() - 1;
    let first_bad = (0..count).find(|at| !is_whole(*at)).unwrap_or(count);
    let good_behind = (first_bad + 1..count).find(|at| is_whole(*at));
    match scan(&file, PAYLOAD_BYTES_MAX) {
        Ok(scanned) => {
            assert_eq!(good_behind, None, "damage before a good record is reported");
            assert_eq!(
                (scanned.payloads.len(), scanned.end),
                (first_bad, ends[first_bad])
            );
        }
        Err(damaged) => {
            assert_eq!(damaged.offset, ends[first_bad], "where it begins");
            assert_eq!(good_behind.map(|good| ends[good]), Some(damaged.good_at));
        }
    }
}
