//! Appending exactly once: the session's state machine, pure.
//!
//! The shell reports events (an append, ATTACHED, ACKED, REFUSED, a broken connection, the time); the writer answers
//! with messages to send and actions to take. It has no socket, clock or randomness: `now` and the seed of its session
//! numbers are arguments. `sdk/contract/wire.md`, "Appending exactly once".
//!
//! ```text
//! queue     batches without a seq: still being filled, or refused and to be sent again
//! inflight  batches with consecutive seqs; the first `sent` of them are on their way on this connection
//! ```
//!
//! A batch is *in doubt* while it may have been ordered without a known answer. It keeps its seq and is sent again
//! until it is answered, even after its callers got "unknown". Later batches of the session could not be ordered
//! otherwise. Such a batch without callers is *orphaned*.

mod answers;
mod batch;
mod deadlines;
mod pacing;
mod session;
#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use bytes::BytesMut;
use quorate_types::cost::Charges;
use quorate_types::{Code, Epoch, Index, Micros, Offset};
use quorate_wire::client::Append;
use quorate_wire::frame::TraceContext;

pub use batch::{Condition, Share};

use crate::codes::client_side;
use crate::errors::Failure;
use crate::handle::HandleLimits;
use crate::limits::{
    ANSWER_WAIT, BATCH_COALESCE_BYTES, BATCH_COALESCE_ENTRIES, BATCH_DEADLINE_SPREAD_US, EAGER_BATCH_BYTES,
    EAGER_BATCHES, INFLIGHT_BYTES_MAX, PENDING_BYTES_MAX, PENDING_CALLS_MAX, SPARE_BUFFERS_MAX,
};
use batch::Batch;
use pacing::Pacing;

/// "At no time".
pub const NEVER: Micros = Micros::MAX;

/// Bounds of batches and of the window.
#[derive(Debug, Clone, Copy)]
pub struct Batching {
    /// Most entries of a batch that appends share.
    pub entries_max: u32,
    /// Most bytes of a batch that appends share.
    pub bytes_max: u32,
    /// Batches sent and not acknowledged; the server's window may be smaller.
    pub window_batches: u32,
    /// Bytes sent and not acknowledged; one batch is always allowed.
    pub inflight_bytes_max: u64,
}

impl Default for Batching {
    fn default() -> Self {
        Self {
            entries_max: BATCH_COALESCE_ENTRIES,
            bytes_max: BATCH_COALESCE_BYTES,
            window_batches: u32::MAX,
            inflight_bytes_max: INFLIGHT_BYTES_MAX,
        }
    }
}

/// An action for the shell.
#[derive(Debug, PartialEq, Eq)]
pub enum Action<T> {
    /// The batch's entries have consecutive offsets from `base_offset`.
    Acked {
        shares: Vec<Share<T>>,
        base_offset: Offset,
    },
    /// `is_unknown`: it may have happened; otherwise it did not and will not.
    Failed {
        shares: Vec<Share<T>>,
        failure: Failure,
        is_unknown: bool,
    },
    Reroute(Reroute),
}

/// Leave this connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reroute {
    pub to: Target,
    pub reason: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// To the head at this address; empty when it is not known.
    Head(String),
    /// With a fresh handle, away from one that is no member any more, or an isolated head: others may still name it, and soon
    /// name the next one.
    Handle,
    /// To any other replica.
    Other,
    /// To the same one, on a new connection.
    Again,
}

/// `T` identifies an append: it comes back in the [`Action`] that ends it.
pub struct Writer<T> {
    limits: HandleLimits,
    batching: Batching,
    answer_wait_us: Micros,
    session: u64,
    next_session: u64,
    epoch: Epoch,
    rate_per_s: u64,
    pending_bytes: u64,
    pending_calls: usize,
    floor_index: Option<Index>,
    next_seq: u64,
    queue: VecDeque<Batch<T>>,
    inflight: VecDeque<Batch<T>>,
    inflight_bytes: u64,
    sent: usize,
    is_attached: bool,
    window: usize,
    /// The least refused seq of this connection: batches from there on are sent again, or fail.
    rewind: Option<u64>,
    hold_until: Micros,
    /// `None`: no batch waits for its rate.
    pacing: Option<Pacing>,
    /// Time at which the queue's first batch has its tokens, if it waits only for them; else 0.
    paced_until: Micros,
    refusals: u32,
    stuck: u32,
    /// No deadline is earlier.
    earliest: Micros,
    offline_reason: Failure,
    spare_buffers: Vec<BytesMut>,
    spare_shares: Vec<Vec<Share<T>>>,
    buffer_hint: usize,
}

impl<T> Writer<T> {
    /// `seed` is random: session numbers are derived from it.
    pub fn new(limits: HandleLimits, batching: Batching, seed: u64) -> Self {
        let mut writer = Self {
            limits,
            batching,
            answer_wait_us: ANSWER_WAIT.as_micros() as Micros,
            session: 0,
            next_session: seed,
            epoch: 0,
            rate_per_s: 0,
            pending_bytes: 0,
            pending_calls: 0,
            floor_index: None,
            next_seq: 1,
            queue: VecDeque::new(),
            inflight: VecDeque::new(),
            inflight_bytes: 0,
            sent: 0,
            is_attached: false,
            window: 1,
            rewind: None,
            hold_until: 0,
            pacing: None,
            paced_until: 0,
            refusals: 0,
            stuck: 0,
            earliest: NEVER,
            offline_reason: Failure::new(client_side::NO_CONNECTION, "not connected yet"),
            spare_buffers: Vec::new(),
            spare_shares: Vec::new(),
            buffer_hint: 0,
        };
        writer.take_new_session();
        writer
    }

    /// Longest time without an answer to an orphaned batch; [`ANSWER_WAIT`] by default.
    pub fn with_answer_wait(self, answer_wait: Duration) -> Self {
        let answer_wait_us = answer_wait.as_micros().max(1) as Micros;
        Self {
            answer_wait_us,
            ..self
        }
    }

    /// Batches beyond the head's announced rate wait here. Without `charges` no batch waits.
    pub fn with_pacing(self, charges: Option<Charges>) -> Self {
        let pacing = Some(Pacing::new(charges));
        Self { pacing, ..self }
    }

    /// Sets what batches cost. It has no effect without pacing.
    pub fn set_charges(&mut self, charges: Option<Charges>) {
        if let Some(pacing) = &mut self.pacing {
            pacing.set_charges(charges);
        }
    }

    /// The session for ATTACH.
    pub fn session(&self) -> u64 {
        self.session
    }

    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Entries a second that the group may append, as its head last announced; 0 before that.
    pub fn rate_per_s(&self) -> u64 {
        self.rate_per_s
    }

    /// Payload bytes of appends that have not ended.
    pub fn pending_bytes(&self) -> u64 {
        self.pending_bytes
    }

    pub fn pending_calls(&self) -> usize {
        self.pending_calls
    }

    /// No batch waits to be sent or answered.
    pub fn is_idle(&self) -> bool {
        self.inflight.is_empty() && self.queue.is_empty()
    }

    pub fn awaits_answer(&self) -> bool {
        self.sent > 0
    }

    // Appending.

    /// Queues one entry; concurrent appends share a batch. A refusal returns the ticket.
    pub fn append(&mut self, deadline: Micros, ticket: T, entry: &[u8]) -> Result<(), (T, Failure)> {
        let length = entry.len();
        if length > self.limits.max_entry_bytes as usize {
            return Err((ticket, self.too_large(length)));
        }
        if self.append_room(length as u32) == 0 {
            return Err((ticket, self.full()));
        }
        let batch = self.shared_batch(deadline, length as u32);
        batch.put(length as u32, |buffer| buffer.extend_from_slice(entry));
        batch.assign(ticket, 1);
        self.pending_bytes += length as u64 + 4;
        self.pending_calls += 1;
        Ok(())
    }

    /// Queues up to `count` entries of `length` bytes each as one call, without a copy: `write` puts each into the
    /// batch. Returns the number taken: at least one, unless too much is pending.
    pub fn append_run(
        &mut self,
        deadline: Micros,
        ticket: T,
        count: u32,
        length: u32,
        mut write: impl FnMut(&mut BytesMut),
    ) -> u32 {
        assert!(length <= self.limits.max_entry_bytes && count > 0);
        let count = count.min(self.append_room(length));
        if count == 0 {
            return 0;
        }
        let (entries_max, bytes_max) = (self.coalesce_entries(), self.coalesce_bytes());
        let batch = self.shared_batch(deadline, length);
        let by_bytes = (bytes_max - batch.len().min(bytes_max)) / (length as usize + 4);
        let by_entries = entries_max - batch.entry_count;
        let taken = count.min(by_entries).min((by_bytes as u32).max(1));
        for _ in 0..taken {
            batch.put(length, &mut write);
        }
        batch.assign(ticket, taken);
        self.pending_bytes += u64::from(taken) * (u64::from(length) + 4);
        self.pending_calls += 1;
        taken
    }

    /// Queues entries that are ordered as one, in a batch of their own.
    pub fn append_many(
        &mut self,
        deadline: Micros,
        ticket: T,
        entries: &[&[u8]],
        condition: Condition,
        trace: Option<TraceContext>,
    ) -> Result<(), (T, Failure)> {
        assert!(!entries.is_empty(), "a batch has at least one entry");
        let size = entries.iter().map(|entry| entry.len() + 4).sum::<usize>();
        let longest = entries.iter().map(|entry| entry.len()).max().unwrap_or(0);
        if longest > self.limits.max_entry_bytes as usize {
            return Err((ticket, self.too_large(longest)));
        }
        let (bytes_max, entries_max) = (self.limits.max_batch_bytes, self.limits.max_batch_entries);
        if size > bytes_max as usize || entries.len() > entries_max as usize {
            let most = format!("at most {bytes_max} bytes and {entries_max} entries");
            let message = format!("{size} bytes in {} entries; {most}", entries.len());
            return Err((ticket, Failure::of(Code::BatchTooLarge, message)));
        }
        if self.pending_calls >= PENDING_CALLS_MAX || self.pending_bytes + size as u64 > PENDING_BYTES_MAX {
            return Err((ticket, self.full()));
        }
        let mut batch = Batch::new(BytesMut::with_capacity(size), self.spare_share(), deadline, false);
        for entry in entries {
            batch.put(entry.len() as u32, |buffer| buffer.extend_from_slice(entry));
        }
        batch.assign(ticket, entries.len() as u32);
        batch.condition = condition;
        batch.trace = trace;
        self.queue.push_back(batch);
        self.earliest = self.earliest.min(deadline);
        self.pending_bytes += size as u64;
        self.pending_calls += 1;
        Ok(())
    }

    /// Number of further entries of this length that may be queued.
    fn append_room(&self, length: u32) -> u32 {
        if self.pending_calls >= PENDING_CALLS_MAX {
            return 0;
        }
        let bytes = PENDING_BYTES_MAX.saturating_sub(self.pending_bytes);
        (bytes / (u64::from(length) + 4)) as u32
    }

    fn coalesce_entries(&self) -> u32 {
        self.batching.entries_max.clamp(1, self.limits.max_batch_entries)
    }

    fn coalesce_bytes(&self) -> usize {
        self.batching.bytes_max.min(self.limits.max_batch_bytes) as usize
    }

    /// The batch of the next entry: the last one if it has room, else a new one.
    fn shared_batch(&mut self, deadline: Micros, length: u32) -> &mut Batch<T> {
        let (entries_max, bytes_max) = (self.coalesce_entries(), self.coalesce_bytes());
        let joins = self.queue.back().is_some_and(|batch| {
            batch.is_shared
                && batch.entry_count < entries_max
                && batch.len() + length as usize + 4 <= bytes_max
                && deadline <= batch.deadline
                && deadline + BATCH_DEADLINE_SPREAD_US >= batch.deadline
        });
        if !joins {
            let deadline = deadline.saturating_add(BATCH_DEADLINE_SPREAD_US);
            let buffer = self.spare_buffers.pop();
            let buffer = buffer.unwrap_or_else(|| BytesMut::with_capacity(self.buffer_hint));
            let batch = Batch::new(buffer, self.spare_share(), deadline, true);
            self.queue.push_back(batch);
            self.earliest = self.earliest.min(deadline);
        }
        self.queue.back_mut().expect("a batch exists or was pushed")
    }

    fn too_large(&self, length: usize) -> Failure {
        Failure::of(
            Code::EntryTooLarge,
            format!("{length} bytes; at most {}", self.limits.max_entry_bytes),
        )
    }

    fn full(&self) -> Failure {
        let message = format!(
            "{} appends with {} bytes are pending",
            self.pending_calls, self.pending_bytes
        );
        Failure::new(client_side::QUEUE_FULL, message)
    }

    // Sending.

    /// The next message to send now, in order; `None` if no message is due.
    pub fn next_append(&mut self, now: Micros) -> Option<(Append, Option<TraceContext>)> {
        self.paced_until = 0;
        if let Some(pacing) = &mut self.pacing {
            pacing.set_rate(self.rate_per_s, now);
        }
        if !self.is_attached || self.rewind.is_some() || now < self.hold_until {
            return None;
        }
        self.hold_until = 0;
        if self.sent < self.inflight.len() {
            return (self.sent < self.window).then(|| self.send(self.sent, now));
        }
        if self.inflight.len() >= self.window {
            return None;
        }
        let batch = self.queue.front()?;
        let is_filling = batch.is_shared && self.queue.len() == 1 && batch.len() < EAGER_BATCH_BYTES as usize;
        if is_filling && self.inflight.len() >= EAGER_BATCHES {
            return None;
        }
        let size = batch.len() as u64;
        if !self.inflight.is_empty() && self.inflight_bytes + size > self.batching.inflight_bytes_max {
            return None;
        }
        if self.must_wait(now) {
            return None;
        }
        let mut batch = self.queue.pop_front().expect("looked at above");
        self.buffer_hint = batch.len();
        batch.seal();
        batch.seq = self.next_seq;
        self.next_seq += 1;
        self.inflight_bytes += size;
        self.inflight.push_back(batch);
        Some(self.send(self.sent, now))
    }

    /// Whether the bucket lacks tokens for the queue's first batch. The check costs the same for one entry and for
    /// thousands.
    fn must_wait(&mut self, now: Micros) -> bool {
        let (Some(pacing), Some(batch)) = (&mut self.pacing, self.queue.front_mut()) else {
            return false;
        };
        if batch.is_paid {
            return false;
        }
        let entry_count = u64::from(batch.entry_count);
        let wait_us = pacing.take(
            now,
            pacing.cost(entry_count, batch.len() as u64 - 4 * entry_count),
        );
        if wait_us > 0 {
            // Complete: a further entry would only raise its cost, and its wait.
            batch.is_shared = false;
            self.paced_until = now.saturating_add(wait_us);
            return true;
        }
        batch.is_paid = true;
        false
    }

    fn send(&mut self, index: usize, now: Micros) -> (Append, Option<TraceContext>) {
        assert_eq!(index, self.sent, "batches are sent in order");
        let batch = &mut self.inflight[index];
        batch.is_answered = false;
        // No caller waits for an orphaned batch, so the head need not keep it waiting.
        let left_us = if batch.is_awaited() {
            batch.deadline.saturating_sub(now)
        } else {
            0
        };
        let timeout_ms = (left_us / 1_000).clamp(1, u64::from(u32::MAX)) as u32;
        if !batch.is_awaited() {
            batch.deadline = now + self.answer_wait_us;
            self.earliest = self.earliest.min(batch.deadline);
        }
        self.sent += 1;
        let batch = &self.inflight[index];
        (
            batch.message(self.floor_index.unwrap_or(0), timeout_ms),
            batch.trace,
        )
    }

    /// Time of the next `on_time` and `next_append`, whatever else happens; [`NEVER`] for never.
    pub fn wake_at(&self) -> Micros {
        if !self.is_attached || self.rewind.is_some() || self.is_idle() {
            return self.earliest;
        }
        match (self.hold_until, self.paced_until) {
            (0, 0) => self.earliest,
            (0, until) | (until, _) => self.earliest.min(until),
        }
    }

    // Memory for reuse.

    /// Returns the memory of an [`Action`].
    pub fn recycle(&mut self, mut shares: Vec<Share<T>>) {
        if self.spare_shares.len() < SPARE_BUFFERS_MAX {
            shares.clear();
            self.spare_shares.push(shares);
        }
    }

    fn spare_share(&mut self) -> Vec<Share<T>> {
        self.spare_shares.pop().unwrap_or_default()
    }

    fn drop_batch(&mut self, batch: Batch<T>) {
        if self.spare_buffers.len() < SPARE_BUFFERS_MAX
            && let Some(mut buffer) = batch.into_buffer()
        {
            buffer.clear();
            self.spare_buffers.push(buffer);
        }
    }
}
