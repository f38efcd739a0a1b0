//! Streams between two processes over one-sided writes (`docs/internals/one-sided.md`).
//!
//! - [`Way`]: a provider of this machine, opened when the first stream wants it
//! - [`RingStream`]: a stream each way to one peer
//! - [`Pace`]: when to look at it, and when to sleep
//! - [`TransportFlags`]: what an operator says of it

mod flags;
mod pace;
mod stream;
mod way;

pub use flags::{Transport, TransportFlags};
pub use pace::{Next, Pace};
pub use quorate_fabric::{FabricError, Offer, Provider};
pub use stream::{RingStream, Trouble};
pub use way::{Fabric, Way};
