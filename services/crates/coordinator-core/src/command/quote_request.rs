//! A dry run of an admission, or of a change of a group.

use quorate_types::{GroupId, Sla};
use uuid::Uuid;

#[derive(Debug, Clone)]
pub struct QuoteRequest {
    /// The SLA of all partitions together.
    pub sla: Sla,
    /// The group that is to have the SLA; `None`: a new one.
    pub replaces: Option<GroupId>,
    /// The group's; `None`: one without a guarantee.
    pub project_id: Option<Uuid>,
    /// `None`: as many as the group has.
    pub partitions: Option<u16>,
}

impl From<Sla> for QuoteRequest {
    fn from(sla: Sla) -> Self {
        Self {
            sla,
            replaces: None,
            project_id: None,
            partitions: None,
        }
    }
}
