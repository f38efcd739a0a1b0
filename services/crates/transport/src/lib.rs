//! Sockets of the data plane: framed reading, vectored writing, listening.
//!
//! - [`FrameReader`]: bytes of a stream cut into frames, without copying payloads
//! - [`Outbox`]: frames waiting to be written, gathered into few vectored writes
//! - [`bind`], [`prepare`]: sockets as the data plane wants them

mod inbound;
mod outbox;
mod sockets;

pub use inbound::{FrameReader, ReadFault};
pub use outbox::Outbox;
pub use sockets::{bind, is_loopback, prepare};
