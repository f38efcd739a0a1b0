//! A batch that its writer has made, and whose outcome it does not know.

use bytes::Bytes;
use quorate_types::Offset;
use quorate_wire::client::NO_EXPECTED_OFFSET;

#[derive(Debug, Clone)]
pub struct Outstanding {
    pub seq: u64,
    /// Its number in the ledger.
    pub number: usize,
    pub payload: Bytes,
    pub payload_crc: u32,
    pub entry_count: u32,
    pub expected_offset: Offset,
    pub fencing_token: u64,
    /// The end of the committed log when it was last sent.
    pub sent_at: Offset,
}

impl Outstanding {
    pub fn has_condition(&self) -> bool {
        self.expected_offset != NO_EXPECTED_OFFSET || self.fencing_token != 0
    }
}
