//! The book of windows: samples in, records out, each kept until Redis has it.
//!
//! A record has this server's counts for one group in one epoch and minute. It is sent whole each time it changes, its
//! counters only grow, and the worker keeps the greatest of each. So the number and the order of arrivals do not matter.
//!
//! Counts between two samples belong to the window in which the time between them began. Only the time itself (active,
//! paused) is divided at the end of a window. A record's committed counters are the log's own, since it began. So lost
//! windows make SLIs incomplete, and never usage.
//!
//! An idle group's record changes by the time that passed alone. Such records are sent a bounded number at a time, in turn,
//! and each once its window has ended. So idle groups cost little, however many there are.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;

use quorate_types::limits::{
    TELEMETRY_RESEND_S, TELEMETRY_SPOOL_AFTER_S, TELEMETRY_TIME_RECORDS_PER_ROUND_MAX, TELEMETRY_WINDOWS_MAX,
};
use quorate_types::{Epoch, GroupId, Micros, Role};

use super::record::{UsageRecord, WINDOW_MS, WINDOW_S};
use quorate_usage::{Buckets, Sample, Totals};

/// Windows between two samples of a group that get records. When a server slept for longer, the windows in the middle are
/// not reported.
const WINDOWS_BETWEEN_SAMPLES_MAX: u64 = 12;
/// A group begins with it.
const FIRST_EPOCH: Epoch = 1;
/// A group without a sample for so many seconds has left.
const FORGET_AFTER_ROUNDS: u32 = 10;

/// Oldest window first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    window_start_s: u64,
    group: GroupId,
    epoch: Epoch,
}

impl Key {
    fn of(sample: &Sample, window_start_s: u64) -> Self {
        Self {
            window_start_s,
            group: sample.group,
            epoch: sample.epoch,
        }
    }
}

#[derive(Debug)]
struct Kept {
    record: UsageRecord,
    active_us: Micros,
    paused_us: Micros,
    judged_latency_us: Buckets,
    /// Grows with each change of the record.
    version: u64,
    /// The newest version that differs by more than time, or ended the window.
    counted: u64,
    /// The newest version that Redis is known to have.
    sent: u64,
    /// Entries and bytes read, in the newest version that Redis may have.
    attempted_reads: (u64, u64),
}

/// A group at its last sample.
#[derive(Debug)]
struct Tracked {
    since_us: Micros,
    at_ms: u64,
    accounted_ms: u64,
    log_epoch: Epoch,
    /// Entries and bytes.
    committed: (u64, u64),
    totals: Totals,
    /// Entries and bytes read in windows that were dropped before they were sent. Reads are billed, so they go into the
    /// group's next record.
    carried_reads: (u64, u64),
    /// Rounds of samples that ended since its last one, which is included.
    rounds_missed: u32,
}

/// Records to be sent together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageBatch {
    pub records: Vec<UsageRecord>,
    /// Arguments for [`WindowBook::mark_sent`].
    pub marks: Vec<Mark>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark {
    key: Key,
    version: u64,
}

#[derive(Debug)]
pub struct WindowBook {
    kept: BTreeMap<Key, Kept>,
    groups: HashMap<GroupId, Tracked>,
    /// Records to be sent that count something new, and those in which time alone passed.
    urgent: BTreeSet<Key>,
    timed: BTreeSet<Key>,
    /// The last one of those that was sent, and how many of them may be sent until the round ends.
    timed_last: Option<Key>,
    timed_left: usize,
    windows_max: usize,
    dropped: u64,
}

impl Default for WindowBook {
    fn default() -> Self {
        Self::with_bound(TELEMETRY_WINDOWS_MAX)
    }
}

impl WindowBook {
    pub fn with_bound(windows_max: usize) -> Self {
        assert!(windows_max > 0, "a book has a place for the present window");
        Self {
            kept: BTreeMap::new(),
            groups: HashMap::new(),
            urgent: BTreeSet::new(),
            timed: BTreeSet::new(),
            timed_last: None,
            timed_left: TELEMETRY_TIME_RECORDS_PER_ROUND_MAX,
            windows_max,
            dropped: 0,
        }
    }

    /// Takes in a group's counts since its last sample.
    pub fn observe(&mut self, sample: &Sample) {
        let tracked = self
            .groups
            .remove(&sample.group)
            .filter(|t| t.since_us == sample.since_us);
        let mut before = tracked.unwrap_or_else(|| Tracked::unknown(sample));
        if before.log_epoch != sample.log_epoch {
            // The counters of another log began at zero, whatever those of the lost one had reached.
            before.committed = (0, 0);
        }
        let delta = sample.totals.since(&before.totals);
        self.observe_counts(sample, &before, &delta);
        self.observe_time(sample, &before, &delta);
        let after = Tracked {
            since_us: sample.since_us,
            at_ms: sample.at_ms,
            accounted_ms: sample.accounted_ms,
            log_epoch: sample.log_epoch,
            committed: sample.committed(),
            totals: sample.totals,
            carried_reads: (0, 0),
            rounds_missed: 0,
        };
        self.groups.insert(sample.group, after);
        self.bound();
    }

    /// Amounts go to each window in the time since the last sample, and counts to the first of them.
    fn observe_counts(&mut self, sample: &Sample, before: &Tracked, delta: &Totals) {
        // Time does not count twice when a clock was set back.
        let pieces = pieces_of(before.at_ms.min(sample.at_ms), sample.at_ms);
        for (at, piece) in pieces.iter().enumerate() {
            let first = if at == 0 {
                before.committed
            } else {
                sample.committed()
            };
            self.change(sample, piece.window_start_s, first, |kept| {
                kept.note_amounts(sample);
                if at == 0 {
                    kept.add_counts(delta, before, sample);
                }
            });
        }
    }

    fn observe_time(&mut self, sample: &Sample, before: &Tracked, delta: &Totals) {
        let pieces = pieces_of(before.accounted_ms.min(sample.accounted_ms), sample.accounted_ms);
        let active = shares(delta.active_us, &pieces);
        let paused = shares(delta.paused_us, &pieces);
        for (at, piece) in pieces.iter().enumerate() {
            let key = Key::of(sample, piece.window_start_s);
            let first = before.committed;
            let kept = self.kept.entry(key);
            let kept = kept.or_insert_with(|| Kept::new(sample, key.window_start_s, first));
            let was = kept.record.clone();
            kept.add_time(*piece, active[at], paused[at]);
            if kept.record != was {
                kept.version += 1;
            }
            self.index(key);
        }
    }

    /// Changes a record by more than time.
    fn change(
        &mut self,
        sample: &Sample,
        window_start_s: u64,
        first: (u64, u64),
        change: impl FnOnce(&mut Kept),
    ) {
        let key = Key::of(sample, window_start_s);
        let kept = self.kept.entry(key);
        let kept = kept.or_insert_with(|| Kept::new(sample, window_start_s, first));
        let was = kept.record.clone();
        change(kept);
        if kept.record != was {
            kept.version += 1;
            kept.counted = kept.version;
        }
        self.index(key);
    }

    /// Ends a round of samples, which is a second's: forgets groups that left, and old records that Redis has.
    pub fn end_round(&mut self, now_ms: u64) {
        // Rounds are counted, not time. After a long round a group would look new, and all its counts would be counted
        // again.
        self.groups.retain(|_, tracked| {
            tracked.rounds_missed += 1;
            tracked.rounds_missed <= FORGET_AFTER_ROUNDS
        });
        self.timed_left = TELEMETRY_TIME_RECORDS_PER_ROUND_MAX;
        let ended = |key: &&Key| (key.window_start_s + WINDOW_S) * 1000 <= now_ms;
        for key in self.timed.iter().take_while(ended).copied().collect::<Vec<_>>() {
            if let Some(kept) = self.kept.get_mut(&key) {
                kept.counted = kept.version;
            }
            self.index(key);
        }
        let keep_from_s = (now_ms / 1000).saturating_sub(TELEMETRY_RESEND_S + WINDOW_S);
        self.kept
            .retain(|key, kept| kept.is_pending() || key.window_start_s >= keep_from_s);
    }

    /// Keeps the lists of records to be sent in step.
    fn index(&mut self, key: Key) {
        self.urgent.remove(&key);
        self.timed.remove(&key);
        match self.kept.get(&key) {
            Some(kept) if kept.counted > kept.sent => self.urgent.insert(key),
            Some(kept) if kept.is_pending() => self.timed.insert(key),
            _ => false,
        };
    }

    /// Records in which time alone passed, in turn.
    fn next_timed(&self, count: usize) -> Vec<Key> {
        let Some(last) = self.timed_last else {
            return self.timed.iter().take(count).copied().collect();
        };
        let behind = self.timed.range((Bound::Excluded(last), Bound::Unbounded));
        let before = self.timed.range(..=last);
        behind.chain(before).take(count).copied().collect()
    }

    /// The oldest records that changed since they were last sent, up to `records_max`.
    pub fn pending(&mut self, records_max: usize) -> UsageBatch {
        let mut batch = UsageBatch {
            records: Vec::new(),
            marks: Vec::new(),
        };
        let mut keys: Vec<Key> = self.urgent.iter().take(records_max).copied().collect();
        let timed = self.next_timed((records_max - keys.len()).min(self.timed_left));
        self.timed_left -= timed.len();
        self.timed_last = timed.last().copied().or(self.timed_last);
        keys.extend(timed);
        for key in keys {
            let kept = self.kept.get_mut(&key).expect("a record to be sent is kept");
            kept.attempted_reads = (kept.record.read_entries, kept.record.read_bytes);
            batch.records.push(kept.record.clone());
            let version = kept.version;
            batch.marks.push(Mark { key, version });
        }
        batch
    }

    /// Redis took the batch.
    pub fn mark_sent(&mut self, marks: &[Mark]) {
        for mark in marks {
            if let Some(kept) = self.kept.get_mut(&mark.key) {
                kept.sent = kept.sent.max(mark.version);
            }
            self.index(mark.key);
        }
    }

    /// Records to be sent whose windows ended so long ago that they do not change any more, up to `records_max`.
    pub fn overdue(&self, now_ms: u64, records_max: usize) -> UsageBatch {
        let before_s = (now_ms / 1000).saturating_sub(TELEMETRY_SPOOL_AFTER_S + WINDOW_S);
        self.unsent(records_max, |key| key.window_start_s < before_s)
    }

    /// All records to be sent, up to `records_max`: those of a server that stops.
    pub fn left(&self, records_max: usize) -> UsageBatch {
        self.unsent(records_max, |_| true)
    }

    fn unsent(&self, records_max: usize, is_wanted: impl Fn(&Key) -> bool) -> UsageBatch {
        let old = self.kept.iter().take_while(|(key, _)| is_wanted(key));
        let unsent = old.filter(|(_, kept)| kept.is_pending()).take(records_max);
        let with_mark = |(key, kept): (&Key, &Kept)| {
            let (key, version) = (*key, kept.version);
            (kept.record.clone(), Mark { key, version })
        };
        let (records, marks) = unsent.map(with_mark).unzip();
        UsageBatch { records, marks }
    }

    /// The batch is on the disk, which sends it later.
    pub fn mark_spooled(&mut self, marks: &[Mark]) {
        for mark in marks {
            self.kept.remove(&mark.key);
            self.index(mark.key);
        }
    }

    /// Redis was unreachable, and may have lost data: all kept records are pending again.
    pub fn send_again(&mut self) {
        for kept in self.kept.values_mut() {
            kept.sent = 0;
        }
        self.timed.clear();
        self.urgent = self.kept.keys().copied().collect();
    }

    pub fn has_pending(&self) -> bool {
        !self.urgent.is_empty() || !self.timed.is_empty()
    }

    /// Records kept, pending or not.
    pub fn len(&self) -> usize {
        self.kept.len()
    }

    pub fn is_empty(&self) -> bool {
        self.kept.is_empty()
    }

    /// Windows that the bound dropped before they were sent.
    pub fn dropped(&self) -> u64 {
        self.dropped
    }

    /// Drops a record that Redis has, then the oldest ones, until the bound holds.
    fn bound(&mut self) {
        if self.kept.len() <= self.windows_max {
            return;
        }
        let is_any_sent = self.kept.len() > self.urgent.len() + self.timed.len();
        let mut sent = self.kept.iter().filter(|(_, kept)| !kept.is_pending());
        if let Some(key) = is_any_sent.then(|| sent.next()).flatten().map(|(key, _)| *key) {
            self.kept.remove(&key);
        }
        while self.kept.len() > self.windows_max {
            let (key, kept) = self.kept.pop_first().expect("more than the bound");
            self.dropped += 1;
            self.urgent.remove(&key);
            self.timed.remove(&key);
            if let Some(tracked) = self.groups.get_mut(&key.group) {
                tracked.carried_reads.0 += kept.record.read_entries - kept.attempted_reads.0;
                tracked.carried_reads.1 += kept.record.read_bytes - kept.attempted_reads.1;
            }
        }
    }
}

impl Tracked {
    /// The state before a group's first sample, so that all its counts since it came are counted.
    fn unknown(sample: &Sample) -> Self {
        Self {
            since_us: sample.since_us,
            at_ms: sample.at_ms,
            accounted_ms: sample.accounted_ms,
            log_epoch: sample.log_epoch,
            committed: sample.committed(),
            totals: Totals::default(),
            carried_reads: (0, 0),
            rounds_missed: 0,
        }
    }
}

impl Kept {
    fn new(sample: &Sample, window_start_s: u64, (first_entries, first_bytes): (u64, u64)) -> Self {
        let record = UsageRecord {
            group: sample.group,
            epoch: sample.epoch,
            log_epoch: sample.log_epoch,
            role: sample.role,
            window_start_s,
            window_s: WINDOW_S,
            committed_entries: first_entries,
            committed_bytes: first_bytes,
            first_committed_entries: first_entries,
            first_committed_bytes: first_bytes,
            offered_entries: 0,
            throttled_entries: 0,
            throttled_within_sla_entries: 0,
            within_sla_entries: 0,
            refused_entries: 0,
            read_entries: 0,
            read_bytes: 0,
            owed_read_entries: 0,
            late_read_entries: 0,
            active_ms: 0,
            paused_ms: 0,
            from_ms: 0,
            to_ms: 0,
            stored_bytes: 0,
            latency_us: Default::default(),
            judged_latency_us: None,
        };
        Self {
            record,
            active_us: 0,
            paused_us: 0,
            judged_latency_us: Buckets::default(),
            version: 1,
            counted: 1,
            sent: 0,
            attempted_reads: (0, 0),
        }
    }

    fn is_pending(&self) -> bool {
        self.version > self.sent
    }

    fn note_amounts(&mut self, sample: &Sample) {
        let record = &mut self.record;
        record.role = sample.role;
        record.committed_entries = record.committed_entries.max(sample.committed_entries);
        record.committed_bytes = record.committed_bytes.max(sample.committed_bytes);
        record.stored_bytes = record.stored_bytes.max(sample.stored_bytes);
    }

    fn add_time(&mut self, piece: Piece, active_us: Micros, paused_us: Micros) {
        if matches!(self.record.role, Role::Head | Role::Sole) {
            if self.record.from_ms == 0 {
                (self.record.from_ms, self.record.to_ms) = (piece.from_ms, piece.from_ms);
            }
            if active_us > 0 {
                self.record.to_ms = self.record.to_ms.max(piece.to_ms);
            }
            if self.record.epoch == FIRST_EPOCH && self.active_us == 0 {
                self.leave_out_beginning(piece, active_us);
            }
        }
        self.active_us += active_us;
        self.paused_us += paused_us;
        self.record.active_ms = self.active_us / 1000;
        self.record.paused_ms = self.paused_us / 1000;
    }

    /// A new group's head accepts nothing before its chain is there. That time comes first, and is nobody's loss.
    fn leave_out_beginning(&mut self, piece: Piece, active_us: Micros) {
        let begin_ms = piece.to_ms - active_us.div_ceil(1000).min(piece.ms());
        self.record.from_ms = self.record.from_ms.max(begin_ms);
        self.record.to_ms = self.record.to_ms.max(begin_ms);
    }

    fn add_counts(&mut self, delta: &Totals, before: &Tracked, sample: &Sample) {
        let record = &mut self.record;
        record.offered_entries += delta.offered_entries;
        record.throttled_entries += delta.throttled_entries;
        record.throttled_within_sla_entries += delta.throttled_within_sla_entries;
        record.within_sla_entries += delta.within_sla_entries;
        record.refused_entries += delta.refused_entries;
        record.read_entries += delta.read_entries + before.carried_reads.0;
        record.read_bytes += delta.read_bytes + before.carried_reads.1;
        record.owed_read_entries += delta.owed_read_entries;
        record.late_read_entries += delta.late_read_entries;
        sample.latency.add_to(&mut record.latency_us);
        sample.judged_latency.add_to(&mut self.judged_latency_us);
        let differs = record.latency_us != self.judged_latency_us;
        record.judged_latency_us = differs.then(|| self.judged_latency_us.clone());
    }
}

/// The part of the time between two samples that lies in one window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Piece {
    window_start_s: u64,
    from_ms: u64,
    to_ms: u64,
}

impl Piece {
    fn ms(self) -> u64 {
        self.to_ms - self.from_ms
    }
}

/// Divides `[from_ms, to_ms]` at the ends of windows. The window in which the time begins comes first, also when there is
/// no time. Only the first and the last of very many windows are kept.
fn pieces_of(from_ms: u64, to_ms: u64) -> Vec<Piece> {
    assert!(from_ms <= to_ms, "time from {from_ms} to {to_ms}");
    let (first, last) = (from_ms / WINDOW_MS, to_ms / WINDOW_MS);
    (first..=last)
        .filter(|window| last - first < WINDOWS_BETWEEN_SAMPLES_MAX || *window == first || *window == last)
        .map(|window| {
            let (begin, end) = (window * WINDOW_MS, (window + 1) * WINDOW_MS);
            Piece {
                window_start_s: window * WINDOW_S,
                from_ms: begin.max(from_ms),
                to_ms: end.min(to_ms),
            }
        })
        .collect()
}

/// Divides `whole` among the pieces by their time; the shares add up to it.
fn shares(whole: Micros, pieces: &[Piece]) -> Vec<Micros> {
    let span_ms: u64 = pieces.iter().map(|piece| piece.ms()).sum();
    let up_to = |ms: u64| {
        if span_ms == 0 {
            whole
        } else {
            (u128::from(whole) * u128::from(ms) / u128::from(span_ms)) as u64
        }
    };
    let mut passed_ms = 0;
    let mut given = 0;
    let mut shares = Vec::with_capacity(pieces.len());
    for piece in pieces {
        passed_ms += piece.ms();
        let share = up_to(passed_ms) - given;
        given += share;
        shares.push(share);
    }
    shares
}
