//! Reading a simulated journal at a server's start, by the journal's own scan and the server's own recovery.

use std::collections::BTreeMap;

use quorate_chain::Replica;
use quorate_journal::record::{Lsn, SEGMENT_HEAD_BYTES};
use quorate_journal::{Scanned, SegmentFile, scan};
use quorate_recovery::{LogState, RecoveredGroup, Scan};
use quorate_types::control::HeldGroup;
use quorate_types::{GroupId, ServerId};

use super::{Disk, Image};

/// A group that a server finds on its disk when it starts.
#[derive(Debug)]
pub struct Held {
    pub replica: Replica,
    /// The server's report of it to the coordinator; `None`: its log is of no use.
    pub report: Option<HeldGroup>,
}

impl Disk {
    /// Reads the journal as `services/replica` does at its start, and goes on behind its end.
    pub fn recover(&mut self, me: ServerId) -> BTreeMap<GroupId, Held> {
        // Nothing was copied to group logs: the journal begins where it begins.
        let mut groups = Scan::new(me);
        let scanned = self.scan(&mut groups);
        let recovered = groups.finish(&scanned.recovery);
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
        // The beginning of a first segment is unknown if its heads are lost.
        let missing = recovered.missing.iter().cloned().flatten();
        let missing: Vec<Lsn> = missing.filter(|lsn| *lsn >= self.first_lsn()).collect();
        let damaged: Vec<Lsn> = self.damaged.iter().copied().collect();
        assert_eq!(missing, damaged, "the scan misses other records than are damaged");
        self.is_damage_unknown = false;
        self.go_on_behind(scanned.end);
        self.places.clear();
        self.dropping.clear();
        let mut held = BTreeMap::new();
        for (id, group) in recovered.groups {
            self.check(id, &group);
            let report = group.held(id);
            let is_damaged = group.state == LogState::Damaged;
            let image = Image::of(group.replica.log(), group.replica.trimmed_through(), is_damaged);
            self.images.insert(id, image);
            self.places.insert(id, group.places);
            let replica = group.replica;
            held.insert(id, Held { replica, report });
        }
        let is_held = |id: &GroupId| held.contains_key(id);
        let lost: Vec<GroupId> = self.images.keys().copied().filter(|id| !is_held(id)).collect();
        for id in lost {
            assert!(!damaged.is_empty(), "an undamaged journal lacks a group");
            self.images.remove(&id);
        }
        held
    }

    pub(super) fn scan(&self, groups: &mut Scan) -> Scanned {
        let files: Vec<SegmentFile<&[u8]>> = self
            .segments
            .iter()
            .map(|s| SegmentFile {
                number: s.number,
                source: &s.bytes[..],
            })
            .collect();
        scan(&files, &mut |record| {
            groups.record(&record).expect("a record of this version");
        })
        .expect("memory can be read")
    }

    fn go_on_behind(&mut self, end: Option<quorate_journal::End>) {
        if let (Some(end), Some(segment)) = (end, self.segments.back_mut()) {
            assert_eq!(end.segment, segment.number, "writing goes on in the last segment");
            segment.bytes.truncate(end.position as usize);
        }
        self.end = match self.segments.back() {
            Some(segment) => (segment.number, segment.bytes.len()),
            None => (0, self.segment_bytes),
        };
        assert!(self.end.1 >= SEGMENT_HEAD_BYTES as usize);
    }

    /// A group that is found whole has the log that the synced records amount to. Only a group that may be damaged is
    /// found damaged.
    fn check(&self, id: GroupId, group: &RecoveredGroup) {
        let image = self.images.get(&id).cloned().unwrap_or_default();
        if group.state == LogState::Whole {
            return image.check(group.replica.log());
        }
        assert!(
            !self.damaged.is_empty() || image.is_damaged(),
            "an undamaged journal lacks a part of a log: {:?}",
            group.state
        );
        assert!(
            !self.mended.contains(&id),
            "the group was whole again, nothing was damaged since, and it is found {:?}",
            group.state
        );
        // A group that was created behind all holes has nothing to do with them.
        let born = self.born.get(&id).copied().unwrap_or(0);
        // An earlier hosting seems to go on if the drop record that ended it is missing.
        let is_end_lost = self.ended.get(&id).is_some_and(|lsn| self.damaged.contains(lsn));
        let last_hole = self.damaged.last().copied().unwrap_or(Lsn::MAX);
        assert!(
            born <= last_hole || image.is_damaged() || is_end_lost,
            "all of the group lies behind what is missing, and it is found {:?}",
            group.state
        );
    }
}
