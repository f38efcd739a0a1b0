//! Random secrets, and the digests that are kept of them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest as _, Sha256};

use quorate_coordinator_core::command::Digest;

/// 32 random bytes, readable, with a prefix that secret scanners can look for.
pub fn random_secret(prefix: &str) -> String {
    format!("{prefix}{}", URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()))
}

/// The digest of a secret. The secret has 256 bits of entropy, so a plain hash cannot be reversed by guessing.
pub fn digest(secret: &str) -> Digest {
    Sha256::digest(secret.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}
