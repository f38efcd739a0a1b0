//! A join token that was issued, and its use.

use quorate_types::ServerId;
use serde::{Deserialize, Serialize};

use crate::command::JoinTokenTerms;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JoinToken {
    pub terms: JoinTokenTerms,
    /// The server that joined with it, and the incarnation in which it did.
    pub used_by: Option<(ServerId, String)>,
    #[serde(default)]
    pub revoked: bool,
}
