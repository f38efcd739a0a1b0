//! One function for each call.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use quorate_certificates::pin;
use quorate_types::limits::{
    COORDINATOR_EVENTS_PER_ANSWER_MAX, COORDINATOR_EVENTS_WAIT_MS_MAX, JOIN_TOKEN_TTL_S_MAX,
};
use quorate_types::sla::Quote;
use quorate_types::{Epoch, GroupId, ServerId, Sla};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use uuid::Uuid;

use super::Context;
use super::problem::Problem;
use crate::shell::engine::unix_ms;
use crate::shell::secret::{digest, random_secret};
use crate::state::command::{Command, JoinTokenTerms, Reply};
use crate::state::join_tokens::{JoinTokenView, id_of};
use crate::state::views::{EventView, FleetView, GroupView, ServerView};

type Answer<T> = Result<T, Problem>;
type Body = Result<Bytes, BytesRejection>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuoteRequest {
    sla: Sla,
    #[serde(default)]
    replaces_group_id: Option<GroupId>,
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
    /// Of the new SLA: one above the present one's.
    revision: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ResetRequest {
    /// In which the owner saw the group lost.
    epoch: Epoch,
    /// What usage has counted of the lost log, from which it goes on.
    #[serde(default)]
    entries_before: u64,
    #[serde(default)]
    bytes_before: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinTokenRequest {
    ttl_s: u64,
    #[serde(default)]
    name: Option<String>,
    /// The server takes replacements of failed replicas only.
    #[serde(default)]
    auxiliary: bool,
}

pub async fn health(State(context): State<Context>) -> Answer<Json<Value>> {
    let look = |state: &mut crate::state::State| (state.epoch_changes, state.servers_alive());
    let (epoch_changes, servers_alive) = context.handle.read(look).await?;
    Ok(Json(
        json!({"status": "ok", "epoch_changes": epoch_changes, "servers_alive": servers_alive}),
    ))
}

pub async fn quote(State(context): State<Context>, body: Body) -> Answer<Json<Quote>> {
    let request: QuoteRequest = parse(body)?;
    check(&request.sla)?;
    Ok(Json(
        context
            .handle
            .read(move |state| state.quote(&request.sla, request.replaces_group_id))
            .await?,
    ))
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

/// A group gets another SLA where it is. Repeating it is harmless: it says which revision the SLA is to be.
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

/// A lost group begins anew. Repeating it is harmless: it says in which epoch the group was seen lost.
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

pub async fn group(State(context): State<Context>, Path(id): Path<String>) -> Answer<Json<GroupView>> {
    Ok(Json(view(&context, group_id(&id)?).await?))
}

pub async fn groups(State(context): State<Context>) -> Answer<Json<Vec<GroupView>>> {
    let views = context.handle.read(|state| {
        state
            .groups
            .values()
            .map(|group| state.group_view(group))
            .collect()
    });
    Ok(Json(views.await?))
}

pub async fn delete(State(context): State<Context>, Path(id): Path<String>) -> Answer<StatusCode> {
    context
        .handle
        .command(Command::Delete {
            group_id: group_id(&id)?,
        })
        .await?;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn servers(State(context): State<Context>) -> Answer<Json<Vec<ServerView>>> {
    Ok(Json(context.handle.read(|state| state.server_views()).await?))
}

pub async fn server(State(context): State<Context>, Path(id): Path<String>) -> Answer<Json<ServerView>> {
    let id = server_id(&id)?;
    Ok(Json(server_view(&context, id).await?))
}

pub async fn drain(State(context): State<Context>, Path(id): Path<String>) -> Answer<Json<ServerView>> {
    let server = server_id(&id)?;
    change_server(&context, server, Command::Drain { server }).await
}

pub async fn call_off_drain(
    State(context): State<Context>,
    Path(id): Path<String>,
) -> Answer<Json<ServerView>> {
    let server = server_id(&id)?;
    change_server(&context, server, Command::CallOffDrain { server }).await
}

/// Repeating it is harmless. Nothing else answers for the server from then on.
pub async fn forget(State(context): State<Context>, Path(id): Path<String>) -> Answer<StatusCode> {
    let server = server_id(&id)?;
    match context.handle.command(Command::Forget { server }).await? {
        Reply::Done => Ok(StatusCode::NO_CONTENT),
        Reply::Unknown => Err(no_server()),
        Reply::Conflict { code, message } => Err(Problem::conflict(code, message)),
        other => unreachable!("not an answer to giving a server up: {other:?}"),
    }
}

/// Begins or calls off a drain.
async fn change_server(context: &Context, server: ServerId, command: Command) -> Answer<Json<ServerView>> {
    server_view(context, server).await?; // of one that was given up there is nothing to change
    match context.handle.command(command).await? {
        Reply::Done => Ok(Json(server_view(context, server).await?)),
        Reply::Unknown => Err(no_server()),
        other => unreachable!("not an answer to a change of a server: {other:?}"),
    }
}

async fn server_view(context: &Context, id: ServerId) -> Answer<ServerView> {
    let look = move |state: &mut crate::state::State| state.server_view_of(id);
    context.handle.read(look).await?.ok_or_else(no_server)
}

fn no_server() -> Problem {
    Problem::not_found("There is no server with this number.")
}

fn no_group() -> Problem {
    Problem::not_found("There is no group with this id.")
}

fn server_id(text: &str) -> Answer<ServerId> {
    let wrong = |_| Problem::invalid(StatusCode::BAD_REQUEST, "server_id", "must be a server's number");
    text.parse().map(ServerId).map_err(wrong)
}

pub async fn capacity(State(context): State<Context>) -> Answer<Json<FleetView>> {
    Ok(Json(context.handle.read(|state| state.fleet_view()).await?))
}

/// Whom clients and servers trust: for handles, and for people who compare fingerprints.
pub async fn certificate_authority(State(context): State<Context>) -> Json<Value> {
    Json(json!({"ca_pem": &*context.ca_pem, "sha256": &*context.ca_pin}))
}

pub async fn issue_join_token(State(context): State<Context>, body: Body) -> Answer<Response> {
    let request: JoinTokenRequest = parse(body)?;
    if !(1..=JOIN_TOKEN_TTL_S_MAX).contains(&request.ttl_s) {
        let message = format!("must be 1 to {JOIN_TOKEN_TTL_S_MAX}");
        return Err(Problem::invalid(
            StatusCode::UNPROCESSABLE_ENTITY,
            "ttl_s",
            message,
        ));
    }
    let secret = random_secret("qjt_");
    let terms = JoinTokenTerms {
        expires_at_ms: unix_ms() + request.ttl_s * 1_000,
        name: request.name,
        auxiliary: request.auxiliary,
    };
    let digest = digest(&secret);
    let id = id_of(&digest).to_string();
    let command = Command::IssueJoinToken { digest, token: terms };
    match context.handle.command(command).await? {
        Reply::TokenIssued => {
            let token = pin::with_pin(&secret, &context.ca_pin);
            Ok((StatusCode::CREATED, Json(json!({"id": id, "token": token}))).into_response())
        }
        Reply::Conflict { code, message } => Err(Problem::conflict(code, message)),
        other => unreachable!("not an answer to a join token: {other:?}"),
    }
}

pub async fn join_tokens(State(context): State<Context>) -> Answer<Json<Vec<JoinTokenView>>> {
    let views = context.handle.read(|state| state.join_token_views(unix_ms()));
    Ok(Json(views.await?))
}

pub async fn revoke_join_token(State(context): State<Context>, Path(id): Path<String>) -> Answer<StatusCode> {
    match context.handle.command(Command::RevokeJoinToken { id }).await? {
        Reply::Done => Ok(StatusCode::NO_CONTENT),
        Reply::Unknown => Err(Problem::not_found("There is no join token with this id.")),
        other => unreachable!("not an answer to a revocation: {other:?}"),
    }
}

/// Waits for events when there are none after `after`.
pub async fn events(State(context): State<Context>, RawQuery(query): RawQuery) -> Answer<Json<Value>> {
    let (after, wait_ms) = events_query(query.as_deref().unwrap_or(""))?;
    let look = move |state: &mut crate::state::State| {
        let events = state.events.after(after, COORDINATOR_EVENTS_PER_ANSWER_MAX);
        let events: Vec<EventView> = events.map(EventView::from).collect();
        (events, state.events.first_seq(), state.events.last_seq())
    };
    let (mut found, mut first, mut last) = context.handle.read(look).await?;
    if found.is_empty() && wait_ms > 0 && after >= last {
        let _slot = context
            .waits
            .try_acquire()
            .map_err(|_| Problem::too_many_waiting())?;
        let mut seen = context.handle.events.clone();
        let news = seen.wait_for(|last| *last > after);
        if tokio::time::timeout(Duration::from_millis(wait_ms), news)
            .await
            .is_ok()
        {
            (found, first, last) = context.handle.read(look).await?;
        }
    }
    // A reader that is ahead of this log (restored from an older backup) must notice.
    let next = found.last().map_or(after.min(last), |event| event.seq);
    Ok(Json(
        json!({"events": found, "next": next, "first": first, "last": last}),
    ))
}

fn events_query(query: &str) -> Answer<(u64, u64)> {
    let (mut after, mut wait_ms) = (0, 0);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let wrong = |message: &str| Problem::invalid(StatusCode::BAD_REQUEST, name, message);
        let number: u64 = value.parse().map_err(|_| wrong("must be a number, 0 or more"))?;
        match name {
            // Room for the next number.
            "after" => after = number.min(u64::MAX - 1),
            "wait_ms" => wait_ms = number.min(COORDINATOR_EVENTS_WAIT_MS_MAX),
            _ => return Err(wrong("is not a parameter of this call; after and wait_ms are")),
        }
    }
    Ok((after, wait_ms))
}

async fn view(context: &Context, group_id: GroupId) -> Answer<GroupView> {
    let look = move |state: &mut crate::state::State| {
        state.groups.get(&group_id).map(|group| state.group_view(group))
    };
    context.handle.read(look).await?.ok_or_else(no_group)
}

fn group_id(text: &str) -> Answer<GroupId> {
    let wrong = |_| Problem::invalid(StatusCode::BAD_REQUEST, "group_id", "must be a UUID");
    text.parse().map(GroupId).map_err(wrong)
}

fn check(sla: &Sla) -> Answer<()> {
    let wrong = |(field, message)| {
        Problem::invalid(StatusCode::UNPROCESSABLE_ENTITY, format!("sla.{field}"), message)
    };
    sla.validate().map_err(wrong)
}

/// The error names the field at fault.
fn parse<T: DeserializeOwned>(body: Body) -> Answer<T> {
    let body = body?;
    let mut json = serde_json::Deserializer::from_slice(&body);
    let parsed = serde_path_to_error::deserialize(&mut json).map_err(|e| {
        let field = Some(e.path().to_string())
            .filter(|path| path != ".")
            .unwrap_or_default();
        let readable = e.inner().is_data();
        let status = if readable {
            StatusCode::UNPROCESSABLE_ENTITY
        } else {
            StatusCode::BAD_REQUEST
        };
        Problem::invalid(status, field, e.into_inner().to_string())
    })?;
    json.end()
        .map_err(|e| Problem::invalid(StatusCode::BAD_REQUEST, "", e.to_string()))?;
    Ok(parsed)
}
