//! Calls that a member refuses.

use std::fmt::{self, Display};

use crate::ids::MemberId;

/// It was not done, and will not be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// Ask the leader.
    NotLeader {
        leader: Option<MemberId>,
    },
    /// Another member takes over: ask it soon.
    HandingOver,
    /// A majority is slower than the callers: repeat it later.
    Busy,
    /// Another change is under way, or the term has just begun: repeat it soon.
    ChangeUnderWay,
    UnknownMember,
    KnownMember,
    TooManyMembers,
    LastVoter,
    /// It would be a voter that lacks entries: repeat it later.
    NotCaughtUp {
        lacks: u64,
    },
    /// No majority answers of the voters that would be left.
    MajorityAway,
}

impl Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotLeader { leader: Some(leader) } => write!(f, "the member {leader} leads"),
            Self::NotLeader { leader: None } => f.write_str("nobody leads at present"),
            Self::HandingOver => f.write_str("another member takes over"),
            Self::Busy => f.write_str("a majority is slower than the calls"),
            Self::ChangeUnderWay => f.write_str("another change of the members is under way"),
            Self::UnknownMember => f.write_str("there is no such member"),
            Self::KnownMember => f.write_str("it is so already"),
            Self::TooManyMembers => f.write_str("there are as many members as there may be"),
            Self::LastVoter => f.write_str("it is the last member with a vote"),
            Self::NotCaughtUp { lacks } => write!(f, "the member lacks {lacks} entries"),
            Self::MajorityAway => f.write_str("no majority would answer"),
        }
    }
}
