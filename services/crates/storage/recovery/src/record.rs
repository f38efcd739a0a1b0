//! Records of groups (`docs/internals/journal.md` has the framing):
//!
//! | kind | head | payload |
//! | --- | --- | --- |
//! | 1 batch | the 96-byte batch header | the entries |
//! | 2 base | group[16] | an encoded base: the log begins behind it |
//! | 3 dropped | group[16] | empty: all records of the group before this one are void |
//! | 4 truncate | group[16], u64 index | empty: the group's log ends at the index; entries behind it were never committed |
//! | 5 trim | group[16], u64 index | empty: clients trimmed the group's log up to the index, and were answered |
//! | 6 repaired | group[16], u64 index, u8 damaged, u64 epoch, u64 trimmed | empty: records of the group before this one are missing, but its log is good up to the index, and continues behind this record; `damaged`: more of it was durable; `epoch`: that of the batch at the index; `trimmed`: batches up to it are gone for readers (an earlier version wrote neither, which reads as 0) |
//!
//! Group logs hold the same records (`docs/internals/group-logs.md`).

use bytes::Bytes;
use quorate_chain::{Base, ReplicaEvent};
use quorate_group::Record;
use quorate_group_log::Meaning;
use quorate_types::{Epoch, GroupId, Index};
use quorate_wire::{Batch, BatchHeader};
use uuid::Uuid;

pub const KIND_BATCH: u8 = 1;
pub const KIND_BASE: u8 = 2;
pub const KIND_DROPPED: u8 = 3;
pub const KIND_TRUNCATE: u8 = 4;
pub const KIND_TRIM: u8 = 5;
pub const KIND_REPAIRED: u8 = 6;
/// Kinds from here on are of a later version.
const KIND_UNKNOWN: u8 = KIND_REPAIRED + 1;

/// A record to write.
#[derive(Debug, Clone)]
pub struct GroupRecord {
    pub head: Vec<u8>,
    pub payload: Bytes,
    /// CRC-32 of the payload, if it was checked on arrival.
    pub payload_crc: Option<u32>,
    /// Meaning of the record once it is on stable storage.
    pub durable: Durable,
}

/// Meaning of a record's completion for its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durable {
    pub group_id: GroupId,
    pub index: Index,
    /// Epoch of the batch or base; number of a truncation.
    pub epoch: Epoch,
    pub kind: u8,
}

impl GroupRecord {
    pub fn new(group_id: GroupId, record: Record) -> Self {
        match record {
            Record::Batch(batch) => Self::batch(&batch),
            Record::Base { base, index, epoch } => Self::base(group_id, base, index, epoch),
            Record::Truncated { index, number } => Self::truncate(group_id, index, number),
            Record::Trim { index } => Self::trim(group_id, index),
            Record::Repaired {
                index,
                epoch,
                is_damaged,
                trimmed,
            } => Self::repaired(group_id, index, epoch, is_damaged, trimmed),
        }
    }

    pub fn batch(batch: &Batch) -> Self {
        let header = &batch.header;
        Self {
            head: header.encode().to_vec(),
            payload: batch.payload.clone(),
            payload_crc: Some(header.payload_crc),
            durable: Durable {
                group_id: header.group_id,
                index: header.index,
                epoch: header.epoch,
                kind: KIND_BATCH,
            },
        }
    }

    pub fn base(group_id: GroupId, base: Bytes, index: Index, epoch: Epoch) -> Self {
        let entry = Self::of(KIND_BASE, group_id, index, epoch);
        Self {
            payload: base,
            ..entry
        }
    }

    pub fn dropped(group_id: GroupId) -> Self {
        Self::of(KIND_DROPPED, group_id, 0, 0)
    }

    pub fn truncate(group_id: GroupId, index: Index, number: u64) -> Self {
        Self::of(KIND_TRUNCATE, group_id, index, number).with(&index.to_le_bytes())
    }

    pub fn trim(group_id: GroupId, index: Index) -> Self {
        Self::of(KIND_TRIM, group_id, index, 0).with(&index.to_le_bytes())
    }

    /// The log is good up to `index`, where its batch is of this epoch, whatever is missing before. `damaged`: more of it was
    /// durable. Trims may be missing, too: `trimmed` says how far the log was trimmed.
    pub fn repaired(group_id: GroupId, index: Index, epoch: Epoch, damaged: bool, trimmed: Index) -> Self {
        let entry = Self::of(KIND_REPAIRED, group_id, index, 0);
        let entry = entry.with(&index.to_le_bytes()).with(&[u8::from(damaged)]);
        entry.with(&epoch.to_le_bytes()).with(&trimmed.to_le_bytes())
    }

    fn of(kind: u8, group_id: GroupId, index: Index, epoch: Epoch) -> Self {
        Self {
            head: group_id.0.as_bytes().to_vec(),
            payload: Bytes::new(),
            payload_crc: None,
            durable: Durable {
                group_id,
                index,
                epoch,
                kind,
            },
        }
    }

    fn with(mut self, more: &[u8]) -> Self {
        self.head.extend_from_slice(more);
        self
    }

    pub fn kind(&self) -> u8 {
        self.durable.kind
    }

    /// Size without the framing.
    pub fn bytes(&self) -> usize {
        self.head.len() + self.payload.len()
    }
}

impl Durable {
    /// The event for the group's replica.
    pub fn event(&self) -> Option<ReplicaEvent> {
        let (index, epoch) = (self.index, self.epoch);
        match self.kind {
            KIND_BATCH | KIND_BASE => Some(ReplicaEvent::Persisted { index, epoch }),
            KIND_TRUNCATE => Some(ReplicaEvent::TruncationPersisted { number: epoch }),
            KIND_TRIM => Some(ReplicaEvent::TrimPersisted { index }),
            KIND_DROPPED => Some(ReplicaEvent::DropPersisted),
            _ => None,
        }
    }

    /// Notes the completion. It replaces the last one, if that is of the same group and kind.
    pub fn note(self, completions: &mut Vec<Durable>) {
        match completions.last_mut() {
            Some(last) if last.group_id == self.group_id && last.kind == self.kind => *last = self,
            _ => completions.push(self),
        }
    }
}

/// A record with a sound checksum and no meaning to this version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("record kind {kind} is malformed, or of a later version")]
pub struct UnknownRecord {
    pub kind: u8,
}

/// Decoded content of a record.
#[derive(Debug)]
pub enum Content {
    Batch(BatchHeader),
    Base(Base),
    Dropped,
    Truncate {
        index: Index,
    },
    Trim {
        index: Index,
    },
    Repaired {
        index: Index,
        damaged: bool,
        /// The epoch of the batch at the index; 0: not known.
        epoch: Epoch,
        trimmed: Index,
    },
}

/// The group and content of a record. The payload of a batch is not read.
pub fn decode(kind: u8, head: &[u8], payload: &[u8]) -> Result<(GroupId, Content), UnknownRecord> {
    parse(kind, head, payload).ok_or(UnknownRecord { kind })
}

fn parse(kind: u8, head: &[u8], payload: &[u8]) -> Option<(GroupId, Content)> {
    if kind == KIND_BATCH {
        let header = BatchHeader::decode(head).ok()?;
        return Some((header.group_id, Content::Batch(header)));
    }
    let index = || Some(Index::from_le_bytes(*head.get(16..)?.first_chunk()?));
    let content = match kind {
        KIND_BASE => Content::Base(Base::decode(payload)?),
        KIND_DROPPED => Content::Dropped,
        KIND_TRUNCATE => Content::Truncate { index: index()? },
        KIND_TRIM => Content::Trim { index: index()? },
        KIND_REPAIRED => Content::Repaired {
            index: index()?,
            damaged: head.get(24) == Some(&1),
            epoch: from_25_on(head, 0)?,
            trimmed: from_25_on(head, 8)?,
        },
        _ => return None,
    };
    Some((group_id_of(head)?, content))
}

/// A number of a repaired record; 0 where an earlier version wrote none.
fn from_25_on(head: &[u8], skip: usize) -> Option<u64> {
    match head.get(25..)? {
        [] => Some(0),
        numbers => Some(u64::from_le_bytes(*numbers.get(skip..)?.first_chunk()?)),
    }
}

/// Group and meaning of a record, for the group logs.
pub fn classify(kind: u8, head: &[u8]) -> Option<(GroupId, Meaning)> {
    match kind {
        KIND_BATCH => {
            let header = BatchHeader::decode(head).ok()?;
            let index = header.index;
            Some((header.group_id, Meaning::Batch { index }))
        }
        KIND_DROPPED => Some((group_id_of(head)?, Meaning::Dropped)),
        KIND_BASE..KIND_UNKNOWN => Some((group_id_of(head)?, Meaning::Other)),
        _ => None,
    }
}

fn group_id_of(head: &[u8]) -> Option<GroupId> {
    let bytes: &[u8; 16] = head.first_chunk()?;
    Some(GroupId(Uuid::from_bytes(*bytes)))
}
