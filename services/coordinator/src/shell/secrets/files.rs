//! Files of keys and tokens that the operator gives.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::Value;

use crate::exit::Failure;

/// Reads the JWKS with the keys that sign clients' tokens; they must be Ed25519.
pub fn read_client_keys(path: &Path) -> Result<Value, Failure> {
    let wrong = |problem: String| {
        Failure::configuration(format!("--token-public-keys {}: {problem}", path.display()))
    };
    let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
    let jwks: Value = serde_json::from_str(&text).map_err(|e| wrong(format!("not JSON: {e}")))?;
    let keys = jwks["keys"].as_array().filter(|keys| !keys.is_empty());
    for key in keys.ok_or_else(|| wrong("needs a JWKS: {\"keys\": [...]} with at least one key".into()))? {
        let ed25519 = key["kty"] == "OKP" && key["crv"] == "Ed25519" && key["kid"].is_string();
        let public = key["x"].as_str().and_then(|x| URL_SAFE_NO_PAD.decode(x).ok());
        if !ed25519 || public.is_none_or(|bytes| bytes.len() != 32) {
            return Err(wrong(
                "every key must have kty OKP, crv Ed25519, a kid, and 32 bytes as x".into(),
            ));
        }
        if key.get("d").is_some() {
            return Err(wrong("holds a private key (d): give the public half only".into()));
        }
    }
    Ok(jwks)
}

/// Reads the admin token. Nobody else may be able to read its file.
pub fn read_admin_token(path: &Path) -> Result<String, Failure> {
    let wrong =
        |problem: String| Failure::configuration(format!("--admin-token-file {}: {problem}", path.display()));
    let metadata = std::fs::metadata(path).map_err(|e| wrong(e.to_string()))?;
    let mode = metadata.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(wrong(format!(
            "mode {mode:04o} lets others read it: chmod 600 it"
        )));
    }
    let token = std::fs::read_to_string(path)
        .map_err(|e| wrong(e.to_string()))?
        .trim()
        .to_string();
    if token.len() < 16 {
        return Err(wrong("must hold a token of at least 16 characters".into()));
    }
    Ok(token)
}
