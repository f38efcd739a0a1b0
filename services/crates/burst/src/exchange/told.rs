//! Rates that the coordinators told last.

use std::collections::BTreeMap;

use quorate_types::Micros;

use crate::problem::GroupEpoch;

/// The newest round of rates.
#[derive(Debug, Default)]
pub(super) struct ToldRates {
    pub round: u64,
    /// Requests/s of groups with a replica here.
    pub per_s: BTreeMap<GroupEpoch, u64>,
    pub until: Micros,
}

impl ToldRates {
    pub fn is_good(&self, now: Micros) -> bool {
        now < self.until
    }
}
