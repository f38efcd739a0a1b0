//! Join tokens, credentials and the key that signs peer tokens.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use quorate_types::ServerId;
use serde::Serialize;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::exit::Failure;
use crate::state::command::Digest;

/// How long a peer token is good for; a fresh one is sent at half of it.
pub const PEER_TOKEN_TTL_S: u64 = 3_600;

/// 32 random bytes, readable, with a prefix that secret scanners can look for.
pub fn random_secret(prefix: &str) -> String {
    format!("{prefix}{}", URL_SAFE_NO_PAD.encode(rand::random::<[u8; 32]>()))
}

/// What is kept of a secret: it has 256 bits of entropy, so a plain hash cannot be reversed by guessing.
pub fn digest(secret: &str) -> Digest {
    Sha256::digest(secret.as_bytes())
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Signs the tokens by which servers know each other.
pub struct PeerKey {
    encoding: EncodingKey,
    key_id: String,
    jwks: Value,
}

impl PeerKey {
    /// Reads `peer-token-key.pem` in the folder, or makes it (mode 0600).
    pub fn load_or_create(data_dir: &Path) -> Result<Self, Failure> {
        let path = data_dir.join("peer-token-key.pem");
        let unusable = |problem: String| Failure::disk(format!("{}: {problem}", path.display()));
        let key = match std::fs::read_to_string(&path) {
            Ok(pem) => {
                SigningKey::from_pkcs8_pem(&pem).map_err(|e| unusable(format!("not an Ed25519 key: {e}")))?
            }
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                let key = SigningKey::from_bytes(&rand::random());
                write_private(&path, &key).map_err(|e| unusable(e.to_string()))?;
                key
            }
            Err(e) => return Err(unusable(e.to_string())),
        };
        let der = key.to_pkcs8_der().map_err(|e| unusable(e.to_string()))?;
        let public = key.verifying_key().to_bytes();
        let key_id = digest(&URL_SAFE_NO_PAD.encode(public))[..16].to_string();
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": key_id,
            "x": URL_SAFE_NO_PAD.encode(public)});
        Ok(Self {
            encoding: EncodingKey::from_ed_der(der.as_bytes()),
            key_id,
            jwks: json!({"keys": [jwk]}),
        })
    }

    pub fn jwks(&self) -> &Value {
        &self.jwks
    }

    /// A token for one server, from `now_s` (Unix time) on.
    pub fn token(&self, server: ServerId, now_s: u64) -> String {
        #[derive(Serialize)]
        struct Claims {
            iss: &'static str,
            aud: &'static str,
            sub: String,
            iat: u64,
            exp: u64,
        }
        let header = Header {
            kid: Some(self.key_id.clone()),
            ..Header::new(Algorithm::EdDSA)
        };
        let claims = Claims {
            iss: "quorate-coordinator",
            aud: "quorate-peer",
            sub: format!("server:{server}"),
            iat: now_s,
            exp: now_s + PEER_TOKEN_TTL_S,
        };
        jsonwebtoken::encode(&header, &claims, &self.encoding).expect("an Ed25519 key signs any claims")
    }
}

/// The JWKS with the keys that sign clients' tokens; refuses anything but Ed25519.
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

/// The admin token, from a file that nobody else can read.
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

fn write_private(path: &Path, key: &SigningKey) -> std::io::Result<()> {
    let pem = key.to_pkcs8_pem(LineEnding::LF).map_err(std::io::Error::other)?;
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(pem.as_bytes())?;
    file.sync_all()
}
