//! The choices of the operator for an exchange.

use quorate_types::Micros;

use crate::policy::Policy;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    Head,
    All,
    Level,
    /// By the coordinators' rates for the whole fleet; Level-DRF while there are none.
    Fleet,
}

#[derive(Debug, Clone, Copy)]
pub struct ExchangeSettings {
    pub algorithm: Algorithm,
    pub policy: Policy,
    pub interval_us: Micros,
    /// Time between two iterations; all of them must fit the interval.
    pub iteration_us: Micros,
    /// A grant ends if it is not renewed for this many intervals.
    pub lapse_intervals: u64,
}

impl ExchangeSettings {
    pub(super) fn lapse_us(&self) -> Micros {
        self.interval_us * self.lapse_intervals
    }
}
