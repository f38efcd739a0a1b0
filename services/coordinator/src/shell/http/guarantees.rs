//! Calls about guarantees of projects.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use quorate_coordinator_core::command::{Command, GuaranteeChange, GuaranteeRefusal, Reply};
use quorate_coordinator_core::state::CoordinatorState;
use quorate_coordinator_core::view::GuaranteeView;
use quorate_guarantees::Guarantee;
use quorate_types::ProjectId;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::body::{Answer, Body, parse};
use super::context::Context;
use super::problem::Problem;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SetRequest {
    /// Null: the project has none any more.
    guarantee: Option<Guarantee>,
    /// One above the present one's.
    revision: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct QuoteRequest {
    guarantee: Guarantee,
}

#[derive(Serialize)]
pub struct GuaranteeQuote {
    admissible: bool,
    refusal: Option<GuaranteeRefusal>,
}

pub async fn get_one(State(context): State<Context>, Path(id): Path<String>) -> Answer<Json<GuaranteeView>> {
    view(&context, project_id(&id)?).await
}

/// The guarantees of all projects that have one.
pub async fn list(State(context): State<Context>) -> Answer<Json<Vec<GuaranteeView>>> {
    let division = context.computed.division.clone();
    let look = move |state: &CoordinatorState| {
        let view = |id: Uuid| GuaranteeView::of(state, id, &division.flows(ProjectId(id)));
        state
            .guarantees
            .iter()
            .map(|(id, _)| view(id))
            .collect::<Vec<_>>()
    };
    Ok(Json(context.handle.read(look).await?))
}

/// Gives a project another guarantee. A repetition is harmless, since it names the revision.
pub async fn set(
    State(context): State<Context>,
    Path(id): Path<String>,
    body: Body,
) -> Answer<Json<GuaranteeView>> {
    let project_id = project_id(&id)?;
    let SetRequest { guarantee, revision } = parse(body)?;
    guarantee.as_ref().map_or(Ok(()), check)?;
    let command = Command::SetGuarantee(GuaranteeChange {
        project_id,
        guarantee,
        revision,
    });
    match context.handle.command(command).await? {
        Reply::Done => {
            context.computed.division.divide_now();
            view(&context, project_id).await
        }
        Reply::GuaranteeRefused(refusal) => Err(Problem::guarantee_refused(refusal)),
        Reply::Conflict { code, message } => Err(Problem::conflict(code, message)),
        other => unreachable!("not an answer to a guarantee: {other:?}"),
    }
}

/// Whether the guarantee would be admitted. Nothing is changed.
pub async fn quote(
    State(context): State<Context>,
    Path(id): Path<String>,
    body: Body,
) -> Answer<Json<GuaranteeQuote>> {
    let project_id = project_id(&id)?;
    let QuoteRequest { guarantee } = parse(body)?;
    check(&guarantee)?;
    let refusal = match context.handle.quote_guarantee(project_id, guarantee).await? {
        Reply::Done => None,
        Reply::GuaranteeRefused(refusal) => Some(refusal),
        Reply::Conflict { code, message } => return Err(Problem::conflict(code, message)),
        other => unreachable!("not an answer to a guarantee: {other:?}"),
    };
    let admissible = refusal.is_none();
    Ok(Json(GuaranteeQuote { admissible, refusal }))
}

async fn view(context: &Context, project_id: Uuid) -> Answer<Json<GuaranteeView>> {
    let flows = context.computed.division.flows(ProjectId(project_id));
    let look = move |state: &_| GuaranteeView::of(state, project_id, &flows);
    Ok(Json(context.handle.read(look).await?))
}

fn project_id(text: &str) -> Answer<Uuid> {
    let wrong = |_| Problem::invalid(StatusCode::BAD_REQUEST, "project_id", "must be a UUID");
    text.parse().map_err(wrong)
}

fn check(guarantee: &Guarantee) -> Answer<()> {
    let wrong = |(field, message)| {
        Problem::invalid(
            StatusCode::UNPROCESSABLE_ENTITY,
            format!("guarantee.{field}"),
            message,
        )
    };
    guarantee.validate().map_err(wrong)
}
