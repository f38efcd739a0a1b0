//! The header of a batch: 96 bytes that the head makes when it orders the batch. Followers forward it and the journal
//! stores it as it is. The payload behind it is the client's, untouched.
//!
//! ```text
//!  0 u32 header_crc (over 4..96)   4 u32 payload_len   8 u32 payload_crc   12 u32 entry_count
//! 16 group[16]                    32 u64 epoch         40 u64 index         48 u64 base_offset
//! 56 u64 cumulative_bytes         64 u64 session       72 u64 seq           80 u64 timestamp_us
//! 88 u64 fencing_token
//! ```

use bytes::{BufMut, Bytes, BytesMut};
use quorate_types::{Epoch, GroupId, Index, Offset};
use uuid::Uuid;

use crate::cursor::Reader;
use crate::{WireError, frame::TraceContext};

pub const BATCH_HEADER_LEN: usize = 96;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchHeader {
    pub group_id: GroupId,
    /// The epoch in which the batch was ordered; with the index it names the batch for ever.
    pub epoch: Epoch,
    pub index: Index,
    pub base_offset: Offset,
    /// Bytes of all entries of the log up to and with this batch, from which usage is read.
    pub cumulative_bytes: u64,
    pub session: u64,
    pub seq: u64,
    /// The head's wall clock when it ordered the batch, as [`BatchHeader::stamp`] makes it.
    pub timestamp_us: u64,
    /// The token under which its writer appended; 0: none.
    pub fencing_token: u64,
    pub entry_count: u32,
    pub payload_len: u32,
    pub payload_crc: u32,
}

/// A batch and, while it is on its way, its trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Batch {
    pub header: BatchHeader,
    pub payload: Bytes,
    pub trace: Option<TraceContext>,
}

impl BatchHeader {
    /// The time stamp of a batch. Its last bit is set where the head's clock was in doubt: the stamp proves no age then.
    /// Every reader may go on to take it for a time. Earlier servers stamped odd times, too: such batches are kept longer.
    pub fn stamp(wall_us: u64, is_doubted: bool) -> u64 {
        wall_us & !1 | u64::from(is_doubted)
    }

    /// Whether the clock that stamped the batch was in doubt.
    pub fn is_stamp_doubted(&self) -> bool {
        self.timestamp_us & 1 == 1
    }

    /// The offset after the batch's last entry.
    pub fn end_offset(&self) -> Offset {
        self.base_offset + u64::from(self.entry_count)
    }

    /// Bytes of the entries themselves, without their length prefixes.
    pub fn entry_bytes(&self) -> u64 {
        u64::from(self.payload_len) - 4 * u64::from(self.entry_count)
    }

    pub fn encode(&self) -> [u8; BATCH_HEADER_LEN] {
        let mut bytes = [0u8; BATCH_HEADER_LEN];
        {
            let mut out = &mut bytes[4..];
            out.put_u32_le(self.payload_len);
            out.put_u32_le(self.payload_crc);
            out.put_u32_le(self.entry_count);
            out.put_slice(self.group_id.0.as_bytes());
            out.put_u64_le(self.epoch);
            out.put_u64_le(self.index);
            out.put_u64_le(self.base_offset);
            out.put_u64_le(self.cumulative_bytes);
            out.put_u64_le(self.session);
            out.put_u64_le(self.seq);
            out.put_u64_le(self.timestamp_us);
            out.put_u64_le(self.fencing_token);
        }
        let crc = crc32fast::hash(&bytes[4..]);
        bytes[..4].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, WireError> {
        let what = "batch header";
        let bytes = bytes
            .get(..BATCH_HEADER_LEN)
            .ok_or(WireError::Malformed { what })?;
        let mut reader = Reader::new(bytes, what);
        if reader.u32()? != crc32fast::hash(&bytes[4..]) {
            return Err(WireError::Checksum { part: what });
        }
        let (payload_len, payload_crc, entry_count) = (reader.u32()?, reader.u32()?, reader.u32()?);
        let header = Self {
            group_id: GroupId(Uuid::from_bytes(reader.id16()?)),
            epoch: reader.u64()?,
            index: reader.position()?,
            base_offset: reader.position()?,
            cumulative_bytes: reader.position()?,
            session: reader.u64()?,
            seq: reader.u64()?,
            timestamp_us: reader.u64()?,
            fencing_token: reader.u64()?,
            entry_count,
            payload_len,
            payload_crc,
        };
        let is_whole = u64::from(payload_len) >= 4 * u64::from(entry_count)
            && header.cumulative_bytes >= header.entry_bytes();
        // Indices, sessions and seqs begin at 1.
        if !is_whole || header.index == 0 || header.session == 0 || header.seq == 0 {
            return Err(WireError::Malformed { what });
        }
        Ok(header)
    }
}

impl Batch {
    /// An error unless the payload is the one that the header was made for.
    pub fn verify(&self) -> Result<(), WireError> {
        if self.payload.len() != self.header.payload_len as usize {
            return Err(WireError::Malformed {
                what: "batch payload",
            });
        }
        if crc32fast::hash(&self.payload) != self.header.payload_crc {
            return Err(WireError::Checksum {
                part: "batch payload",
            });
        }
        Ok(())
    }

    /// Header and payload as stored in one piece (tests, snapshots).
    pub fn to_bytes(&self) -> Bytes {
        let mut out = BytesMut::with_capacity(BATCH_HEADER_LEN + self.payload.len());
        out.put_slice(&self.header.encode());
        out.put_slice(&self.payload);
        out.freeze()
    }
}
