//! The logs of a group before its resets.

use quorate_types::Epoch;

use crate::ledger::Ledger;

/// The logs of one group before its current one.
#[derive(Debug, Default)]
pub struct FormerLogs {
    /// Ledgers of these log generations, from the first.
    pub ledgers: Vec<Ledger>,
    /// The epochs of its resets.
    pub reset_in: Vec<Epoch>,
}
