//! Pages for readers: committed batches never change, so any replica answers up to its commit index.

use bytes::Bytes;
use quorate_types::planted::{self, Bug};
use quorate_types::{Code, Index, Offset};

use crate::local_log::LocalLog;

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

/// Bounds of one page. A page has at least one batch, if there is any.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageBounds {
    pub bytes: u32,
    pub entries: u32,
    pub batches: u32,
}

/// Batches from the one that holds `offset`, until a bound is reached. An empty page means that nothing is committed at
/// `offset` yet.
///
/// An offset within the log may lie beyond what *this* replica knows to be committed. Only an offset beyond the end of
/// a head's log is an error.
pub(crate) fn page(
    local: &LocalLog,
    trim_offset: Offset,
    is_head: bool,
    offset: Offset,
    bounds: PageBounds,
) -> Result<ReadPage, ReadError> {
    let (log, commit_offset) = (local.log(), local.commit_offset());
    if offset < trim_offset {
        return Err(ReadError::Trimmed { trim_offset });
    }
    if is_head && offset > log.next_offset() {
        return Err(ReadError::BeyondEnd { commit_offset });
    }
    let mut page = ReadPage {
        pieces: Vec::new(),
        next_offset: offset,
        commit_offset,
        trim_offset,
    };
    let Some(mut index) = log.index_of(offset) else {
        return Ok(page);
    };
    let (mut bytes, mut entries) = (0u64, 0u64);
    let through = readable(local);
    while index <= through && page.pieces.len() < bounds.batches as usize {
        let stored = log
            .get(index)
            .expect("a committed batch is held until it is trimmed");
        let header = &stored.header;
        bytes += u64::from(header.payload_len);
        entries += header.end_offset() - header.base_offset.max(offset);
        let is_over = bytes > u64::from(bounds.bytes) || entries > u64::from(bounds.entries);
        if !page.pieces.is_empty() && is_over {
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

/// The last batch that readers may see.
fn readable(local: &LocalLog) -> Index {
    if planted::on(Bug::UncommittedRead) {
        local.last_index()
    } else {
        local.commit_index()
    }
}
