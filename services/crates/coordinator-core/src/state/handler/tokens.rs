//! Join tokens are issued and revoked. Their use is checked by `vetting`.

use quorate_types::limits::{JOIN_TOKEN_TTL_S_MAX, JOIN_TOKENS_MAX};

use super::outbox::Outbox;
use crate::command::{Digest, JoinTokenTerms, Reply};
use crate::state::table::JoinTokens;

/// May change join tokens, and nothing else.
#[derive(Debug)]
pub struct Tokens<'a> {
    tokens: &'a mut JoinTokens,
    out: Outbox<'a>,
}

/// A used token is kept until it expires and this much longer, so that its second use differs from an unknown one.
const KEEP_MS: u64 = JOIN_TOKEN_TTL_S_MAX * 1_000;

impl<'a> Tokens<'a> {
    pub fn new(tokens: &'a mut JoinTokens, out: Outbox<'a>) -> Self {
        Self { tokens, out }
    }

    pub fn issue(&mut self, digest: &Digest, terms: &JoinTokenTerms) {
        self.tokens.forget_expired(self.out.now_ms(), KEEP_MS);
        if self.tokens.count() >= JOIN_TOKENS_MAX {
            let message = format!("{JOIN_TOKENS_MAX} join tokens are outstanding; wait until some expire.");
            let code = "too_many_join_tokens";
            return self.out.reply(Reply::Conflict { code, message });
        }
        self.tokens.issue(digest, terms);
        self.out.reply(Reply::TokenIssued);
    }

    /// Nobody joins with it from now on. A server that has joined with it stays: the token is used up anyway.
    pub fn revoke(&mut self, id: &str) {
        let reply = if self.tokens.revoke(id) {
            Reply::Done
        } else {
            Reply::Unknown
        };
        self.out.reply(reply);
    }
}
