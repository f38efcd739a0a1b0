//! Calls that a member refuses.

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
