//! Names of clients, and how far a client is with its attachment.

/// Channels of readers begin here.
const READERS_FROM: u32 = 1 << 16;

/// A client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientId {
    Writer(usize),
    Reader(usize),
}

impl ClientId {
    pub fn channel(self) -> u32 {
        match self {
            ClientId::Writer(c) => c as u32,
            ClientId::Reader(r) => READERS_FROM + r as u32,
        }
    }

    pub fn of(channel: u32) -> Self {
        match channel.checked_sub(READERS_FROM) {
            None => ClientId::Writer(channel as usize),
            Some(r) => ClientId::Reader(r as usize),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClientState {
    Idle,
    Attaching,
    Ready,
}
