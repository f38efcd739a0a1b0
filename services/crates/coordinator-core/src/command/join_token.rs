//! Join tokens, as the log has them.

use serde::{Deserialize, Serialize};

/// SHA-256 of a join token or a credential, as 64 hex digits. The secret itself is never kept.
pub type Digest = String;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JoinTokenTerms {
    pub expires_at_ms: u64,
    /// The only server name that may use it, when given.
    pub name: Option<String>,
    /// The server that uses it takes replacements of failed replicas only.
    #[serde(default)]
    pub auxiliary: bool,
}

/// Enough digits to tell tokens apart, and too few to be of use without the token.
const ID_DIGITS: usize = 16;

/// The name by which operators list and revoke a token.
pub fn join_token_id(digest: &str) -> &str {
    &digest[..digest.len().min(ID_DIGITS)]
}
