//! Calls about servers.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use quorate_types::ServerId;

use super::body::Answer;
use super::context::Context;
use super::problem::Problem;
use quorate_coordinator_core::command::{Command, Reply};
use quorate_coordinator_core::view::ServerView;

pub async fn list(State(context): State<Context>) -> Answer<Json<Vec<ServerView>>> {
    Ok(Json(context.handle.servers(None).await?))
}

pub async fn get_one(State(context): State<Context>, Path(id): Path<String>) -> Answer<Json<ServerView>> {
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

/// Gives a failed server up. A repetition is harmless.
pub async fn forget(State(context): State<Context>, Path(id): Path<String>) -> Answer<StatusCode> {
    let server = server_id(&id)?;
    match context.handle.command(Command::Forget { server }).await? {
        Reply::Done => Ok(StatusCode::NO_CONTENT),
        Reply::Unknown => Err(no_server()),
        Reply::Conflict { code, message } => Err(Problem::conflict(code, message)),
        other => unreachable!("not an answer to a `forget`: {other:?}"),
    }
}

/// Begins or calls off a drain.
async fn change_server(context: &Context, server: ServerId, command: Command) -> Answer<Json<ServerView>> {
    server_view(context, server).await?; // given up: nothing is left to change
    match context.handle.command(command).await? {
        Reply::Done => Ok(Json(server_view(context, server).await?)),
        Reply::Unknown => Err(no_server()),
        other => unreachable!("not an answer to a change of a server: {other:?}"),
    }
}

async fn server_view(context: &Context, id: ServerId) -> Answer<ServerView> {
    let mut found = context.handle.servers(Some(id)).await?;
    found.pop().ok_or_else(no_server)
}

fn no_server() -> Problem {
    Problem::not_found("There is no server with this number.")
}

fn server_id(text: &str) -> Answer<ServerId> {
    let wrong = |_| Problem::invalid(StatusCode::BAD_REQUEST, "server_id", "must be a server's number");
    text.parse().map(ServerId).map_err(wrong)
}
