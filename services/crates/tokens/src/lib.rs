//! Tokens of clients and of peers: JWTs signed with Ed25519, checked with public keys that the coordinator hands out
//! (`sdk/contract/handle.md`). A check needs no database and no call.

pub mod ed25519;

use std::collections::HashMap;

use jsonwebtoken::jwk::JwkSet;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header, errors::ErrorKind};
pub use quorate_types::Permission;
use quorate_types::{Code, CredentialId, GroupId, Layout, ProjectId, ServerId};
use serde::Deserialize;

/// Longer tokens are refused unread.
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
    #[serde(default)]
    pub layout: Layout,
}

/// A client's token, as far as it is about one group.
#[derive(Debug, Clone)]
pub struct ClientToken {
    pub permission: Permission,
    /// The credential for which it was issued; `None` in tokens of issuers that do not name it.
    pub credential: Option<CredentialId>,
}

#[derive(Debug, Clone, Deserialize)]
struct ClientClaims {
    exp: u64,
    grants: Vec<Grant>,
    #[serde(default)]
    project: Option<ProjectId>,
    #[serde(default)]
    cid: Option<CredentialId>,
}

#[derive(Debug, Clone, Deserialize)]
struct PeerClaims {
    sub: String,
}

impl Keys {
    /// Takes the readable keys of the set that have a `kid`. Only Ed25519 ones ever verify a token.
    pub fn from_jwks(jwks: &serde_json::Value) -> Result<Self, String> {
        let set: JwkSet = serde_json::from_value(jwks.clone()).map_err(|e| format!("not a JWKS: {e}"))?;
        ed25519::install();
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

    /// The permission that `token` grants on `group_id`. The caller knows which credentials are revoked.
    pub fn check_client(&self, token: &str, group_id: GroupId) -> Result<ClientToken, Code> {
        let claims: ClientClaims = self.check(token, "quorate-api", "quorate-data")?;
        let grant = claims
            .grants
            .iter()
            .find(|g| g.group == group_id)
            .ok_or(Code::PermissionDenied)?;
        let permission = Permission {
            may_append: grant.ops.contains(&Operation::Append),
            may_read: grant.ops.contains(&Operation::Read),
            project: claims.project,
            layout: grant.layout,
            expires_at_s: claims.exp,
        };
        Ok(ClientToken {
            permission,
            credential: claims.cid,
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

#[cfg(test)]
mod tests {
    use base64::Engine;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ed25519_dalek::{Signer, SigningKey};
    use serde_json::{Value, json};

    use super::*;

    const GROUP: &str = "01930f3c-5f4e-7cc3-98c4-dc0c0c07398f";

    fn key(seed: u8) -> SigningKey {
        SigningKey::from_bytes(&[seed; 32])
    }

    fn public(key: &SigningKey) -> String {
        URL_SAFE_NO_PAD.encode(key.verifying_key().to_bytes())
    }

    fn keys() -> Keys {
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "kid": "k1", "x": public(&key(1))});
        Keys::from_jwks(&json!({ "keys": [jwk] })).unwrap()
    }

    fn claims() -> Value {
        json!({"iss": "quorate-api", "aud": "quorate-data", "sub": "user:1", "exp": 1u64 << 40,
            "grants": [{"group": GROUP, "ops": ["append", "fly"]}]})
    }

    fn token(header: &Value, claims: &Value, key: &SigningKey) -> String {
        let part = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let signature = URL_SAFE_NO_PAD.encode(key.sign(signed.as_bytes()).to_bytes());
        format!("{signed}.{signature}")
    }

    fn header() -> Value {
        json!({"alg": "EdDSA", "typ": "JWT", "kid": "k1"})
    }

    fn check(token: &str) -> Result<Permission, Code> {
        token_of(token).map(|token| token.permission)
    }

    fn token_of(token: &str) -> Result<ClientToken, Code> {
        keys().check_client(token, GroupId(GROUP.parse().unwrap()))
    }

    #[test]
    fn a_signed_token_gives_what_it_grants() {
        let permission = check(&token(&header(), &claims(), &key(1))).unwrap();
        assert!(permission.may_append && !permission.may_read);
        assert_eq!(permission.expires_at_s, 1 << 40);
        let elsewhere = GroupId(Default::default());
        let sound = token(&header(), &claims(), &key(1));
        assert_eq!(
            keys().check_client(&sound, elsewhere).unwrap_err(),
            Code::PermissionDenied
        );
    }

    #[test]
    fn a_token_may_name_the_groups_project() {
        assert_eq!(
            check(&token(&header(), &claims(), &key(1))).unwrap().project,
            None
        );
        let mut named = claims();
        named["project"] = json!("01930f3c-5f4e-7cc3-98c4-dc0c0c073990");
        let project = check(&token(&header(), &named, &key(1))).unwrap().project;
        assert_eq!(project.map(|of| of.0.as_u128() & 0xff), Some(0x90));
        named["project"] = json!("mine");
        assert_eq!(
            check(&token(&header(), &named, &key(1))).unwrap_err(),
            Code::TokenInvalid
        );
    }

    #[test]
    fn a_token_may_name_its_credential() {
        let credential =
            |claims: &Value| token_of(&token(&header(), claims, &key(1))).map(|found| found.credential);
        assert_eq!(credential(&claims()), Ok(None));
        let mut named = claims();
        named["cid"] = json!(GROUP);
        assert_eq!(credential(&named), Ok(Some(CredentialId(GROUP.parse().unwrap()))));
        named["cid"] = json!("mine");
        assert_eq!(credential(&named), Err(Code::TokenInvalid));
    }

    #[test]
    fn a_grant_may_name_the_layout_of_a_partition() {
        let layout = |claims: &Value| check(&token(&header(), claims, &key(1))).map(|found| found.layout);
        assert_eq!(layout(&claims()), Ok(Layout(0)));
        let mut named = claims();
        named["grants"][0]["layout"] = json!(3);
        assert_eq!(layout(&named), Ok(Layout(3)));
        named["grants"][0]["layout"] = json!(-1);
        assert_eq!(layout(&named), Err(Code::TokenInvalid));
    }

    #[test]
    fn other_keys_and_algorithms_give_nothing() {
        let sound = token(&header(), &claims(), &key(1));
        let (signed, _) = sound.rsplit_once('.').unwrap();
        let no_key_id = json!({"alg": "EdDSA"});
        let refused = [
            token(&header(), &claims(), &key(2)),
            token(&json!({"alg": "EdDSA", "kid": "k2"}), &claims(), &key(1)),
            token(&no_key_id, &claims(), &key(1)),
            token(&json!({"alg": "none", "kid": "k1"}), &claims(), &key(1)),
            token(&json!({"alg": "HS256", "kid": "k1"}), &claims(), &key(1)),
            format!("{signed}."),
            signed.to_string(),
            String::new(),
            "a".repeat(TOKEN_BYTES_MAX + 1),
        ];
        for token in refused {
            assert_eq!(check(&token).unwrap_err(), Code::TokenInvalid, "{token}");
        }
    }

    #[test]
    fn a_public_key_that_is_too_short_verifies_nothing() {
        let short = URL_SAFE_NO_PAD.encode([1; 31]);
        let jwk = json!({"kty": "OKP", "crv": "Ed25519", "alg": "EdDSA", "kid": "k1", "x": short});
        let keys = Keys::from_jwks(&json!({ "keys": [jwk] })).unwrap();
        let group = GroupId(GROUP.parse().unwrap());
        let found = keys.check_client(&token(&header(), &claims(), &key(1)), group);
        assert_eq!(found.unwrap_err(), Code::TokenInvalid);
    }

    #[test]
    fn every_claim_counts() {
        for (claim, value, code) in [
            ("iss", json!("quorate-coordinator"), Code::TokenInvalid),
            ("aud", json!("quorate-peer"), Code::TokenInvalid),
            ("exp", json!(1), Code::TokenExpired),
            ("exp", json!("never"), Code::TokenInvalid),
            ("grants", json!([]), Code::PermissionDenied),
        ] {
            let mut changed = claims();
            changed[claim] = value;
            let found = check(&token(&header(), &changed, &key(1))).unwrap_err();
            assert_eq!(found, code, "{changed}");
            changed.as_object_mut().unwrap().remove(claim);
            let found = check(&token(&header(), &changed, &key(1))).unwrap_err();
            assert_eq!(found, Code::TokenInvalid, "without {claim}");
        }
    }

    #[test]
    fn a_peer_is_the_server_that_its_token_names() {
        let claims = |sub: &str| json!({"iss": "quorate-coordinator", "aud": "quorate-peer", "sub": sub, "exp": 1u64 << 40});
        let peer = |sub: &str| keys().check_peer(&token(&header(), &claims(sub), &key(1)));
        assert_eq!(peer("server:7"), Ok(ServerId(7)));
        assert_eq!(peer("server:x"), Err(Code::TokenInvalid));
        assert_eq!(peer("7"), Err(Code::TokenInvalid));
    }
}
