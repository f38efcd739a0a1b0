//! Events of the group logs' thread, and the answers to them.

use std::ops::Range;
use std::sync::{Arc, mpsc};

use bytes::Bytes;
use quorate_journal::Lsn;
use quorate_types::GroupId;

use crate::format::LogLocation;

/// A report of the group logs' thread.
#[derive(Debug)]
pub enum Event {
    /// These records lie in the group's log now; the journal no longer keeps them.
    Moved {
        group: GroupId,
        records: Vec<(Lsn, LogLocation)>,
    },
    /// Records of the journal are due for copying and cannot be read. Each of the [`crate::GroupLogOptions::answerers`]
    /// sends the records it has, then [`Answer::Done`]. Records that nobody has are left out, and [`Event::Incomplete`]
    /// follows.
    Lost {
        lsns: Range<Lsn>,
        answer: mpsc::Sender<Answer>,
    },
    /// A record of the group's log is damaged: repair it by [`crate::GroupLogs::rewrite`]. Answer whether the record
    /// is still needed; an unneeded one is voided.
    Damaged {
        group: GroupId,
        place: LogLocation,
        answer: mpsc::Sender<bool>,
    },
    /// Records other than batches were lost: each group (or this one) must state again where its log begins and ends.
    Incomplete {
        group: Option<GroupId>,
    },
    /// Copying has stopped for now; the journal grows.
    Stalled {
        reason: Arc<str>,
    },
    Resumed,
}

/// Receives events on the group logs' thread.
pub(crate) type Listener = dyn Fn(Event) + Send + Sync;

/// Answer to [`Event::Lost`].
#[derive(Debug)]
pub enum Answer {
    Record(Rescued),
    /// Nobody knows whether records of this group are among the lost ones: its replica is stopped.
    Stopped(GroupId),
    Done,
}

/// A record of the journal received from elsewhere.
#[derive(Debug, Clone)]
pub struct Rescued {
    pub group: GroupId,
    pub lsn: Lsn,
    pub kind: u8,
    pub head: Bytes,
    /// `Err`: the payload, of this length, is not available for now. Its place is kept, and it reads as damaged.
    pub payload: Result<Bytes, u32>,
}
