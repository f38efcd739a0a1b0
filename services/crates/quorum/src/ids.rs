//! Names of members, terms and places in the log.

use std::fmt::{self, Display};

/// A member's disk: random, and made with it. A coordinator whose disk was replaced is another member, since it has
/// forgotten its votes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MemberId(pub u64);

/// A time with one leader at most. The first is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Term(pub u64);

/// The place of an entry in the log. The first is 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Position(pub u64);

/// A position, and the term of the entry there. Two logs with the same point are the same up to it. The later of two
/// points ends the log that has more to lose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Point {
    pub term: Term,
    pub position: Position,
}

impl Position {
    pub fn next(self) -> Self {
        Self(self.0 + 1)
    }

    pub fn before(self) -> Self {
        Self(self.0.saturating_sub(1))
    }
}

impl Display for MemberId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of term {}", self.position.0, self.term.0)
    }
}
