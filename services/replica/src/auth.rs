//! Tokens of clients and of peers: JWTs signed with Ed25519, checked with public keys that the coordinator
//! hands out (`sdk/contract/handle.md`). No database, no call.

use std::collections::HashMap;

use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header, errors::ErrorKind};
use quorate_types::{Code, GroupId, ServerId};
use serde::Deserialize;

/// Longer ones are refused unread.
const TOKEN_BYTES_MAX: usize = 8192;

/// Keys of one issuer, by `kid`.
#[derive(Default)]
pub struct Keys {
    by_id: HashMap<String, DecodingKey>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Operation {
    Append,
    Read,
    /// An operation of a later version: grants nothing here.
    #[serde(other)]
    Other,
}

#[derive(Debug, Clone, Deserialize)]
pub struct Grant {
    pub group: GroupId,
    pub ops: Vec<Operation>,
}

#[derive(Debug, Clone, Deserialize)]
struct ClientClaims {
    exp: u64,
    grants: Vec<Grant>,
}

/// What a client may do with one group, and until when.
#[derive(Debug, Clone)]
pub struct Permission {
    pub may_append: bool,
    pub may_read: bool,
    /// Seconds since 1970.
    pub expires_at_s: u64,
}

#[derive(Debug, Clone, Deserialize)]
struct PeerClaims {
    sub: String,
}

impl Keys {
    /// Keys of the set that are Ed25519; others are left out, as no token may use them.
    pub fn from_jwks(jwks: &serde_json::Value) -> Result<Self, String> {
        let set: JwkSet = serde_json::from_value(jwks.clone()).map_err(|e| format!("not a JWKS: {e}"))?;
        let mut by_id = HashMap::new();
        for jwk in &set.keys {
            let Some(id) = jwk.common.key_id.clone() else {
                continue;
            };
            if let Ok(key) = DecodingKey::from_jwk(jwk) {
                by_id.insert(id, key);
            }
        }
        if by_id.is_empty() {
            return Err("the JWKS holds no usable key".to_string());
        }
        Ok(Self { by_id })
    }

    /// The permission that `token` gives on `group_id`.
    pub fn check_client(&self, token: &str, group_id: GroupId) -> Result<Permission, Code> {
        let claims: ClientClaims = self.check(token, "quorate-api", "quorate-data")?;
        let grant = claims
            .grants
            .iter()
            .find(|g| g.group == group_id)
            .ok_or(Code::PermissionDenied)?;
        Ok(Permission {
            may_append: grant.ops.contains(&Operation::Append),
            may_read: grant.ops.contains(&Operation::Read),
            expires_at_s: claims.exp,
        })
    }

    /// The server that `token` was issued to.
    pub fn check_peer(&self, token: &str) -> Result<ServerId, Code> {
        let claims: PeerClaims = self.check(token, "quorate-coordinator", "quorate-peer")?;
        let id = claims.sub.strip_prefix("server:").and_then(|id| id.parse().ok());
        id.map(ServerId).ok_or(Code::TokenInvalid)
    }

    fn check<T: for<'de> Deserialize<'de> + Clone>(
        &self,
        token: &str,
        issuer: &str,
        audience: &str,
    ) -> Result<T, Code> {
        if token.len() > TOKEN_BYTES_MAX {
            return Err(Code::TokenInvalid);
        }
        let header = decode_header(token).map_err(|_| Code::TokenInvalid)?;
        let key = header
            .kid
            .and_then(|id| self.by_id.get(&id))
            .ok_or(Code::TokenInvalid)?;
        let mut validation = Validation::new(Algorithm::EdDSA);
        validation.set_issuer(&[issuer]);
        validation.set_audience(&[audience]);
        validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
        validation.leeway = 5;
        decode::<T>(token, key, &validation)
            .map(|data| data.claims)
            .map_err(|error| match error.kind() {
                ErrorKind::ExpiredSignature => Code::TokenExpired,
                _ => Code::TokenInvalid,
            })
    }
}
