//! Calls about the coordinators themselves.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use quorate_quorum::{Change, MemberId, Refused};
use serde::Deserialize;

use super::body::{Answer, Body, parse};
use super::context::Context;
use super::problem::Problem;
use crate::shell::task::{QuorumChange, Unavailable};
use quorate_coordinator_core::view::QuorumView;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepDownRequest {
    /// The member that is to lead. Absent: the one that lacks least.
    #[serde(default)]
    to: Option<String>,
}

/// The member that answers, and the others as it knows them. It answers also while nobody leads.
pub async fn show(State(context): State<Context>) -> Answer<Json<QuorumView>> {
    let view = context.handle.quorum.borrow().clone();
    Ok(Json(view.ok_or(Unavailable::Unknown)?))
}

/// The leader lets another lead. The answer comes when the handing over has begun.
pub async fn step_down(State(context): State<Context>, body: Body) -> Answer<StatusCode> {
    let request: StepDownRequest = parse(body)?;
    let to = request.to.map(|to| member("to", &to)).transpose()?;
    change(&context, QuorumChange::StepDown { to }).await?;
    Ok(StatusCode::ACCEPTED)
}

/// Removes a member for good. A repetition finds none.
pub async fn remove(State(context): State<Context>, Path(id): Path<String>) -> Answer<StatusCode> {
    let id = member("member", &id)?;
    change(&context, QuorumChange::Members(Change::Remove(id))).await?;
    Ok(StatusCode::NO_CONTENT)
}

async fn change(context: &Context, change: QuorumChange) -> Answer<()> {
    let refused = match context.handle.change_quorum(change).await? {
        Ok(()) => return Ok(()),
        Err(refused) => refused,
    };
    let (code, next) = match refused {
        Refused::UnknownMember => return Err(Problem::not_found("There is no such member.")),
        Refused::LastVoter => ("last_voter", "Take another coordinator in first (--join)."),
        Refused::MajorityAway => (
            "majority_away",
            "Start enough of the others first, or the fleet would decide nothing.",
        ),
        _ => ("not_now", "Nothing was done. Repeat the call soon."),
    };
    Err(Problem::conflict(code, format!("{refused}. {next}")))
}

fn member(field: &'static str, text: &str) -> Answer<MemberId> {
    let wrong = || {
        let message = "must be a member of GET /v1/quorum: hexadecimal digits";
        Problem::invalid(StatusCode::UNPROCESSABLE_ENTITY, field, message)
    };
    u64::from_str_radix(text, 16).map(MemberId).map_err(|_| wrong())
}
