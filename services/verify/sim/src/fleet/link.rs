//! The state of a link between two servers: one connection, and bytes on their way.

use bytes::{Bytes, BytesMut};

use super::Pipe;

#[derive(Debug, Default)]
pub struct Link {
    pub generation: u64,
    /// Whether the connection exists; ends learn of it later.
    pub is_open: bool,
    /// Per end (lower number first): it knows the connection of this generation.
    pub knows: [bool; 2],
    /// Per receiving end.
    pub pipes: [Pipe<Bytes>; 2],
    /// Per receiving end: bytes of a frame that has not wholly arrived.
    pub partial: [BytesMut; 2],
}

impl Link {
    /// The index of a server's end of its link to the peer.
    pub fn end(server: usize, peer: usize) -> usize {
        usize::from(server > peer)
    }
}
