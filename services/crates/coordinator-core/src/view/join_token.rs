//! A join token as the API shows it.

use quorate_types::ServerId;
use serde::Serialize;

use super::time::rfc3339;
use crate::command::{Digest, join_token_id};
use crate::state::{CoordinatorState, JoinToken};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum JoinTokenState {
    /// A server may join with it.
    Outstanding,
    Used,
    Expired,
    Revoked,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct JoinTokenView {
    pub id: String,
    /// The only server name that may use it, if it is for one.
    pub name: Option<String>,
    pub auxiliary: bool,
    pub state: JoinTokenState,
    pub expires_at: String,
    /// The server that joined with it.
    pub server_id: Option<ServerId>,
}

impl JoinTokenView {
    /// Tokens that are still known, also those that can be used no more.
    pub fn all(state: &CoordinatorState, now_ms: u64) -> Vec<Self> {
        let tokens = state.join_tokens().iter();
        tokens
            .map(|(digest, token)| Self::of(digest, token, now_ms))
            .collect()
    }

    fn of(digest: &Digest, token: &JoinToken, now_ms: u64) -> Self {
        let state = if token.used_by.is_some() {
            JoinTokenState::Used
        } else if token.revoked {
            JoinTokenState::Revoked
        } else if token.terms.expires_at_ms <= now_ms {
            JoinTokenState::Expired
        } else {
            JoinTokenState::Outstanding
        };
        Self {
            id: join_token_id(digest).to_string(),
            name: token.terms.name.clone(),
            auxiliary: token.terms.auxiliary,
            state,
            expires_at: rfc3339(token.terms.expires_at_ms),
            server_id: token.used_by.as_ref().map(|(server, _)| *server),
        }
    }
}
