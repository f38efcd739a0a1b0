//! Records are read where they lie, found damaged, and written back when they are repaired.

use bytes::Bytes;
use quorate_group::Lack;
use quorate_journal::Location;
use quorate_journal::record::{self, HEADER_BYTES, Header, Lsn};
use quorate_recovery::Place;
use quorate_recovery::record::KIND_BATCH;
use quorate_types::{GroupId, Index};
use quorate_wire::BatchHeader;

use super::{Disk, Segment};

/// The place of a batch's record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spot {
    pub lsn: Lsn,
    location: Location,
}

impl Disk {
    /// The current place of the group's batch, if it has one.
    pub fn spot(&self, id: GroupId, index: Index) -> Option<Spot> {
        let (lsn, place) = self.places.get(&id)?.get(index)?;
        let Place::Journal(location) = place else {
            unreachable!("there are no group logs here")
        };
        Some(Spot { lsn, location })
    }

    /// The payload of the record at this place.
    pub fn read(&self, spot: Spot) -> Result<Bytes, Lack> {
        if let Some(record) = self.pending.iter().find(|r| r.lsn == spot.lsn) {
            return Ok(record.entry.payload.clone());
        }
        let segment = self.segment(spot.location.segment).ok_or(Lack::Moved)?;
        let bytes = segment.bytes.get(spot.location.position as usize..);
        let parsed = bytes.and_then(|bytes| record::parse(bytes, segment.number, segment.salt));
        let (header, _, payload) = parsed.ok_or(Lack::Damaged)?;
        assert_eq!(header.lsn, spot.lsn, "another record lies there");
        Ok(Bytes::copy_from_slice(payload))
    }

    fn segment(&self, number: u32) -> Option<&Segment> {
        self.segments.iter().find(|segment| segment.number == number)
    }

    pub fn has_damage(&self) -> bool {
        !self.damaged.is_empty()
    }

    /// Records on stable storage whose bytes are wrong. A segment that lost its heads only can still be read.
    pub fn unreadable_records(&self) -> Vec<Lsn> {
        let is_unreadable = |lsn: &&Lsn| {
            let placed = self.placed.iter().find(|placed| placed.lsn == **lsn);
            placed.is_some_and(|placed| {
                let (lsn, location) = (placed.lsn, placed.location);
                self.read(Spot { lsn, location }).is_err()
            })
        };
        self.damaged.iter().filter(is_unreadable).copied().collect()
    }

    /// The group's batches that lie in these records.
    pub fn batches_in(&self, id: GroupId, lsns: &[Lsn]) -> Vec<(Index, Lsn)> {
        let Some(places) = self.places.get(&id) else {
            return Vec::new();
        };
        let in_record = |lsn: &Lsn| places.in_journal(&(*lsn..*lsn + 1));
        lsns.iter().flat_map(in_record).collect()
    }

    /// Writes a repaired batch to its old place, as `Journal::rewrite` does. False: it has no place any more, or is about
    /// to be written.
    pub fn rewrite(&mut self, spot: Spot, batch: &BatchHeader, payload: &[u8]) -> bool {
        let Some(placed) = self.placed.iter().find(|placed| placed.lsn == spot.lsn) else {
            return false;
        };
        let head = batch.encode();
        assert_eq!(
            crc32fast::hash(&head),
            placed.head_crc,
            "a repair writes another batch over record {}",
            spot.lsn
        );
        let header = Header {
            body_len: spot.location.len - HEADER_BYTES as u32,
            lsn: spot.lsn,
            segment: spot.location.segment,
            unsynced: spot.lsn as u32,
            head_len: head.len() as u16,
            kind: KIND_BATCH,
        };
        let mut segments = self.segments.iter_mut();
        let segment = segments.find(|segment| segment.number == spot.location.segment);
        let segment = segment.expect("where a placed record lies");
        let mut bytes = Vec::new();
        record::encode(&header, segment.salt, &head, payload, &mut bytes);
        let position = spot.location.position as usize;
        segment.bytes[position..position + bytes.len()].copy_from_slice(&bytes);
        self.damaged = self.unreadable();
        true
    }
}
