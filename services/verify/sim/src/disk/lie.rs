//! A disk that lies: it loses the last writes that it had called durable. Nothing on it shows that.

use quorate_journal::record::{self, Lsn};
use quorate_recovery::Scan;
use quorate_recovery::record::{KIND_BATCH, KIND_TRIM};
use quorate_types::{GroupId, ServerId};
use rand::Rng;
use rand::rngs::SmallRng;

use super::{Disk, Image, Placed};

/// Records that are lost at once, at most.
const LOST_MAX: usize = 20;

impl Disk {
    /// Loses some of the last durable records, all of them batches or trims. Its server is down. Answers the groups that
    /// they are of.
    pub fn lie(&mut self, me: ServerId, rng: &mut SmallRng) -> Vec<GroupId> {
        let last_segment = self.segments.back().map(|segment| segment.number);
        let is_last = |placed: &&Placed| Some(placed.location.segment) == last_segment;
        let may_go = |placed: &&Placed| matches!(placed.kind, KIND_BATCH | KIND_TRIM);
        let last = || self.placed.iter().rev().take_while(is_last);
        // The segment's first record stays, so that the segment is one.
        let most = last()
            .take_while(may_go)
            .count()
            .min(last().count().saturating_sub(1));
        let goes = match most.min(LOST_MAX) {
            0 => return Vec::new(),
            most => rng.random_range(1..=most),
        };
        let lost: Vec<Placed> = self.placed.drain(self.placed.len() - goes..).collect();
        let segment = self.segments.back_mut().expect("it has records");
        segment.bytes.truncate(lost[0].location.position as usize);
        self.durable_lsn = lost[0].lsn - 1;
        self.next_lsn = lost[0].lsn;
        self.last_write_lsn = self.first_of_last_write().unwrap_or(1);
        let lost_from: Lsn = lost[0].lsn;
        self.damaged.retain(|lsn| *lsn < lost_from);
        self.image_again(me);
        let mut groups: Vec<GroupId> = lost.iter().map(|placed| placed.group_id).collect();
        groups.sort_unstable();
        groups.dedup();
        groups
    }

    /// The first record of the write that the last record came with, as that record says.
    fn first_of_last_write(&self) -> Option<Lsn> {
        let (placed, segment) = (self.placed.back()?, self.segments.back()?);
        let bytes = &segment.bytes[placed.location.position as usize..];
        let (header, ..) = record::parse(bytes, segment.number, segment.salt)?;
        Some(header.lsn + 1 - u64::from(header.unsynced))
    }

    /// The logs that are left, as a start would find them.
    fn image_again(&mut self, me: ServerId) {
        let mut groups = Scan::new(me);
        let scanned = self.scan(&mut groups);
        let recovered = groups.finish(&scanned.recovery);
        self.images.clear();
        for (id, group) in recovered.groups {
            let is_damaged = group.state == quorate_recovery::LogState::Damaged;
            let image = Image::of(group.replica.log(), group.replica.trimmed_through(), is_damaged);
            self.images.insert(id, image);
        }
    }
}
