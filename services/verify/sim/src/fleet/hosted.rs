//! A group on a server, and what invariants saw of it last.

use quorate_chain::Replica;
use quorate_group::Group;
use quorate_types::{Index, Micros};

use super::Transcript;

/// A group on a server.
#[derive(Debug)]
pub struct Hosted {
    pub group: Group,
    /// Its log has a hole and a made-up base. It is dropped at once, so invariants have nothing to say of it.
    pub is_useless: bool,
    /// It took a step since it was last flushed.
    pub is_dirty: bool,
    /// A `CommitNoticeDue` is scheduled.
    pub is_notice_scheduled: bool,
    /// A `CatchupDue` is scheduled.
    pub is_catchup_scheduled: bool,
    /// The time of its next scheduled flush; 0: none is scheduled.
    pub wake_at: Micros,
    /// Committed by this incarnation.
    pub commit_seen: Index,
    /// The generation of its log, as last seen.
    pub log_generation: usize,
    /// The log's end, as last seen.
    pub last_seen: Index,
    /// The last batch that was too old, as last seen.
    pub old_seen: Index,
    pub transcript: Transcript,
}

impl Hosted {
    pub fn new(group: Group) -> Self {
        Self {
            commit_seen: group.replica().commit_index(),
            last_seen: group.replica().log().last_index(),
            old_seen: 0,
            group,
            is_useless: false,
            is_dirty: false,
            is_notice_scheduled: false,
            is_catchup_scheduled: false,
            wake_at: 0,
            log_generation: 0,
            transcript: Transcript::default(),
        }
    }

    pub fn replica(&self) -> &Replica {
        self.group.replica()
    }
}
