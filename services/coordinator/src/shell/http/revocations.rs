//! The call that revokes credentials.

use axum::extract::State;
use axum::http::StatusCode;
use quorate_types::limits::REVOCATIONS_PER_CALL_MAX;
use quorate_types::revocation::Revocation;
use serde::Deserialize;

use super::body::{Answer, Body, parse};
use super::context::Context;
use super::problem::Problem;
use quorate_coordinator_core::command::{Command, Reply};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RevocationsRequest {
    revocations: Vec<Revocation>,
}

/// Answers once the revocations are durable and on their way to every server. Repeating it changes nothing.
pub async fn add(State(context): State<Context>, body: Body) -> Answer<StatusCode> {
    let revocations = parse::<RevocationsRequest>(body)?.revocations;
    if !(1..=REVOCATIONS_PER_CALL_MAX).contains(&revocations.len()) {
        let message = format!("must be 1 to {REVOCATIONS_PER_CALL_MAX} of them");
        return Err(Problem::invalid(
            StatusCode::UNPROCESSABLE_ENTITY,
            "revocations",
            message,
        ));
    }
    match context.handle.command(Command::Revoke { revocations }).await? {
        Reply::Done => Ok(StatusCode::NO_CONTENT),
        Reply::Conflict { code, message } => Err(Problem::conflict(code, message)),
        other => unreachable!("not an answer to revocations: {other:?}"),
    }
}
