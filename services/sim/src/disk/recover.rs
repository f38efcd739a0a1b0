//! Reading a simulated journal at a server's start, by the journal's own scan.

use std::collections::BTreeMap;

use bytes::Bytes;
use quorate_chain::{Base, Replica};
use quorate_journal::{Record, SegmentFile, scan};
use quorate_types::{Durability, GroupId, Index, ServerId};
use quorate_wire::{Batch, BatchHeader};
use uuid::Uuid;

use super::{Disk, Image, KIND_BASE, KIND_BATCH, KIND_CUT, KIND_DROPPED, KIND_TRIM, Places};

/// What a server finds on its disk when it starts.
#[derive(Debug, Default)]
pub struct Found {
    pub groups: BTreeMap<GroupId, Replica>,
    /// Groups of whose log a part is missing.
    pub damaged: Vec<GroupId>,
    pub has_damage: bool,
    places: BTreeMap<GroupId, Places>,
}

impl Disk {
    /// Reads the journal as `services/replica` does at its start, and goes on behind its end.
    pub fn recover(&mut self, me: ServerId) -> Found {
        let files: Vec<SegmentFile<&[u8]>> = self
            .segments
            .iter()
            .map(|s| SegmentFile {
                number: s.number,
                source: &s.bytes[..],
            })
            .collect();
        let mut found = Found::default();
        let scanned = scan(&files, &mut |record| found.record(me, &record)).expect("memory can be read");
        found.has_damage = !scanned.recovery.damages.is_empty();
        let next_lsn = if self.segments.is_empty() {
            self.next_lsn
        } else {
            scanned.recovery.next_lsn
        };
        assert!(
            next_lsn == self.durable_lsn + 1,
            "the scan ends before record {next_lsn}; on stable storage are records up to {}",
            self.durable_lsn
        );
        if let (Some(end), Some(segment)) = (scanned.end, self.segments.back_mut()) {
            assert_eq!(end.segment, segment.number, "writing goes on in the last segment");
            segment.bytes.truncate(end.position as usize);
        }
        for (id, replica) in &mut found.groups {
            if replica.recovered_all().is_err() {
                found.damaged.push(*id);
            }
        }
        self.places = std::mem::take(&mut found.places);
        found
    }

    /// After damage: what there is, is what was found.
    pub fn reimage(&mut self, id: GroupId, replica: &Replica) {
        self.images
            .insert(id, Image::of(replica.log(), replica.trimmed_through()));
    }
}

impl Found {
    fn record(&mut self, me: ServerId, record: &Record<'_>) {
        if record.kind == KIND_BATCH {
            let header = BatchHeader::decode(record.head).expect("a sound record");
            let payload = Bytes::copy_from_slice(record.payload);
            self.places
                .entry(header.group_id)
                .or_default()
                .note(header.index, record.lsn);
            let batch = Batch {
                header,
                payload,
                trace: None,
            };
            return self.group(me, header.group_id).recover(batch);
        }
        let id: &[u8; 16] = record.head.first_chunk().expect("a group");
        let id = GroupId(Uuid::from_bytes(*id));
        let index = || Index::from_le_bytes(*record.head[16..].first_chunk().expect("an index"));
        match record.kind {
            KIND_BASE => {
                let base = Base::decode(record.payload).expect("a base");
                let places = self.places.entry(id).or_default();
                places.forget_through(base.index);
                places.base_lsn = Some(record.lsn);
                self.group(me, id).recover_base(base);
            }
            KIND_CUT => self.group(me, id).recover_cut(index()),
            KIND_TRIM => self.group(me, id).recover_trim(index()),
            KIND_DROPPED => {
                self.groups.remove(&id);
                self.places.remove(&id);
            }
            other => unreachable!("no record of kind {other} is written"),
        }
    }

    fn group(&mut self, me: ServerId, id: GroupId) -> &mut Replica {
        self.groups
            .entry(id)
            .or_insert_with(|| Replica::new(me, Durability::Persistent))
    }
}
