//! How far the disk and the successor are behind: what waits for a slow replica shows it.

use quorate_types::{Index, Micros, ServerId};

/// Marks, set at one tick and looked at from the next on. A lag is therefore measured a tick too short, never too long.
#[derive(Debug, Default)]
pub(crate) struct Lag {
    /// Sent to the successor, which did not have it when it was marked.
    successor: Option<(ServerId, Mark)>,
    /// Not synced by the disk here when it was marked.
    journal: Option<Mark>,
}

#[derive(Debug, Clone, Copy)]
struct Mark {
    index: Index,
    since: Micros,
}

/// How much was handed on, and how much of it has got there.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reach {
    pub handed: Index,
    pub arrived: Index,
}

/// For how long something has waited, at least; none when nothing does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Lags {
    /// Sent to the successor and not arrived there (at a learner: not on its disk).
    pub successor: Option<(ServerId, Micros)>,
    /// Given to the journal here and not durable.
    pub journal: Option<Micros>,
}

impl Lag {
    /// At each tick.
    pub fn mark(&mut self, now: Micros, journal: Reach, successor: Option<(ServerId, Reach)>) {
        self.journal = journal.mark(self.journal, now);
        self.successor = successor.and_then(|(server, reach)| {
            let earlier = self.successor.filter(|(marked, _)| *marked == server);
            let mark = reach.mark(earlier.map(|(_, mark)| mark), now)?;
            Some((server, mark))
        });
    }

    /// Lags as of the last tick's marks.
    pub fn lags(&self, now: Micros, journal: Reach, successor: Option<(ServerId, Reach)>) -> Lags {
        let waits = |mark: &Mark, reach: Reach| mark.index > reach.arrived;
        let elapsed = |mark: Mark| now.saturating_sub(mark.since);
        let successor = self.successor.filter(|(marked, mark)| {
            successor.is_some_and(|(server, reach)| server == *marked && waits(mark, reach))
        });
        Lags {
            successor: successor.map(|(server, mark)| (server, elapsed(mark))),
            journal: self.journal.filter(|mark| waits(mark, journal)).map(elapsed),
        }
    }
}

impl Reach {
    /// An earlier mark, as long as it waits; else one of now, if something waits.
    fn mark(self, earlier: Option<Mark>, now: Micros) -> Option<Mark> {
        let earlier = earlier.filter(|mark| mark.index > self.arrived && mark.index <= self.handed);
        let fresh = Mark {
            index: self.handed,
            since: now,
        };
        earlier.or((self.handed > self.arrived).then_some(fresh))
    }
}
