//! Who appends: one producer for each connection, on the connection's own task, and what is counted of all.
//!
//! *Closed loop*: each acknowledged entry is replaced by a new one, so that a fixed number is outstanding.
//! *Open loop*: entries are due at fixed times whatever the servers do; latency counts from when an entry was due,
//! so that a stall is seen by every entry that it held up (no coordinated omission). What is still due or outstanding
//! when a measurement ends has waited so long at least, and counts as that.
//!
//! Which numbers were acknowledged is kept as stretches: one for each run, and one more for each failure in it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use hdrhistogram::Histogram;
use quorate_client::feed::Feed;
use quorate_client::writer::{NEVER, Share, Writer};
use quorate_client::{Failure, now_us};
use quorate_types::{GroupId, Micros, Offset};

use crate::entry::EntryWriter;
use crate::marks::{Mark, Marks};
use crate::measure::{Run, Stretch};

/// Longest latency that is told from longer ones.
const LATENCY_US_MAX: u64 = 120_000_000;
/// Link events of one window that are kept; a connection that comes and goes all the time says no more by each.
const LINK_EVENTS_MAX: usize = 1_024;

/// What is counted, shared by the producers of one measurement: they live on one thread.
pub struct Tally {
    /// Acknowledged since the window began.
    pub acked: u64,
    /// The batches in which they came.
    pub batches: u64,
    pub latency_us: Histogram<u64>,
    /// By the name of the code, since the start.
    pub refused: BTreeMap<&'static str, u64>,
    pub unknown: BTreeMap<&'static str, u64>,
    pub attached: u32,
    pub reattached: u32,
    /// Runs that have ended.
    pub runs: Vec<Run>,
    pub is_stopped: bool,
    pub last_failure: Option<Failure>,
    /// The last acknowledgement, of any window.
    pub acked_at: Option<Micros>,
    /// The longest time without one that ended in this window.
    pub gap: Option<Gap>,
    /// Of this window.
    pub link_events: Vec<LinkEvent>,
    /// How far each open loop is.
    open: Vec<Rc<Cell<Open>>>,
}

/// An open loop: what was due, and what of it has no outcome yet.
#[derive(Debug, Clone, Copy)]
pub struct Open {
    interval_ns: u64,
    /// So many are due at once, and the next ones so many intervals later.
    burst: u64,
    began_us: Micros,
    /// Appends that the client took.
    count: u64,
    outstanding: u32,
    outstanding_max: u32,
}

impl Open {
    fn due_us(&self, number: u64) -> Micros {
        let first = number - number % self.burst;
        self.began_us + (u128::from(self.interval_ns) * u128::from(first) / 1_000) as Micros
    }

    /// How long each entry has waited that is outstanding or due, and so many of them have waited about as long.
    /// Outcomes come in the order of appends, but for failures: so the last ones are outstanding.
    fn waiting(&self, now: Micros) -> impl Iterator<Item = (Micros, u64)> {
        let first = self.count - u64::from(self.outstanding);
        let due = u128::from(now.saturating_sub(self.began_us)) * 1_000 / u128::from(self.interval_ns.max(1));
        let end = (due as u64 / self.burst + 1)
            .saturating_mul(self.burst)
            .max(self.count);
        let step = (end - first).div_ceil(WAITING_STEPS).max(1);
        let open = *self;
        let each = (first..end).step_by(step as usize);
        each.map(move |number| (now.saturating_sub(open.due_us(number)), step.min(end - number)))
    }
}

/// Entries that wait are counted one by one up to here, and in groups beyond.
const WAITING_STEPS: u64 = 100_000;

/// Two acknowledgements with none between them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gap {
    pub from: Micros,
    pub to: Micros,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkEvent {
    pub at: Micros,
    /// The epoch of the head that is attached now; `None`: the connection was lost.
    pub epoch: Option<u64>,
}

impl Tally {
    pub fn new() -> Self {
        Self {
            acked: 0,
            batches: 0,
            latency_us: Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).expect("the bounds are sound"),
            refused: BTreeMap::new(),
            unknown: BTreeMap::new(),
            attached: 0,
            reattached: 0,
            runs: Vec::new(),
            is_stopped: false,
            last_failure: None,
            acked_at: None,
            gap: None,
            link_events: Vec::new(),
            open: Vec::new(),
        }
    }

    /// What `acked` appends of a window are worth: something only where none failed.
    pub fn check_all_acked(&self, acked: u64) -> Result<(), String> {
        if acked > 0 && self.refused.is_empty() && self.unknown.is_empty() {
            return Ok(());
        }
        let codes: Vec<_> = self.refused.keys().chain(self.unknown.keys()).collect();
        Err(format!(
            "{acked} appends succeeded, and some failed ({codes:?}): this is no measurement"
        ))
    }

    pub fn why_not_attached(&self, producers: usize) -> String {
        let reason = self.last_failure.as_ref().map(ToString::to_string);
        let reason = reason.unwrap_or_else(|| "no replica named in the handle answers".to_string());
        format!("{} of {producers} connected: {reason}", self.attached)
    }

    /// A window begins: what came before does not count in it.
    pub fn begin(&mut self) {
        self.acked = 0;
        self.batches = 0;
        self.latency_us.reset();
        self.gap = None;
        self.link_events.clear();
    }

    /// A measurement ends: what an open loop has outstanding or due has waited since then, and longer in the end.
    pub fn end(&mut self, now: Micros) {
        for open in &self.open {
            for (waited_us, count) in open.get().waiting(now) {
                let latency_us = waited_us.clamp(1, LATENCY_US_MAX);
                let recorded = self.latency_us.record_n(latency_us, count);
                recorded.expect("clamped to the bounds");
            }
        }
    }

    /// Entries were acknowledged.
    fn see_ack(&mut self, now: Micros) {
        if let Some(from) = self.acked_at.replace(now)
            && self.gap.is_none_or(|gap| now - from > gap.to - gap.from)
        {
            self.gap = Some(Gap { from, to: now });
        }
    }

    fn note_link(&mut self, epoch: Option<u64>) {
        if self.link_events.len() < LINK_EVENTS_MAX {
            self.link_events.push(LinkEvent { at: now_us(), epoch });
        }
    }
}

/// What an append of the driver is known by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// From when the latency counts.
    due: Micros,
    /// The number of its first entry in the run.
    first: u64,
}

/// When entries come.
pub enum Arrivals {
    Closed {
        outstanding: u32,
    },
    /// Shared with the tally, which counts what waits at the end.
    Open(Rc<Cell<Open>>),
}

impl Arrivals {
    /// `phase`: the part of the time between two bursts by which this one is behind others that began with it, so that many
    /// do not come at once.
    pub fn open(rate_per_s: f64, burst: u32, outstanding_max: u32, phase: f64) -> Self {
        let later_us = 1e6 / rate_per_s * f64::from(burst) * phase;
        Arrivals::Open(Rc::new(Cell::new(Open {
            interval_ns: (1e9 / rate_per_s) as u64,
            burst: u64::from(burst),
            began_us: now_us() + later_us as Micros,
            count: 0,
            outstanding: 0,
            outstanding_max,
        })))
    }
}

pub struct Producer {
    tally: Rc<RefCell<Tally>>,
    arrivals: Arrivals,
    timeout_us: Micros,
    size: u32,
    group: GroupId,
    run: u64,
    entries: EntryWriter,
    outstanding: u32,
    has_attached: bool,
    acked: Vec<Stretch>,
    marks: Marks,
}

impl Producer {
    pub fn new(
        tally: Rc<RefCell<Tally>>,
        group: GroupId,
        arrivals: Arrivals,
        timeout_us: Micros,
        size: u32,
    ) -> Self {
        let run = rand::random();
        let entries = EntryWriter::new(run, size);
        let (outstanding, has_attached) = (0, false);
        if let Arrivals::Open(open) = &arrivals {
            tally.borrow_mut().open.push(open.clone());
        }
        Self {
            tally,
            arrivals,
            timeout_us,
            size,
            group,
            run,
            entries,
            outstanding,
            has_attached,
            acked: Vec::new(),
            marks: Marks::default(),
        }
    }

    /// Entries in one call, which share the time from which their latency counts.
    fn append(&mut self, writer: &mut Writer<Ticket>, due: Micros, now: Micros, count: u32) -> u32 {
        let (entries, size) = (&mut self.entries, self.size);
        let first = entries.written();
        let ticket = Ticket { due, first };
        let taken = writer.append_run(now + self.timeout_us, ticket, count, size, |buffer| {
            entries.put(buffer)
        });
        self.outstanding += taken;
        taken
    }

    fn answered(&mut self, count: u32) {
        self.outstanding -= count;
        if let Arrivals::Open(open) = &self.arrivals {
            open.update(|open| Open {
                outstanding: self.outstanding,
                ..open
            });
        }
    }
}

impl Feed for Producer {
    type Ticket = Ticket;

    fn fill(&mut self, writer: &mut Writer<Ticket>, now: Micros) {
        if self.tally.borrow().is_stopped {
            return;
        }
        match &self.arrivals {
            Arrivals::Closed { outstanding } => {
                let outstanding = *outstanding;
                while self.outstanding < outstanding {
                    if self.append(writer, now, now, outstanding - self.outstanding) == 0 {
                        return;
                    }
                }
            }
            Arrivals::Open(shared) => {
                let shared = shared.clone();
                let mut open = shared.get();
                let mut due = open.due_us(open.count);
                // What the client does not take stays due since then.
                while due <= now
                    && self.outstanding < open.outstanding_max
                    && self.append(writer, due, now, 1) == 1
                {
                    open.count += 1;
                    due = open.due_us(open.count);
                }
                open.outstanding = self.outstanding;
                shared.set(open);
            }
        }
    }

    fn acked(&mut self, share: Share<Ticket>, base_offset: Offset, now: Micros) {
        self.answered(share.count);
        let (number, count) = (share.ticket.first, u64::from(share.count));
        Stretch::extend(&mut self.acked, number, count);
        let first = Mark {
            number,
            offset: base_offset,
        };
        self.marks.acked(first, count);
        let mut tally = self.tally.borrow_mut();
        tally.acked += u64::from(share.count);
        tally.batches += u64::from(share.first == 0);
        tally.see_ack(now);
        let latency_us = now.saturating_sub(share.ticket.due).clamp(1, LATENCY_US_MAX);
        tally
            .latency_us
            .record_n(latency_us, u64::from(share.count))
            .expect("clamped to the bounds");
    }

    fn failed(&mut self, share: Share<Ticket>, failure: &Failure, is_unknown: bool, _now: Micros) {
        self.answered(share.count);
        let mut tally = self.tally.borrow_mut();
        let counts = if is_unknown {
            &mut tally.unknown
        } else {
            &mut tally.refused
        };
        *counts.entry(failure.info().name).or_default() += u64::from(share.count);
        tally.last_failure = Some(failure.clone());
    }

    fn wake_at(&self) -> Micros {
        match &self.arrivals {
            Arrivals::Open(open) if !self.tally.borrow().is_stopped => {
                let open = open.get();
                // With all outstanding that may be, an acknowledgement is what to wait for.
                if open.outstanding < open.outstanding_max {
                    open.due_us(open.count)
                } else {
                    NEVER
                }
            }
            _ => NEVER,
        }
    }

    fn is_finished(&self) -> bool {
        self.tally.borrow().is_stopped
    }

    fn attached(&mut self, attached: &quorate_client::Attached) {
        let mut tally = self.tally.borrow_mut();
        tally.note_link(Some(attached.epoch));
        if self.has_attached {
            tally.reattached += 1;
        } else {
            tally.attached += 1;
        }
        self.has_attached = true;
    }

    fn detached(&mut self) {
        self.tally.borrow_mut().note_link(None);
    }

    fn hopeless(&mut self, failure: &Failure) {
        let mut tally = self.tally.borrow_mut();
        tally.last_failure = Some(failure.clone());
        tally.is_stopped = true;
    }
}

impl Drop for Producer {
    fn drop(&mut self) {
        let (group, entries) = (self.group, self.entries.written());
        let run = format!("{:016x}", self.run);
        let acked = std::mem::take(&mut self.acked);
        let marks = std::mem::take(&mut self.marks).into_vec();
        self.tally.borrow_mut().runs.push(Run {
            run,
            group,
            entries,
            acked,
            marks,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(open: Open) -> Tally {
        let mut tally = Tally::new();
        tally.open.push(Rc::new(Cell::new(open)));
        tally
    }

    #[test]
    fn a_stall_that_outlives_its_window_is_seen() {
        // A thousand a second for two seconds; half a second went well, then nothing was answered or taken.
        let mut tally = tally(Open {
            interval_ns: 1_000_000,
            burst: 1,
            began_us: 5_000_000,
            count: 600,
            outstanding: 100,
            outstanding_max: 100,
        });
        tally.latency_us.record_n(300, 500).unwrap();
        tally.end(7_000_000);
        assert_eq!(tally.latency_us.len(), 500 + 1_501, "the 500th to the 2000th");
        let longest = tally.latency_us.max();
        assert!((1_500_000..1_502_000).contains(&longest), "{longest}");
        let median = tally.latency_us.value_at_quantile(0.5);
        assert!((480_000..520_000).contains(&median), "{median}");
    }

    #[test]
    fn what_is_due_later_does_not_count_and_many_are_counted_in_groups() {
        let nothing = Open {
            interval_ns: 1_000_000_000,
            burst: 1,
            began_us: 5_000_000,
            count: 1,
            outstanding: 0,
            outstanding_max: u32::MAX,
        };
        let mut calm = tally(nothing);
        calm.end(5_900_000);
        assert_eq!(calm.latency_us.len(), 0);
        let mut many = tally(Open {
            interval_ns: 10,
            burst: 1,
            count: 0,
            ..nothing
        });
        many.end(7_000_000);
        assert_eq!(many.latency_us.len(), 200_000_001);
    }

    #[test]
    fn a_burst_is_due_at_once() {
        let open = Open {
            interval_ns: 1_000_000,
            burst: 16,
            began_us: 5_000_000,
            count: 0,
            outstanding: 0,
            outstanding_max: u32::MAX,
        };
        let due = [0, 15, 16, 31, 32].map(|number| open.due_us(number) - open.began_us);
        assert_eq!(due, [0, 0, 16_000, 16_000, 32_000]);
        let waiting = |after_us| {
            open.waiting(open.began_us + after_us)
                .map(|(_, count)| count)
                .sum::<u64>()
        };
        assert_eq!([0, 15_999, 16_000].map(waiting), [16, 16, 32]);
    }
}
