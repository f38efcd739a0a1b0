//! A replica that is to move to another server.

use quorate_types::{GroupId, ServerId};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Relocate {
    pub group_id: GroupId,
    pub from: ServerId,
    /// `None`: the server that placement chooses.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub to: Option<ServerId>,
    pub cause: Cause,
}

/// The reason of a relocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// The group is to have an SLA that its servers have no room for.
    Resize,
    /// A partition wants a larger part of its group's rate than its servers have room for.
    Demand,
    /// A server can do less than it has promised.
    Capacity,
    /// An operator asked for it.
    Operator,
}

impl Cause {
    /// The cause of a move that relieves a server.
    pub fn of(is_wanted_by_partition: bool) -> Self {
        match is_wanted_by_partition {
            true => Self::Demand,
            false => Self::Capacity,
        }
    }

    pub fn in_words(self) -> &'static str {
        match self {
            Self::Resize => "its servers lack room for its new SLA",
            Self::Demand => "a partition wants more than a server has room for",
            Self::Capacity => "a server can do less than it has promised",
            Self::Operator => "an operator asked for it",
        }
    }
}
