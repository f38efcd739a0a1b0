//! The 16-byte frame header, its checksum, and cutting a stream into frames.
//!
//! ```text
//!  0 u32 len   4 u8 kind   5 u8 flags   6 u16 head_len   8 u32 channel   12 u32 head_crc   16 body
//! ```
//!
//! `head_crc` covers bytes 0..12 and the head. The payload behind the head has a CRC of its own inside the head, made
//! where the payload was made: no byte is summed twice on a server.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::WireError;

pub const HEADER_LEN: usize = 16;
/// Set in `flags` when a trace context ends the head.
pub const FLAG_TRACE: u8 = 1;
pub const TRACE_LEN: usize = 25;

/// The W3C trace context of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceContext {
    pub trace_id: [u8; 16],
    pub span_id: [u8; 8],
    pub flags: u8,
}

/// One received frame whose head passed its checksum. `head` does not contain the trace context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: u8,
    pub channel: u32,
    pub trace: Option<TraceContext>,
    pub head: Bytes,
    pub payload: Bytes,
}

impl Frame {
    /// An error where a kind without payload carries one.
    pub fn expect_no_payload(&self, what: &'static str) -> Result<(), WireError> {
        if self.payload.is_empty() {
            Ok(())
        } else {
            Err(WireError::Malformed { what })
        }
    }
}

/// Takes the next whole frame from the front of `stream`; `None` until all of it has arrived.
/// A length over `frame_bytes_max` is refused before anything is buffered for it.
pub fn decode_frame(stream: &mut BytesMut, frame_bytes_max: u32) -> Result<Option<Frame>, WireError> {
    let Some(header) = stream.first_chunk::<HEADER_LEN>() else {
        return Ok(None);
    };
    let field = |at: usize| u32::from_le_bytes(header[at..at + 4].try_into().expect("four bytes"));
    let len = field(0);
    let (kind, flags) = (header[4], header[5]);
    let head_len = usize::from(u16::from_le_bytes([header[6], header[7]]));
    let (channel, head_crc) = (field(8), field(12));
    if len > frame_bytes_max {
        return Err(WireError::TooLarge {
            len: u64::from(len),
            max: frame_bytes_max,
        });
    }
    if head_len > len as usize {
        return Err(WireError::Malformed { what: "frame header" });
    }
    if stream.len() < HEADER_LEN + head_len {
        return Ok(None);
    }
    let crc = crc_of(&header[..12], &stream[HEADER_LEN..HEADER_LEN + head_len]);
    if crc != head_crc {
        return Err(WireError::Checksum { part: "frame head" });
    }
    if stream.len() < HEADER_LEN + len as usize {
        return Ok(None);
    }
    let mut body = stream.split_to(HEADER_LEN + len as usize).freeze();
    let mut head = body.split_to(HEADER_LEN + head_len);
    head.advance(HEADER_LEN);
    let trace = if flags & FLAG_TRACE != 0 {
        Some(take_trace(&mut head)?)
    } else {
        None
    };
    Ok(Some(Frame {
        kind,
        channel,
        trace,
        head,
        payload: body,
    }))
}

/// Length of the whole frame at the front, once its header is there: to reserve it at once.
pub fn frame_len(stream: &[u8]) -> Option<usize> {
    let len = u32::from_le_bytes(*stream.first_chunk::<4>()?);
    Some(HEADER_LEN + len as usize)
}

/// Appends the header and head of a frame to `out`; the caller appends `payload_len` bytes of payload.
pub fn encode_frame(
    out: &mut BytesMut,
    kind: u8,
    channel: u32,
    trace: Option<&TraceContext>,
    payload_len: usize,
    write_head: impl FnOnce(&mut BytesMut),
) {
    let start = out.len();
    out.put_bytes(0, HEADER_LEN);
    write_head(out);
    if let Some(trace) = trace {
        out.put_slice(&trace.trace_id);
        out.put_slice(&trace.span_id);
        out.put_u8(trace.flags);
    }
    let head_len = out.len() - start - HEADER_LEN;
    assert!(
        head_len <= usize::from(u16::MAX),
        "head of {head_len} bytes in a frame of kind {kind}"
    );
    let (header, head) = out[start..].split_at_mut(HEADER_LEN);
    header[0..4].copy_from_slice(&((head_len + payload_len) as u32).to_le_bytes());
    header[4] = kind;
    header[5] = if trace.is_some() { FLAG_TRACE } else { 0 };
    header[6..8].copy_from_slice(&(head_len as u16).to_le_bytes());
    header[8..12].copy_from_slice(&channel.to_le_bytes());
    let crc = crc_of(&header[..12], head);
    header[12..16].copy_from_slice(&crc.to_le_bytes());
}

/// CRC-32 (IEEE, as in zlib) of two parts, one after the other.
pub fn crc_of(first: &[u8], second: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(first);
    hasher.update(second);
    hasher.finalize()
}

fn take_trace(head: &mut Bytes) -> Result<TraceContext, WireError> {
    let at = head.len().checked_sub(TRACE_LEN).ok_or(WireError::Malformed {
        what: "trace context",
    })?;
    let bytes = head.split_off(at);
    Ok(TraceContext {
        trace_id: bytes[..16].try_into().expect("16 bytes"),
        span_id: bytes[16..24].try_into().expect("8 bytes"),
        flags: bytes[24],
    })
}
