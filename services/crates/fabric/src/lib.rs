//! libfabric, loaded at run time: one-sided writes between two processes (`docs/internals/one-sided.md`).
//!
//! - [`Library`]: the shared library, if this machine has it
//! - [`Domain`]: a provider's way to the network
//! - [`Link`]: one endpoint for one peer, with memory for it to write into
//!
//! The one data path is `fi_writedata`: a write with 32 bits for the other side's completion queue, on reliable endpoints
//! (`FI_EP_RDM`). Writes complete and arrive in any order. Nothing here waits.
//!
//! This crate alone has unsafe code of the fabric: declarations of the C interface, and calls of it.

#![allow(unsafe_code)]

mod abi;
mod domain;
mod library;
mod link;
mod memory;
#[cfg(test)]
mod tests;

pub use domain::{Domain, Provider};
pub use library::Library;
pub use link::{Completion, Link, Offer};

use thiserror::Error;

/// Why the fabric does not do what it was asked for.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FabricError {
    /// The machine has no libfabric: install the package libfabric1, or the vendor's.
    #[error("libfabric is not here ({0}): install the package libfabric1")]
    NoLibrary(String),
    /// The library has no such provider, or the provider no device.
    #[error("the provider {provider} is not available here: {reason}")]
    NoProvider { provider: &'static str, reason: String },
    /// A call failed.
    #[error("{call}: {reason}")]
    Failed { call: &'static str, reason: String },
    /// There is no room for another write at present. Look at the completions, and try again.
    #[error("as many writes are under way as there may be")]
    Again,
}
