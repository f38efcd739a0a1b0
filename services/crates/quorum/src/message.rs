//! Messages between members.

use std::sync::Arc;

use crate::entry::Entry;
use crate::ids::{Point, Position, Term};
use crate::members::Members;

/// `term` is the sender's, and on its disk before the message leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub term: Term,
    pub body: Body,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Body {
    /// Would you vote for me in the next term? `last`: the end of the sender's log.
    Canvass {
        last: Point,
    },
    Canvassed {
        would: bool,
    },
    /// Vote for me in this term.
    Vote {
        last: Point,
    },
    Voted {
        granted: bool,
    },
    /// Entries after `previous`, or none: a heartbeat. `round` comes back in the answer.
    Append {
        previous: Point,
        entries: Vec<Entry>,
        committed: Position,
        round: u64,
    },
    /// The log is the leader's up to `matched`, and on the disk.
    Appended {
        matched: Position,
        round: u64,
    },
    /// The log has another entry than `previous`, or none there. It may agree with the leader's up to `hint`.
    Diverged {
        previous: Point,
        hint: Point,
        round: u64,
    },
    /// A piece of a snapshot.
    Snapshot {
        base: Point,
        members: Members,
        total_bytes: u64,
        from_byte: u64,
        piece: Arc<[u8]>,
        round: u64,
    },
    /// So much of the snapshot is there.
    Pieces {
        base: Point,
        bytes: u64,
        round: u64,
    },
    /// The receiver has told that it has this entry on its disk, and has it no more. It must not vote.
    EntriesLost {
        acknowledged: Point,
    },
    /// The sender's term is over: the receiver has a later one, which the message names.
    Superseded,
    /// The leader hands over: stand for election at once.
    Lead,
}
