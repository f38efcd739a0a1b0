//! Clients' behaviour, as `sdk/contract/wire.md` describes it. Each has a connection of its own.
//!
//! - [`connection`]: a client's end of its connection
//! - `session`: a writer attaches, abandons its session, goes away
//! - `batches`: batches that a writer appends
//! - [`writer`]: retries across heads, asks for the tail, trims
//! - `reader`: single reads and subscriptions, at any replica

mod batches;
pub mod connection;
mod reader;
mod session;
pub mod writer;

use quorate_wire::client::Message;

use crate::fleet::{ClientId, ToClient, World};

pub fn receive(world: &mut World, client: ClientId, connection: u64, message: ToClient) {
    if world.connection(client).id != connection {
        return;
    }
    match (message, client) {
        (ToClient::Gone, _) => connection::close(world, client),
        (ToClient::Message(message), _) => {
            if matches!(message, Message::Attached(_)) {
                world.connection_mut(client).attaches_unanswered -= 1;
            }
            match client {
                ClientId::Writer(c) => writer::receive(world, c, message),
                ClientId::Reader(r) => reader::receive(world, r, message),
            }
        }
    }
}

/// Time passes for a client.
pub fn tick(world: &mut World, client: ClientId) {
    match client {
        ClientId::Writer(c) => writer::tick(world, c),
        ClientId::Reader(r) => reader::tick(world, r),
    }
}
