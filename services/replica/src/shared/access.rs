//! Access: keys of tokens, TLS, and where plaintext is allowed.

use std::collections::HashMap;
use std::sync::{OnceLock, RwLock};

use quorate_tokens::{ClientToken, Keys};
use quorate_transport::tls::ServerTls;
use quorate_types::{Code, CredentialId, GroupId, Revocation, ServerId};

/// Connections that an operator allows without TLS.
#[derive(Debug, Clone, Copy, Default)]
pub struct Plaintext {
    /// Clients and peers may connect so.
    pub is_accepted: bool,
    /// This server dials its peers so.
    pub is_dialed: bool,
}

pub struct Access {
    client_keys: RwLock<Keys>,
    /// Revoked credentials, each with the second in which its last token expires.
    revoked: RwLock<HashMap<CredentialId, u64>>,
    peer_keys: RwLock<Keys>,
    peer_token: RwLock<String>,
    /// Set at the first registration, before any connection of the data plane.
    tls: OnceLock<ServerTls>,
    pub plaintext: Plaintext,
}

impl Access {
    pub fn new(plaintext: Plaintext) -> Self {
        Self {
            client_keys: RwLock::default(),
            revoked: RwLock::default(),
            peer_keys: RwLock::default(),
            peer_token: RwLock::default(),
            tls: OnceLock::new(),
            plaintext,
        }
    }

    pub fn set_client_keys(&self, keys: Keys) {
        *self.client_keys.write().expect("keys") = keys;
    }

    /// Notes revocations, beside the known ones whose tokens have not expired. `now_s`: seconds since 1970.
    pub fn note_revocations(&self, revocations: &[Revocation], now_s: u64) {
        let mut revoked = self.revoked.write().expect("revocations");
        revoked.retain(|_, until_s| *until_s >= now_s);
        revoked.extend(revocations.iter().map(|one| (one.credential, one.until_s)));
    }

    pub fn is_revoked(&self, credential: CredentialId) -> bool {
        self.revoked
            .read()
            .expect("revocations")
            .contains_key(&credential)
    }

    pub fn set_peer_keys(&self, keys: Keys) {
        *self.peer_keys.write().expect("keys") = keys;
    }

    /// The token that this server shows its peers.
    pub fn set_peer_token(&self, token: String) {
        *self.peer_token.write().expect("peer token") = token;
    }

    pub fn peer_token(&self) -> String {
        self.peer_token.read().expect("peer token").clone()
    }

    /// The client's token, if it is good for the group.
    pub fn check_client(&self, token: &str, group_id: GroupId) -> Result<ClientToken, Code> {
        let keys = self.client_keys.read().expect("keys");
        let token = keys.check_client(token, group_id)?;
        match token.credential {
            Some(credential) if self.is_revoked(credential) => Err(Code::TokenRevoked),
            _ => Ok(token),
        }
    }

    /// The server that a peer's token belongs to.
    pub fn check_peer(&self, token: &str) -> Result<ServerId, Code> {
        self.peer_keys.read().expect("keys").check_peer(token)
    }

    /// `None` before the first registration.
    pub fn known_tls(&self) -> Option<&ServerTls> {
        self.tls.get()
    }

    pub fn tls(&self) -> &ServerTls {
        self.tls
            .get()
            .expect("a server has registered before it has connections")
    }

    pub fn set_tls(&self, tls: ServerTls) {
        assert!(self.tls.set(tls).is_ok(), "only the control task sets it");
    }
}
