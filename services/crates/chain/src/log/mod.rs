//! The log of one replica in memory: the base, then batches. Payloads of old batches may live on disk only.

use bytes::{Bytes, BytesMut};
use quorate_types::limits::{BATCH_MEMORY_BYTES, SESSION_PLACES_MAX};
use quorate_types::planted::{self, Bug};
use quorate_types::space::with_slack;
use quorate_types::{Epoch, Index, Offset};
use quorate_wire::batch::BATCH_HEADER_LEN;
use quorate_wire::{Batch, BatchHeader, TraceContext};

mod base;
mod segments;
mod sessions;

pub use base::Base;
pub use sessions::{Placed, Sessions, Verdict};

use segments::Segments;

/// A quarter of a read buffer: of a log whose payloads leave memory soon, the memory held is at most some five times the
/// bytes counted …
const COPIED_BYTES_MAX: usize = 16 << 10;
/// … and of one that stays in memory, at most a quarter more: longer payloads hold no more than one buffer beside
/// themselves.
const COPIED_BYTES_MAX_IN_MEMORY: usize = 256 << 10;
/// Longer payloads are copied each into memory of its own: what is left of a common piece would be too short for them.
const COPIED_TOGETHER_BYTES_MAX: usize = COPIED_BYTES_MAX / 8;
/// Batches whose ends are kept at hand: replicas and readers mostly ask for the last ones.
const ENDS: usize = 8;
/// Weight of a batch beside its payload.
const HEADER_WEIGHT: u64 = BATCH_HEADER_LEN as u64;

#[derive(Debug, Clone)]
pub struct Log {
    base: Base,
    batches: Segments<Stored>,
    /// The last batch's end, or the base's.
    last: End,
    /// The ends of the last batches, each at its index modulo [`ENDS`]. With many groups the batches themselves are in no
    /// cache.
    ends: [End; ENDS],
    /// The session table after the last batch.
    sessions: Sessions,
    /// (epoch, index of its first batch), oldest first; begins with the base's.
    history: Vec<(Epoch, Index)>,
    payload_bytes: u64,
    /// Batches before this index have no payload in memory.
    resident_from: Index,
    resident_bytes: u64,
    /// Room for the next short payloads.
    copies: BytesMut,
    copied_bytes_max: usize,
    /// Places of batches that each of the two session tables remembers.
    session_places_max: u64,
}

impl Default for Log {
    fn default() -> Self {
        Self {
            base: Base::default(),
            batches: Segments::default(),
            last: End::default(),
            ends: [End::default(); ENDS],
            sessions: Sessions::default(),
            history: Vec::new(),
            payload_bytes: 0,
            resident_from: 0,
            resident_bytes: 0,
            copies: BytesMut::new(),
            copied_bytes_max: COPIED_BYTES_MAX,
            session_places_max: SESSION_PLACES_MAX,
        }
    }
}

/// The end of a batch.
#[derive(Debug, Clone, Copy, Default)]
struct End {
    epoch: Epoch,
    index: Index,
    offset: Offset,
    cumulative_bytes: u64,
}

impl End {
    fn of(header: &BatchHeader) -> Self {
        Self {
            epoch: header.epoch,
            index: header.index,
            offset: header.end_offset(),
            cumulative_bytes: header.cumulative_bytes,
        }
    }

    fn of_base(base: &Base) -> Self {
        Self {
            epoch: base.epoch,
            index: base.index,
            offset: base.end_offset,
            cumulative_bytes: base.cumulative_bytes,
        }
    }

    fn weight(&self) -> u64 {
        self.cumulative_bytes + 4 * self.offset + HEADER_WEIGHT * self.index
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Stored {
    pub header: BatchHeader,
    pub payload: Option<Bytes>,
    pub trace: Option<TraceContext>,
}

impl Log {
    pub fn new(base: Base) -> Self {
        let history = if base.index > 0 {
            vec![(base.epoch, base.index)]
        } else {
            Vec::new()
        };
        let sessions = base.sessions.clone();
        let resident_from = base.index + 1;
        let mut log = Self {
            base,
            sessions,
            history,
            resident_from,
            ..Self::default()
        };
        log.find_ends();
        log
    }

    /// All of it stays in memory until it is trimmed.
    pub(crate) fn staying_in_memory(self) -> Self {
        Self {
            copied_bytes_max: COPIED_BYTES_MAX_IN_MEMORY,
            ..self
        }
    }

    /// Bounds the places of batches that a session table remembers. The next batch makes it forget those beyond.
    pub(crate) fn remember_places(&mut self, places_max: u64) {
        self.session_places_max = places_max;
    }

    pub(crate) fn session_places_max(&self) -> u64 {
        self.session_places_max
    }

    /// Memory that the log and its two session tables hold, as admission counts it.
    pub fn held_bytes(&self) -> u64 {
        with_slack(self.resident_bytes)
            + self.batches.len() as u64 * BATCH_MEMORY_BYTES
            + self.sessions.held_bytes()
            + self.base.sessions.held_bytes()
    }

    pub fn base(&self) -> &Base {
        &self.base
    }

    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    pub fn first_index(&self) -> Index {
        self.base.index + 1
    }

    pub fn last_index(&self) -> Index {
        self.last.index
    }

    pub fn next_offset(&self) -> Offset {
        self.last.offset
    }

    pub fn cumulative_bytes(&self) -> u64 {
        self.last.cumulative_bytes
    }

    /// Payload bytes that the log holds, in memory or on disk.
    pub fn payload_bytes(&self) -> u64 {
        self.payload_bytes
    }

    pub(crate) fn get(&self, index: Index) -> Option<&Stored> {
        let at = index.checked_sub(self.first_index())?;
        self.batches.get(at as usize)
    }

    pub fn header(&self, index: Index) -> Option<&BatchHeader> {
        self.get(index).map(|b| &b.header)
    }

    /// Offset after the batch at `index`; the base's for anything at or before it.
    pub fn end_offset(&self, index: Index) -> Offset {
        self.end(index).offset
    }

    pub fn cumulative_bytes_at(&self, index: Index) -> u64 {
        self.end(index).cumulative_bytes
    }

    /// The base's for anything that is not held.
    fn end(&self, index: Index) -> End {
        let kept = self.ends[index as usize % ENDS];
        if kept.index == index && index >= self.base.index {
            return kept;
        }
        self.header(index).map_or(End::of_base(&self.base), End::of)
    }

    /// The weight that a batch adds to [`Log::weight`].
    pub(crate) fn weight_of(header: &BatchHeader) -> u64 {
        u64::from(header.payload_len) + HEADER_WEIGHT
    }

    /// A measure of how much there is to send up to `index`: payloads, prefixes and headers.
    pub(crate) fn weight(&self, index: Index) -> u64 {
        self.end(index).weight()
    }

    /// Needed after every change but one more batch.
    fn find_ends(&mut self) {
        let base = End::of_base(&self.base);
        self.ends = [base; ENDS];
        let ends = self.batches.iter().rev().map(|b| End::of(&b.header));
        for end in ends.take(ENDS) {
            self.ends[end.index as usize % ENDS] = end;
        }
        self.last = self.batches.back().map_or(base, |b| End::of(&b.header));
    }

    pub fn epoch_at(&self, index: Index) -> Option<Epoch> {
        if index == self.base.index {
            return Some(self.base.epoch);
        }
        let is_held = (self.first_index()..=self.last_index()).contains(&index);
        // Answered without a look at the batches, like `ends`: each completion asks for it.
        let found = interval(&self.history, index).filter(|_| is_held);
        found.map(|(epoch, _)| *epoch)
    }

    /// The epoch of the last batch, or of the base; 0 when there is neither.
    pub(crate) fn last_epoch(&self) -> Epoch {
        self.last.epoch
    }

    pub(crate) fn history(&self) -> &[(Epoch, Index)] {
        &self.history
    }

    /// Index of the batch that holds `offset`; `None` when it is trimmed or not there yet.
    pub(crate) fn index_of(&self, offset: Offset) -> Option<Index> {
        if offset < self.base.end_offset || offset >= self.next_offset() {
            return None;
        }
        let at = self.batches.partition_point(|b| b.header.end_offset() <= offset);
        Some(self.first_index() + at as u64)
    }

    /// The last batch that ends at or before `offset`; at least the base's.
    pub(crate) fn index_ending_by(&self, offset: Offset) -> Index {
        let count = self.batches.partition_point(|b| b.header.end_offset() <= offset);
        self.base.index + count as u64
    }

    pub(crate) fn batches(&self) -> u64 {
        self.batches.len() as u64
    }

    /// Bytes that retention counts: payloads, and the memory of each batch beside its payload.
    pub fn retained_bytes(&self) -> u64 {
        self.payload_bytes + self.batches.len() as u64 * counted_beside()
    }

    /// The least index behind which lie no more than so many bytes, as retention counts them, and batches.
    pub(crate) fn index_leaving(&self, bytes: u64, batches_max: u64) -> Index {
        let beside = counted_beside();
        let counted = |h: &BatchHeader| h.cumulative_bytes + 4 * h.end_offset() + beside * h.index;
        let Some(last) = self.batches.back() else {
            return self.base.index;
        };
        let by_batches = last.header.index.saturating_sub(batches_max).max(self.base.index);
        if self.retained_bytes() <= bytes {
            return by_batches;
        }
        let goes = counted(&last.header).saturating_sub(bytes);
        let count = self.batches.partition_point(|b| counted(&b.header) < goes);
        by_batches
            .max(self.base.index + count as u64 + 1)
            .min(last.header.index)
    }

    pub fn push(&mut self, batch: Batch) {
        let header = batch.header;
        assert_eq!(header.index, self.last_index() + 1, "batches are dense");
        assert_eq!(header.base_offset, self.next_offset(), "offsets are dense");
        assert!(header.epoch >= self.last_epoch(), "epochs only grow");
        assert_eq!(
            header.cumulative_bytes,
            self.cumulative_bytes() + header.entry_bytes(),
            "bytes add up"
        );
        if header.epoch != self.last_epoch() {
            self.history.push((header.epoch, header.index));
        }
        self.sessions.apply(&header);
        self.sessions.forget_places(self.session_places_max);
        self.payload_bytes += u64::from(header.payload_len);
        self.resident_bytes += u64::from(header.payload_len);
        let payload = self.alone(batch.payload);
        self.last = End::of(&header);
        self.ends[header.index as usize % ENDS] = self.last;
        self.batches.push_back(Stored {
            header,
            payload: Some(payload),
            trace: batch.trace,
        });
    }

    /// A payload that comes out of a read buffer keeps the whole buffer in memory. Short payloads are therefore copied
    /// behind one another: else each batch of a quiet group would hold a buffer of its own. Long payloads hold little
    /// more than themselves. Batches leave in the order in which they came, and so does the memory of their copies.
    fn alone(&mut self, payload: Bytes) -> Bytes {
        if payload.len() > self.copied_bytes_max {
            return payload;
        }
        if payload.len() > COPIED_TOGETHER_BYTES_MAX {
            return Bytes::copy_from_slice(&payload);
        }
        if self.copies.capacity() < payload.len() {
            let bytes = (self.resident_bytes / 8).clamp(1 << 10, COPIED_BYTES_MAX as u64) as usize;
            self.copies = BytesMut::with_capacity(bytes.max(payload.len()));
        }
        self.copies.extend_from_slice(&payload);
        self.copies.split().freeze()
    }

    /// Removes everything behind `index`. The session table is built again from the base: a rare path.
    pub fn truncate(&mut self, index: Index) {
        if index >= self.last_index() {
            return;
        }
        assert!(
            index >= self.base.index,
            "truncation to {index} below the base, {}",
            self.base.index
        );
        while self.base.index + self.batches() > index {
            let removed = self.batches.pop_back().expect("there is one behind `index`");
            self.payload_bytes -= u64::from(removed.header.payload_len);
            if removed.payload.is_some() {
                self.resident_bytes -= u64::from(removed.header.payload_len);
            }
        }
        self.find_ends();
        self.resident_from = self.resident_from.min(self.last_index() + 1);
        self.history.retain(|(_, start)| *start <= index);
        if !planted::on(Bug::SessionsNotRebuilt) {
            self.rebuild_sessions();
        }
    }

    /// Moves the base behind the first batch.
    pub(crate) fn trim_first(&mut self) {
        let Some(first) = self.batches.pop_front() else {
            return;
        };
        self.base.apply(&first.header);
        self.base.sessions.forget_places(self.session_places_max);
        self.payload_bytes -= u64::from(first.header.payload_len);
        if first.payload.is_some() {
            self.resident_bytes -= u64::from(first.header.payload_len);
        }
        self.resident_from = self.resident_from.max(self.first_index());
        let keep = self
            .history
            .partition_point(|(_, start)| *start <= self.base.index);
        if keep > 1 {
            self.history.drain(..keep - 1);
        }
        if let Some(oldest) = self.history.first_mut() {
            oldest.1 = oldest.1.max(self.base.index);
        }
    }

    /// Trims up to `base`, a base of this very log, and takes over its session table.
    pub(crate) fn begin_behind(&mut self, base: Base) {
        while self.base.index < base.index {
            self.trim_first();
        }
        assert_eq!(
            (self.base.index, self.base.end_offset),
            (base.index, base.end_offset),
            "a base of this log"
        );
        if let Some(oldest) = self.history.first_mut()
            && oldest.1 <= base.index
        {
            *oldest = (base.epoch, base.index);
        }
        self.history.dedup_by_key(|(epoch, _)| *epoch);
        self.base = base;
        self.find_ends();
        self.rebuild_sessions();
    }

    fn rebuild_sessions(&mut self) {
        self.sessions = self.base.sessions.clone();
        for stored in self.batches.iter() {
            self.sessions.apply(&stored.header);
            self.sessions.forget_places(self.session_places_max);
        }
    }

    /// The last of a run of batches from `from`, all without payload in memory. The run has at most so many batches and,
    /// beyond the first, bytes.
    pub(crate) fn load_end(&self, from: Index, batches_max: u64, bytes_max: u64) -> Index {
        let last = (self.resident_from - 1).min(from + batches_max - 1);
        let fits = |end: &Index| self.weight(*end).saturating_sub(self.weight(from - 1)) <= bytes_max;
        (from + 1..=last).take_while(fits).last().unwrap_or(from)
    }

    /// Drops payloads from memory, oldest first, until at most `resident_bytes` stay. Payloads behind `through` stay.
    pub(crate) fn evict(&mut self, through: Index, resident_bytes: u64) {
        while self.resident_bytes > resident_bytes && self.resident_from <= through {
            let at = (self.resident_from - self.first_index()) as usize;
            let Some(stored) = self.batches.get_mut(at) else {
                return;
            };
            if stored.payload.take().is_some() {
                self.resident_bytes -= u64::from(stored.header.payload_len);
            }
            stored.trace = None;
            self.resident_from += 1;
        }
    }

    /// The greatest index at which this log and the described one agree, at least this log's base. `None`: they agree
    /// on nothing from which the other log could go on.
    ///
    /// Two logs that hold a batch of the same epoch at the same index agree up to it: an epoch has one head.
    pub(crate) fn common_index(&self, their_last: Index, their_history: &[(Epoch, Index)]) -> Option<Index> {
        let mut index = self.last_index().min(their_last);
        loop {
            if index == 0 {
                return (self.base.index == 0).then_some(0);
            }
            if index < self.base.index {
                return None;
            }
            let (my_epoch, my_start) = *interval(&self.history, index)?;
            let (their_epoch, their_start) = interval(their_history, index)?;
            if my_epoch == *their_epoch {
                return Some(index);
            }
            index = if my_epoch > *their_epoch {
                my_start - 1
            } else {
                their_start - 1
            };
        }
    }
}

/// Retention counts so much of each batch beside its payload.
fn counted_beside() -> u64 {
    if planted::on(Bug::ShortBatchesFree) {
        0
    } else {
        BATCH_MEMORY_BYTES
    }
}

/// The interval of `history` in which `index` lies.
fn interval(history: &[(Epoch, Index)], index: Index) -> Option<&(Epoch, Index)> {
    history.iter().rev().find(|(_, start)| *start <= index)
}

#[cfg(test)]
mod tests {
    use quorate_types::GroupId;
    use quorate_types::limits::GROUP_MEMORY_BYTES;
    use uuid::Uuid;

    use super::*;

    /// A batch of so many entries of ten bytes each.
    fn next(log: &Log, entry_count: u32) -> Batch {
        let index = log.last_index() + 1;
        let payload = Bytes::from(vec![0; 14 * entry_count as usize]);
        let header = BatchHeader {
            group_id: GroupId(Uuid::from_u128(7)),
            epoch: log.last_epoch().max(1) + u64::from(entry_count % 2),
            index,
            base_offset: log.next_offset(),
            cumulative_bytes: log.cumulative_bytes() + 10 * u64::from(entry_count),
            session: 1,
            seq: index,
            timestamp_us: 0,
            fencing_token: 0,
            entry_count,
            payload_len: payload.len() as u32,
            payload_crc: 0,
        };
        Batch {
            header,
            payload,
            trace: None,
        }
    }

    /// The kept ends and epochs equal those of the batches.
    fn check_known(log: &Log) {
        let base = End::of_base(log.base());
        let end = |index| log.header(index).map_or(base, End::of);
        let last = end(log.last_index());
        assert_eq!(log.last_index(), log.base().index + log.batches.len() as u64);
        assert_eq!(
            (log.next_offset(), log.cumulative_bytes()),
            (last.offset, last.cumulative_bytes)
        );
        for index in 0..=log.last_index() + 1 {
            assert_eq!(log.weight(index), end(index).weight(), "of {index}");
            let base_epoch = (index == log.base().index).then_some(log.base().epoch);
            let epoch = log.header(index).map(|header| header.epoch).or(base_epoch);
            assert_eq!(log.epoch_at(index), epoch, "of {index}");
        }
    }

    /// Admission and retention count no less for a batch than it takes.
    #[test]
    fn a_batch_takes_no_more_memory_than_is_counted_for_it() {
        // The other part is its place on disk (`crates/storage/recovery/src/places.rs`).
        assert!(size_of::<Stored>() as u64 <= BATCH_MEMORY_BYTES - 48);
        let mut log = Log::new(Base::default());
        for _ in 0..10_000 {
            log.push(next(&log, 1));
            // The rest of its last piece is within what counts for a group.
            let room = log.batches.capacity() - log.batches.len();
            assert!((room * size_of::<Stored>()) as u64 <= GROUP_MEMORY_BYTES / 4);
        }
    }

    #[test]
    fn retention_counts_batches_and_what_they_take_beside_their_payload() {
        let mut log = Log::new(Base::default());
        (0..100).for_each(|_| log.push(next(&log, 1)));
        let each = 14 + BATCH_MEMORY_BYTES;
        assert_eq!(log.retained_bytes(), 100 * each);
        assert_eq!(log.index_leaving(100 * each, 100), 0);
        assert_eq!(log.index_leaving(60 * each, 100), 40);
        assert_eq!(log.index_leaving(60 * each - 1, 100), 41);
        assert_eq!(log.index_leaving(u64::MAX, 30), 70);
        assert_eq!(log.index_leaving(0, 0), 100);
        (0..40).for_each(|_| log.trim_first());
        assert_eq!(log.index_leaving(50 * each, 100), 50);
    }

    #[test]
    fn ends_of_the_last_batches_and_epochs_are_known_through_every_change() {
        let mut log = Log::new(Base::default());
        check_known(&log);
        for entry_count in [1, 3, 2, 5, 4] {
            log.push(next(&log, entry_count));
            check_known(&log);
        }
        log.truncate(4);
        check_known(&log);
        log.trim_first();
        check_known(&log);
        log.truncate(2);
        check_known(&log);
        log.push(next(&log, 7));
        check_known(&log);
        while log.first_index() <= log.last_index() {
            log.trim_first();
            check_known(&log);
        }
        log.push(next(&log, 2));
        check_known(&log);
        let mut behind = Log::new(log.base().clone());
        check_known(&behind);
        behind.push(next(&behind, 6));
        check_known(&behind);
    }
}
