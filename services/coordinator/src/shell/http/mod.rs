//! The HTTP interface for the API. Calls: `docs/internals/coordinator.md`.

mod problem;
mod routes;

use std::sync::Arc;

use axum::Router;
use axum::extract::{DefaultBodyLimit, Request, State};
use axum::http::header::AUTHORIZATION;
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{delete, get, post, put};
use quorate_certificates::Authority;
use quorate_types::limits::COORDINATOR_BODY_BYTES_MAX;
use subtle::ConstantTimeEq;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use super::engine::Handle;
use problem::Problem;

/// What every call can reach.
#[derive(Clone)]
pub struct Context {
    pub handle: Handle,
    admin_token_digest: Arc<str>,
    /// The fleet's certificate authority: its certificate, and the fingerprint of that.
    pub(super) ca_pem: Arc<str>,
    pub(super) ca_pin: Arc<str>,
    /// Bounds the calls that wait for events.
    waits: Arc<Semaphore>,
}

/// Calls that may wait for the next event at the same time.
const EVENT_WAITS_MAX: usize = 64;

impl Context {
    pub fn new(handle: Handle, admin_token: &str, authority: &Authority) -> Self {
        let digest = super::secret::digest(admin_token).into();
        Self {
            handle,
            admin_token_digest: digest,
            ca_pem: authority.certificate_pem().into(),
            ca_pin: authority.pin().into(),
            waits: Arc::new(Semaphore::new(EVENT_WAITS_MAX)),
        }
    }
}

/// Serves for ever.
pub async fn serve(listener: TcpListener, context: Context) -> std::io::Result<()> {
    axum::serve(listener, router(context)).await
}

fn router(context: Context) -> Router {
    let guarded = Router::new()
        .route("/v1/quotes", post(routes::quote))
        .route("/v1/groups", get(routes::groups))
        .route(
            "/v1/groups/{group_id}",
            get(routes::group).put(routes::admit).delete(routes::delete),
        )
        .route("/v1/groups/{group_id}/sla", put(routes::resize))
        .route("/v1/groups/{group_id}/reset", post(routes::reset))
        .route("/v1/servers", get(routes::servers))
        .route(
            "/v1/servers/{server_id}",
            get(routes::server).delete(routes::forget),
        )
        .route(
            "/v1/servers/{server_id}/drain",
            post(routes::drain).delete(routes::call_off_drain),
        )
        .route("/v1/capacity", get(routes::capacity))
        .route("/v1/ca", get(routes::certificate_authority))
        .route(
            "/v1/join-tokens",
            get(routes::join_tokens).post(routes::issue_join_token),
        )
        .route("/v1/join-tokens/{id}", delete(routes::revoke_join_token))
        .route("/v1/events", get(routes::events))
        .layer(from_fn_with_state(context.clone(), authorize));
    Router::new()
        .route("/v1/health", get(routes::health))
        .merge(guarded)
        .fallback(|| async { Problem::not_found("There is no such call.") })
        .method_not_allowed_fallback(|| async { Problem::method_not_allowed() })
        .layer(DefaultBodyLimit::max(COORDINATOR_BODY_BYTES_MAX))
        .with_state(context)
}

/// Compares digests, in constant time: neither the token's content nor its length shows in the timing.
async fn authorize(State(context): State<Context>, request: Request, next: Next) -> Response {
    let header = request
        .headers()
        .get(AUTHORIZATION)
        .and_then(|value| value.to_str().ok());
    let token = header
        .and_then(|value| value.strip_prefix("Bearer "))
        .map(str::trim);
    let given = token.map(super::secret::digest);
    let known = given.is_some_and(|given| {
        given
            .as_bytes()
            .ct_eq(context.admin_token_digest.as_bytes())
            .into()
    });
    if known {
        next.run(request).await
    } else {
        Problem::unauthorized(token.is_some()).into_response()
    }
}
