//! One shard's port to the journal: records of its groups on their way to stable storage, and what is said of them
//! there. `quorate_recovery` has the records' meaning.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use quorate_journal::{Event, Journal, Location, Lsn, Submission, SubmitError, Submitter};
use quorate_recovery::record::{KIND_BATCH, KIND_DROPPED};
use quorate_recovery::{Durable, GroupRecord};
use quorate_types::GroupId;

/// The most that a shard writes and syncs itself, and the longest that the last sync may have taken: it does nothing else
/// meanwhile. A batch of this size is quicker on its way to the device than two threads are to wake each other.
const IN_PLACE_BYTES_MAX: usize = 4_096;
const IN_PLACE_SYNC_MAX: Duration = Duration::from_micros(500);

/// Records offered to the journal at once: a refusal costs no more than that many built in vain.
const SUBMIT_RECORDS_MAX: usize = 1_024;

/// One shard's port to the journal. Records that the journal does not take yet wait here, in order.
pub struct JournalPort {
    journal: Arc<Journal>,
    submitter: Submitter,
    waiting: VecDeque<GroupRecord>,
    waiting_bytes: usize,
    next_tag: u64,
    /// Submitted, by tag: what becomes durable with it.
    in_flight: VecDeque<(u64, Durable)>,
    /// For each dropped group, until the journal has the drop: the tag of that record. Records before it were of a
    /// group that is gone; one that comes again under its id gets no completions of them.
    drops: HashMap<GroupId, u64>,
    /// Placed in the journal, without a request to write them yet.
    placed_bytes: usize,
    /// Whether all that the shard serves waits for the disk anyway.
    pub may_hold_up: bool,
    /// The journal is dead: what it is given is dropped, since nothing will ever be durable.
    is_dead: bool,
}

/// The location of a record, for its group's book.
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
            placed_bytes: 0,
            may_hold_up: false,
            is_dead: false,
        }
    }

    pub fn died(&mut self) {
        self.is_dead = true;
        self.waiting.clear();
        self.waiting_bytes = 0;
        self.in_flight.clear();
    }

    pub fn journal(&self) -> Arc<Journal> {
        self.journal.clone()
    }

    /// To be written behind all that was given before.
    pub fn write(&mut self, entry: GroupRecord) {
        if entry.kind() == KIND_DROPPED {
            let tag = self.next_tag + self.waiting.len() as u64;
            self.drops.insert(entry.durable.group_id, tag);
        }
        if self.is_dead {
            return;
        }
        self.waiting_bytes += entry.bytes();
        self.waiting.push_back(entry);
    }

    /// Whether a restart could bring the group back as it was before it was dropped. With a dead journal that stays so.
    pub fn is_dropping(&self, group_id: GroupId) -> bool {
        self.drops.contains_key(&group_id)
    }

    /// Bytes of records that the journal has not taken yet.
    pub fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// Hands over what waits, as far as the journal takes it; tells where each record will lie. Nobody writes it before
    /// [`Self::commit`] or [`Self::commit_here`].
    pub fn submit(&mut self) -> (Vec<Placed>, Option<SubmitError>) {
        let mut placed = Vec::new();
        while !self.waiting.is_empty() {
            if let Err(refusal) = self.submit_slice(&mut placed) {
                return (placed, Some(refusal));
            }
        }
        (placed, None)
    }

    /// Nothing waits to be written, nor for the disk.
    pub fn is_idle(&self) -> bool {
        self.waiting.is_empty() && self.in_flight.is_empty()
    }

    /// Bytes that were placed and wait for a commit.
    pub fn placed_bytes(&self) -> usize {
        self.placed_bytes
    }

    /// Whether a shard that has nothing else to do had better write and sync what it placed itself.
    pub fn suits_here(&self) -> bool {
        self.may_hold_up
            && (1..=IN_PLACE_BYTES_MAX).contains(&self.placed_bytes)
            && self.submitter.last_commit() <= IN_PLACE_SYNC_MAX
    }

    /// Has the journal's thread write what was placed, if anything was.
    pub fn commit(&mut self) {
        if std::mem::take(&mut self.placed_bytes) > 0 {
            self.submitter.commit();
        }
    }

    /// Writes and syncs here what was placed, unless the journal is at it already.
    pub fn commit_here(&mut self) {
        if self.submitter.commit_here() {
            self.placed_bytes = 0;
        }
        self.commit();
    }

    fn submit_slice(&mut self, placed: &mut Vec<Placed>) -> Result<(), SubmitError> {
        let submissions: Vec<Submission<'_>> = self
            .waiting
            .iter()
            .take(SUBMIT_RECORDS_MAX)
            .zip(self.next_tag..)
            .map(|(waiting, tag)| Submission {
                kind: waiting.kind(),
                head: &waiting.head,
                payload: &waiting.payload,
                payload_crc: waiting.payload_crc,
                tag,
                reserved: waiting.kind() != KIND_BATCH,
            })
            .collect();
        let mut places = Vec::with_capacity(submissions.len());
        let outcome = self
            .submitter
            .place_many(&submissions, |at| places.push((at.lsn, at.location)));
        for (lsn, location) in places {
            let record = self.waiting.pop_front().expect("only what waited was taken");
            self.waiting_bytes -= record.bytes();
            self.placed_bytes += record.bytes();
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

    /// The records that became durable with `tag`: the last one of each group and kind, in order.
    pub fn completed(&mut self, tag: u64) -> Vec<Durable> {
        let mut done: Vec<Durable> = Vec::new();
        while self.in_flight.front().is_some_and(|(t, _)| *t <= tag) {
            let (tag, durable) = self.in_flight.pop_front().expect("there is a front");
            if self.is_void(tag, durable.group_id) {
                if self.drops[&durable.group_id] != tag {
                    continue;
                }
                self.drops.remove(&durable.group_id);
            }
            durable.note(&mut done);
        }
        done
    }
}

#[cfg(test)]
#[path = "journal_port_tests.rs"]
mod tests;
