//! Appends before they are ordered: their checks, the group's budget, and the queue in front of the head.

use quorate_chain::{AppendRequest, Arrival, ClientRef, Replica};
use quorate_qos::{Admission, Offer, QueueLimits, Ready};
use quorate_types::cost::Budget;
use quorate_types::limits::{
    APPEND_TIMEOUT_MS_DEFAULT, BATCH_BYTES_MAX, BATCH_ENTRIES_MAX, ENTRY_BYTES_MAX, JOURNAL_BUFFER_BYTES_MAX,
    QUEUE_BYTES_MAX, UNCOMMITTED_BYTES_MAX,
};
use quorate_types::planted::{self, Bug};
use quorate_types::{Code, Durability, Micros};
use quorate_wire::client::{self, kind};
use quorate_wire::{TraceContext, cursor};

use crate::append_queue::AppendQueue;
use crate::attachments::Attachments;
use crate::outcome::{Basis, may_have_happened};
use crate::output::Outputs;
use crate::refusal::{Refusal, retry_ms};
use crate::turn::Turn;

/// From here on a throttled client learns that its batches are dear because they are short.
const SHORT_BATCH_TIMES_SHOWN: f64 = 1.2;

#[derive(Debug, Default)]
pub(crate) struct Appends {
    /// `None` before the first configuration.
    pub queue: Option<AppendQueue>,
    /// Bytes that may wait or be uncommitted when the server has no memory beyond what it promised.
    own_window_bytes: u64,
}

impl Appends {
    pub fn configure(&mut self, now_us: Micros, budget: &Budget) {
        match &mut self.queue {
            Some(queue) => {
                queue.set_own(now_us, budget);
            }
            None => {
                let admission = Admission::new(budget, QueueLimits::default(), now_us);
                self.queue = Some(AppendQueue::new(admission, budget));
            }
        }
    }

    pub fn keep_to(&mut self, window_bytes: u64) {
        self.own_window_bytes = window_bytes;
    }

    /// Bytes of the queue.
    pub fn waiting_bytes(&self) -> u64 {
        self.queue
            .as_ref()
            .map_or(0, |queue| queue.admission.waiting_bytes())
    }

    pub fn is_empty(&self) -> bool {
        self.queue.as_ref().is_none_or(|queue| queue.admission.is_empty())
    }

    pub fn next_wake(&mut self, now_us: Micros) -> Option<Micros> {
        self.queue.as_mut()?.admission.next_wake(now_us)
    }

    /// Opens or closes the queue: closed while too much is uncommitted, or the disk is behind.
    pub fn set_window(&mut self, replica: &Replica, turn: &Turn, out: &Outputs) {
        if let Some(queue) = &mut self.queue {
            let waiting_bytes = turn.journal_waiting_bytes + out.journal_bytes;
            let is_disk_behind = replica.durability() == Durability::Persistent
                && waiting_bytes > JOURNAL_BUFFER_BYTES_MAX / 4;
            let window_bytes = match turn.pool.is_full() {
                true => self.own_window_bytes.min(UNCOMMITTED_BYTES_MAX),
                false => UNCOMMITTED_BYTES_MAX,
            };
            let is_open = replica.uncommitted_bytes() < window_bytes && !is_disk_behind;
            queue.admission.set_window_open(turn.now_us, is_open);
        }
    }

    /// The next request that leaves the queue.
    pub fn pop(&mut self, now_us: Micros) -> Option<Ready<AppendRequest>> {
        self.queue.as_mut()?.admission.pop(now_us)
    }

    /// `None` before the first configuration.
    pub fn offer(
        &mut self,
        request: AppendRequest,
        timeout_ms: u32,
        is_memory_short: bool,
    ) -> Option<Offer<AppendRequest>> {
        let AppendQueue {
            admission, budget, ..
        } = self.queue.as_mut()?;
        admission.set_bytes_max(match is_memory_short {
            // A queue may have twice its bound for a moment.
            true => self.own_window_bytes.min(QUEUE_BYTES_MAX) / 2,
            false => QUEUE_BYTES_MAX,
        });
        let now_us = request.arrival.received_us;
        let cost = budget.batch_milli(u64::from(request.entry_count), entry_bytes(&request));
        let (session, bytes) = (request.session, request.payload.len() as u64);
        Some(admission.offer(
            now_us,
            request,
            session,
            cost,
            bytes,
            now_us + u64::from(timeout_ms) * 1_000,
        ))
    }

    /// Whether the group has used more of its reservation than was assumed, since this was last asked.
    pub fn take_returned(&mut self) -> bool {
        self.queue
            .as_mut()
            .is_some_and(|queue| queue.admission.take_returned())
    }

    /// Takes out the requests to which this applies: nobody waits for them.
    pub fn remove_where(&mut self, is_over: impl FnMut(&AppendRequest) -> bool) -> Vec<AppendRequest> {
        self.queue
            .as_mut()
            .map(|queue| queue.admission.remove_where(is_over))
            .unwrap_or_default()
    }

    pub fn drain(&mut self) -> Vec<AppendRequest> {
        self.queue
            .as_mut()
            .map(|queue| queue.admission.drain())
            .unwrap_or_default()
    }

    /// The refusal of a request that found no room (`is_expired`: in time).
    pub fn throttled(
        &self,
        basis: Basis<'_>,
        request: &AppendRequest,
        retry_after_us: Micros,
        within_sla: bool,
        is_expired: bool,
    ) -> Refusal {
        let code = match (within_sla, is_expired) {
            (true, true) => Code::DeadlineExceeded,
            (true, false) => Code::Overloaded,
            (false, _) => Code::Throttled,
        };
        let mut refusal = refusal_of(basis, request.seq, code);
        refusal.retry_after_ms = retry_ms(retry_after_us);
        if code == Code::Throttled {
            let budget = self.queue.as_ref().map(|queue| &queue.budget);
            refusal.detail =
                budget.and_then(|budget| advice(budget, request.entry_count.into(), entry_bytes(request)));
        }
        refusal
    }
}

/// The refusal of a batch.
pub(crate) fn refusal_of(basis: Basis<'_>, seq: u64, code: Code) -> Refusal {
    Refusal {
        is_unknown: may_have_happened(basis),
        ..Refusal::new(kind::APPEND, seq, code)
    }
}

/// Checks an append before anything is spent on it. Returns its session.
pub(crate) fn check(
    attachments: &Attachments,
    replica: &Replica,
    client: ClientRef,
    append: &client::Append,
    turn: &Turn,
) -> Result<u64, (Code, Option<String>)> {
    let refuse = |code| Err((code, None));
    let session = attachments
        .may_append(client, turn.wall_s())
        .map_err(|code| (code, None))?;
    if session == 0 || append.seq == 0 {
        return refuse(Code::SessionMissing);
    }
    if !replica.is_head() {
        return refuse(Code::NotHead);
    }
    if !attachments.owns(session, client) && !planted::on(Bug::FormerOwnerAppends) {
        return refuse(Code::SessionMoved);
    }
    if replica.is_isolated() {
        return refuse(Code::CutOff);
    }
    if append.payload.len() > BATCH_BYTES_MAX as usize || append.entry_count > BATCH_ENTRIES_MAX {
        let (bytes, entries) = (append.payload.len(), append.entry_count);
        let detail = format!(
            "The batch has {bytes} bytes and {entries} entries; allowed are {BATCH_BYTES_MAX} and {BATCH_ENTRIES_MAX}."
        );
        return Err((Code::BatchTooLarge, Some(detail)));
    }
    match cursor::check_entries(&append.payload) {
        Err(_) => refuse(Code::BatchMalformed),
        Ok((count, _)) if count != append.entry_count || count == 0 => refuse(Code::BatchMalformed),
        Ok((_, longest)) if longest > ENTRY_BYTES_MAX => {
            let detail = format!("An entry has {longest} bytes; allowed are {ENTRY_BYTES_MAX}.");
            Err((Code::EntryTooLarge, Some(detail)))
        }
        Ok(_) => Ok(session),
    }
}

/// A checked append as the replica takes it.
pub(crate) fn request_of(
    client: ClientRef,
    session: u64,
    append: client::Append,
    trace: Option<TraceContext>,
    turn: &Turn,
) -> AppendRequest {
    AppendRequest {
        client,
        session,
        seq: append.seq,
        floor_index: append.floor_index,
        expected_offset: append.expected_offset,
        fencing_token: append.fencing_token,
        entry_count: append.entry_count,
        payload: append.payload,
        payload_crc: append.payload_crc,
        arrival: Arrival {
            received_us: turn.now_us,
            ordered_us: turn.now_us,
            start_us: None,
        },
        wall_us: turn.wall_us,
        is_clock_doubted: turn.is_clock_doubted(),
        trace,
    }
}

/// 0 on the wire asks for the default.
pub(crate) fn timeout_ms(append: &client::Append) -> u32 {
    match append.timeout_ms {
        0 => APPEND_TIMEOUT_MS_DEFAULT,
        timeout_ms => timeout_ms,
    }
}

/// Payload bytes without the lengths before each entry.
pub(crate) fn entry_bytes(request: &AppendRequest) -> u64 {
    request.payload.len() as u64 - 4 * u64::from(request.entry_count)
}

/// Advice to a client that is above its reserved rate because its batches are short.
fn advice(budget: &Budget, entries: u64, bytes: u64) -> Option<String> {
    let (own, all) = (budget.cost.of(entries, bytes), budget.batch_milli(entries, bytes));
    let times = (0..3).map(|i| all[i] as f64 / own[i].max(1) as f64);
    let (times, full) = (times.fold(1.0, f64::max), budget.short_batch.entries);
    (times > SHORT_BATCH_TIMES_SHOWN).then(|| {
        format!(
            "Each entry of this batch of {entries} costs {times:.1} times what it would in one of {full} or more: \
             send more entries in a batch."
        )
    })
}

#[cfg(test)]
mod tests {
    use quorate_types::cost::{EntryCost, ShortBatch};

    use super::*;

    #[test]
    fn clients_with_short_batches_learn_what_they_cost_and_others_do_not() {
        let cost = EntryCost {
            fixed_milli: [2_000_000, 100, 0],
            per_byte_milli: [0, 2_000, 0],
        };
        let mut budget = Budget::for_rate(1_000, 64, cost);
        assert_eq!(advice(&budget, 1, 64), None, "batches cost nothing themselves");
        budget.short_batch = ShortBatch {
            entries: 16,
            lacking_milli: [300_000, 0, 0],
        };
        let shown = advice(&budget, 1, 64).unwrap();
        assert!(
            shown.contains("of 1 costs 3.2 times") && shown.contains("one of 16 or more"),
            "{shown}"
        );
        assert!(advice(&budget, 6, 6 * 64).is_some());
        assert_eq!(advice(&budget, 15, 15 * 64), None, "hardly dearer");
        assert_eq!(advice(&budget, 100, 6_400), None);
    }
}
