//! Credentials whose tokens are refused before they expire.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// An API key's secret or a session. Tokens name theirs (`sdk/contract/handle.md`), and servers know it as a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct CredentialId(pub Uuid);

/// Servers refuse every token of the credential.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revocation {
    pub credential: CredentialId,
    /// Seconds since 1970, after which none of its tokens is valid anyway.
    pub until_s: u64,
}
