//! The journal as the replica uses it: records of groups, their way to stable storage, recovery at start.
//!
//! Records (`docs/internals/journal.md` has the framing):
//!
//! | kind | head | payload |
//! | --- | --- | --- |
//! | 1 batch | the 96-byte batch header | the entries |
//! | 2 base | group[16] | an encoded base: the log begins behind it |
//! | 4 cut | group[16], u64 index | empty: the group's log ends at the index; what lay behind it was never committed |
//! | 5 trim | group[16], u64 index | empty: clients trimmed the group's log up to the index, and were told |
//! | 3 dropped | group[16] | empty: all records of the group before this one mean nothing |
//! | 6 mended | group[16], u64 index, u8 damaged | empty: records of the group before this one are missing, but its log is good up to the index, and goes on behind this record; while `damaged`, more had been durable |
//!
//! Group logs hold the same records (`docs/internals/group-logs.md`).

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use quorate_chain::{Base, Replica};
use quorate_group_log::{Found, Meaning};
use quorate_journal::{
    Damage, Event, Journal, Location, Lsn, Record, Recovery, Submission, SubmitError, Submitter,
};
use quorate_types::limits::JOURNAL_BUFFER_BYTES_MAX;
use quorate_types::{Durability, Epoch, GroupId, Index, ServerId};
use quorate_wire::{Batch, BatchHeader};
use uuid::Uuid;

pub const KIND_BATCH: u8 = 1;
pub const KIND_BASE: u8 = 2;
pub const KIND_DROPPED: u8 = 3;
pub const KIND_CUT: u8 = 4;
pub const KIND_TRIM: u8 = 5;
pub const KIND_MENDED: u8 = 6;

/// Records offered to the journal at once: a refusal costs no more than that many built in vain.
const SUBMIT_RECORDS_MAX: usize = 1_024;

/// One shard's port to the journal. Records that the journal does not take yet wait here, in order.
pub struct JournalPort {
    journal: Arc<Journal>,
    submitter: Submitter,
    waiting: VecDeque<Waiting>,
    waiting_bytes: usize,
    next_tag: u64,
    /// Submitted, by tag: what becomes durable with it.
    in_flight: VecDeque<(u64, Durable)>,
    /// Of each group that was dropped, until the journal has that: the tag of the record that says so. Records up to it
    /// were of a group that is gone; one that comes again under its id is told nothing of them.
    drops: HashMap<GroupId, u64>,
    /// The journal is dead: what it is given is dropped, since nothing will ever be durable.
    is_dead: bool,
}

struct Waiting {
    kind: u8,
    head: Vec<u8>,
    payload: Bytes,
    durable: Durable,
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

/// Where a record lies, for its group's book.
#[derive(Debug, Clone, Copy)]
pub struct Placed {
    pub durable: Durable,
    pub lsn: Lsn,
    pub location: Location,
}

impl JournalPort {
    pub fn new(journal: Arc<Journal>, completion: impl Fn(Event) + Send + Sync + 'static) -> Self {
        let submitter = journal.submitter(Arc::new(completion));
        Self {
            journal,
            submitter,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            next_tag: 1,
            in_flight: VecDeque::new(),
            drops: HashMap::new(),
            is_dead: false,
        }
    }

    pub fn died(&mut self) {
        self.is_dead = true;
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.in_flight.clear();
        self.drops.clear();
    }

    pub fn journal(&self) -> Arc<Journal> {
        self.journal.clone()
    }

    pub fn batch(&mut self, batch: &Batch) {
        let header = &batch.header;
        let durable = Durable {
            group_id: header.group_id,
            index: header.index,
            epoch: header.epoch,
            kind: KIND_BATCH,
        };
        self.push(
            KIND_BATCH,
            header.encode().to_vec(),
            batch.payload.clone(),
            durable,
        );
    }

    pub fn base(&mut self, group_id: GroupId, base: Bytes, index: Index, epoch: Epoch) {
        let durable = Durable {
            group_id,
            index,
            epoch,
            kind: KIND_BASE,
        };
        self.push(KIND_BASE, group_id.0.as_bytes().to_vec(), base, durable);
    }

    pub fn cut(&mut self, group_id: GroupId, index: Index, number: u64) {
        let durable = Durable {
            group_id,
            index,
            epoch: number,
            kind: KIND_CUT,
        };
        let head = group_and_index(group_id, index);
        self.push(KIND_CUT, head, Bytes::new(), durable);
    }

    pub fn trim(&mut self, group_id: GroupId, index: Index) {
        let durable = Durable {
            group_id,
            index,
            epoch: 0,
            kind: KIND_TRIM,
        };
        let head = group_and_index(group_id, index);
        self.push(KIND_TRIM, head, Bytes::new(), durable);
    }

    /// The group's records before this one mean nothing: neither at the next start, nor to who asked for them.
    pub fn dropped(&mut self, group_id: GroupId) {
        if !self.is_dead {
            self.drops
                .insert(group_id, self.next_tag + self.waiting.len() as u64);
        }
        let durable = Durable {
            group_id,
            index: 0,
            epoch: 0,
            kind: KIND_DROPPED,
        };
        self.push(
            KIND_DROPPED,
            group_id.0.as_bytes().to_vec(),
            Bytes::new(),
            durable,
        );
    }

    /// The log is good up to `index`, whatever is missing before; `damaged`: more of it had been durable.
    pub fn mended(&mut self, group_id: GroupId, index: Index, damaged: bool) {
        let durable = Durable {
            group_id,
            index,
            epoch: 0,
            kind: KIND_MENDED,
        };
        let mut head = group_id.0.as_bytes().to_vec();
        head.extend_from_slice(&index.to_le_bytes());
        head.push(u8::from(damaged));
        self.push(KIND_MENDED, head, Bytes::new(), durable);
    }

    fn push(&mut self, kind: u8, head: Vec<u8>, payload: Bytes, durable: Durable) {
        if self.is_dead {
            return;
        }
        self.waiting_bytes += head.len() + payload.len();
        self.waiting.push_back(Waiting {
            kind,
            head,
            payload,
            durable,
        });
    }

    /// Whether heads should stop ordering for a while: the disk is behind.
    pub fn is_crowded(&self) -> bool {
        self.waiting_bytes > JOURNAL_BUFFER_BYTES_MAX / 4
    }

    /// Hands over what waits, as far as the journal takes it; tells where each record will lie.
    pub fn submit(&mut self) -> (Vec<Placed>, Option<SubmitError>) {
        let mut placed = Vec::new();
        while !self.waiting.is_empty() {
            if let Err(refusal) = self.submit_slice(&mut placed) {
                return (placed, Some(refusal));
            }
        }
        (placed, None)
    }

    fn submit_slice(&mut self, placed: &mut Vec<Placed>) -> Result<(), SubmitError> {
        let submissions: Vec<Submission<'_>> = self
            .waiting
            .iter()
            .take(SUBMIT_RECORDS_MAX)
            .zip(self.next_tag..)
            .map(|(waiting, tag)| Submission {
                kind: waiting.kind,
                head: &waiting.head,
                payload: &waiting.payload,
                tag,
                reserved: waiting.kind != KIND_BATCH,
            })
            .collect();
        let mut places = Vec::with_capacity(submissions.len());
        let outcome = self
            .submitter
            .submit_many(&submissions, |at| places.push((at.lsn, at.location)));
        for (lsn, location) in places {
            let record = self.waiting.pop_front().expect("only what waited was taken");
            self.waiting_bytes -= record.head.len() + record.payload.len();
            self.in_flight.push_back((self.next_tag, record.durable));
            if !self.is_void(self.next_tag, record.durable.group_id) {
                placed.push(Placed {
                    durable: record.durable,
                    lsn,
                    location,
                });
            }
            self.next_tag += 1;
        }
        outcome
    }

    fn is_void(&self, tag: u64, group_id: GroupId) -> bool {
        self.drops.get(&group_id).is_some_and(|drop| tag <= *drop)
    }

    /// What became durable with `tag`: the last record of each group and kind, in order.
    pub fn completed(&mut self, tag: u64) -> Vec<Durable> {
        let mut done: Vec<Durable> = Vec::new();
        while self.in_flight.front().is_some_and(|(t, _)| *t <= tag) {
            let (tag, durable) = self.in_flight.pop_front().expect("there is a front");
            if self.is_void(tag, durable.group_id) {
                if self.drops[&durable.group_id] == tag {
                    self.drops.remove(&durable.group_id);
                }
                continue;
            }
            match done.last_mut() {
                Some(last) if last.group_id == durable.group_id && last.kind == durable.kind => {
                    *last = durable
                }
                _ => done.push(durable),
            }
        }
        done
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
        KIND_DROPPED => Some((group_id_of(head).ok()?, Meaning::Dropped)),
        KIND_BASE..KIND_UNKNOWN => Some((group_id_of(head).ok()?, Meaning::Other)),
        _ => None,
    }
}

/// Kinds from here on are of a later version.
const KIND_UNKNOWN: u8 = KIND_MENDED + 1;

/// A group found on disk.
pub struct Recovered {
    pub replica: Replica,
    pub places: Places,
}

/// Where a batch's record lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    Journal(Location),
    Log(quorate_group_log::Place),
}

/// Where a group's batches lie, from `first_index` on, by lsn too; and its base.
#[derive(Debug, Default)]
pub struct Places {
    first_index: Index,
    batches: VecDeque<(Lsn, Place)>,
    /// The last base on disk: its index and its record.
    pub base: Option<(Index, Lsn)>,
}

impl Places {
    /// Notes a batch; one at an index that is there already replaces it and all behind it.
    pub fn note(&mut self, index: Index, lsn: Lsn, place: Place) {
        if self.batches.is_empty() {
            self.first_index = index;
        }
        let Some(at) = index.checked_sub(self.first_index) else {
            return;
        };
        self.batches.truncate(at as usize);
        if self.batches.len() as u64 != at {
            // A gap: the log began anew behind a base.
            self.batches.clear();
            self.first_index = index;
        }
        self.batches.push_back((lsn, place));
    }

    pub fn get(&self, index: Index) -> Option<(Lsn, Place)> {
        let at = index.checked_sub(self.first_index)?;
        self.batches.get(at as usize).copied()
    }

    /// The group's log has these records now. Those that were cut or trimmed are nobody's.
    pub fn moved(&mut self, records: &[(Lsn, quorate_group_log::Place)]) {
        for (lsn, place) in records {
            if let Ok(at) = self.batches.binary_search_by_key(lsn, |(lsn, _)| *lsn) {
                self.batches[at].1 = Place::Log(*place);
            }
        }
    }

    /// The batches that lie in the journal with these lsns.
    pub fn in_journal(&self, lsns: &Range<Lsn>) -> Vec<(Index, Lsn)> {
        let from = self.batches.partition_point(|(lsn, _)| *lsn < lsns.start);
        let found = self.batches.range(from..).zip(self.first_index + from as u64..);
        found
            .take_while(|((lsn, _), _)| *lsn < lsns.end)
            .filter(|((_, place), _)| matches!(place, Place::Journal(_)))
            .map(|((lsn, _), index)| (index, *lsn))
            .collect()
    }

    /// The batch whose record begins there.
    pub fn index_at(&self, file: u32, position: u32) -> Option<Index> {
        let is_there = |(_, place): &(Lsn, Place)| matches!(place, Place::Log(p) if (p.file, p.position) == (file, position));
        let at = self.batches.iter().position(is_there)?;
        Some(self.first_index + at as u64)
    }

    /// A base at `index` is durable: what lies at or before it is not needed.
    pub fn forget_through(&mut self, index: Index) {
        while self.first_index <= index && !self.batches.is_empty() {
            self.batches.pop_front();
            self.first_index += 1;
        }
    }
}

/// What was found at start: in group logs first, then in what the journal has behind them.
///
/// Behind a hole a group is *in doubt*: what it had before the hole stays, later records are passed over until one
/// comes that does not build on what may be missing. A group that is in doubt at the end is damaged: it learns the
/// rest from other replicas, and its journal goes on with a record that says so ([`KIND_MENDED`]).
#[derive(Default)]
pub struct Scan {
    pub groups: HashMap<GroupId, Recovered>,
    /// Their logs cannot be used at all: they are given up here and learned anew.
    pub useless: HashMap<GroupId, String>,
    /// Their logs may lack what had been durable.
    pub damaged: HashSet<GroupId>,
    in_doubt: HashSet<GroupId>,
    /// Groups that come later were perhaps there before.
    is_all_in_doubt: bool,
    next_lsn: Option<Lsn>,
}

impl Scan {
    /// The journal is read next, and should begin with or before this record.
    pub fn expect_journal(&mut self, next_lsn: Option<Lsn>) {
        self.next_lsn = next_lsn;
    }

    /// To be called behind the last record. `lacks_end`: of what the journal had last, something is missing.
    pub fn finish(&mut self, recovery: &Recovery, lacks_end: bool) {
        let expected = self.next_lsn.unwrap_or(recovery.next_lsn);
        let is_open = |damage: &Damage| damage.end_lsn.is_none() && damage.first_lsn >= expected;
        if lacks_end || expected < recovery.next_lsn || recovery.damages.iter().any(is_open) {
            self.hole();
        }
        for (group_id, recovered) in &mut self.groups {
            if let Err(hole) = recovered.replica.recovered_all() {
                self.useless.insert(*group_id, hole.to_string());
            }
        }
        self.damaged.extend(self.in_doubt.drain());
        self.damaged
            .retain(|group_id| !self.useless.contains_key(group_id));
    }

    /// Takes in what a group's log has next.
    pub fn group_log(&mut self, me: ServerId, group_id: GroupId, found: Found<'_>) -> Result<(), String> {
        match found {
            Found::Hole => {
                group(&mut self.groups, me, group_id);
                self.in_doubt.insert(group_id);
                Ok(())
            }
            Found::Record {
                lsn,
                kind,
                head,
                payload,
                place,
            } => {
                let payload = (kind != KIND_BATCH).then_some(payload);
                self.take(me, lsn, kind, head, payload, Place::Log(place))
            }
        }
    }

    /// Takes in the journal's next record. An error means that the journal is not one that this version can read.
    pub fn record(&mut self, me: ServerId, record: &Record<'_>) -> Result<(), String> {
        if self.next_lsn.is_some_and(|expected| record.lsn < expected) {
            return Ok(()); // Its group's log has it.
        }
        if self.next_lsn.is_some_and(|expected| record.lsn > expected) {
            self.hole();
        }
        self.next_lsn = Some(record.lsn + 1);
        let place = Place::Journal(record.location);
        self.take(
            me,
            record.lsn,
            record.kind,
            record.head,
            Some(record.payload),
            place,
        )
    }

    fn hole(&mut self) {
        self.in_doubt.extend(self.groups.keys());
        self.is_all_in_doubt = true;
    }

    fn take(
        &mut self,
        me: ServerId,
        lsn: Lsn,
        kind: u8,
        head: &[u8],
        payload: Option<&[u8]>,
        place: Place,
    ) -> Result<(), String> {
        let (group_id, _) = classify(kind, head)
            .ok_or_else(|| format!("record kind {kind} is malformed, or of a later version"))?;
        let is_new = !self.groups.contains_key(&group_id);
        if is_new && self.is_all_in_doubt {
            self.in_doubt.insert(group_id);
        }
        let recovered = group(&mut self.groups, me, group_id);
        let index = head
            .get(16..)
            .and_then(<[u8]>::first_chunk)
            .map(|index| Index::from_le_bytes(*index));
        let base = match kind {
            KIND_BASE => Some(Base::decode(payload.unwrap_or(&[])).ok_or("a base record is malformed")?),
            _ => None,
        };
        let begins_anew = match kind {
            KIND_CUT => index == Some(0),
            KIND_BASE => base.as_ref().is_some_and(|base| base.index == 0),
            KIND_MENDED => index.is_some_and(|index| recovered.replica.log().last_index() >= index),
            _ => false,
        };
        if begins_anew {
            self.in_doubt.remove(&group_id);
        } else if kind == KIND_MENDED {
            self.in_doubt.insert(group_id);
        }
        if kind != KIND_DROPPED && self.in_doubt.contains(&group_id) {
            return Ok(());
        }
        match kind {
            KIND_BATCH => {
                let header = BatchHeader::decode(head).map_err(|e| e.to_string())?;
                recovered.places.note(header.index, lsn, place);
                match payload {
                    Some(payload) => recovered.replica.recover(Batch {
                        header,
                        payload: Bytes::copy_from_slice(payload),
                        trace: None,
                    }),
                    None => recovered.replica.recover_on_disk(header),
                }
            }
            KIND_BASE => {
                let base = base.expect("decoded above");
                recovered.places.forget_through(base.index);
                recovered.places.base = Some((base.index, lsn));
                recovered.replica.recover_base(base);
            }
            KIND_CUT | KIND_MENDED => {
                let index = index.ok_or("a record is too short for an index")?;
                if index == 0 {
                    recovered.places = Places::default();
                }
                recovered.replica.recover_cut(index);
                match (kind, head.get(24)) {
                    (KIND_MENDED, Some(1)) => self.damaged.insert(group_id),
                    // A log that begins anew lacks nothing.
                    _ if begins_anew => self.damaged.remove(&group_id),
                    _ => false,
                };
            }
            KIND_TRIM => {
                let index = index.ok_or("a record is too short for an index")?;
                recovered.replica.recover_trim(index);
            }
            KIND_DROPPED => {
                self.groups.remove(&group_id);
                self.in_doubt.remove(&group_id);
                self.damaged.remove(&group_id);
            }
            unknown => return Err(format!("record kind {unknown} is of a later version")),
        }
        Ok(())
    }
}

fn group(groups: &mut HashMap<GroupId, Recovered>, me: ServerId, group_id: GroupId) -> &mut Recovered {
    groups.entry(group_id).or_insert_with(|| Recovered {
        replica: Replica::new(me, Durability::Persistent),
        places: Places::default(),
    })
}

fn group_and_index(group_id: GroupId, index: Index) -> Vec<u8> {
    let mut head = group_id.0.as_bytes().to_vec();
    head.extend_from_slice(&index.to_le_bytes());
    head
}

fn group_id_of(body: &[u8]) -> Result<GroupId, String> {
    let bytes: &[u8; 16] = body.first_chunk().ok_or("a record is too short for a group")?;
    Ok(GroupId(Uuid::from_bytes(*bytes)))
}

#[cfg(test)]
#[path = "disk_tests.rs"]
mod tests;
