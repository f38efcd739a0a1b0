//! Join tokens: made, listed, revoked. Only their digests are known here; how one is used: `membership`.

use quorate_types::ServerId;
use quorate_types::limits::{JOIN_TOKEN_TTL_S_MAX, JOIN_TOKENS_MAX};
use serde::Serialize;

use super::command::{Digest, Effect, JoinTokenTerms, Reply};
use super::server::JoinToken;
use super::views::rfc3339;
use super::{Change, State};

/// Of a digest, enough to tell tokens apart, and of no use to anybody who has no token.
const ID_DIGITS: usize = 16;

/// How operators name a token that nobody shows any more.
pub fn id_of(digest: &str) -> &str {
    &digest[..digest.len().min(ID_DIGITS)]
}

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
    /// Who joined with it.
    pub server_id: Option<ServerId>,
}

impl Change<'_> {
    pub(super) fn issue_join_token(&mut self, digest: &Digest, terms: &JoinTokenTerms) {
        let now_ms = self.now_ms;
        // A used token is kept until it expires, so that its second use is told apart from an unknown one.
        let keep_ms = JOIN_TOKEN_TTL_S_MAX * 1_000;
        self.state
            .join_tokens
            .retain(|_, token| token.terms.expires_at_ms + keep_ms > now_ms);
        let reply = if self.state.join_tokens.len() >= JOIN_TOKENS_MAX {
            let message = format!("{JOIN_TOKENS_MAX} join tokens are outstanding; wait until some expire.");
            Reply::Conflict {
                code: "too_many_join_tokens",
                message,
            }
        } else {
            let token = JoinToken {
                terms: terms.clone(),
                used_by: None,
                revoked: false,
            };
            // Whoever had no answer asks again: a token that was used since stays used.
            self.state.join_tokens.entry(digest.clone()).or_insert(token);
            Reply::TokenIssued
        };
        self.effects.push(Effect::Reply(reply));
    }

    /// Nobody joins with it from now on. Who has joined with it stays: such a token is used up anyway.
    pub(super) fn revoke_join_token(&mut self, id: &str) {
        let mut known = self.state.join_tokens.iter_mut();
        let found = known.find(|(digest, _)| id_of(digest) == id);
        let reply = match found {
            Some((_, token)) => {
                token.revoked = token.used_by.is_none();
                Reply::Done
            }
            None => Reply::Unknown,
        };
        self.effects.push(Effect::Reply(reply));
    }
}

impl State {
    /// Tokens that are still known, also such as can be used no more, by their ids.
    pub fn join_token_views(&self, now_ms: u64) -> Vec<JoinTokenView> {
        let tokens = self.join_tokens.iter();
        tokens
            .map(|(digest, token)| view(digest, token, now_ms))
            .collect()
    }
}

fn view(digest: &Digest, token: &JoinToken, now_ms: u64) -> JoinTokenView {
    let state = if token.used_by.is_some() {
        JoinTokenState::Used
    } else if token.revoked {
        JoinTokenState::Revoked
    } else if token.terms.expires_at_ms <= now_ms {
        JoinTokenState::Expired
    } else {
        JoinTokenState::Outstanding
    };
    JoinTokenView {
        id: id_of(digest).to_string(),
        name: token.terms.name.clone(),
        auxiliary: token.terms.auxiliary,
        state,
        expires_at: rfc3339(token.terms.expires_at_ms),
        server_id: token.used_by.as_ref().map(|(server, _)| *server),
    }
}
