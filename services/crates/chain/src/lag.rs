//! How far others and the disk are behind: a replica that slows its group down is seen by what waits for it.

use quorate_types::{Durability, Index, Micros, ServerId};

use crate::replica::Replica;

/// Marks, set at one tick and looked at from the next on: so a lag is known a tick too short, never too long.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    /// The successor had not said to have this, when it was marked.
    successor: Option<(ServerId, Index, Micros)>,
    /// The disk here had not synced this.
    journal: Option<(Index, Micros)>,
}

/// For how long something has waited, at least; none when nothing does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lags {
    /// What was sent to the successor and has not arrived there (at a learner: is not on its disk).
    pub successor: Option<(ServerId, Micros)>,
    /// What was given to the journal here and is not durable.
    pub journal: Option<Micros>,
}

impl Replica {
    pub(crate) fn mark_lag(&mut self, now: Micros) {
        let last_index = self.log.last_index();
        let is_behind = self.durability == Durability::Persistent && self.durable_index < last_index;
        let durable_index = self.durable_index;
        self.lag.journal = match self.lag.journal {
            Some(mark) if mark.0 > durable_index && mark.0 <= last_index => Some(mark),
            _ => is_behind.then_some((last_index, now)),
        };
        self.lag.successor = self.sent_and_arrived().and_then(|(server, sent, arrived)| {
            let mark = self
                .lag
                .successor
                .filter(|m| m.0 == server && m.1 > arrived && m.1 <= sent);
            mark.or((sent > arrived).then_some((server, sent, now)))
        });
    }

    /// What waits, and for how long, as of the last tick's marks.
    pub fn lags(&self, now: Micros) -> Lags {
        let arrived = |server: ServerId| {
            let downstream = self.sent_and_arrived().filter(|(s, _, _)| *s == server);
            downstream.map_or(Index::MAX, |(_, _, arrived)| arrived)
        };
        let successor = self
            .lag
            .successor
            .filter(|(server, index, _)| *index > arrived(*server));
        let journal = self.lag.journal.filter(|(index, _)| *index > self.durable_index);
        Lags {
            successor: successor.map(|(server, _, since)| (server, now.saturating_sub(since))),
            journal: journal.map(|(_, since)| now.saturating_sub(since)),
        }
    }
}
