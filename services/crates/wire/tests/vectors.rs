//! The golden frames that every SDK shares: encoded and decoded byte for byte, broken ones refused with the code given.

use bytes::{Bytes, BytesMut};
use quorate_types::{Code, GroupId, Versions};
use quorate_wire::client::{
    Append, Attached, Entries, EntriesBatch, HelloOk, Message, NO_EXPECTED_OFFSET, Notice, Refused, StatusOk,
};
use quorate_wire::cursor::{check_entries, entries};
use quorate_wire::{TraceContext, WireError, decode_frame};
use serde_json::Value;

fn vectors() -> Value {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../../sdk/contract/vectors/wire.json"
    );
    serde_json::from_str(&std::fs::read_to_string(path).expect(path)).expect("JSON")
}

fn list<'a>(value: &'a Value, key: &str) -> &'a [Value] {
    value[key].as_array().unwrap_or_else(|| panic!("{key} is a list"))
}

fn text(value: &Value, key: &str) -> String {
    value[key]
        .as_str()
        .unwrap_or_else(|| panic!("{key} is a text"))
        .to_string()
}

/// 64-bit fields are decimal strings.
fn number(value: &Value, key: &str) -> u64 {
    match &value[key] {
        Value::String(text) => text.parse().expect("a number"),
        other => other.as_u64().unwrap_or_else(|| panic!("{key} is a number")),
    }
}

fn narrow<T: TryFrom<u64, Error: std::fmt::Debug>>(value: &Value, key: &str) -> T {
    number(value, key).try_into().expect("in range")
}

fn hex(text: &str) -> Vec<u8> {
    (0..text.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&text[at..at + 2], 16).expect("hex"))
        .collect()
}

fn bytes(value: &Value, key: &str) -> Bytes {
    hex(value[key].as_str().unwrap_or_else(|| panic!("{key} is hex"))).into()
}

fn trace(vector: &Value) -> Option<TraceContext> {
    let trace = vector["trace"].as_object()?;
    let part = |key: &str| hex(trace[key].as_str().expect("hex"));
    Some(TraceContext {
        trace_id: part("trace_id").try_into().expect("16 bytes"),
        span_id: part("span_id").try_into().expect("8 bytes"),
        flags: trace["trace_flags"].as_u64().expect("a number") as u8,
    })
}

fn attaching(kind: &str, f: &Value) -> Option<Message> {
    Some(match kind {
        "HELLO" => Message::Hello {
            versions: Versions::told(narrow(f, "version"), narrow(f, "newest_version")).expect("a range"),
            client: text(f, "client_name"),
        },
        "HELLO_OK" => Message::HelloOk(HelloOk {
            version: narrow(f, "version"),
            server_id: narrow(f, "server_id"),
            frame_bytes_max: narrow(f, "max_frame_bytes"),
            entry_bytes_max: narrow(f, "max_entry_bytes"),
            batch_bytes_max: narrow(f, "max_batch_bytes"),
            batch_entries_max: narrow(f, "max_batch_entries"),
        }),
        "ATTACH" => Message::Attach {
            group_id: GroupId(text(f, "group").parse().expect("a UUID")),
            session: number(f, "session"),
            token: text(f, "token"),
        },
        "ATTACHED" => Message::Attached(Attached {
            epoch: number(f, "epoch"),
            role: narrow(f, "role"),
            durability: narrow(f, "durability"),
            state: narrow(f, "state"),
            window_batches: narrow(f, "window_batches"),
            last_index: number(f, "last_index"),
            next_seq: number(f, "next_seq"),
            commit_offset: number(f, "commit_offset"),
            trim_offset: number(f, "trim_offset"),
            rate_per_s: number(f, "rate_per_s"),
            head_address: text(f, "head"),
        }),
        "NOTICE" => Message::Notice(Notice {
            epoch: number(f, "epoch"),
            role: narrow(f, "role"),
            state: narrow(f, "state"),
            rate_per_s: number(f, "rate_per_s"),
            head_address: text(f, "head"),
        }),
        "DETACH" => Message::Detach,
        "TRIM" => Message::Trim {
            request: narrow(f, "request"),
            before_offset: number(f, "before_offset"),
        },
        "TRIM_OK" => Message::TrimOk {
            request: narrow(f, "request"),
            trim_offset: number(f, "trim_offset"),
        },
        _ => return None,
    })
}

fn appending(kind: &str, f: &Value, payload: Bytes) -> Option<Message> {
    Some(match kind {
        "APPEND" => Message::Append(Append {
            seq: number(f, "seq"),
            floor_index: number(f, "floor_index"),
            timeout_ms: narrow(f, "timeout_ms"),
            entry_count: narrow(f, "entry_count"),
            payload_crc: narrow(f, "payload_crc"),
            expected_offset: number(f, "expected_offset"),
            fencing_token: number(f, "fencing_token"),
            payload,
        }),
        "ACKED" => {
            let ack = |a: &Value| (number(a, "seq"), number(a, "base_offset"));
            Message::Acked(list(f, "acks").iter().map(ack).collect())
        }
        "REFUSED" => Message::Refused(Refused {
            op: narrow(f, "op"),
            outcome: narrow(f, "outcome"),
            retry: narrow(f, "retry"),
            code: narrow(f, "code"),
            retry_after_ms: narrow(f, "retry_after_ms"),
            id: number(f, "id"),
            head_address: text(f, "head"),
            message: text(f, "message"),
        }),
        _ => return None,
    })
}

fn reading(kind: &str, f: &Value, mut payload: Bytes) -> Option<Message> {
    let request = || narrow(f, "request");
    Some(match kind {
        "READ" => Message::Read {
            request: request(),
            max_bytes: narrow(f, "max_bytes"),
            max_entries: narrow(f, "max_entries"),
            wait_ms: narrow(f, "wait_ms"),
            offset: number(f, "offset"),
        },
        "ENTRIES" => {
            let batch = |b: &Value| EntriesBatch {
                base_offset: number(b, "base_offset"),
                timestamp_us: number(b, "timestamp_us"),
                entry_count: narrow(b, "entry_count"),
                payload_crc: narrow(b, "payload_crc"),
                payload: payload.split_to(number(b, "payload_len") as usize),
            };
            Message::Entries(Entries {
                request: request(),
                next_offset: number(f, "next_offset"),
                commit_offset: number(f, "commit_offset"),
                trim_offset: number(f, "trim_offset"),
                batches: list(f, "batches").iter().map(batch).collect(),
            })
        }
        "SUBSCRIBE" => {
            let (credit_bytes, offset) = (narrow(f, "credit_bytes"), number(f, "offset"));
            Message::Subscribe {
                request: request(),
                credit_bytes,
                offset,
            }
        }
        "CREDIT" => Message::Credit {
            request: request(),
            bytes: narrow(f, "bytes"),
        },
        "CANCEL" => Message::Cancel { request: request() },
        _ => return None,
    })
}

fn control(kind: &str, f: &Value) -> Message {
    match kind {
        "STATUS" => Message::Status {
            request: narrow(f, "request"),
        },
        "STATUS_OK" => Message::StatusOk(StatusOk {
            request: narrow(f, "request"),
            role: narrow(f, "role"),
            state: narrow(f, "state"),
            epoch: number(f, "epoch"),
            commit_offset: number(f, "commit_offset"),
            durable_offset: number(f, "durable_offset"),
            trim_offset: number(f, "trim_offset"),
            next_offset: number(f, "next_offset"),
            head_address: text(f, "head"),
        }),
        "PING" => Message::Ping {
            nonce: number(f, "nonce"),
        },
        "PONG" => Message::Pong {
            nonce: number(f, "nonce"),
        },
        "GOODBYE" => Message::Goodbye {
            code: narrow(f, "code"),
            message: text(f, "message"),
        },
        other => panic!("a kind of frame without a test: {other}"),
    }
}

fn message(vector: &Value) -> Message {
    let (kind, fields) = (text(vector, "kind_name"), &vector["fields"]);
    let payload = if vector["payload_hex"].is_null() {
        Bytes::new()
    } else {
        bytes(vector, "payload_hex")
    };
    attaching(&kind, fields)
        .or_else(|| appending(&kind, fields, payload.clone()))
        .or_else(|| reading(&kind, fields, payload))
        .unwrap_or_else(|| control(&kind, fields))
}

/// The entries of each batch in the message, as the vector lists them.
fn check_listed_entries(name: &str, vector: &Value, message: &Message) {
    let batches: Vec<(Bytes, u32, u32)> = match message {
        Message::Append(a) => vec![(a.payload.clone(), a.entry_count, a.payload_crc)],
        Message::Entries(e) => e
            .batches
            .iter()
            .map(|b| (b.payload.clone(), b.entry_count, b.payload_crc))
            .collect(),
        _ => return,
    };
    let listed = list(vector, "entries_hex");
    assert_eq!(listed.len(), batches.len(), "{name}");
    for ((payload, count, crc), listed) in batches.into_iter().zip(listed) {
        let listed: Vec<Bytes> = listed
            .as_array()
            .expect("a list")
            .iter()
            .map(|e| hex(e.as_str().expect("hex")).into())
            .collect();
        assert_eq!(entries(&payload, count).expect(name), listed, "{name}");
        assert_eq!(crc32fast::hash(&payload), crc, "{name}");
    }
}

#[test]
fn golden_frames() {
    let vectors = vectors();
    let max = narrow(&vectors, "max_frame_bytes");
    assert_eq!(max, quorate_types::limits::FRAME_BYTES_MAX);
    for vector in list(&vectors, "frames") {
        let (name, encoded) = (text(vector, "name"), bytes(vector, "frame_hex"));
        let (message, channel) = (message(vector), narrow(vector, "channel"));
        assert_eq!(
            message.to_bytes(channel, trace(vector).as_ref()),
            encoded,
            "{name}"
        );
        let mut stream = BytesMut::from(&encoded[..]);
        let frame = decode_frame(&mut stream, max).expect(&name).expect(&name);
        assert!(stream.is_empty(), "{name}");
        assert_eq!(
            (u64::from(frame.kind), frame.trace),
            (number(vector, "kind"), trace(vector)),
            "{name}"
        );
        assert_eq!(Message::decode(&frame).expect(&name), message, "{name}");
        check_listed_entries(&name, vector, &message);
    }
    assert!(list(&vectors, "frames").len() >= 40);
    assert!(
        list(&vectors, "frames")
            .iter()
            .any(|v| number_or(&v["fields"]["expected_offset"]) == NO_EXPECTED_OFFSET)
    );
}

fn number_or(value: &Value) -> u64 {
    value.as_str().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[test]
fn frames_of_later_versions() {
    for vector in list(&vectors(), "decode_only") {
        let name = text(vector, "name");
        let mut stream = BytesMut::from(&bytes(vector, "frame_hex")[..]);
        let frame = decode_frame(&mut stream, u32::MAX).expect(&name).expect(&name);
        assert_eq!(frame.trace, trace(vector), "{name}");
        assert_eq!(Message::decode(&frame).expect(&name), message(vector), "{name}");
    }
}

/// A receiver's answer: of the frame and message layers here, then of the shell's checks of payloads.
fn refused_with(bytes: &[u8], max: u32) -> Option<Code> {
    let mut stream = BytesMut::from(bytes);
    let frame = match decode_frame(&mut stream, max) {
        Ok(frame) => frame.expect("broken frames are whole, or refused by their header"),
        Err(error) => return Some(error.code()),
    };
    let batches = match Message::decode(&frame) {
        Err(error) => return Some(error.code()),
        Ok(Message::Append(a)) => vec![(a.payload, a.entry_count, a.payload_crc)],
        Ok(Message::Entries(e)) => e
            .batches
            .into_iter()
            .map(|b| (b.payload, b.entry_count, b.payload_crc))
            .collect(),
        Ok(_) => Vec::new(),
    };
    for (payload, count, crc) in batches {
        if crc32fast::hash(&payload) != crc {
            return Some(WireError::Checksum { part: "payload" }.code());
        }
        match check_entries(&payload) {
            Ok((found, _)) if found == count && count > 0 => {}
            _ => return Some(Code::BatchMalformed),
        }
    }
    None
}

#[test]
fn broken_frames() {
    let vectors = vectors();
    let max = narrow(&vectors, "max_frame_bytes");
    for vector in list(&vectors, "invalid") {
        let code = Code::from_u16(narrow(vector, "error_code")).expect("a known code");
        assert_eq!(
            refused_with(&bytes(vector, "frame_hex"), max),
            Some(code),
            "{}",
            text(vector, "name")
        );
    }
    for vector in list(&vectors, "frames") {
        assert_eq!(
            refused_with(&bytes(vector, "frame_hex"), max),
            None,
            "{}",
            text(vector, "name")
        );
    }
}
