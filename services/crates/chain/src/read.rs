//! Serving readers: committed batches never change, so any replica answers up to its commit index.

use bytes::Bytes;
use quorate_types::planted::{self, Bug};
use quorate_types::{Code, Index, Offset};

use crate::replica::Replica;

/// A run of whole committed batches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadPage {
    pub pieces: Vec<ReadPiece>,
    pub next_offset: Offset,
    pub commit_offset: Offset,
    pub trim_offset: Offset,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadPiece {
    pub index: Index,
    pub base_offset: Offset,
    pub timestamp_us: u64,
    pub entry_count: u32,
    pub payload_len: u32,
    pub payload_crc: u32,
    /// `None`: it is on disk only.
    pub payload: Option<Bytes>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadError {
    Trimmed { trim_offset: Offset },
    BeyondEnd { commit_offset: Offset },
}

impl ReadError {
    pub fn code(self) -> Code {
        match self {
            ReadError::Trimmed { .. } => Code::Trimmed,
            ReadError::BeyondEnd { .. } => Code::OffsetBeyondEnd,
        }
    }
}

impl Replica {
    /// Batches from the one that holds `offset`, until one of the bounds is reached (always at least one batch,
    /// if there is any). An empty page means that nothing is committed at `offset` yet.
    ///
    /// `offset` may lie beyond what *this* replica knows to be committed by as much as the log is long; only an
    /// offset beyond the log's end on a head is an error.
    pub fn read(
        &self,
        offset: Offset,
        max_bytes: u32,
        max_entries: u32,
        max_batches: u32,
    ) -> Result<ReadPage, ReadError> {
        let (commit_offset, trim_offset) = (self.commit_offset(), self.trim_offset());
        if offset < trim_offset {
            return Err(ReadError::Trimmed { trim_offset });
        }
        if self.is_head() && offset > self.log.next_offset() {
            return Err(ReadError::BeyondEnd { commit_offset });
        }
        let mut page = ReadPage {
            pieces: Vec::new(),
            next_offset: offset,
            commit_offset,
            trim_offset,
        };
        let Some(mut index) = self.log.index_of(offset) else {
            return Ok(page);
        };
        let (mut bytes, mut entries) = (0u64, 0u64);
        let through = if planted::on(Bug::UncommittedRead) {
            self.log.last_index()
        } else {
            self.commit_index
        };
        while index <= through && page.pieces.len() < max_batches as usize {
            let stored = self.log.get(index).expect("committed and not trimmed");
            let header = &stored.header;
            bytes += u64::from(header.payload_len);
            entries += header.end_offset() - header.base_offset.max(offset);
            if !page.pieces.is_empty() && (bytes > u64::from(max_bytes) || entries > u64::from(max_entries)) {
                break;
            }
            page.pieces.push(ReadPiece {
                index,
                base_offset: header.base_offset,
                timestamp_us: header.timestamp_us,
                entry_count: header.entry_count,
                payload_len: header.payload_len,
                payload_crc: header.payload_crc,
                payload: stored.payload.clone(),
            });
            page.next_offset = header.end_offset();
            index += 1;
        }
        Ok(page)
    }
}
