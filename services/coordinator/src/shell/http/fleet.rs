//! Calls about the fleet as a whole.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde_json::{Value, json};

use super::body::Answer;
use super::context::Context;
use super::problem::Problem;
use crate::shell::sharing::SharingView;
use quorate_coordinator_core::command::Reply;
use quorate_coordinator_core::state::CoordinatorState;
use quorate_coordinator_core::view::{FleetVersionView, FleetView, RelocatingView};

pub async fn health(State(context): State<Context>) -> Answer<Json<Value>> {
    let look = |state: &CoordinatorState| (state.epoch_changes, state.servers_alive());
    let (epoch_changes, servers_alive) = context.handle.read(look).await?;
    let roll_call = context.handle.roll_call.borrow().clone().map(|view| {
        let missing: Vec<u32> = view.missing.iter().map(|server| server.0).collect();
        json!({"awaited": view.awaited, "heard": view.heard, "missing": missing, "stuck": view.is_stuck})
    });
    Ok(Json(json!({
        "status": "ok",
        "epoch_changes": epoch_changes,
        "servers_alive": servers_alive,
        "roll_call": roll_call,
    })))
}

/// An operator answers for servers that a roll call misses. Without one it changes nothing.
pub async fn end_roll_call(State(context): State<Context>) -> Answer<StatusCode> {
    context.handle.end_roll_call().await?;
    Ok(StatusCode::NO_CONTENT)
}

pub async fn capacity(State(context): State<Context>) -> Answer<Json<FleetView>> {
    Ok(Json(context.handle.read(FleetView::of).await?))
}

/// How free amounts are shared by groups that want more than they reserved.
pub async fn sharing(State(context): State<Context>) -> Json<SharingView> {
    Json(context.computed.sharing.borrow().clone())
}

/// Rates of partitions and replicas that move between servers, and why.
pub async fn balance(State(context): State<Context>) -> Answer<Json<Value>> {
    let moves = context.handle.read(RelocatingView::all).await?;
    let mut shown = json!(*context.computed.balance.borrow());
    shown["moves"] = json!(moves);
    Ok(Json(shown))
}

/// The fleet's version, and what must change before it can be raised.
pub async fn version(State(context): State<Context>) -> Answer<Json<FleetVersionView>> {
    Ok(Json(context.handle.fleet_version().await?))
}

/// Raises it to the newest that the leader's release reads. A repetition changes nothing.
pub async fn raise_version(State(context): State<Context>) -> Answer<Json<FleetVersionView>> {
    match context.handle.raise_fleet_version().await? {
        Reply::Done => version(State(context)).await,
        Reply::Conflict { code, message } => Err(Problem::conflict(code, message)),
        other => unreachable!("not an answer to a raise: {other:?}"),
    }
}

/// The authority that clients and servers trust: for handles, and for people who compare fingerprints.
pub async fn certificate_authority(State(context): State<Context>) -> Answer<Json<Value>> {
    let authority = context.authority().await?;
    Ok(Json(
        json!({"ca_pem": authority.certificate_pem(), "sha256": authority.pin()}),
    ))
}
