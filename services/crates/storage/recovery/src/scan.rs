//! Recovery of a server's groups from its disk: group logs first, then the journal behind them.
//!
//! Behind a hole a group is *in doubt*. Its records before the hole stay. Later records are skipped until one does not
//! depend on missing ones. A group in doubt at the end is damaged: it learns the rest from other replicas. Its
//! journal continues with a record that states so ([`crate::record::KIND_REPAIRED`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bytes::Bytes;
use quorate_chain::Replica;
use quorate_group_log::Found;
use quorate_journal::record::{KIND_MARK, SEGMENT_HEAD_BYTES};
use quorate_journal::{Damage, JournalRecord, Lsn, Recovery};
use quorate_types::control::HeldGroup;
use quorate_types::{Durability, GroupId, Index, ServerId};
use quorate_wire::Batch;

use crate::places::{Place, Places};
use crate::record::{self, Content, UnknownRecord};

/// Recovery in progress: takes the disk's records and holes, in order.
pub struct Scan {
    me: ServerId,
    groups: BTreeMap<GroupId, Known>,
    /// Groups whose logs may lack durable records.
    damaged: BTreeSet<GroupId>,
    in_doubt: BTreeSet<GroupId>,
    /// Logs behind repaired records and truncations, of groups in doubt.
    suffixes: BTreeMap<GroupId, Suffix>,
    /// A later first record of a group may not be its first.
    is_all_in_doubt: bool,
    next_lsn: Option<Lsn>,
    /// The record behind the last one copied to group logs, and the first that the journal has from there on.
    copied_to: Option<Lsn>,
    begins_at: Option<Lsn>,
    /// The journal's first record, if the expected one was unknown.
    first_lsn: Option<Lsn>,
}

struct Known {
    replica: Replica,
    places: Places,
}

/// The records behind a repaired record, or a truncation, whose good part is not all there. With a base at or behind that
/// index they are the whole log, and the missing part was trimmed. Without one they are void.
struct Suffix {
    known: Known,
    good_index: Index,
    is_damaged: bool,
}

/// The groups that a server holds.
pub struct Recovered {
    pub groups: BTreeMap<GroupId, RecoveredGroup>,
    /// Durable records of the journal that cannot be read.
    pub missing: Vec<Range<Lsn>>,
}

/// A group found on disk.
pub struct RecoveredGroup {
    pub replica: Replica,
    pub places: Places,
    pub state: LogState,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LogState {
    Whole,
    /// The log may lack durable records.
    Damaged,
    /// The log cannot be used at all: the group is dropped here and learns its log from other replicas.
    Useless(String),
}

impl RecoveredGroup {
    /// The report to the coordinator; `None` for a log that cannot be used.
    pub fn held(&self, group_id: GroupId) -> Option<HeldGroup> {
        let log = self.replica.log();
        let (last_index, committed_index) = (log.last_index(), self.replica.commit_index());
        let held = HeldGroup {
            group_id,
            epoch: log.epoch_at(last_index).unwrap_or(0),
            durability: Durability::Persistent,
            last_index,
            committed_epoch: log.epoch_at(committed_index).unwrap_or(0),
            committed_index,
            damaged: self.state == LogState::Damaged,
        };
        (!matches!(self.state, LogState::Useless(_))).then_some(held)
    }
}

impl Scan {
    pub fn new(me: ServerId) -> Self {
        Self {
            me,
            groups: BTreeMap::new(),
            damaged: BTreeSet::new(),
            in_doubt: BTreeSet::new(),
            suffixes: BTreeMap::new(),
            is_all_in_doubt: false,
            next_lsn: None,
            copied_to: None,
            begins_at: None,
            first_lsn: None,
        }
    }

    /// Takes the next item of a group's log.
    pub fn group_log(&mut self, group_id: GroupId, found: Found<'_>) -> Result<(), UnknownRecord> {
        match found {
            Found::Hole => {
                self.group(group_id);
                self.in_doubt.insert(group_id);
                self.suffixes.remove(&group_id);
                Ok(())
            }
            Found::Record {
                lsn,
                kind,
                head,
                payload,
                place,
            } => {
                let (group_id, content) = record::decode(kind, head, payload)?;
                self.take(group_id, content, lsn, None, Place::Log(place));
                Ok(())
            }
        }
    }

    /// The journal is read next, and must begin with or before this record.
    pub fn expect_journal(&mut self, next_lsn: Option<Lsn>) {
        self.next_lsn = next_lsn;
        self.copied_to = next_lsn;
    }

    /// Takes the journal's next record. An error means that this version cannot read the journal.
    pub fn record(&mut self, record: &JournalRecord<'_>) -> Result<(), UnknownRecord> {
        if self.next_lsn.is_some_and(|expected| record.lsn < expected) {
            return Ok(()); // Its group's log has it.
        }
        let is_behind_hole = match self.next_lsn {
            Some(expected) => record.lsn > expected,
            None => {
                self.first_lsn = Some(record.lsn);
                u64::from(record.location.position) > SEGMENT_HEAD_BYTES
            }
        };
        if is_behind_hole {
            self.hole();
        }
        self.next_lsn = Some(record.lsn + 1);
        self.begins_at.get_or_insert(record.lsn);
        if record.kind == KIND_MARK {
            return Ok(());
        }
        let (group_id, content) = record::decode(record.kind, record.head, record.payload)?;
        let place = Place::Journal(record.location);
        self.take(group_id, content, record.lsn, Some(record.payload), place);
        Ok(())
    }

    /// Ends the recovery, behind the last record.
    pub fn finish(mut self, recovery: &Recovery) -> Recovered {
        let expected = self.next_lsn.unwrap_or(recovery.next_lsn);
        // Lost segments before the first one only: `record` sees holes in the first one itself.
        let is_before = |damage: &Damage| {
            let first_lsn = self.first_lsn.filter(|_| !self.is_all_in_doubt);
            first_lsn.is_some_and(|first_lsn| damage.first_lsn < first_lsn)
        };
        let mut damages = recovery.damages.iter();
        if expected < recovery.next_lsn || damages.any(is_before) {
            self.hole();
        }
        self.damaged.append(&mut self.in_doubt);
        let groups = self.groups.into_iter().map(|(group_id, mut known)| {
            let state = match known.replica.recovered_all() {
                Err(hole) => LogState::Useless(hole.to_string()),
                Ok(()) if self.damaged.contains(&group_id) => LogState::Damaged,
                Ok(()) => LogState::Whole,
            };
            let group = RecoveredGroup {
                replica: known.replica,
                places: known.places,
                state,
            };
            (group_id, group)
        });
        let begins_at = self.begins_at.unwrap_or(recovery.next_lsn);
        let gap = self.copied_to.map(|copied_to| copied_to..begins_at);
        let lost = |d: &Damage| d.first_lsn..d.end_lsn.unwrap_or(recovery.next_lsn);
        Recovered {
            groups: groups.collect(),
            missing: gap
                .into_iter()
                .filter(|gap| !gap.is_empty())
                .chain(recovery.damages.iter().map(lost))
                .collect(),
        }
    }

    fn hole(&mut self) {
        self.in_doubt.extend(self.groups.keys());
        self.suffixes.clear();
        self.is_all_in_doubt = true;
    }

    fn group(&mut self, group_id: GroupId) -> &mut Known {
        let me = self.me;
        self.groups.entry(group_id).or_insert_with(|| Known::new(me))
    }

    /// `payload`: of a batch, unless it stays in the group's log.
    fn take(&mut self, group_id: GroupId, content: Content, lsn: Lsn, payload: Option<&[u8]>, place: Place) {
        if let Content::Dropped = content {
            self.groups.remove(&group_id);
            self.damaged.remove(&group_id);
            return self.believe(group_id);
        }
        if self.is_all_in_doubt && !self.groups.contains_key(&group_id) {
            self.in_doubt.insert(group_id);
        }
        let last_index = self.group(group_id).replica.log().last_index();
        // A truncation behind the log's last record shows that records between them are missing: lost, or freed with the
        // first files, as a later base then says. In an empty log a truncation may be the first record left.
        if matches!(content, Content::Truncate { index } if last_index > 0 && index > last_index) {
            self.in_doubt.insert(group_id);
        }
        let is_in_doubt = self.in_doubt.contains(&group_id);
        let begins_again = match &content {
            Content::Truncate { index: 0 } => true,
            // Written while the log was empty, so that a restart finds the group.
            Content::Base(base) => base.index == 0,
            // This batch replaced everything before it, also if the record of that is missing.
            Content::Batch(header) => is_in_doubt && header.index == 1,
            _ => false,
        };
        let is_mended = match content {
            // A batch of another epoch is an old one: the records that replaced it are missing.
            Content::Repaired { index, epoch, .. } if last_index >= index => {
                let replica = &self.groups[&group_id].replica;
                let is_known = epoch == 0 || replica.log().epoch_at(index) == Some(epoch);
                // Remains of what a repair replaced may begin later than the log that was learned again.
                is_known && !(replica.lacks_beginning() && self.suffix_reaches(group_id, index))
            }
            _ => false,
        };
        let is_reset = begins_again || is_mended;
        if !is_reset && (is_in_doubt || matches!(content, Content::Repaired { .. })) {
            self.in_doubt.insert(group_id);
            return self.take_suffix(group_id, content, lsn, payload, place);
        }
        match &content {
            Content::Repaired { damaged: true, .. } => self.damaged.insert(group_id),
            // A log that was reset lacks nothing.
            _ if is_reset => self.damaged.remove(&group_id),
            _ => false,
        };
        let known = self.group(group_id);
        if begins_again {
            known.begin_again();
        }
        known.take(content, lsn, payload, place);
        if is_reset {
            self.believe(group_id);
        }
    }

    /// Takes a record of a group in doubt.
    fn take_suffix(
        &mut self,
        group_id: GroupId,
        content: Content,
        lsn: Lsn,
        payload: Option<&[u8]>,
        place: Place,
    ) {
        let has_suffix = self.suffixes.contains_key(&group_id);
        match content {
            Content::Repaired { index, damaged, .. } if !self.suffix_reaches(group_id, index) => {
                return self.begin_suffix(group_id, index, damaged);
            }
            Content::Truncate { index } if !has_suffix => {
                // A hole may hide that the group was still damaged.
                let is_damaged = self.is_all_in_doubt || self.damaged.contains(&group_id);
                return self.begin_suffix(group_id, index, is_damaged);
            }
            _ => {}
        }
        let Some(suffix) = self.suffixes.get_mut(&group_id) else {
            return;
        };
        let mut is_whole = false;
        match &content {
            Content::Batch(header) => suffix.good_index = suffix.good_index.min(header.index - 1),
            Content::Truncate { index } => suffix.good_index = suffix.good_index.min(*index),
            Content::Repaired { index, damaged, .. } => {
                suffix.good_index = suffix.good_index.min(*index);
                suffix.is_damaged = *damaged;
            }
            Content::Base(base) if base.index < suffix.good_index => return,
            Content::Base(_) => is_whole = true,
            Content::Trim { .. } | Content::Dropped => {}
        }
        suffix.known.take(content, lsn, payload, place);
        if is_whole {
            let suffix = self.suffixes.remove(&group_id).expect("looked up above");
            self.groups.insert(group_id, suffix.known);
            if suffix.is_damaged {
                self.damaged.insert(group_id);
            } else {
                self.damaged.remove(&group_id);
            }
            self.believe(group_id);
        }
    }

    fn suffix_reaches(&self, group_id: GroupId, index: Index) -> bool {
        let suffix = self.suffixes.get(&group_id);
        suffix.is_some_and(|suffix| suffix.known.replica.log().last_index() >= index)
    }

    fn begin_suffix(&mut self, group_id: GroupId, good_index: Index, is_damaged: bool) {
        let empty = Suffix {
            known: Known::new(self.me),
            good_index,
            is_damaged,
        };
        self.suffixes.insert(group_id, empty);
    }

    /// The group's log lacks nothing any more.
    fn believe(&mut self, group_id: GroupId) {
        self.in_doubt.remove(&group_id);
        self.suffixes.remove(&group_id);
    }
}

impl Known {
    fn new(me: ServerId) -> Self {
        Self {
            replica: Replica::new(me, Durability::Persistent),
            places: Places::default(),
        }
    }

    /// An empty log replaces the one before, and its trims.
    fn begin_again(&mut self) {
        self.places = Places::default();
        self.replica.recover_truncation(0);
    }

    fn take(&mut self, content: Content, lsn: Lsn, payload: Option<&[u8]>, place: Place) {
        match content {
            Content::Batch(header) => {
                self.places.note(header.index, lsn, place);
                match payload {
                    Some(payload) => self.replica.recover(Batch {
                        header,
                        payload: Bytes::copy_from_slice(payload),
                        trace: None,
                    }),
                    None => self.replica.recover_on_disk(header),
                }
            }
            Content::Base(base) => {
                self.places.forget_through(base.index);
                self.places.base = Some((base.index, lsn));
                self.replica.recover_base(base);
            }
            Content::Truncate { index } => self.replica.recover_truncation(index),
            Content::Repaired { index, trimmed, .. } => {
                self.replica.recover_truncation(index);
                self.replica.recover_trim(trimmed);
            }
            Content::Trim { index } => self.replica.recover_trim(index),
            Content::Dropped => unreachable!("a dropped group is forgotten"),
        }
    }
}
