//! An event as the API shows it.

use quorate_types::{Epoch, GroupId, ServerId};
use serde::Serialize;

use super::time::rfc3339;
use crate::state::{Event, EventKind, GroupStatus};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EventView {
    pub seq: u64,
    pub at: String,
    pub kind: EventKind,
    pub group_id: Option<GroupId>,
    pub server_id: Option<ServerId>,
    pub epoch: Option<Epoch>,
    pub status: Option<GroupStatus>,
    pub message: String,
}

impl From<&Event> for EventView {
    fn from(event: &Event) -> Self {
        Self {
            seq: event.seq,
            at: rfc3339(event.at_ms),
            kind: event.kind,
            group_id: event.group_id,
            server_id: event.server_id,
            epoch: event.epoch,
            status: event.status,
            message: event.message.clone(),
        }
    }
}
