//! The key that signs peer tokens.

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

/// The lifetime of a peer token; a fresh one is sent at half of it.
pub const PEER_TOKEN_TTL_S: u64 = 3_600;

/// Signs the tokens by which servers recognise each other.
pub struct PeerKey {
    key: SigningKey,
    encoding: EncodingKey,
    key_id: String,
    jwks: Value,
}

impl PeerKey {
    /// A new one.
    pub fn generate() -> Self {
        Self::of(SigningKey::from_bytes(&rand::random()))
    }

    /// Reads a key that was made before, PEM.
    pub fn of_pem(pem: &str) -> Result<Self, String> {
        let key = SigningKey::from_pkcs8_pem(pem).map_err(|error| format!("not an Ed25519 key: {error}"))?;
        Ok(Self::of(key))
    }

    fn of(key: SigningKey) -> Self {
        quorate_tokens::ed25519::install();
        let der = key.to_pkcs8_der().expect("an Ed25519 key has this form");
        let public = key.verifying_key().to_bytes();
        let key_id = digest(&URL_SAFE_NO_PAD.encode(public))[..16].to_string();
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "use": "sig", "kid": key_id,
            "x": URL_SAFE_NO_PAD.encode(public)});
        Self {
            encoding: EncodingKey::from_ed_der(der.as_bytes()),
            key_id,
            jwks: json!({"keys": [jwk]}),
            key,
        }
    }

    /// The private key, PEM: to be kept encrypted.
    pub fn pem(&self) -> String {
        let pem = self.key.to_pkcs8_pem(LineEnding::LF);
        pem.expect("an Ed25519 key has this form").to_string()
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
