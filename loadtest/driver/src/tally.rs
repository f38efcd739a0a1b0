//! Counts of one measurement, shared by its producers.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

use hdrhistogram::Histogram;
use quorate_client::{Failure, now_us};
use quorate_types::Micros;

use crate::open_loop::OpenLoop;
use crate::runs::Run;

/// Longest latency that is distinguished from longer ones.
pub const LATENCY_US_MAX: u64 = 120_000_000;
/// Most link events kept of one window; more events of a connection that comes and goes say no more.
const LINK_EVENTS_MAX: usize = 1_024;

/// Counts shared by the producers of one measurement, which run on one thread.
pub struct Tally {
    /// Entries acknowledged since the window began.
    pub acked: u64,
    /// Batches of these entries.
    pub batches: u64,
    pub latency_us: Histogram<u64>,
    /// Entries by the name of the code, since the start.
    pub refused: BTreeMap<&'static str, u64>,
    pub unknown: BTreeMap<&'static str, u64>,
    pub attached: u32,
    pub reattached: u32,
    /// Runs that have ended.
    pub runs: Vec<Run>,
    pub is_stopped: bool,
    pub last_failure: Option<Failure>,
    /// Time of the last acknowledgement, of any window.
    pub acked_at: Option<Micros>,
    /// The longest time without an acknowledgement that ended in this window.
    pub gap: Option<Gap>,
    /// Link events of this window.
    pub link_events: Vec<LinkEvent>,
    /// State of each open loop.
    pub open: Vec<Rc<Cell<OpenLoop>>>,
}

/// The times of two successive acknowledgements.
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

    /// A window counts only if some appends succeeded and none failed.
    pub fn check_all_acked(&self, acked: u64) -> Result<(), String> {
        if acked > 0 && self.refused.is_empty() && self.unknown.is_empty() {
            return Ok(());
        }
        let codes: Vec<_> = self.refused.keys().chain(self.unknown.keys()).collect();
        Err(format!(
            "{acked} appends succeeded, and some failed ({codes:?}): the window does not count"
        ))
    }

    /// Message for producers that found no head in time.
    pub fn not_attached(&self, producers: usize) -> String {
        let reason = self.last_failure.as_ref().map(ToString::to_string);
        let reason = reason.unwrap_or_else(|| "no replica named in the handle answers".to_string());
        format!("{} of {producers} connected: {reason}", self.attached)
    }

    /// Begins a window: earlier counts do not count in it.
    pub fn begin(&mut self) {
        self.acked = 0;
        self.batches = 0;
        self.latency_us.reset();
        self.gap = None;
        self.link_events.clear();
    }

    /// Ends a measurement: entries of an open loop that are outstanding or due count with their wait so far.
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
    pub fn see_ack(&mut self, now: Micros) {
        if let Some(from) = self.acked_at.replace(now)
            && self.gap.is_none_or(|gap| now - from > gap.to - gap.from)
        {
            self.gap = Some(Gap { from, to: now });
        }
    }

    pub fn note_link(&mut self, epoch: Option<u64>) {
        if self.link_events.len() < LINK_EVENTS_MAX {
            self.link_events.push(LinkEvent { at: now_us(), epoch });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(open: OpenLoop) -> Tally {
        let mut tally = Tally::new();
        tally.open.push(Rc::new(Cell::new(open)));
        tally
    }

    #[test]
    fn a_stall_that_outlives_its_window_is_seen() {
        // A thousand a second for two seconds; after half a second, no entry is answered or taken.
        let mut tally = tally(OpenLoop {
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
    fn entries_due_later_do_not_count_and_many_are_counted_in_groups() {
        let nothing = OpenLoop {
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
        let mut many = tally(OpenLoop {
            interval_ns: 10,
            burst: 1,
            count: 0,
            ..nothing
        });
        many.end(7_000_000);
        assert_eq!(many.latency_us.len(), 200_000_001);
    }
}
