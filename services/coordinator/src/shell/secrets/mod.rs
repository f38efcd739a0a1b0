//! Secrets: join tokens, credentials, the admin token, and the key that signs peer tokens.

mod digest;
mod files;
mod peer_key;

pub use digest::{digest, random_secret};
pub use files::{read_admin_token, read_client_keys};
pub use peer_key::{PEER_TOKEN_TTL_S, PeerKey};
