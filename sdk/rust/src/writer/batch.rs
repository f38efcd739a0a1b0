//! A batch on its way: being filled, waiting, sent, answered.

use bytes::{BufMut, Bytes, BytesMut};
use quorate_types::{Micros, Offset};
use quorate_wire::client::{Append, NO_EXPECTED_OFFSET};
use quorate_wire::frame::TraceContext;

use crate::errors::Failure;

/// A call's part of a batch: `count` entries from the batch's entry `first` on.
#[derive(Debug, PartialEq, Eq)]
pub struct Share<T> {
    pub ticket: T,
    pub first: u32,
    pub count: u32,
}

/// Conditions of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Condition {
    /// The log must end here, or the append is refused.
    pub expected_offset: Offset,
    /// No greater token may have been used on the group; 0: none.
    pub fencing_token: u64,
}

impl Condition {
    pub const NONE: Condition = Condition {
        expected_offset: NO_EXPECTED_OFFSET,
        fencing_token: 0,
    };
}

pub(super) enum Payload {
    Open(BytesMut),
    Sealed { bytes: Bytes, crc: u32 },
}

pub(super) struct Batch<T> {
    /// Its callers; empty once they were answered.
    pub shares: Vec<Share<T>>,
    pub payload: Payload,
    pub entry_count: u32,
    pub deadline: Micros,
    /// Whether more appends may join it.
    pub is_shared: bool,
    pub condition: Condition,
    pub trace: Option<TraceContext>,
    pub seq: u64,
    /// Whether its tokens were taken: it is sent again without further tokens.
    pub is_paid: bool,
    /// Whether it may have been ordered without a known answer.
    pub is_in_doubt: bool,
    /// Whether its latest sending was answered.
    pub is_answered: bool,
    /// The last refusal that made it wait.
    pub refusal: Option<Failure>,
}

impl<T> Batch<T> {
    pub fn new(buffer: BytesMut, shares: Vec<Share<T>>, deadline: Micros, is_shared: bool) -> Self {
        assert!(buffer.is_empty() && shares.is_empty(), "spare buffers are empty");
        Self {
            shares,
            payload: Payload::Open(buffer),
            entry_count: 0,
            deadline,
            is_shared,
            condition: Condition::NONE,
            trace: None,
            seq: 0,
            is_paid: false,
            is_in_doubt: false,
            is_answered: false,
            refusal: None,
        }
    }

    /// Whether its callers still wait. A batch without callers is orphaned: it is sent only to learn its outcome.
    pub fn is_awaited(&self) -> bool {
        !self.shares.is_empty()
    }

    pub fn len(&self) -> usize {
        match &self.payload {
            Payload::Open(buffer) => buffer.len(),
            Payload::Sealed { bytes, .. } => bytes.len(),
        }
    }

    /// Adds one entry of `length` bytes that `write` puts into the buffer.
    pub fn put(&mut self, length: u32, write: impl FnOnce(&mut BytesMut)) {
        let Payload::Open(buffer) = &mut self.payload else {
            unreachable!("a sealed batch takes no entries")
        };
        buffer.put_u32_le(length);
        let start = buffer.len();
        write(buffer);
        assert_eq!(
            buffer.len() - start,
            length as usize,
            "an entry has the length announced"
        );
        self.entry_count += 1;
    }

    /// Assigns the last `count` entries to `ticket`.
    pub fn assign(&mut self, ticket: T, count: u32) {
        self.shares.push(Share {
            ticket,
            first: self.entry_count - count,
            count,
        });
    }

    pub fn seal(&mut self) {
        self.is_shared = false;
        if let Payload::Open(buffer) = &mut self.payload {
            let bytes = std::mem::take(buffer).freeze();
            let crc = crc32fast::hash(&bytes);
            self.payload = Payload::Sealed { bytes, crc };
        }
    }

    pub fn message(&self, floor_index: u64, timeout_ms: u32) -> Append {
        let Payload::Sealed { bytes, crc } = &self.payload else {
            unreachable!("sealed before it is sent")
        };
        Append {
            seq: self.seq,
            floor_index,
            timeout_ms,
            entry_count: self.entry_count,
            payload_crc: *crc,
            expected_offset: self.condition.expected_offset,
            fencing_token: self.condition.fencing_token,
            payload: bytes.clone(),
        }
    }

    /// Its buffer for reuse, if no other owner holds it.
    pub fn into_buffer(self) -> Option<BytesMut> {
        match self.payload {
            Payload::Open(buffer) => Some(buffer),
            Payload::Sealed { bytes, .. } => bytes.try_into_mut().ok(),
        }
    }
}
