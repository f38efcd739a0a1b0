//! A project's guarantee as the API shows it.

use quorate_guarantees::Guarantee;
use quorate_guarantees::project_shares::FlowNow;
use quorate_types::GroupId;
use serde::Serialize;
use uuid::Uuid;

use super::time::rfc3339;
use crate::state::CoordinatorState;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuaranteeView {
    pub project_id: Uuid,
    /// `None`: there is none.
    pub guarantee: Option<Guarantee>,
    /// The last change's number; 0: there was none.
    pub revision: u64,
    pub since: Option<String>,
    /// The worth of the own rates of all groups.
    pub own_tokens_per_s: u64,
    pub groups: Vec<GuaranteedGroupView>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GuaranteedGroupView {
    pub group_id: GroupId,
    /// The price of a request of the declared size, in thousandths of tokens.
    pub request_milli_tokens: u64,
    pub own_tokens_per_s: u64,
    /// Requests/s of the declared size that it wants beside its own rate, and those of its share now; null: its head has not
    /// reported to this coordinator.
    pub wanted_per_s: Option<u64>,
    pub share_per_s: Option<u64>,
}

impl GuaranteeView {
    /// `flows`: the project's groups at the moment.
    pub fn of(state: &CoordinatorState, project_id: Uuid, flows: &[FlowNow]) -> Self {
        let entry = state.guarantees.entry(project_id);
        let groups = state.groups.of_project(project_id).map(|group| {
            let now = flows.iter().find(|flow| flow.group_id == group.group_id);
            GuaranteedGroupView {
                group_id: group.group_id,
                request_milli_tokens: group.request_guarantee_milli(),
                own_tokens_per_s: group.own_guarantee_tokens(),
                wanted_per_s: now.and_then(|now| now.wanted_per_s),
                share_per_s: now.and_then(|now| now.share_per_s),
            }
        });
        let groups: Vec<GuaranteedGroupView> = groups.collect();
        Self {
            project_id,
            guarantee: state.guarantees.of(project_id).cloned(),
            revision: state.guarantees.revision(project_id),
            since: entry.map(|entry| rfc3339(entry.since_ms)),
            own_tokens_per_s: groups.iter().map(|group| group.own_tokens_per_s).sum(),
            groups,
        }
    }
}
