//! The call that follows events.

use std::time::Duration;

use axum::Json;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use quorate_types::limits::{COORDINATOR_EVENTS_PER_ANSWER_MAX, COORDINATOR_EVENTS_WAIT_MS_MAX};
use serde_json::{Value, json};

use super::body::Answer;
use super::context::Context;
use super::problem::Problem;
use quorate_coordinator_core::state::CoordinatorState;
use quorate_coordinator_core::view::EventView;

/// Waits for events when there are none after `after`.
pub async fn follow(State(context): State<Context>, RawQuery(query): RawQuery) -> Answer<Json<Value>> {
    let (after, wait_ms) = follow_query(query.as_deref().unwrap_or(""))?;
    let look = move |state: &CoordinatorState| {
        let events = state.events.after(after, COORDINATOR_EVENTS_PER_ANSWER_MAX);
        let events: Vec<EventView> = events.map(EventView::from).collect();
        (events, state.events.first_seq(), state.events.last_seq())
    };
    let (mut found, mut first, mut last) = context.handle.read(look).await?;
    if found.is_empty() && wait_ms > 0 && after >= last {
        let _slot = context.begin_waiting()?;
        let mut seen = context.handle.events.clone();
        let updated = seen.wait_for(|last| *last > after);
        if tokio::time::timeout(Duration::from_millis(wait_ms), updated)
            .await
            .is_ok()
        {
            (found, first, last) = context.handle.read(look).await?;
        }
    }
    // A reader that is ahead of this log, which a backup may have replaced, must notice.
    let next = found.last().map_or(after.min(last), |event| event.seq);
    Ok(Json(
        json!({"events": found, "next": next, "first": first, "last": last}),
    ))
}

fn follow_query(query: &str) -> Answer<(u64, u64)> {
    let (mut after, mut wait_ms) = (0, 0);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        let wrong = |message: &str| Problem::invalid(StatusCode::BAD_REQUEST, name, message);
        let number: u64 = value.parse().map_err(|_| wrong("must be a number, 0 or more"))?;
        match name {
            // One less leaves room for the next number.
            "after" => after = number.min(u64::MAX - 1),
            "wait_ms" => wait_ms = number.min(COORDINATOR_EVENTS_WAIT_MS_MAX),
            _ => return Err(wrong("is not a parameter of this call; after and wait_ms are")),
        }
    }
    Ok((after, wait_ms))
}
