//! Messages between client and server (`sdk/contract/wire.md`).

use bytes::{BufMut, Bytes, BytesMut};
use quorate_types::{Code, Epoch, GroupId, Index, Offset};
use uuid::Uuid;

use crate::WireError;
use crate::cursor::{Reader, put_str8, put_str16};
use crate::frame::{Frame, TraceContext, encode_frame};

pub const MAGIC: [u8; 4] = *b"QRT1";
pub const VERSION: u16 = 1;
pub const CLIENT_NAME_BYTES_MAX: usize = 64;
/// `expected_offset` of an append without that condition.
pub const NO_EXPECTED_OFFSET: Offset = u64::MAX;

pub mod kind {
    pub const HELLO: u8 = 1;
    pub const HELLO_OK: u8 = 2;
    pub const ATTACH: u8 = 3;
    pub const ATTACHED: u8 = 4;
    pub const APPEND: u8 = 5;
    pub const ACKED: u8 = 6;
    pub const REFUSED: u8 = 7;
    pub const READ: u8 = 8;
    pub const ENTRIES: u8 = 9;
    pub const SUBSCRIBE: u8 = 10;
    pub const CREDIT: u8 = 11;
    pub const CANCEL: u8 = 12;
    pub const STATUS: u8 = 13;
    pub const STATUS_OK: u8 = 14;
    pub const PING: u8 = 15;
    pub const PONG: u8 = 16;
    pub const GOODBYE: u8 = 17;
    pub const DETACH: u8 = 18;
    pub const NOTICE: u8 = 19;
    pub const TRIM: u8 = 20;
    pub const TRIM_OK: u8 = 21;
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Message {
    Hello {
        version: u16,
        client: String,
    },
    HelloOk(HelloOk),
    Attach {
        group_id: GroupId,
        session: u64,
        token: String,
    },
    Attached(Attached),
    Append(Append),
    /// (seq, base_offset) of each batch.
    Acked(Vec<(u64, Offset)>),
    Refused(Refused),
    Read {
        request: u32,
        max_bytes: u32,
        max_entries: u32,
        wait_ms: u32,
        offset: Offset,
    },
    Entries(Entries),
    Subscribe {
        request: u32,
        credit_bytes: u32,
        offset: Offset,
    },
    Credit {
        request: u32,
        bytes: u32,
    },
    Cancel {
        request: u32,
    },
    Status {
        request: u32,
    },
    StatusOk(StatusOk),
    Ping {
        nonce: u64,
    },
    Pong {
        nonce: u64,
    },
    Goodbye {
        code: u16,
        message: String,
    },
    Detach,
    Notice(Notice),
    /// Discard all whole batches that end at or before the offset.
    Trim {
        request: u32,
        before_offset: Offset,
    },
    /// Every replica has: entries before `trim_offset` are gone.
    TrimOk {
        request: u32,
        trim_offset: Offset,
    },
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HelloOk {
    pub version: u16,
    pub server_id: u32,
    pub frame_bytes_max: u32,
    pub entry_bytes_max: u32,
    pub batch_bytes_max: u32,
    pub batch_entries_max: u32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attached {
    pub epoch: Epoch,
    pub role: u8,
    pub durability: u8,
    pub state: u8,
    pub window_batches: u32,
    pub last_index: Index,
    pub next_seq: u64,
    pub commit_offset: Offset,
    pub trim_offset: Offset,
    pub rate_per_s: u64,
    pub head_address: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Append {
    pub seq: u64,
    pub floor_index: Index,
    pub timeout_ms: u32,
    pub entry_count: u32,
    pub payload_crc: u32,
    pub expected_offset: Offset,
    pub fencing_token: u64,
    pub payload: Bytes,
}

/// Whether an append happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Outcome {
    Refused = 1,
    Unknown = 2,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The kind of the message that was refused.
    pub op: u8,
    pub outcome: u8,
    /// 0 never, 1 here after `retry_after_ms`, 2 at the head named, 3 with a fresh handle.
    pub retry: u8,
    pub code: u16,
    pub retry_after_ms: u32,
    /// seq of an append, request of a read.
    pub id: u64,
    pub head_address: String,
    pub message: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntriesBatch {
    pub base_offset: Offset,
    pub timestamp_us: u64,
    pub entry_count: u32,
    pub payload_crc: u32,
    pub payload: Bytes,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entries {
    pub request: u32,
    pub next_offset: Offset,
    pub commit_offset: Offset,
    pub trim_offset: Offset,
    pub batches: Vec<EntriesBatch>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StatusOk {
    pub request: u32,
    pub role: u8,
    pub state: u8,
    pub epoch: Epoch,
    pub commit_offset: Offset,
    pub durable_offset: Offset,
    pub trim_offset: Offset,
    pub next_offset: Offset,
    pub head_address: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    pub epoch: Epoch,
    pub role: u8,
    pub state: u8,
    pub rate_per_s: u64,
    pub head_address: String,
}

/// The `retry` byte of REFUSED for a code.
pub fn retry_byte(code: Code) -> u8 {
    use quorate_types::codes::Retry;
    match code.retry() {
        Retry::Never => 0,
        Retry::Here => 1,
        Retry::Head => 2,
        Retry::Handle | Retry::Connection => 3,
    }
}

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

    pub fn kind(&self) -> u8 {
        match self {
            Message::Hello { .. } => kind::HELLO,
            Message::HelloOk(_) => kind::HELLO_OK,
            Message::Attach { .. } => kind::ATTACH,
            Message::Attached(_) => kind::ATTACHED,
            Message::Append(_) => kind::APPEND,
            Message::Acked(_) => kind::ACKED,
            Message::Refused(_) => kind::REFUSED,
            Message::Read { .. } => kind::READ,
            Message::Entries(_) => kind::ENTRIES,
            Message::Subscribe { .. } => kind::SUBSCRIBE,
            Message::Credit { .. } => kind::CREDIT,
            Message::Cancel { .. } => kind::CANCEL,
            Message::Status { .. } => kind::STATUS,
            Message::StatusOk(_) => kind::STATUS_OK,
            Message::Ping { .. } => kind::PING,
            Message::Pong { .. } => kind::PONG,
            Message::Goodbye { .. } => kind::GOODBYE,
            Message::Detach => kind::DETACH,
            Message::Notice(_) => kind::NOTICE,
            Message::Trim { .. } => kind::TRIM,
            Message::TrimOk { .. } => kind::TRIM_OK,
        }
    }

    /// Header and head into `out`; the payload (if any) is handed back, to be sent behind it uncopied.
    pub fn encode(&self, channel: u32, trace: Option<&TraceContext>, out: &mut BytesMut) -> Vec<Bytes> {
        let payloads = match self {
            Message::Append(append) => vec![append.payload.clone()],
            Message::Entries(entries) => entries.batches.iter().map(|b| b.payload.clone()).collect(),
            _ => Vec::new(),
        };
        let payload_len = payloads.iter().map(Bytes::len).sum();
        encode_frame(out, self.kind(), channel, trace, payload_len, |out| {
            self.put_head(out)
        });
        payloads
    }

    /// The whole frame in one piece.
    pub fn to_bytes(&self, channel: u32, trace: Option<&TraceContext>) -> Bytes {
        let mut out = BytesMut::new();
        for payload in self.encode(channel, trace, &mut out) {
            out.put_slice(&payload);
        }
        out.freeze()
    }

    fn put_head(&self, out: &mut BytesMut) {
        match self {
            Message::Hello { version, client } => {
                out.put_slice(&MAGIC);
                out.put_u16_le(*version);
                out.put_u16_le(0);
                put_str8(out, client);
            }
            Message::HelloOk(m) => put_hello_ok(out, m),
            Message::Attach {
                group_id,
                session,
                token,
            } => {
                out.put_slice(group_id.0.as_bytes());
                out.put_u64_le(*session);
                put_str16(out, token);
            }
            Message::Attached(m) => put_attached(out, m),
            Message::Append(m) => put_append(out, m),
            Message::Acked(acks) => {
                out.put_u32_le(acks.len() as u32);
                for (seq, base_offset) in acks {
                    out.put_u64_le(*seq);
                    out.put_u64_le(*base_offset);
                }
            }
            Message::Refused(m) => put_refused(out, m),
            Message::Read {
                request,
                max_bytes,
                max_entries,
                wait_ms,
                offset,
            } => {
                for field in [request, max_bytes, max_entries, wait_ms] {
                    out.put_u32_le(*field);
                }
                out.put_u64_le(*offset);
            }
            Message::Entries(m) => put_entries(out, m),
            Message::Subscribe {
                request,
                credit_bytes,
                offset,
            } => {
                out.put_u32_le(*request);
                out.put_u32_le(*credit_bytes);
                out.put_u64_le(*offset);
            }
            Message::Credit { request, bytes } => {
                out.put_u32_le(*request);
                out.put_u32_le(*bytes);
            }
            Message::Trim {
                request,
                before_offset: offset,
            }
            | Message::TrimOk {
                request,
                trim_offset: offset,
            } => {
                out.put_u32_le(*request);
                out.put_u64_le(*offset);
            }
            Message::Cancel { request } | Message::Status { request } => out.put_u32_le(*request),
            Message::StatusOk(m) => put_status_ok(out, m),
            Message::Ping { nonce } | Message::Pong { nonce } => out.put_u64_le(*nonce),
            Message::Goodbye { code, message } => {
                out.put_u16_le(*code);
                put_str16(out, message);
            }
            Message::Detach => {}
            Message::Notice(m) => {
                out.put_u64_le(m.epoch);
                out.put_u8(m.role);
                out.put_u8(m.state);
                out.put_u16_le(0);
                out.put_u64_le(m.rate_per_s);
                put_str8(out, &m.head_address);
            }
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
    let version = r.u16()?;
    r.u16()?;
    let client = r.str8()?;
    if client.len() > CLIENT_NAME_BYTES_MAX {
        return Err(WireError::Malformed {
            what: "client name of HELLO",
        });
    }
    Ok(Message::Hello { version, client })
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

fn put_hello_ok(out: &mut BytesMut, m: &HelloOk) {
    out.put_u16_le(m.version);
    out.put_u16_le(0);
    for field in [
        m.server_id,
        m.frame_bytes_max,
        m.entry_bytes_max,
        m.batch_bytes_max,
        m.batch_entries_max,
    ] {
        out.put_u32_le(field);
    }
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

fn put_attached(out: &mut BytesMut, m: &Attached) {
    out.put_u64_le(m.epoch);
    out.put_slice(&[m.role, m.durability, m.state, 0]);
    out.put_u32_le(m.window_batches);
    for field in [
        m.last_index,
        m.next_seq,
        m.commit_offset,
        m.trim_offset,
        m.rate_per_s,
    ] {
        out.put_u64_le(field);
    }
    put_str8(out, &m.head_address);
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

fn put_append(out: &mut BytesMut, m: &Append) {
    out.put_u64_le(m.seq);
    out.put_u64_le(m.floor_index);
    out.put_u32_le(m.timeout_ms);
    out.put_u32_le(m.entry_count);
    out.put_u32_le(m.payload.len() as u32);
    out.put_u32_le(m.payload_crc);
    out.put_u64_le(m.expected_offset);
    out.put_u64_le(m.fencing_token);
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

fn put_refused(out: &mut BytesMut, m: &Refused) {
    out.put_slice(&[m.op, m.outcome, m.retry, 0]);
    out.put_u16_le(m.code);
    out.put_u16_le(0);
    out.put_u32_le(m.retry_after_ms);
    out.put_u64_le(m.id);
    put_str8(out, &m.head_address);
    put_str16(out, &m.message);
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

fn put_entries(out: &mut BytesMut, m: &Entries) {
    out.put_u32_le(m.request);
    out.put_u32_le(m.batches.len() as u32);
    for field in [m.next_offset, m.commit_offset, m.trim_offset] {
        out.put_u64_le(field);
    }
    for batch in &m.batches {
        out.put_u64_le(batch.base_offset);
        out.put_u64_le(batch.timestamp_us);
        out.put_u32_le(batch.entry_count);
        out.put_u32_le(batch.payload.len() as u32);
        out.put_u32_le(batch.payload_crc);
    }
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

fn put_status_ok(out: &mut BytesMut, m: &StatusOk) {
    out.put_u32_le(m.request);
    out.put_slice(&[m.role, m.state, 0, 0]);
    for field in [
        m.epoch,
        m.commit_offset,
        m.durable_offset,
        m.trim_offset,
        m.next_offset,
    ] {
        out.put_u64_le(field);
    }
    put_str8(out, &m.head_address);
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
