//! The time by which requests that passed before their turn have delayed those that wait.

use std::collections::BTreeMap;

use quorate_types::Micros;

#[derive(Debug, Default)]
pub(crate) struct Delays {
    /// Sum of what passed before all that waited.
    passed_us: Micros,
    /// Requests that left their places in the queue early: they delay the places before.
    left_us: BTreeMap<u64, Micros>,
    left_sum_us: Micros,
}

impl Delays {
    /// The sum so far, for [`Delays::since`].
    pub fn passed_us(&self) -> Micros {
        self.passed_us
    }

    pub fn pass(&mut self, us: Micros) {
        self.passed_us = self.passed_us.saturating_add(us);
    }

    /// The place is not before the queue's first.
    pub fn leave(&mut self, place: u64, us: Micros) {
        self.left_us.insert(place, us);
        self.left_sum_us = self.left_sum_us.saturating_add(us);
    }

    /// The delay of the request at `place`, which came when `passed_us` had passed. `first`: the queue's first place.
    pub fn since(&self, passed_us: Micros, place: u64, first: u64) -> Micros {
        let behind_us = match place == first {
            true => self.left_sum_us,
            false => self.left_us.range(place + 1..).map(|(_, us)| us).sum(),
        };
        (self.passed_us - passed_us).saturating_add(behind_us)
    }

    /// Nothing waits before the place `first`.
    pub fn forget_before(&mut self, first: u64) {
        while let Some(early) = self.left_us.first_entry()
            && *early.key() < first
        {
            self.left_sum_us -= early.remove();
        }
    }

    pub fn clear(&mut self) {
        self.left_us.clear();
        self.left_sum_us = 0;
    }
}
