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
mod error;
mod library;
mod link;
mod memory;
#[cfg(test)]
mod tests;

pub use domain::{Domain, Provider};
pub use error::FabricError;
pub use library::Library;
pub use link::{Completion, Link, Offer};
