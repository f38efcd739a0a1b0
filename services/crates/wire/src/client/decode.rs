//! Reading messages: bytes that anybody may have sent, so every field is checked before it is believed.

use bytes::Bytes;
use quorate_types::GroupId;
use uuid::Uuid;

use super::{
    Append, Attached, CLIENT_NAME_BYTES_MAX, Entries, EntriesBatch, HelloOk, MAGIC, Message, Notice, Refused,
    StatusOk, kind,
};
use crate::WireError;
use crate::cursor::Reader;
use crate::frame::Frame;

impl Message {
    pub fn decode(frame: &Frame) -> Result<Message, WireError> {
        if !matches!(frame.kind, kind::APPEND | kind::ENTRIES) {
            frame.expect_no_payload("frame without payload")?;
        }
        let head = &frame.head[..];
        match frame.kind {
            kind::HELLO => decode_hello(head),
            kind::HELLO_OK => decode_hello_ok(head),
            kind::ATTACH => decode_attach(head),
            kind::ATTACHED => decode_attached(head),
            kind::APPEND => decode_append(head, &frame.payload),
            kind::ACKED => decode_acked(head),
            kind::REFUSED => decode_refused(head),
            kind::READ => decode_read(head),
            kind::ENTRIES => decode_entries(head, &frame.payload),
            kind::SUBSCRIBE | kind::CREDIT | kind::CANCEL | kind::STATUS => decode_request(frame.kind, head),
            kind::STATUS_OK => decode_status_ok(head),
            kind::PING => Ok(Message::Ping {
                nonce: Reader::new(head, "PING").u64()?,
            }),
            kind::PONG => Ok(Message::Pong {
                nonce: Reader::new(head, "PONG").u64()?,
            }),
            kind::GOODBYE => {
                let mut r = Reader::new(head, "GOODBYE");
                Ok(Message::Goodbye {
                    code: r.u16()?,
                    message: r.str16()?,
                })
            }
            kind::DETACH => Ok(Message::Detach),
            kind::NOTICE => decode_notice(head),
            kind::TRIM => {
                let mut r = Reader::new(head, "TRIM");
                Ok(Message::Trim {
                    request: r.u32()?,
                    before_offset: r.u64()?,
                })
            }
            kind::TRIM_OK => {
                let mut r = Reader::new(head, "TRIM_OK");
                Ok(Message::TrimOk {
                    request: r.u32()?,
                    trim_offset: r.u64()?,
                })
            }
            unknown => Err(WireError::UnknownKind { kind: unknown }),
        }
    }
}

fn decode_hello(head: &[u8]) -> Result<Message, WireError> {
    let mut r = Reader::new(head, "HELLO");
    if r.bytes(4)? != MAGIC {
        return Err(WireError::Malformed {
            what: "magic of HELLO",
        });
    }
    let versions = r.versions()?;
    let client = r.str8()?;
    if client.len() > CLIENT_NAME_BYTES_MAX {
        return Err(WireError::Malformed {
            what: "client name of HELLO",
        });
    }
    Ok(Message::Hello { versions, client })
}

fn decode_hello_ok(head: &[u8]) -> Result<Message, WireError> {
    let mut r = Reader::new(head, "HELLO_OK");
    let version = r.u16()?;
    r.u16()?;
    Ok(Message::HelloOk(HelloOk {
        version,
        server_id: r.u32()?,
        frame_bytes_max: r.u32()?,
        entry_bytes_max: r.u32()?,
        batch_bytes_max: r.u32()?,
        batch_entries_max: r.u32()?,
    }))
}

fn decode_attach(head: &[u8]) -> Result<Message, WireError> {
    let mut r = Reader::new(head, "ATTACH");
    let group_id = GroupId(Uuid::from_bytes(r.id16()?));
    Ok(Message::Attach {
        group_id,
        session: r.u64()?,
        token: r.str16()?,
    })
}

fn decode_attached(head: &[u8]) -> Result<Message, WireError> {
    let mut r = Reader::new(head, "ATTACHED");
    let epoch = r.u64()?;
    let (role, durability, state) = (r.u8()?, r.u8()?, r.u8()?);
    r.u8()?;
    Ok(Message::Attached(Attached {
        epoch,
        role,
        durability,
        state,
        window_batches: r.u32()?,
        last_index: r.u64()?,
        next_seq: r.u64()?,
        commit_offset: r.u64()?,
        trim_offset: r.u64()?,
        rate_per_s: r.u64()?,
        head_address: r.str8()?,
    }))
}

fn decode_append(head: &[u8], payload: &Bytes) -> Result<Message, WireError> {
    let mut r = Reader::new(head, "APPEND");
    let (seq, floor_index) = (r.u64()?, r.u64()?);
    let (timeout_ms, entry_count, payload_len, payload_crc) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?);
    let (expected_offset, fencing_token) = (r.u64()?, r.u64()?);
    if payload_len as usize != payload.len() {
        return Err(WireError::Malformed {
            what: "payload length of APPEND",
        });
    }
    let payload = payload.clone();
    Ok(Message::Append(Append {
        seq,
        floor_index,
        timeout_ms,
        entry_count,
        payload_crc,
        expected_offset,
        fencing_token,
        payload,
    }))
}

fn decode_acked(head: &[u8]) -> Result<Message, WireError> {
    let mut r = Reader::new(head, "ACKED");
    let count = r.count(16)?;
    let acks = (0..count)
        .map(|_| Ok((r.u64()?, r.u64()?)))
        .collect::<Result<_, WireError>>()?;
    Ok(Message::Acked(acks))
}

fn decode_refused(head: &[u8]) -> Result<Message, WireError> {
    let mut r = Reader::new(head, "REFUSED");
    let (op, outcome, retry) = (r.u8()?, r.u8()?, r.u8()?);
    r.u8()?;
    let code = r.u16()?;
    r.u16()?;
    Ok(Message::Refused(Refused {
        op,
        outcome,
        retry,
        code,
        retry_after_ms: r.u32()?,
        id: r.u64()?,
        head_address: r.str8()?,
        message: r.str16()?,
    }))
}

fn decode_read(head: &[u8]) -> Result<Message, WireError> {
    let mut r = Reader::new(head, "READ");
    let (request, max_bytes, max_entries, wait_ms) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?);
    Ok(Message::Read {
        request,
        max_bytes,
        max_entries,
        wait_ms,
        offset: r.u64()?,
    })
}

fn decode_entries(head: &[u8], payload: &Bytes) -> Result<Message, WireError> {
    let mut r = Reader::new(head, "ENTRIES");
    let request = r.u32()?;
    let batch_count = r.u32()?;
    let (next_offset, commit_offset, trim_offset) = (r.u64()?, r.u64()?, r.u64()?);
    let mut at = 0usize;
    let mut batches = Vec::new();
    for _ in 0..batch_count {
        let (base_offset, timestamp_us) = (r.u64()?, r.u64()?);
        let (entry_count, payload_len, payload_crc) = (r.u32()?, r.u32()?, r.u32()?);
        let end = at + payload_len as usize;
        if end > payload.len() {
            return Err(WireError::Malformed {
                what: "payload length of ENTRIES",
            });
        }
        let payload = payload.slice(at..end);
        batches.push(EntriesBatch {
            base_offset,
            timestamp_us,
            entry_count,
            payload_crc,
            payload,
        });
        at = end;
    }
    if at != payload.len() {
        return Err(WireError::Malformed {
            what: "payload length of ENTRIES",
        });
    }
    Ok(Message::Entries(Entries {
        request,
        next_offset,
        commit_offset,
        trim_offset,
        batches,
    }))
}

fn decode_request(kind: u8, head: &[u8]) -> Result<Message, WireError> {
    let mut r = Reader::new(head, "request");
    let request = r.u32()?;
    Ok(match kind {
        kind::SUBSCRIBE => Message::Subscribe {
            request,
            credit_bytes: r.u32()?,
            offset: r.u64()?,
        },
        kind::CREDIT => Message::Credit {
            request,
            bytes: r.u32()?,
        },
        kind::CANCEL => Message::Cancel { request },
        _ => Message::Status { request },
    })
}

fn decode_status_ok(head: &[u8]) -> Result<Message, WireError> {
    let mut r = Reader::new(head, "STATUS_OK");
    let request = r.u32()?;
    let (role, state) = (r.u8()?, r.u8()?);
    r.u16()?;
    Ok(Message::StatusOk(StatusOk {
        request,
        role,
        state,
        epoch: r.u64()?,
        commit_offset: r.u64()?,
        durable_offset: r.u64()?,
        trim_offset: r.u64()?,
        next_offset: r.u64()?,
        head_address: r.str8()?,
    }))
}

fn decode_notice(head: &[u8]) -> Result<Message, WireError> {
    let mut r = Reader::new(head, "NOTICE");
    let epoch = r.u64()?;
    let (role, state) = (r.u8()?, r.u8()?);
    r.u16()?;
    Ok(Message::Notice(Notice {
        epoch,
        role,
        state,
        rate_per_s: r.u64()?,
        head_address: r.str8()?,
    }))
}
