//! Calls about join tokens.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use quorate_certificates::pin;
use quorate_types::limits::JOIN_TOKEN_TTL_S_MAX;
use serde::Deserialize;
use serde_json::json;

use super::body::{Answer, Body, parse};
use super::context::Context;
use super::problem::Problem;
use crate::shell::secrets::{digest, random_secret};
use crate::shell::task::unix_ms;
use quorate_coordinator_core::command::{Command, JoinTokenTerms, Reply, join_token_id};
use quorate_coordinator_core::view::JoinTokenView;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct JoinTokenRequest {
    ttl_s: u64,
    #[serde(default)]
    name: Option<String>,
    /// The server takes replacements of failed replicas alone.
    #[serde(default)]
    auxiliary: bool,
}

pub async fn issue(State(context): State<Context>, body: Body) -> Answer<Response> {
    let request: JoinTokenRequest = parse(body)?;
    if !(1..=JOIN_TOKEN_TTL_S_MAX).contains(&request.ttl_s) {
        let message = format!("must be 1 to {JOIN_TOKEN_TTL_S_MAX}");
        return Err(Problem::invalid(
            StatusCode::UNPROCESSABLE_ENTITY,
            "ttl_s",
            message,
        ));
    }
    let authority = context.authority().await?;
    let secret = random_secret("qjt_");
    let terms = JoinTokenTerms {
        expires_at_ms: unix_ms() + request.ttl_s * 1_000,
        name: request.name,
        auxiliary: request.auxiliary,
    };
    let digest = digest(&secret);
    let id = join_token_id(&digest).to_string();
    let command = Command::IssueJoinToken { digest, token: terms };
    match context.handle.command(command).await? {
        Reply::TokenIssued => {
            let token = pin::with_pin(&secret, &authority.pin());
            Ok((StatusCode::CREATED, Json(json!({"id": id, "token": token}))).into_response())
        }
        Reply::Conflict { code, message } => Err(Problem::conflict(code, message)),
        other => unreachable!("not an answer to a join token: {other:?}"),
    }
}

pub async fn list(State(context): State<Context>) -> Answer<Json<Vec<JoinTokenView>>> {
    let views = context.handle.read(|state| JoinTokenView::all(state, unix_ms()));
    Ok(Json(views.await?))
}

pub async fn revoke(State(context): State<Context>, Path(id): Path<String>) -> Answer<StatusCode> {
    match context.handle.command(Command::RevokeJoinToken { id }).await? {
        Reply::Done => Ok(StatusCode::NO_CONTENT),
        Reply::Unknown => Err(Problem::not_found("There is no join token with this id.")),
        other => unreachable!("not an answer to a revocation: {other:?}"),
    }
}
