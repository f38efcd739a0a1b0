//! A client's end of its connection: frames go through the wire's codec, in order, with a delay; it breaks now and then.

use bytes::BytesMut;
use quorate_chain::ClientRef;
use quorate_types::Micros;
use quorate_wire::client::Message;
use quorate_wire::decode_frame;
use rand::Rng;

use crate::fleet::{ClientId, Connection, FromClient, Scheduled, ToClient, World};

/// How long a client waits for the answer to an ATTACH.
pub(super) const ATTACH_TIMEOUT_US: Micros = 400_000;

/// Opens a connection, in place of the one that the client has.
pub(super) fn open(world: &mut World, client: ClientId, server: usize) {
    close(world, client);
    let (now, id) = (world.now, world.new_connection());
    let incarnation = world.servers[server].incarnation;
    *world.connection_mut(client) = Connection {
        id,
        server,
        incarnation,
        attaches_unanswered: 0,
        up_at: now,
        down_at: now,
    };
}

/// The client's connection, if it has one, is gone: its server learns of it.
pub fn close(world: &mut World, client: ClientId) {
    if world.connection(client).id == 0 {
        return;
    }
    send(world, client, None);
    let connection = world.connection(client);
    if connection.attaches_unanswered > 0 {
        // Its frames on the way are lost with it: a late ATTACH would take the session over.
        let id = connection.id;
        world.aborted.insert(id);
    }
    world.connection_mut(client).id = 0;
    match client {
        ClientId::Writer(c) => world.writers[c].disconnected(),
        ClientId::Reader(r) => world.readers[r].disconnected(),
    }
}

/// Sends a message to the server; `None`: the end of the connection.
pub(super) fn send(world: &mut World, client: ClientId, message: Option<Message>) {
    let g = world.group_of_client(client);
    // The end of a connection may come long after.
    let delay = match message {
        None if world.rng.random_bool(0.3) => world.rng.random_range(1_000..300_000),
        _ => world.rng.random_range(10..world.plan.client_delay_us_max),
    };
    let (now, end_offset) = (world.now, world.ledgers[g].end_offset());
    let connection = world.connection_mut(client);
    if matches!(message, Some(Message::Attach { .. })) {
        connection.attaches_unanswered += 1;
    }
    connection.up_at = connection.up_at.max(now + delay);
    let (at, server, incarnation) = (connection.up_at, connection.server, connection.incarnation);
    let message = Box::new(FromClient {
        connection: connection.id,
        end_offset,
        message: message.map(|message| through_wire(&message)),
    });
    world.schedule(
        at,
        Scheduled::FromClient {
            server,
            incarnation,
            client,
            message,
        },
    );
}

/// A server answers on a client's connection.
pub fn respond(world: &mut World, s: usize, to: ClientRef, message: &Message) {
    let client = ClientId::of(to.channel);
    let connection = world.connection(client);
    if connection.id != to.connection || connection.server != s {
        return;
    }
    let breaks = world.rng.random_bool(0.003);
    let at = world.now + world.rng.random_range(10..1_000);
    let connection = world.connection_mut(client);
    connection.down_at = connection.down_at.max(at);
    let at = connection.down_at;
    let message = if breaks {
        ToClient::Gone
    } else {
        ToClient::Message(through_wire(message))
    };
    world.schedule(
        at,
        Scheduled::ToClient {
            client,
            connection: to.connection,
            message: Box::new(message),
        },
    );
}

/// The server's process is gone, and its sockets with it.
pub fn break_all_to(world: &mut World, s: usize) {
    break_those(world, s, |_| true);
}

/// The server closes the connections of a group's clients.
pub fn break_all_of(world: &mut World, s: usize, g: usize) {
    break_those(world, s, |of| of == g);
}

fn break_those(world: &mut World, s: usize, is_chosen: impl Fn(usize) -> bool) {
    let writers = (0..world.writers.len()).map(ClientId::Writer);
    for client in writers.chain((0..world.readers.len()).map(ClientId::Reader)) {
        if !is_chosen(world.group_of_client(client)) {
            continue;
        }
        let connection = world.connection(client);
        let (id, down_at) = (connection.id, connection.down_at);
        if id == 0 || connection.server != s {
            continue;
        }
        let at = down_at.max(world.now) + world.rng.random_range(10..1_000);
        world.schedule(
            at,
            Scheduled::ToClient {
                client,
                connection: id,
                message: Box::new(ToClient::Gone),
            },
        );
    }
}

/// A message as it comes out at the other end.
pub fn through_wire(message: &Message) -> Message {
    let mut bytes = BytesMut::from(&message.to_bytes(1, None)[..]);
    let frame = decode_frame(&mut bytes, quorate_types::limits::FRAME_BYTES_MAX)
        .expect("a sound frame")
        .expect("a whole frame");
    let decoded = Message::decode(&frame).expect("a sound message");
    assert_eq!(&decoded, message, "what is decoded is what was encoded");
    decoded
}
