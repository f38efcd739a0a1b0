//! The number of the current interval, and its next iteration.

use std::collections::BTreeSet;

use quorate_types::Micros;

use super::settings::ExchangeSettings;

/// A number this far ahead is not taken for an interval.
const AHEAD_MAX: u64 = 1 << 40;
/// An interval that is shortened lasts at least this part of its time.
const SHORTEST_PART: Micros = 4;

#[derive(Debug)]
pub(super) struct Intervals {
    pub number: u64,
    pub began: Micros,
    next: (u64, Micros),
    /// The next iteration.
    pub iteration: u32,
    /// Servers that got a report in this interval because they are behind.
    pulled: BTreeSet<usize>,
}

impl Intervals {
    pub fn new(now: Micros) -> Self {
        Self {
            number: 0,
            began: now,
            next: (1, now),
            iteration: 0,
            pulled: BTreeSet::new(),
        }
    }

    pub fn begin(&mut self, now: Micros, settings: &ExchangeSettings) {
        self.number = self.next.0;
        self.next = (self.number + 1, now + settings.interval_us);
        (self.began, self.iteration) = (now, 0);
        self.pulled.clear();
    }

    pub fn is_due(&self, now: Micros) -> bool {
        now >= self.next.1
    }

    pub fn due_at(&self) -> Micros {
        self.next.1
    }

    pub fn step_at(&self, settings: &ExchangeSettings) -> Micros {
        self.began + u64::from(self.iteration) * settings.iteration_us
    }

    /// A server that hears of a later interval begins it at once. True if `number` is of a later one.
    pub fn follow(&mut self, now: Micros, number: u64) -> bool {
        let ahead = number.saturating_sub(self.number);
        let is_later = ahead > 0 && ahead < AHEAD_MAX;
        if is_later && number >= self.next.0 {
            self.next = (number, self.next.1.min(now));
        }
        is_later
    }

    /// The next interval begins as soon as this one has lasted a while.
    pub fn hurry(&mut self, now: Micros, settings: &ExchangeSettings) {
        let earliest = self.began + settings.interval_us / SHORTEST_PART;
        self.next.1 = self.next.1.min(earliest.max(now));
    }

    /// True once an interval for each server.
    pub fn pulls(&mut self, server: usize) -> bool {
        self.pulled.insert(server)
    }
}
