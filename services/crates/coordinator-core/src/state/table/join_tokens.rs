//! Join tokens by their digests.

use std::collections::BTreeMap;

use quorate_types::ServerId;
use serde::{Deserialize, Serialize};

use crate::command::{Digest, JoinTokenTerms, join_token_id};
use crate::state::entity::JoinToken;

#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JoinTokens {
    by_digest: BTreeMap<Digest, JoinToken>,
}

impl JoinTokens {
    pub fn get(&self, digest: &str) -> Option<&JoinToken> {
        self.by_digest.get(digest)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&Digest, &JoinToken)> {
        self.by_digest.iter()
    }

    pub fn count(&self) -> usize {
        self.by_digest.len()
    }

    /// Forgets the tokens that expired more than `keep_ms` ago.
    pub fn forget_expired(&mut self, now_ms: u64, keep_ms: u64) {
        self.by_digest
            .retain(|_, token| token.terms.expires_at_ms + keep_ms > now_ms);
    }

    /// Adds a token. A known one stays as it is: a caller without an answer repeats the call, and a used token stays
    /// used.
    pub fn issue(&mut self, digest: &Digest, terms: &JoinTokenTerms) {
        let token = JoinToken {
            terms: terms.clone(),
            used_by: None,
            revoked: false,
        };
        self.by_digest.entry(digest.clone()).or_insert(token);
    }

    /// Revokes the token of this id, if it was not used. False: there is none.
    pub fn revoke(&mut self, id: &str) -> bool {
        let mut known = self.by_digest.iter_mut();
        let found = known.find(|(digest, _)| join_token_id(digest) == id);
        if let Some((_, token)) = found {
            token.revoked = token.used_by.is_none();
            return true;
        }
        false
    }

    pub fn note_use(&mut self, digest: &str, server: ServerId, incarnation: &str) {
        if let Some(token) = self.by_digest.get_mut(digest) {
            token.used_by = Some((server, incarnation.to_string()));
        }
    }
}
