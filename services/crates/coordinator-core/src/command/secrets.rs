//! Keys of the fleet: the halves that anyone may know, and the others encrypted.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// All coordinators of a fleet certify servers, and sign their tokens, with the same keys.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FleetSecrets {
    /// The certificate of the fleet's authority, PEM.
    pub authority_pem: String,
    /// JWKS of the key that signs peer tokens.
    pub peer_keys: Value,
    /// The private keys, encrypted with the key that the operator gives: hexadecimal digits.
    pub sealed: String,
}
