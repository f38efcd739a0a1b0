//! What a start makes of a server's disk: group logs first, then what the journal has behind them.
//!
//! Behind a hole a group is *in doubt*: what it had before the hole stays, later records are passed over until one
//! comes that does not build on what may be missing. A group that is in doubt at the end is damaged: it learns the
//! rest from other replicas, and its journal goes on with a record that says so ([`crate::record::KIND_MENDED`]).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use bytes::Bytes;
use quorate_chain::Replica;
use quorate_group_log::Found;
use quorate_journal::record::{KIND_MARK, SEGMENT_HEAD_BYTES};
use quorate_journal::{Damage, Lsn, Record, Recovery};
use quorate_types::control::HeldGroup;
use quorate_types::{Durability, GroupId, Index, ServerId};
use quorate_wire::Batch;

use crate::places::{Place, Places};
use crate::record::{self, Foreign, Said};

/// Takes in what is on the disk, in order.
pub struct Scan {
    me: ServerId,
    groups: BTreeMap<GroupId, Known>,
    /// Their logs may lack what had been durable.
    damaged: BTreeSet<GroupId>,
    in_doubt: BTreeSet<GroupId>,
    /// Of groups in doubt.
    behind: BTreeMap<GroupId, Behind>,
    /// Groups that come later were perhaps there before.
    is_all_in_doubt: bool,
    next_lsn: Option<Lsn>,
    /// The record behind the last one that was copied to group logs, and the first that the journal has from there on.
    copied_to: Option<Lsn>,
    begins_at: Option<Lsn>,
    /// The journal's first record, if it was not known which that should be.
    first_lsn: Option<Lsn>,
}

struct Known {
    replica: Replica,
    places: Places,
}

/// What follows a record that says up to where the log was good, when not all of that is there. Nothing by itself; but
/// with a base at or behind that index it is the whole log, and what is missing had been trimmed.
struct Behind {
    known: Known,
    good_index: Index,
    is_damaged: bool,
}

/// What a server holds.
pub struct Recovered {
    pub groups: BTreeMap<GroupId, RecoveredGroup>,
    /// Records of the journal that had been durable and cannot be read.
    pub missing: Vec<Range<Lsn>>,
}

/// A group found on disk.
pub struct RecoveredGroup {
    pub replica: Replica,
    pub places: Places,
    pub state: State,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum State {
    Whole,
    /// It may lack what had been durable.
    Damaged,
    /// The log cannot be used at all: it is given up here and learned anew.
    Useless(String),
}

impl RecoveredGroup {
    /// What the coordinator is told; nothing of what cannot be used.
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
            damaged: self.state == State::Damaged,
        };
        (!matches!(self.state, State::Useless(_))).then_some(held)
    }
}

impl Scan {
    pub fn new(me: ServerId) -> Self {
        Self {
            me,
            groups: BTreeMap::new(),
            damaged: BTreeSet::new(),
            in_doubt: BTreeSet::new(),
            behind: BTreeMap::new(),
            is_all_in_doubt: false,
            next_lsn: None,
            copied_to: None,
            begins_at: None,
            first_lsn: None,
        }
    }

    /// Takes in what a group's log has next.
    pub fn group_log(&mut self, group_id: GroupId, found: Found<'_>) -> Result<(), Foreign> {
        match found {
            Found::Hole => {
                self.group(group_id);
                self.in_doubt.insert(group_id);
                self.behind.remove(&group_id);
                Ok(())
            }
            Found::Record {
                lsn,
                kind,
                head,
                payload,
                place,
            } => {
                let (group_id, said) = record::decode(kind, head, payload)?;
                self.take(group_id, said, lsn, None, Place::Log(place));
                Ok(())
            }
        }
    }

    /// The journal is read next, and should begin with or before this record.
    pub fn expect_journal(&mut self, next_lsn: Option<Lsn>) {
        self.next_lsn = next_lsn;
        self.copied_to = next_lsn;
    }

    /// Takes in the journal's next record. An error means that the journal is not one that this version can read.
    pub fn record(&mut self, record: &Record<'_>) -> Result<(), Foreign> {
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
        let (group_id, said) = record::decode(record.kind, record.head, record.payload)?;
        let place = Place::Journal(record.location);
        self.take(group_id, said, record.lsn, Some(record.payload), place);
        Ok(())
    }

    /// Ends it, behind the last record.
    pub fn finish(mut self, recovery: &Recovery) -> Recovered {
        let expected = self.next_lsn.unwrap_or(recovery.next_lsn);
        // Segments of which nothing is left, and only then: what lies in the first one is seen as it is met.
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
                Err(hole) => State::Useless(hole.to_string()),
                Ok(()) if self.damaged.contains(&group_id) => State::Damaged,
                Ok(()) => State::Whole,
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
        self.behind.clear();
        self.is_all_in_doubt = true;
    }

    fn group(&mut self, group_id: GroupId) -> &mut Known {
        let me = self.me;
        self.groups.entry(group_id).or_insert_with(|| Known::new(me))
    }

    /// `payload`: of a batch, unless it stays where it lies.
    fn take(&mut self, group_id: GroupId, said: Said, lsn: Lsn, payload: Option<&[u8]>, place: Place) {
        if let Said::Dropped = said {
            self.groups.remove(&group_id);
            self.damaged.remove(&group_id);
            return self.believe(group_id);
        }
        if self.is_all_in_doubt && !self.groups.contains_key(&group_id) {
            self.in_doubt.insert(group_id);
        }
        let last_index = self.group(group_id).replica.log().last_index();
        // A log is cut behind something that it has: what was between is missing. Of a group log whose first files
        // are trimmed, the cut may be the first that is left.
        if matches!(said, Said::Cut { index } if last_index > 0 && index > last_index) {
            self.in_doubt.insert(group_id);
        }
        let is_in_doubt = self.in_doubt.contains(&group_id);
        let begins_anew = match &said {
            Said::Cut { index: 0 } => true,
            // Written while the log is empty: a restart must find the group.
            Said::Base(base) => base.index == 0,
            // Whatever was before, and may be missing, this batch took the place of.
            Said::Batch(header) => is_in_doubt && header.index == 1,
            Said::Mended { index, .. } => last_index >= *index,
            _ => false,
        };
        if !begins_anew && (is_in_doubt || matches!(said, Said::Mended { .. })) {
            self.in_doubt.insert(group_id);
            return self.take_behind(group_id, said, lsn, payload, place);
        }
        match &said {
            Said::Mended { damaged: true, .. } => self.damaged.insert(group_id),
            // A log that begins anew lacks nothing.
            _ if begins_anew => self.damaged.remove(&group_id),
            _ => false,
        };
        self.group(group_id).take(said, lsn, payload, place);
        if begins_anew {
            self.believe(group_id);
        }
    }

    /// Takes in a record of a group in doubt.
    fn take_behind(&mut self, group_id: GroupId, said: Said, lsn: Lsn, payload: Option<&[u8]>, place: Place) {
        if let Said::Mended { index, damaged } = said {
            let fits = |behind: &mut Behind| behind.known.replica.log().last_index() >= index;
            if self.behind.get_mut(&group_id).is_none_or(|behind| !fits(behind)) {
                let anew = Behind {
                    known: Known::new(self.me),
                    good_index: index,
                    is_damaged: damaged,
                };
                self.behind.insert(group_id, anew);
                return;
            }
        }
        let Some(behind) = self.behind.get_mut(&group_id) else {
            return;
        };
        let mut is_whole = false;
        match &said {
            Said::Batch(header) => behind.good_index = behind.good_index.min(header.index - 1),
            Said::Cut { index } => behind.good_index = behind.good_index.min(*index),
            Said::Mended { index, damaged } => {
                behind.good_index = behind.good_index.min(*index);
                behind.is_damaged = *damaged;
            }
            Said::Base(base) if base.index < behind.good_index => return,
            Said::Base(_) => is_whole = true,
            Said::Trim { .. } | Said::Dropped => {}
        }
        behind.known.take(said, lsn, payload, place);
        if is_whole {
            let behind = self.behind.remove(&group_id).expect("looked up above");
            self.groups.insert(group_id, behind.known);
            if behind.is_damaged {
                self.damaged.insert(group_id);
            } else {
                self.damaged.remove(&group_id);
            }
            self.believe(group_id);
        }
    }

    fn believe(&mut self, group_id: GroupId) {
        self.in_doubt.remove(&group_id);
        self.behind.remove(&group_id);
    }
}

impl Known {
    fn new(me: ServerId) -> Self {
        Self {
            replica: Replica::new(me, Durability::Persistent),
            places: Places::default(),
        }
    }

    fn take(&mut self, said: Said, lsn: Lsn, payload: Option<&[u8]>, place: Place) {
        match said {
            Said::Batch(header) => {
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
            Said::Base(base) => {
                if base.index == 0 {
                    // What is held, if anything, was cut: the record of that is missing.
                    self.places = Places::default();
                    self.replica.recover_cut(0);
                }
                self.places.forget_through(base.index);
                self.places.base = Some((base.index, lsn));
                self.replica.recover_base(base);
            }
            Said::Cut { index } | Said::Mended { index, .. } => {
                if index == 0 {
                    self.places = Places::default();
                }
                self.replica.recover_cut(index);
            }
            Said::Trim { index } => self.replica.recover_trim(index),
            Said::Dropped => unreachable!("a dropped group is forgotten"),
        }
    }
}
