//! Records of groups (`docs/internals/journal.md` has the framing):
//!
//! | kind | head | payload |
//! | --- | --- | --- |
//! | 1 batch | the 96-byte batch header | the entries |
//! | 2 base | group[16] | an encoded base: the log begins behind it |
//! | 3 dropped | group[16] | empty: all records of the group before this one mean nothing |
//! | 4 cut | group[16], u64 index | empty: the group's log ends at the index; what lay behind it was never committed |
//! | 5 trim | group[16], u64 index | empty: clients trimmed the group's log up to the index, and were told |
//! | 6 mended | group[16], u64 index, u8 damaged | empty: records of the group before this one are missing, but its log is good up to the index, and goes on behind this record; while `damaged`, more had been durable |
//!
//! Group logs hold the same records (`docs/internals/group-logs.md`).

use bytes::Bytes;
use quorate_chain::{Base, Event};
use quorate_group_log::Meaning;
use quorate_types::{Epoch, GroupId, Index};
use quorate_wire::{Batch, BatchHeader};
use uuid::Uuid;

pub const KIND_BATCH: u8 = 1;
pub const KIND_BASE: u8 = 2;
pub const KIND_DROPPED: u8 = 3;
pub const KIND_CUT: u8 = 4;
pub const KIND_TRIM: u8 = 5;
pub const KIND_MENDED: u8 = 6;
/// Kinds from here on are of a later version.
const KIND_UNKNOWN: u8 = KIND_MENDED + 1;

/// A record to be written.
#[derive(Debug, Clone)]
pub struct Entry {
    pub head: Vec<u8>,
    pub payload: Bytes,
    /// CRC-32 of the payload, where it was checked when it came.
    pub payload_crc: Option<u32>,
    /// What it means once it is on stable storage.
    pub durable: Durable,
}

/// What a record's completion means for its group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durable {
    pub group_id: GroupId,
    pub index: Index,
    /// Of the batch or base; the number of a cut.
    pub epoch: Epoch,
    pub kind: u8,
}

impl Entry {
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

    pub fn cut(group_id: GroupId, index: Index, number: u64) -> Self {
        Self::of(KIND_CUT, group_id, index, number).with(&index.to_le_bytes())
    }

    pub fn trim(group_id: GroupId, index: Index) -> Self {
        Self::of(KIND_TRIM, group_id, index, 0).with(&index.to_le_bytes())
    }

    /// The log is good up to `index`, whatever is missing before; `damaged`: more of it had been durable.
    pub fn mended(group_id: GroupId, index: Index, damaged: bool) -> Self {
        let entry = Self::of(KIND_MENDED, group_id, index, 0);
        entry.with(&index.to_le_bytes()).with(&[u8::from(damaged)])
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

    /// Without the framing.
    pub fn bytes(&self) -> usize {
        self.head.len() + self.payload.len()
    }
}

impl Durable {
    /// What the replica is told.
    pub fn event(&self) -> Option<Event> {
        let (index, epoch) = (self.index, self.epoch);
        match self.kind {
            KIND_BATCH | KIND_BASE => Some(Event::Persisted { index, epoch }),
            KIND_CUT => Some(Event::CutPersisted { number: epoch }),
            KIND_TRIM => Some(Event::TrimPersisted { index }),
            KIND_DROPPED => Some(Event::DropPersisted),
            _ => None,
        }
    }

    /// Notes it: of records of one group and kind that follow one another the last is enough.
    pub fn note(self, told: &mut Vec<Durable>) {
        match told.last_mut() {
            Some(last) if last.group_id == self.group_id && last.kind == self.kind => *last = self,
            _ => told.push(self),
        }
    }
}

/// A record whose checksum is right, and which means nothing here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("record kind {kind} is malformed, or of a later version")]
pub struct Foreign {
    pub kind: u8,
}

/// What a record says.
#[derive(Debug)]
pub enum Said {
    Batch(BatchHeader),
    Base(Base),
    Dropped,
    Cut { index: Index },
    Trim { index: Index },
    Mended { index: Index, damaged: bool },
}

/// Whose record it is, and what it says. The payload of a batch is not looked at.
pub fn decode(kind: u8, head: &[u8], payload: &[u8]) -> Result<(GroupId, Said), Foreign> {
    parse(kind, head, payload).ok_or(Foreign { kind })
}

fn parse(kind: u8, head: &[u8], payload: &[u8]) -> Option<(GroupId, Said)> {
    if kind == KIND_BATCH {
        let header = BatchHeader::decode(head).ok()?;
        return Some((header.group_id, Said::Batch(header)));
    }
    let index = || Some(Index::from_le_bytes(*head.get(16..)?.first_chunk()?));
    let said = match kind {
        KIND_BASE => Said::Base(Base::decode(payload)?),
        KIND_DROPPED => Said::Dropped,
        KIND_CUT => Said::Cut { index: index()? },
        KIND_TRIM => Said::Trim { index: index()? },
        KIND_MENDED => Said::Mended {
            index: index()?,
            damaged: head.get(24) == Some(&1),
        },
        _ => return None,
    };
    Some((group_id_of(head)?, said))
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
