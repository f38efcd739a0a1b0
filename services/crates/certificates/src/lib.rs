//! Certificates between coordinators and their servers (`docs/internals/links.md`).
//!
//! - [`Authority`]: the fleet's certificate authority: key, own certificate, issued certificates
//! - [`request`]: a server's key and its request; the end of a certificate
//! - [`pin`]: join tokens, which carry the authority's fingerprint
//! - [`control`]: TLS of the control connection, at both ends
//! - [`FleetKeys`]: the keys that all coordinators of a fleet have; [`members`]: TLS between them

mod authority;
pub mod control;
mod fleet_key;
mod fleet_keys;
pub mod members;
pub mod pin;
pub mod request;
mod whole_file;

pub use authority::{Authority, AuthorityError, IssueError};
pub use fleet_key::{FleetKey, OpenError};
pub use fleet_keys::{FleetKeys, FleetKeysError, Opened};
