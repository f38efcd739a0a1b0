//! The log as this replica holds it: which part is durable, which is committed, which truncation is still pending.
//!
//! A truncation in a persistent group is itself a record in the journal. The replica is not settled before that record
//! is on stable storage. A restart could otherwise bring back a batch that a head has since refused to its client.

use quorate_types::limits::{PERSIST_BASE_BYTES, RECENT_BYTES_PER_GROUP, TRIM_BATCHES_PER_FLUSH};
use quorate_types::planted::{self, Bug};
use quorate_types::space::Terms;
use quorate_types::{Durability, Epoch, Index, Offset};
use quorate_wire::Batch;

use crate::command::ReplicaCommand;
use crate::log::{Base, Log};

#[derive(Debug)]
pub(crate) struct LocalLog {
    durability: Durability,
    log: Log,
    commit_index: Index,
    /// On stable storage here; follows the log in an in-memory group.
    durable_index: Index,
    /// Truncations of this log so far.
    truncations: u64,
    /// The last truncation, until the journal has it.
    pending_truncation: Option<Truncation>,
    /// The journal does not yet have the note that an earlier replica of the group was dropped here.
    is_drop_pending: bool,
    /// This server's disk refuses writes.
    has_fault: bool,
    /// Payload freed since a base was last written to the journal.
    freed_unwritten_bytes: u64,
    /// Journal space that a base must free before it is worth writing.
    persist_base_bytes: u64,
    /// Committed payload that stays in memory for readers, at most.
    recent_bytes_max: u64,
    /// The server has no memory left for more than was promised: no payload stays that the disk has.
    is_memory_short: bool,
}

#[derive(Debug, Clone, Copy)]
struct Truncation {
    number: u64,
    index: Index,
}

impl LocalLog {
    pub fn new(durability: Durability, base: Base) -> Self {
        Self {
            durability,
            commit_index: base.index,
            durable_index: base.index,
            log: new_log(durability, base),
            truncations: 0,
            pending_truncation: None,
            is_drop_pending: false,
            has_fault: false,
            freed_unwritten_bytes: 0,
            persist_base_bytes: PERSIST_BASE_BYTES,
            recent_bytes_max: RECENT_BYTES_PER_GROUP,
            is_memory_short: false,
        }
    }

    pub fn keep_recent(&mut self, bytes_max: u64) {
        self.recent_bytes_max = bytes_max;
    }

    pub fn set_memory_short(&mut self, is_short: bool) {
        self.is_memory_short = is_short;
    }

    /// Keeps to what the group was admitted with.
    pub fn keep_to(&mut self, terms: &Terms) {
        self.persist_base_bytes = terms.retention_bytes.min(PERSIST_BASE_BYTES);
        self.log.remember_places(terms.session_places_max());
    }

    fn begin_log(&mut self, base: Base) {
        let places_max = self.log.session_places_max();
        self.log = new_log(self.durability, base);
        self.log.remember_places(places_max);
    }

    pub fn log(&self) -> &Log {
        &self.log
    }

    pub fn last_index(&self) -> Index {
        self.log.last_index()
    }

    pub fn durability(&self) -> Durability {
        self.durability
    }

    pub fn is_persistent(&self) -> bool {
        self.durability == Durability::Persistent
    }

    pub fn commit_index(&self) -> Index {
        self.commit_index
    }

    pub fn commit_offset(&self) -> Offset {
        self.log.end_offset(self.commit_index)
    }

    /// The end of what this replica holds for good, and so may acknowledge.
    pub fn durable_index(&self) -> Index {
        assert!(
            self.durable_index <= self.log.last_index(),
            "durable up to {} of a log that ends at {}",
            self.durable_index,
            self.log.last_index()
        );
        self.durable_index
    }

    pub fn has_fault(&self) -> bool {
        self.has_fault
    }

    /// A disk that refuses writes does not concern a group in memory.
    pub fn set_fault(&mut self, has_fault: bool) {
        self.has_fault = has_fault && self.is_persistent();
    }

    /// Whether no restart could bring back a batch that this log does not have.
    pub fn is_settled(&self) -> bool {
        let is_truncated = self.pending_truncation.is_none() || planted::on(Bug::TruncationNotWaitedFor);
        let is_dropped = !self.is_drop_pending || planted::on(Bug::DropNotWaitedFor);
        is_truncated && is_dropped
    }

    /// Appends the batch to the log and, in a persistent group, to the journal.
    pub fn store(&mut self, batch: Batch, out: &mut Vec<ReplicaCommand>) {
        if self.is_persistent() {
            out.push(ReplicaCommand::Persist(batch.clone()));
        }
        self.log.push(batch);
        if !self.is_persistent() || planted::on(Bug::DurableAheadOfSync) {
            self.durable_index = self.log.last_index();
        }
    }

    pub fn persisted(&mut self, index: Index, epoch: Epoch) {
        // The journal is in order: this record lies before the truncation, which may have removed its batch.
        if self.pending_truncation.is_some() && !planted::on(Bug::OldCompletionsTaken) {
            return;
        }
        // An earlier truncation may have removed the batch of this completion; the epoch shows that.
        if index > self.durable_index && self.log.epoch_at(index) == Some(epoch) {
            self.durable_index = index;
        }
    }

    #[inline]
    pub fn advance_commit(&mut self, to: Index) {
        self.commit_index = self.commit_index.max(to.min(self.log.last_index()));
    }

    /// Truncates an uncommitted suffix.
    pub fn truncate_to(&mut self, index: Index, out: &mut Vec<ReplicaCommand>) {
        assert!(
            index >= self.commit_index,
            "truncation to {index} below the commit index {}",
            self.commit_index
        );
        if index >= self.log.last_index() {
            return;
        }
        self.log.truncate(index);
        self.durable_index = self.durable_index.min(index);
        if self.is_persistent() && !planted::on(Bug::TruncationNotWritten) {
            self.submit_truncation(index, out);
        }
    }

    /// Discards the whole log, and begins behind `base`.
    pub fn replace(&mut self, base: Base, out: &mut Vec<ReplicaCommand>) {
        self.commit_index = base.index;
        self.begin_log(base);
        self.durable_index = self.log.last_index();
        if self.is_persistent() {
            self.durable_index = 0;
            self.freed_unwritten_bytes = 0;
            // A reader of the journal must not take its records for what lies behind the base. Completions from before
            // this truncation mean nothing for the new log either, even of a batch that comes again.
            self.submit_truncation(0, out);
            self.persist_base(out);
        }
    }

    /// Begins a lost group's log again, as if the group had been dropped and created.
    pub fn reset(&mut self, base: Base, out: &mut Vec<ReplicaCommand>) {
        self.is_drop_pending = false;
        if self.is_persistent() {
            out.push(ReplicaCommand::Forget);
        }
        self.replace(base, out);
    }

    fn submit_truncation(&mut self, index: Index, out: &mut Vec<ReplicaCommand>) {
        self.truncations += 1;
        let number = self.truncations;
        self.pending_truncation = Some(Truncation { number, index });
        out.push(ReplicaCommand::Truncate { index, number });
    }

    /// Whether it was the last truncation: the replica may be settled now.
    pub fn truncation_persisted(&mut self, number: u64) -> bool {
        let Some(truncation) = self.pending_truncation.filter(|t| t.number == number) else {
            return false;
        };
        self.pending_truncation = None;
        self.durable_index = self.durable_index.max(truncation.index);
        true
    }

    pub fn wait_for_drop(&mut self) {
        self.is_drop_pending = self.is_persistent();
    }

    pub fn drop_persisted(&mut self) {
        self.is_drop_pending = false;
    }

    /// Writes an empty log's base for a replica of the chain: a restart must find the group.
    pub fn persist_empty(&mut self, out: &mut Vec<ReplicaCommand>) {
        if self.is_persistent() && self.log.last_index() == 0 {
            self.persist_base(out);
        }
    }

    fn persist_base(&self, out: &mut Vec<ReplicaCommand>) {
        let base = self.log.base();
        out.push(ReplicaCommand::PersistBase {
            base: base.encode(),
            index: base.index,
            epoch: base.epoch,
        });
    }

    /// Moves the base up to `through`, as far as the disk has it. Frees a part at a time: the rest follows with the next
    /// flushes.
    #[inline]
    pub fn free_through(&mut self, through: Index, out: &mut Vec<ReplicaCommand>) {
        let through = match self.durability {
            Durability::InMemory => through,
            Durability::Persistent => through.min(self.durable_index),
        };
        let first_before = self.log.first_index();
        if first_before > through {
            return;
        }
        for index in first_before..=through.min(first_before + TRIM_BATCHES_PER_FLUSH - 1) {
            let bytes = self.log.header(index).map_or(0, |h| h.payload_len);
            self.freed_unwritten_bytes += u64::from(bytes);
            self.log.trim_first();
        }
        if self.is_persistent() && self.freed_unwritten_bytes >= self.persist_base_bytes {
            self.freed_unwritten_bytes = 0;
            self.persist_base(out);
        }
        out.push(ReplicaCommand::Trimmed {
            first_index: self.log.first_index(),
        });
    }

    /// Drops old payloads from memory that the disk has.
    #[inline]
    pub fn evict(&mut self) {
        if self.is_persistent() {
            let through = self.commit_index.min(self.durable_index);
            let recent_bytes_max = if self.is_memory_short {
                0
            } else {
                self.recent_bytes_max
            };
            self.log.evict(through, recent_bytes_max);
        }
    }
}

fn new_log(durability: Durability, base: Base) -> Log {
    match durability {
        Durability::InMemory => Log::new(base).staying_in_memory(),
        Durability::Persistent => Log::new(base),
    }
}

/// Steps of [`crate::recovery`]: all that comes out of the journal is durable.
impl LocalLog {
    pub fn recover_from(&mut self, base: Base) {
        self.commit_index = base.index;
        self.begin_log(base);
        self.durable_index = self.log.last_index();
    }

    /// Takes in a batch of this log, ordered later than what the log holds at its index.
    pub fn recover_batch(&mut self, batch: Batch) {
        self.log.truncate(batch.header.index - 1);
        self.log.push(batch);
        self.durable_index = self.log.last_index();
        self.log.evict(self.durable_index, RECENT_BYTES_PER_GROUP);
    }

    pub fn evict_recovered(&mut self) {
        self.log.evict(self.log.last_index(), 0);
    }

    /// Moves the base up to a later base of this log.
    pub fn recover_base(&mut self, base: Base) {
        self.log.begin_behind(base);
        self.commit_index = self.log.base().index;
    }

    pub fn recover_truncation(&mut self, index: Index) {
        self.log.truncate(index);
        self.durable_index = self.log.last_index();
    }

    /// Only committed batches are trimmed.
    pub fn recover_trim(&mut self, index: Index) {
        let trimmed = index.min(self.log.last_index());
        self.commit_index = self.commit_index.max(trimmed);
    }
}
