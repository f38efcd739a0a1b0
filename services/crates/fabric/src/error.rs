//! The reasons why the fabric does not do what it was asked for.

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
