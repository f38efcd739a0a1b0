//! The base: everything that must be remembered of the trimmed part of the log.

use bytes::{Buf, BufMut, Bytes, BytesMut};
use quorate_types::config::Beginning;
use quorate_types::planted::{self, Bug};
use quorate_types::{Epoch, Index, Offset};
use quorate_wire::BatchHeader;

use crate::log::sessions::Sessions;

/// State after the batch at `index`; the log holds the batches behind it. The default is the empty log's.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Base {
    pub index: Index,
    /// The epoch that ordered the batch at `index`; 0: there is no such batch.
    pub epoch: Epoch,
    /// Offset after its last entry: the trim offset.
    pub end_offset: Offset,
    pub cumulative_bytes: u64,
    pub sessions: Sessions,
}

/// Index of the base of a reset log. At 0 every log agrees with every other. A log from before the reset must not agree
/// with one that begins here.
const BEGINNING_INDEX: Index = 1;

impl Base {
    /// The base of a lost group's log after its reset.
    pub fn of_beginning(beginning: &Beginning) -> Self {
        Self {
            index: BEGINNING_INDEX,
            epoch: beginning.epoch,
            end_offset: beginning.offset,
            cumulative_bytes: beginning.bytes_before,
            sessions: Sessions::default(),
        }
    }

    pub fn apply(&mut self, header: &BatchHeader) {
        assert_eq!(
            header.index,
            self.index + 1,
            "the base takes in the batch behind it"
        );
        self.index = header.index;
        self.epoch = header.epoch;
        self.end_offset = header.end_offset();
        self.cumulative_bytes = header.cumulative_bytes;
        self.sessions.apply(header);
    }

    pub fn encode(&self) -> Bytes {
        let mut out = BytesMut::new();
        for field in [self.index, self.epoch, self.end_offset, self.cumulative_bytes] {
            out.put_u64_le(field);
        }
        if planted::on(Bug::SessionsLostAtTrim) {
            Sessions::default().encode(&mut out);
        } else {
            self.sessions.encode(&mut out);
        }
        out.freeze()
    }

    /// `None`: the bytes are not a base. Their checksum is checked where they are read.
    pub fn decode(mut bytes: &[u8]) -> Option<Self> {
        Some(Self {
            index: bytes.try_get_u64_le().ok()?,
            epoch: bytes.try_get_u64_le().ok()?,
            end_offset: bytes.try_get_u64_le().ok()?,
            cumulative_bytes: bytes.try_get_u64_le().ok()?,
            sessions: Sessions::decode(&mut bytes)?,
        })
    }
}
