//! A ring of one coordinator, for another that is to write into it.

use serde::{Deserialize, Serialize};

/// The other side needs it to write into the sender's ring. It goes with the hello, over the authenticated connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RingOffer {
    /// Both sides must have the same one.
    pub provider: String,
    /// The endpoint's name, as its provider has it.
    pub name: Vec<u8>,
    /// The ring's first byte and key, as the provider counts them.
    pub base: u64,
    pub key: u64,
    /// Random: records for another ring are not taken.
    pub incarnation: u64,
}
