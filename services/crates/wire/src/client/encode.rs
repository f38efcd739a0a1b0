//! Writing messages. Payloads are handed back instead of copied.

use bytes::{BufMut, Bytes, BytesMut};

use quorate_types::Offset;

use super::{Append, Attached, Entries, HelloOk, MAGIC, Message, Refused, StatusOk, kind};
use crate::cursor::{put_str8, put_str16, put_versions};
use crate::frame::{TraceContext, encode_frame};

impl Message {
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
            Message::Hello { versions, client } => {
                out.put_slice(&MAGIC);
                put_versions(out, *versions);
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
            Message::Acked(acks) => put_acked(out, acks.iter().copied()),
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

/// An ACKED, straight from its parts instead of a [`Message`].
pub fn encode_acked(channel: u32, acks: impl ExactSizeIterator<Item = (u64, Offset)>, out: &mut BytesMut) {
    encode_frame(out, kind::ACKED, channel, None, 0, |out| put_acked(out, acks));
}

fn put_acked(out: &mut BytesMut, acks: impl ExactSizeIterator<Item = (u64, Offset)>) {
    out.put_u32_le(acks.len() as u32);
    for (seq, base_offset) in acks {
        out.put_u64_le(seq);
        out.put_u64_le(base_offset);
    }
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

fn put_refused(out: &mut BytesMut, m: &Refused) {
    out.put_slice(&[m.op, m.outcome, m.retry, 0]);
    out.put_u16_le(m.code);
    out.put_u16_le(0);
    out.put_u32_le(m.retry_after_ms);
    out.put_u64_le(m.id);
    put_str8(out, &m.head_address);
    put_str16(out, &m.message);
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
