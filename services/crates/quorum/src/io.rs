//! Events and commands of a member.

use std::sync::Arc;

use crate::entry::Entry;
use crate::ids::{MemberId, Point, Position, Term};
use crate::members::{Change, Members};
use crate::message::Message;
use crate::refused::Refused;

/// Names a call until its answer.
pub type CallId = u64;

/// Writes are done in order, each synced before the next is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct WriteId(pub u64);

#[derive(Debug, Clone, Copy)]
pub struct Settings {
    pub heartbeat_ms: u64,
    /// A follower that hears no leader for this long, and up to twice as long, stands for election.
    pub election_ms: u64,
    /// Spreads the members' elections over that time. Different for each of them.
    pub seed: u64,
    /// Entries in one message: a follower that catches up gets them in so many bytes, or one alone that is larger.
    pub append_bytes: usize,
    /// Entries that stay in memory after a snapshot, for members that are a little behind.
    pub kept_bytes: usize,
}

/// A vote is given once in a term, and kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Vote {
    pub term: Term,
    pub given_to: Option<MemberId>,
}

/// A member's disk, as it is read at the start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disk {
    pub vote: Vote,
    /// The point that the log begins after: that of the snapshot, if there is one.
    pub base: Point,
    /// The members at the base. None: nobody has taken this member in.
    pub members: Members,
    pub entries: Vec<Entry>,
}

#[derive(Debug, PartialEq, Eq)]
pub struct Snapshot {
    pub base: Point,
    pub members: Members,
    pub contents: Arc<[u8]>,
}

#[derive(Debug, Clone)]
pub enum Event {
    Tick,
    Received {
        from: MemberId,
        message: Message,
    },
    /// Messages to it may be lost.
    Disconnected {
        member: MemberId,
    },
    /// The connection on which it sent has ended: its process may have. A word from it says otherwise.
    Closed {
        member: MemberId,
    },
    /// This write, and all before it, are on stable storage.
    Written {
        id: WriteId,
    },
    Propose {
        call: CallId,
        payload: Arc<[u8]>,
    },
    Change {
        call: CallId,
        change: Change,
    },
    /// The caller wants to read what was committed before now.
    Read {
        call: CallId,
    },
    /// The shell has a snapshot of the state on its disk, with everything up to there.
    Compacted {
        through: Position,
    },
    /// The newest snapshot, after [`Command::LoadSnapshot`].
    SnapshotLoaded {
        snapshot: Arc<Snapshot>,
    },
    /// Another member is to lead: this one, or the one that lacks least.
    StepDown {
        call: CallId,
        to: Option<MemberId>,
    },
}

/// Done in order. Nothing of a write needs to be waited for: messages that depend on it come after [`Event::Written`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Write(Write),
    Send {
        to: MemberId,
        message: Message,
    },
    /// The next entries of the agreed log, in order.
    Commit(Vec<Entry>),
    /// The agreed log up to the snapshot's base, in one.
    Restore(Arc<Snapshot>),
    /// A member needs the newest snapshot.
    LoadSnapshot,
    /// The proposal has its place. It is decided once [`Command::Commit`] brings the entry of this point, or another there.
    Placed {
        call: CallId,
        point: Point,
    },
    /// Everything that was committed before the call is there once this position is applied.
    ReadAt {
        call: CallId,
        position: Position,
    },
    Refused {
        call: CallId,
        why: Refused,
    },
    /// The disk lacks an entry that was on it: it is an older copy, or has lost writes. The member must not go on.
    EntriesLost {
        acknowledged: Point,
        last: Point,
    },
    /// The change or the handing over is under way.
    Begun {
        call: CallId,
    },
    /// A proposal without its commit, and a read without its answer, stay open beyond it: nobody here will tell.
    Role(RoleView),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    pub id: WriteId,
    pub vote: Option<Vote>,
    /// In the place of everything before.
    pub snapshot: Option<Arc<Snapshot>>,
    /// Entries after this position go.
    pub cut_after: Option<Position>,
    pub entries: Vec<Entry>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleView {
    Leader { term: Term },
    Follower { term: Term, leader: Option<MemberId> },
}
