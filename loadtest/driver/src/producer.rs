//! Producers: one for each connection, on the connection's own task.
//!
//! *Closed loop*: each acknowledged entry is replaced by a new one, so that a fixed number is outstanding.
//! *Open loop*: entries are due at fixed times whatever the servers do. Latency counts from the due time, so that a
//! stall is seen by every entry that it delayed (no coordinated omission). Entries still due or outstanding at the end
//! of a measurement count with their wait so far.
//!
//! Acknowledged numbers are kept as ranges: one for each run, and one more for each failure in it.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use quorate_client::feed::Feed;
use quorate_client::writer::{NEVER, Share, Writer};
use quorate_client::{Failure, now_us};
use quorate_types::{GroupId, Micros, Offset};

use crate::entry::EntryWriter;
use crate::marks::{Mark, Marks};
use crate::open_loop::OpenLoop;
use crate::runs::{NumberRange, Run};
use crate::tally::{LATENCY_US_MAX, Tally};

/// Identifies an append of the driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// Start of the latency.
    due: Micros,
    /// The number of its first entry in the run.
    first: u64,
}

/// Times of new entries.
pub enum Arrivals {
    Closed {
        outstanding: u32,
    },
    /// Shared with the tally, which counts waiting entries at the end.
    Open(Rc<Cell<OpenLoop>>),
}

impl Arrivals {
    /// `phase`: delay of the first burst, as a part of the time between two bursts. It keeps bursts of several
    /// producers apart.
    pub fn open(rate_per_s: f64, burst: u32, outstanding_max: u32, phase: f64) -> Self {
        let later_us = 1e6 / rate_per_s * f64::from(burst) * phase;
        Arrivals::Open(Rc::new(Cell::new(OpenLoop {
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
    acked: Vec<NumberRange>,
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

    /// Appends entries in one call; they share the start of their latency.
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
            open.update(|open| OpenLoop {
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
                // Entries that the client does not take stay due.
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
        NumberRange::extend(&mut self.acked, number, count);
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
                // At the bound of outstanding entries, the next event is an acknowledgement.
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
