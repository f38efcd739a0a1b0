//! Results of a client's calls.

use quorate_types::config::{GroupState, Role};
use quorate_types::{Epoch, Offset};
use quorate_wire::client::StatusOk;

use crate::entries::Entry;

/// Entries that were ordered as one, with `count` consecutive offsets from `base_offset`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    pub base_offset: Offset,
    pub count: u32,
}

/// A page of committed entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    pub entries: Vec<Entry>,
    /// The offset to read next.
    pub next_offset: Offset,
    pub commit_offset: Offset,
    pub trim_offset: Offset,
}

/// A replica's report about its group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// `None`: a role that this client does not know.
    pub role: Option<Role>,
    pub state: Option<GroupState>,
    pub epoch: Epoch,
    pub commit_offset: Offset,
    pub durable_offset: Offset,
    pub trim_offset: Offset,
    pub next_offset: Offset,
    pub head_address: String,
}

impl From<StatusOk> for Status {
    fn from(status: StatusOk) -> Self {
        use GroupState::{Active, Degraded, Lost, Paused, ReadOnly, Syncing};
        use Role::{Follower, Head, Learner, None, Sole, Tail};
        let roles = [None, Head, Follower, Tail, Learner, Sole];
        let states = [Active, Degraded, Paused, ReadOnly, Lost, Syncing];
        Self {
            role: roles.into_iter().find(|role| *role as u8 == status.role),
            state: states.into_iter().find(|state| *state as u8 == status.state),
            epoch: status.epoch,
            commit_offset: status.commit_offset,
            durable_offset: status.durable_offset,
            trim_offset: status.trim_offset,
            next_offset: status.next_offset,
            head_address: status.head_address,
        }
    }
}
