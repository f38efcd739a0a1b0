//! Certificates between the coordinator and its servers (`docs/internals/links.md`).
//!
//! - [`Authority`]: the coordinator's certificate authority: key, own certificate, issued certificates
//! - [`request`]: a server's key and its request; the end of a certificate
//! - [`pin`]: join tokens, which carry the authority's fingerprint
//! - [`control`]: TLS of the control connection, at both ends

mod authority;
pub mod control;
pub mod pin;
pub mod request;

pub use authority::{Authority, AuthorityError, IssueError};
