//! Calls about groups with partitions.

use axum::Json;
use axum::extract::{Path, State};
use quorate_types::limits::PARTITIONS_MAX;
use quorate_types::{GroupId, Sla};
use serde::Deserialize;
use uuid::Uuid;

use super::body::{Answer, Body, parse};
use super::context::Context;
use super::groups::{check_partitions, group_id, no_group};
use super::problem::Problem;
use quorate_coordinator_core::command::{Command, PartitionsChange, Reply};
use quorate_coordinator_core::state::CoordinatorState;
use quorate_coordinator_core::view::PartitionsView;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SetRequest {
    /// The SLA of all partitions together.
    sla: Sla,
    project_id: Uuid,
    /// The ids of all partitions, in order; the first is the group's.
    partitions: Vec<GroupId>,
    /// One above the present one.
    revision: u64,
}

/// Admits a partitioned group, or changes its SLA or its number of partitions. A repetition is harmless, since it names the
/// revision.
pub async fn set(
    State(context): State<Context>,
    Path(id): Path<String>,
    body: Body,
) -> Answer<Json<PartitionsView>> {
    let group_id = group_id(&id)?;
    let request: SetRequest = parse(body)?;
    let count = u16::try_from(request.partitions.len()).unwrap_or(PARTITIONS_MAX + 1);
    check_partitions(&request.sla, count)?;
    let command = Command::SetPartitions(PartitionsChange {
        group_id,
        project_id: request.project_id,
        sla: request.sla,
        partitions: request.partitions,
        revision: request.revision,
    });
    match context.handle.command(command).await? {
        Reply::Done => Ok(Json(view(&context, group_id).await?)),
        Reply::Refused(refusal) => Err(Problem::refused(refusal)),
        Reply::Conflict { code, message } => Err(Problem::conflict(code, message)),
        other => unreachable!("not an answer to a change of partitions: {other:?}"),
    }
}

pub async fn get_one(State(context): State<Context>, Path(id): Path<String>) -> Answer<Json<PartitionsView>> {
    Ok(Json(view(&context, group_id(&id)?).await?))
}

async fn view(context: &Context, group_id: GroupId) -> Answer<PartitionsView> {
    let wanted = context.computed.balance.borrow().wanted_per_s.clone();
    let look = move |state: &CoordinatorState| PartitionsView::of(state, group_id, &wanted);
    context.handle.read(look).await?.ok_or_else(no_group)
}
