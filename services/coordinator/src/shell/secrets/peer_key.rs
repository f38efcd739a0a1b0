//! The key that signs peer tokens.

use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::SigningKey;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey};
use jsonwebtoken::{Algorithm, EncodingKey, Header};
use quorate_types::ServerId;
use serde::Serialize;
use serde_json::{Value, json};

use super::digest::digest;
use crate::exit::Failure;

/// The lifetime of a peer token; a fresh one is sent at half of it.
pub const PEER_TOKEN_TTL_S: u64 = 3_600;

/// Signs the tokens by which servers recognise each other.
pub struct PeerKey {
    encoding: EncodingKey,
    key_id: String,
    jwks: Value,
}

impl PeerKey {
    /// Reads `peer-token-key.pem` in the folder, or creates it with mode 0600.
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
        quorate_tokens::ed25519::install();
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
