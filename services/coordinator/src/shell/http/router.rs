//! Paths to functions, and the guard before them.

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use quorate_types::limits::COORDINATOR_BODY_BYTES_MAX;

use super::connections::Connections;
use super::context::Context;
use super::problem::Problem;
use super::{events, fleet, groups, guarantees, join_tokens, partitions, quorum, revocations, servers};

/// Serves for ever.
pub async fn serve(connections: Connections, context: Context) -> std::io::Result<()> {
    axum::serve(connections, router(context)).await
}

fn router(context: Context) -> Router {
    let guarded = Router::new()
        .route("/v1/quotes", post(groups::quote))
        .route("/v1/groups", get(groups::list))
        .route(
            "/v1/groups/{group_id}",
            get(groups::get_one).put(groups::admit).delete(groups::delete),
        )
        .route("/v1/groups/{group_id}/sla", put(groups::resize))
        .route(
            "/v1/groups/{group_id}/partitions",
            get(partitions::get_one).put(partitions::set),
        )
        .route("/v1/groups/{group_id}/moves", post(groups::relocate))
        .route("/v1/groups/{group_id}/access", put(groups::set_access))
        .route("/v1/groups/{group_id}/reset", post(groups::reset))
        .route("/v1/groups/{group_id}/release", post(groups::release))
        .route(
            "/v1/projects/{project_id}/guarantee",
            get(guarantees::get_one).put(guarantees::set),
        )
        .route(
            "/v1/projects/{project_id}/guarantee/quote",
            post(guarantees::quote),
        )
        .route("/v1/servers", get(servers::list))
        .route(
            "/v1/servers/{server_id}",
            get(servers::get_one).delete(servers::forget),
        )
        .route(
            "/v1/servers/{server_id}/drain",
            post(servers::drain).delete(servers::call_off_drain),
        )
        .route("/v1/roll-call", delete(fleet::end_roll_call))
        .route("/v1/quorum", get(quorum::show))
        .route("/v1/quorum/step-down", post(quorum::step_down))
        .route("/v1/quorum/members/{member}", delete(quorum::remove))
        .route("/v1/capacity", get(fleet::capacity))
        .route("/v1/sharing", get(fleet::sharing))
        .route("/v1/balance", get(fleet::balance))
        .route("/v1/guarantees", get(guarantees::list))
        .route(
            "/v1/fleet-version",
            get(fleet::version).post(fleet::raise_version),
        )
        .route("/v1/ca", get(fleet::certificate_authority))
        .route("/v1/join-tokens", get(join_tokens::list).post(join_tokens::issue))
        .route("/v1/join-tokens/{id}", delete(join_tokens::revoke))
        .route("/v1/revocations", post(revocations::add))
        .route("/v1/events", get(events::follow))
        .layer(from_fn_with_state(context.clone(), authorize));
    Router::new()
        .route("/v1/health", get(fleet::health))
        .merge(guarded)
        .fallback(|| async { Problem::not_found("There is no such call.") })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(DefaultBodyLimit::max(COORDINATOR_BODY_BYTES_MAX))
        .with_state(context)
}

/// Calls without the admin token go no further.
async fn authorize(State(context): State<Context>, request: Request, next: Next) -> Response {
    let header = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let token = header
        .and_then(|value| value.strip_prefix("Bearer "))
        .map(str::trim);
    if token.is_some_and(|token| context.is_admin_token(token)) {
        next.run(request).await
    } else {
        Problem::unauthorized(token.is_some()).into_response()
    }
}
