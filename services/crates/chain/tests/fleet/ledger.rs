//! What is true: every batch that was ever committed, and what its client was told.

use std::collections::BTreeMap;

use quorate_types::{Epoch, Index, Offset};
use quorate_wire::BatchHeader;
use quorate_wire::client::NO_EXPECTED_OFFSET;

#[derive(Debug, Default)]
pub struct Ledger {
    /// By index, from 1.
    committed: Vec<BatchHeader>,
    /// Index of each committed (session, seq).
    placed: BTreeMap<(u64, u64), Index>,
    issued: Vec<Issued>,
    pub fence: u64,
    /// Batches up to this were trimmed by clients who were told so.
    pub trimmed: Index,
    pub heads: BTreeMap<Epoch, usize>,
}

/// A batch that a client made; its number stands for its payload's checksum.
#[derive(Debug)]
struct Issued {
    session: u64,
    seq: u64,
    entry_count: u32,
    expected_offset: Offset,
    told: Told,
    index: Option<Index>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Nothing,
    Acked(Offset),
    Refused,
}

impl Ledger {
    pub fn issue(&mut self, session: u64, seq: u64, entry_count: u32, expected_offset: Offset) -> u32 {
        let told = Told::Nothing;
        self.issued.push(Issued {
            session,
            seq,
            entry_count,
            expected_offset,
            told,
            index: None,
        });
        self.issued.len() as u32 - 1
    }

    pub fn last_index(&self) -> Index {
        self.committed.len() as u64
    }

    pub fn last(&self) -> Option<&BatchHeader> {
        self.committed.last()
    }

    pub fn at(&self, index: Index) -> Option<&BatchHeader> {
        self.committed.get(index.checked_sub(1)? as usize)
    }

    /// A head committed the next batch.
    pub fn commit(&mut self, header: &BatchHeader) {
        assert_eq!(header.index, self.last_index() + 1, "commitment goes in order");
        let end = self.last().map_or(0, BatchHeader::end_offset);
        assert_eq!(header.base_offset, end, "offsets are dense");
        let earlier = self.placed.insert((header.session, header.seq), header.index);
        assert_eq!(
            earlier, None,
            "session {} seq {} was committed twice",
            header.session, header.seq
        );
        let issued = &mut self.issued[header.payload_crc as usize];
        assert_eq!(
            (issued.session, issued.seq),
            (header.session, header.seq),
            "the batch is its client's"
        );
        assert_eq!(issued.entry_count, header.entry_count);
        assert_ne!(
            issued.told,
            Told::Refused,
            "batch {} was refused and committed",
            header.index
        );
        let expected = issued.expected_offset;
        assert!(
            expected == NO_EXPECTED_OFFSET || expected == header.base_offset,
            "against its condition"
        );
        assert!(
            header.fencing_token == 0 || header.fencing_token >= self.fence,
            "against its fencing token"
        );
        self.fence = self.fence.max(header.fencing_token);
        issued.index = Some(header.index);
        self.committed.push(*header);
    }

    /// A client is told that all whole batches before the offset are gone.
    pub fn trim(&mut self, before_offset: Offset) {
        let whole = self
            .committed
            .partition_point(|h| h.end_offset() <= before_offset);
        self.trimmed = self.trimmed.max(whole as Index);
    }

    /// A head sends an ack: what it says must be committed.
    pub fn check_ack(&self, session: u64, seq: u64, base_offset: Offset, entry_count: u32) {
        let index = *self
            .placed
            .get(&(session, seq))
            .expect("what is acked is committed");
        let header = self.at(index).expect("placed");
        assert_eq!(
            (header.base_offset, header.entry_count),
            (base_offset, entry_count),
            "acked elsewhere"
        );
    }

    /// A client takes an ack for this batch of its.
    pub fn acked(&mut self, payload: u32, base_offset: Offset) {
        let index = self.issued[payload as usize]
            .index
            .expect("the very batch that is acked is committed");
        assert_eq!(self.at(index).map(|h| h.base_offset), Some(base_offset));
        self.issued[payload as usize].told = Told::Acked(base_offset);
    }

    /// A client takes this batch for not ordered, for good.
    pub fn refuse(&mut self, payload: u32) {
        let issued = &mut self.issued[payload as usize];
        assert_eq!(
            issued.index, None,
            "a refused batch is committed at {:?}",
            issued.index
        );
        issued.told = Told::Refused;
    }

    /// At the end, when nothing is outstanding: every batch was either acked and is there, or refused and is not.
    pub fn check_oracle(&self) {
        for (payload, issued) in self.issued.iter().enumerate() {
            match (issued.told, issued.index) {
                (Told::Acked(offset), Some(index)) => {
                    let header = self.at(index).expect("committed");
                    assert_eq!((header.base_offset, header.payload_crc), (offset, payload as u32));
                }
                (Told::Refused, None) => {}
                other => panic!("batch {payload} ended as {other:?}"),
            }
        }
    }
}
