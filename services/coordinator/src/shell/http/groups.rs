//! Calls about groups.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use quorate_types::sla::Quote;
use quorate_types::{Access, Epoch, GroupId, ServerId, Sla};
use serde::Deserialize;
use uuid::Uuid;

use super::body::{Answer, Body, parse};
use super::context::Context;
use super::problem::Problem;
use quorate_coordinator_core::command::{Cause, Command, QuoteRequest, Relocate, Reply};
use quorate_coordinator_core::state::CoordinatorState;
use quorate_coordinator_core::view::GroupView;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuoteBody {
    sla: Sla,
    #[serde(default)]
    replaces_group_id: Option<GroupId>,
    /// The group's project: its guarantee counts.
    #[serde(default)]
    project_id: Option<Uuid>,
    /// The number of partitions; none: as many as the group has.
    #[serde(default)]
    partitions: Option<u16>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AdmitRequest {
    sla: Sla,
    project_id: Uuid,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResizeRequest {
    sla: Sla,
    /// The new SLA's revision: one above the present one's.
    revision: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MoveRequest {
    from_server_id: ServerId,
    /// None: the server that placement chooses.
    #[serde(default)]
    to_server_id: Option<ServerId>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccessRequest {
    access: Access,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetRequest {
    /// The epoch in which the owner saw the group lost.
    epoch: Epoch,
    /// Usage counted of the lost log, from which counting goes on.
    #[serde(default)]
    entries_before: u64,
    #[serde(default)]
    bytes_before: u64,
}

pub async fn quote(State(context): State<Context>, body: Body) -> Answer<Json<Quote>> {
    let request: QuoteBody = parse(body)?;
    check_partitions(&request.sla, request.partitions.unwrap_or(1))?;
    let asked = QuoteRequest {
        sla: request.sla,
        replaces: request.replaces_group_id,
        project_id: request.project_id,
        partitions: request.partitions,
    };
    Ok(Json(context.handle.quote(asked).await?))
}

pub async fn admit(State(context): State<Context>, Path(id): Path<String>, body: Body) -> Answer<Response> {
    let group_id = group_id(&id)?;
    let request: AdmitRequest = parse(body)?;
    check(&request.sla)?;
    let command = Command::Admit {
        group_id,
        project_id: request.project_id,
        sla: request.sla,
    };
    match context.handle.command(command).await? {
        Reply::Admitted { created } => {
            let status = if created {
                StatusCode::CREATED
            } else {
                StatusCode::OK
            };
            Ok((status, Json(view(&context, group_id).await?)).into_response())
        }
        Reply::Refused(refusal) => Err(Problem::refused(refusal)),
        Reply::Conflict { code, message } => Err(Problem::conflict(code, message)),
        other => unreachable!("not an answer to an admission: {other:?}"),
    }
}

/// Gives a group another SLA where it is. A repetition is harmless, since it names the revision of the SLA.
pub async fn resize(
    State(context): State<Context>,
    Path(id): Path<String>,
    body: Body,
) -> Answer<Json<GroupView>> {
    let group_id = group_id(&id)?;
    let request: ResizeRequest = parse(body)?;
    check(&request.sla)?;
    let command = Command::Resize {
        group_id,
        sla: request.sla,
        revision: request.revision,
    };
    match context.handle.command(command).await? {
        Reply::Done => Ok(Json(view(&context, group_id).await?)),
        Reply::Unknown => Err(no_group()),
        Reply::Refused(refusal) => Err(Problem::refused(refusal)),
        Reply::Conflict { code, message } => Err(Problem::conflict(code, message)),
        other => unreachable!("not an answer to a resize: {other:?}"),
    }
}

/// Has one replica of a group move to another server. A repetition changes nothing while the replica moves.
pub async fn relocate(
    State(context): State<Context>,
    Path(id): Path<String>,
    body: Body,
) -> Answer<Json<GroupView>> {
    let group_id = group_id(&id)?;
    let request: MoveRequest = parse(body)?;
    let asked = Relocate {
        group_id,
        from: request.from_server_id,
        to: request.to_server_id,
        cause: Cause::Operator,
    };
    match context.handle.command(Command::Relocate(asked)).await? {
        Reply::Done => Ok(Json(view(&context, group_id).await?)),
        Reply::Unknown => Err(no_group()),
        Reply::Conflict { code, message } => Err(Problem::conflict(code, message)),
        other => unreachable!("not an answer to a move: {other:?}"),
    }
}

/// Lets clients use another part of the group's service. A repetition changes nothing.
pub async fn set_access(
    State(context): State<Context>,
    Path(id): Path<String>,
    body: Body,
) -> Answer<Json<GroupView>> {
    let group_id = group_id(&id)?;
    let access = parse::<AccessRequest>(body)?.access;
    let command = Command::SetAccess { group_id, access };
    match context.handle.command(command).await? {
        Reply::Done => Ok(Json(view(&context, group_id).await?)),
        Reply::Unknown => Err(no_group()),
        Reply::Conflict { code, message } => Err(Problem::conflict(code, message)),
        other => unreachable!("not an answer to a change of access: {other:?}"),
    }
}

/// Resets a lost group. A repetition is harmless, since it names the epoch in which the group was lost.
pub async fn reset(
    State(context): State<Context>,
    Path(id): Path<String>,
    body: Body,
) -> Answer<Json<GroupView>> {
    let group_id = group_id(&id)?;
    let request: ResetRequest = parse(body)?;
    let command = Command::Reset {
        group_id,
        epoch: request.epoch,
        entries_before: request.entries_before,
        bytes_before: request.bytes_before,
    };
    match context.handle.command(command).await? {
        Reply::Done => Ok(Json(view(&context, group_id).await?)),
        Reply::Unknown => Err(no_group()),
        Reply::Refused(refusal) => Err(Problem::refused(refusal)),
        Reply::Conflict { code, message } => Err(Problem::conflict(code, message)),
        other => unreachable!("not an answer to a reset: {other:?}"),
    }
}

/// Lets a group go on that is quarantined as a whole. A repetition changes nothing.
pub async fn release(State(context): State<Context>, Path(id): Path<String>) -> Answer<Json<GroupView>> {
    let group_id = group_id(&id)?;
    match context.handle.command(Command::Release { group_id }).await? {
        Reply::Done => Ok(Json(view(&context, group_id).await?)),
        Reply::Unknown => Err(no_group()),
        Reply::Conflict { code, message } => Err(Problem::conflict(code, message)),
        other => unreachable!("not an answer to a release: {other:?}"),
    }
}

pub async fn get_one(State(context): State<Context>, Path(id): Path<String>) -> Answer<Json<GroupView>> {
    Ok(Json(view(&context, group_id(&id)?).await?))
}

pub async fn list(State(context): State<Context>) -> Answer<Json<Vec<GroupView>>> {
    Ok(Json(context.handle.read(GroupView::all).await?))
}

pub async fn delete(State(context): State<Context>, Path(id): Path<String>) -> Answer<StatusCode> {
    let group_id = group_id(&id)?;
    if let Reply::Conflict { code, message } = context.handle.command(Command::Delete { group_id }).await? {
        return Err(Problem::conflict(code, message));
    }
    Ok(StatusCode::NO_CONTENT)
}

async fn view(context: &Context, group_id: GroupId) -> Answer<GroupView> {
    let look = move |state: &CoordinatorState| {
        let group = state.groups.get(&group_id);
        group.map(|group| GroupView::of(state, group))
    };
    context.handle.read(look).await?.ok_or_else(no_group)
}

pub fn no_group() -> Problem {
    Problem::not_found("There is no group with this id.")
}

pub fn group_id(text: &str) -> Answer<GroupId> {
    let wrong = |_| Problem::invalid(StatusCode::BAD_REQUEST, "group_id", "must be a UUID");
    text.parse().map(GroupId).map_err(wrong)
}

fn check(sla: &Sla) -> Answer<()> {
    sla.validate().map_err(wrong_sla)
}

/// Checks an SLA that is divided among so many partitions.
pub fn check_partitions(sla: &Sla, partitions: u16) -> Answer<()> {
    sla.validate_partitions(partitions).map_err(wrong_sla)
}

fn wrong_sla((field, message): (&str, String)) -> Problem {
    Problem::invalid(StatusCode::UNPROCESSABLE_ENTITY, format!("sla.{field}"), message)
}
