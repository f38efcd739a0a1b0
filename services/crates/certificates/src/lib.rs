//! Certificates between the coordinator and its servers (`docs/internals/links.md`).
//!
//! - [`Authority`]: the coordinator's certificate authority: key, certificate, what it issues
//! - [`request`]: a server's key and what it asks with; when a certificate ends
//! - [`pin`]: join tokens, which carry the authority's fingerprint
//! - [`control`]: TLS of the control connection, at both ends

mod authority;
pub mod control;
pub mod pin;
pub mod request;

pub use authority::{Authority, AuthorityError, IssueError};
