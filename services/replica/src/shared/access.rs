//! Access: keys of tokens, TLS, and where plaintext is allowed.

use std::sync::{OnceLock, RwLock};

use quorate_tokens::Keys;
use quorate_transport::tls::ServerTls;
use quorate_types::{Code, GroupId, Permission, ServerId};

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
            peer_keys: RwLock::default(),
            peer_token: RwLock::default(),
            tls: OnceLock::new(),
            plaintext,
        }
    }

    pub fn set_client_keys(&self, keys: Keys) {
        *self.client_keys.write().expect("keys") = keys;
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

    /// The permission that a client's token gives on a group.
    pub fn check_client(&self, token: &str, group_id: GroupId) -> Result<Permission, Code> {
        self.client_keys
            .read()
            .expect("keys")
            .check_client(token, group_id)
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
