//! Revoked credentials, each until its last token expires.

use std::collections::BTreeMap;

use quorate_types::revocation::{CredentialId, Revocation};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Revocations {
    until_s: BTreeMap<CredentialId, u64>,
}

impl Revocations {
    pub fn forget_expired(&mut self, now_s: u64) {
        self.until_s.retain(|_, until_s| *until_s >= now_s);
    }

    pub fn count(&self) -> usize {
        self.until_s.len()
    }

    pub fn is_empty(&self) -> bool {
        self.until_s.is_empty()
    }

    /// Whether servers know that it is revoked for so long.
    pub fn has(&self, revocation: &Revocation) -> bool {
        let known = self.until_s.get(&revocation.credential);
        known.is_some_and(|until_s| *until_s >= revocation.until_s)
    }

    pub fn add(&mut self, revocation: Revocation) {
        self.until_s.insert(revocation.credential, revocation.until_s);
    }

    pub fn iter(&self) -> impl Iterator<Item = Revocation> {
        let all = self.until_s.iter();
        all.map(|(credential, until_s)| Revocation {
            credential: *credential,
            until_s: *until_s,
        })
    }
}
