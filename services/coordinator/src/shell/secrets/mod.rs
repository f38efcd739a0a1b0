//! Secrets: join tokens, credentials, the admin token, and the fleet's keys.
//!
//! - `fleet_keys`: keys that the operator gives; `private_keys`: keys that are encrypted with them
//! - `peer_key`: the key that signs peer tokens
//! - `files`, `digest`: files of the operator; secrets that are made here

mod digest;
mod files;
mod fleet_keys;
mod peer_key;
mod private_keys;

pub use digest::{digest, random_secret};
pub use files::{read_admin_token, read_client_keys};
pub use fleet_keys::read_fleet_keys;
pub use peer_key::PEER_TOKEN_TTL_S;
pub use private_keys::PrivateKeys;
