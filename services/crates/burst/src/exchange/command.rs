//! The commands that an exchange returns to its shell.

use quorate_types::Micros;
use quorate_types::control::SharingReport;
use quorate_wire::share::Share;

use super::bounds::GrantBound;
use crate::problem::GroupEpoch;

#[derive(Debug, Clone, PartialEq)]
pub enum ExchangeCommand {
    Send {
        to: usize,
        share: Share,
    },
    /// To the coordinators, once an interval.
    Report(SharingReport),
    Grant(Granted),
    /// The group uses at most this many requests/s of its reservation without a call of `Exchange::returned`. The rest
    /// may be burst capacity of others. `None` is the whole reservation.
    Assume {
        key: GroupEpoch,
        per_s: Option<u64>,
    },
    /// Everything that the returned owners need is reclaimed. Other burst capacity may be used again.
    Resume,
}

/// The rate that a group whose head is here may use above its reservation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Granted {
    pub key: GroupEpoch,
    pub per_s: u64,
    pub until: Micros,
    pub reason: GrantReason,
    /// The server and resource that keep the group from more, if it wants more and they are known.
    pub bound: Option<GrantBound>,
}

/// The reason of a grant, or of its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantReason {
    /// All its servers committed.
    Agreed,
    /// The group wants no more.
    Unwanted,
    /// Not renewed in time: servers did not answer.
    Lapsed,
    /// An owner on one of its servers is back.
    Recalled,
    /// Another epoch, or another head.
    Moved,
}
