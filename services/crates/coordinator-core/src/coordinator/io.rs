//! Events and commands of a coordinator.

use quorate_quorum::{MemberId, Message, Point, Refused, RoleView, Write};
use quorate_types::Place;

use crate::engine::{Behind, Input, Note, Outgoing};
use crate::ids::CallId;
use crate::log::Difference;

#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One at a time, taken in at once.
pub enum Event {
    /// From other members, from the disk, and from operators.
    Quorum(quorate_quorum::Event),
    /// From servers and callers. To be kept back while the coordinator is not open ([`super::Coordinator::is_open`]).
    Input(Input),
    /// A caller wants to see the state, with all that was agreed before.
    Read {
        call: CallId,
    },
    Tick,
}

/// Done in order.
#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // A few at a time, moved once.
pub enum Command {
    /// For the disk, which says when it is written.
    Write(Write),
    ToMember {
        to: MemberId,
        message: Message,
    },
    /// The newest snapshot on the disk is needed.
    LoadSnapshot,
    /// It follows from what is agreed, and goes out with the end of the log.
    Release {
        place: Option<Place>,
        outgoing: Vec<Outgoing>,
    },
    /// The state may be shown to the caller now, and not after the next event.
    Show {
        call: CallId,
    },
    /// The change of members is agreed, or the handing over has begun.
    Done {
        call: CallId,
    },
    /// The call was not done, and will not be.
    Refused {
        call: CallId,
        why: Refused,
    },
    Note(Note),
    /// Unless it leads now: connections of servers end, and calls without an answer may have been done or not.
    Role(RoleView),
    /// The process ends, and nothing more leaves.
    End(Ending),
}

/// Why a coordinator cannot go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ending {
    /// A server proves that the log is behind it.
    Behind(Behind),
    /// The disk lacks entries that this member had on it.
    EntriesLost {
        member: MemberId,
        acknowledged: Point,
        last: Point,
    },
    /// The log was written by a release that decides otherwise.
    DecidedOtherwise(Difference),
    /// The agreed log, or a snapshot of it, cannot be read.
    Unreadable(String),
}
