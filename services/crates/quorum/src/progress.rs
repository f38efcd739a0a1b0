//! A leader's view of another member.

use crate::ids::{Point, Position};
use crate::limits::APPENDS_IN_FLIGHT_MAX;

#[derive(Debug)]
pub struct Progress {
    /// The member has the log up to here on its disk.
    pub matched: Position,
    /// The next entry to send.
    pub next: Position,
    pub way: Way,
    /// The last round that it answered.
    pub round: u64,
    /// The time of its last answer.
    pub heard_ms: u64,
    pub sent_ms: u64,
}

/// How entries go to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// One message at a time, until the logs are known to agree.
    Probe { is_asked: bool },
    /// Many messages: the end of each that has no answer yet.
    Stream { ends: Vec<Position> },
    /// A snapshot: bytes that have arrived.
    Snapshot { base: Point, bytes: u64, is_asked: bool },
}

impl Way {
    /// A snapshot of which nothing was sent yet.
    pub fn from_snapshot() -> Self {
        Self::Snapshot {
            base: Point::default(),
            bytes: 0,
            is_asked: false,
        }
    }
}

impl Progress {
    pub fn new(next: Position, now_ms: u64) -> Self {
        Self {
            matched: Position::default(),
            next,
            way: Way::Probe { is_asked: false },
            round: 0,
            heard_ms: now_ms,
            sent_ms: 0,
        }
    }

    /// Whether entries may be sent now.
    pub fn is_open(&self) -> bool {
        match &self.way {
            Way::Probe { is_asked } => !is_asked,
            Way::Stream { ends } => ends.len() < APPENDS_IN_FLIGHT_MAX,
            Way::Snapshot { .. } => false,
        }
    }

    /// Entries up to there are on their way.
    pub fn sent(&mut self, end: Position, now_ms: u64) {
        self.sent_ms = now_ms;
        match &mut self.way {
            Way::Probe { is_asked } => *is_asked = true,
            Way::Stream { ends } => {
                if end >= self.next {
                    ends.push(end);
                    self.next = end.next();
                }
            }
            Way::Snapshot { .. } => {}
        }
    }

    pub fn matches(&mut self, matched: Position) {
        self.matched = self.matched.max(matched);
        match &mut self.way {
            Way::Probe { .. } => {
                self.next = self.matched.next();
                self.way = Way::Stream { ends: Vec::new() };
            }
            Way::Stream { ends } => {
                ends.retain(|end| *end > matched);
                self.next = self.next.max(self.matched.next());
            }
            Way::Snapshot { base, .. } => {
                if self.matched >= base.position {
                    self.next = self.matched.next();
                    self.way = Way::Stream { ends: Vec::new() };
                }
            }
        }
    }

    /// The logs are to be compared from there on.
    pub fn probe(&mut self, next: Position) {
        self.next = next.max(self.matched.next());
        self.way = Way::Probe { is_asked: false };
    }
}
