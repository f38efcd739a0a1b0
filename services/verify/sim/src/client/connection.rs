//! A client's end of its connection: frames go through the wire's codec, in order, with a delay; it breaks now and then.

use quorate_chain::ClientRef;
use quorate_types::Micros;
use quorate_wire::client::Message;
use rand::Rng;

use crate::schedule::What;
use crate::server::{FromClient, through_wire};
use crate::world::World;

/// Channels of readers begin here.
const READERS_FROM: u32 = 1 << 16;

/// A client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Who {
    Writer(usize),
    Reader(usize),
}

impl Who {
    pub fn channel(self) -> u32 {
        match self {
            Who::Writer(c) => c as u32,
            Who::Reader(r) => READERS_FROM + r as u32,
        }
    }

    fn of(channel: u32) -> Self {
        match channel.checked_sub(READERS_FROM) {
            None => Who::Writer(channel as usize),
            Some(r) => Who::Reader(r as usize),
        }
    }
}

#[derive(Debug, Default)]
pub struct Connection {
    /// 0: there is none.
    pub id: u64,
    pub server: usize,
    /// The server's process that it leads to.
    incarnation: u64,
    /// The server answered an ATTACH on it.
    pub(super) was_attached: bool,
    /// The time at which the last frame of each direction arrives.
    up_at: Micros,
    down_at: Micros,
}

#[derive(Debug)]
pub enum ToClient {
    Message(Message),
    /// The connection is gone.
    Gone,
}

impl World {
    pub fn connection(&self, who: Who) -> &Connection {
        match who {
            Who::Writer(c) => &self.writers[c].connection,
            Who::Reader(r) => &self.readers[r].connection,
        }
    }

    fn connection_mut(&mut self, who: Who) -> &mut Connection {
        match who {
            Who::Writer(c) => &mut self.writers[c].connection,
            Who::Reader(r) => &mut self.readers[r].connection,
        }
    }

    /// The group that the client is of.
    pub fn group_of_client(&self, who: Who) -> usize {
        match who {
            Who::Writer(c) => self.writers[c].group,
            Who::Reader(r) => self.readers[r].group,
        }
    }

    /// Opens a connection, in place of the one that the client has.
    pub(super) fn open(&mut self, who: Who, server: usize) {
        self.close(who);
        let (now, id) = (self.now, self.new_connection());
        let incarnation = self.servers[server].incarnation;
        *self.connection_mut(who) = Connection {
            id,
            server,
            incarnation,
            was_attached: false,
            up_at: now,
            down_at: now,
        };
    }

    /// The client's connection, if it has one, is gone: its server learns of it.
    pub fn close(&mut self, who: Who) {
        if self.connection(who).id == 0 {
            return;
        }
        self.request(who, None);
        let connection = self.connection(who);
        if !connection.was_attached {
            // Its frames on the way are lost with it: an ATTACH that came later would take the session along.
            let id = connection.id;
            self.aborted.insert(id);
        }
        self.connection_mut(who).id = 0;
        match who {
            Who::Writer(c) => self.writers[c].disconnected(),
            Who::Reader(r) => self.readers[r].disconnected(),
        }
    }

    /// Sends a message to the server; `None`: the end of the connection.
    pub(super) fn request(&mut self, who: Who, message: Option<Message>) {
        let g = self.group_of_client(who);
        // The end of a connection may come long after.
        let delay = match message {
            None if self.rng.random_bool(0.3) => self.rng.random_range(1_000..300_000),
            _ => self.rng.random_range(10..self.plan.client_delay_us_max),
        };
        let (now, end_offset) = (self.now, self.ledgers[g].end_offset());
        let connection = self.connection_mut(who);
        connection.up_at = connection.up_at.max(now + delay);
        let (at, server, incarnation) = (connection.up_at, connection.server, connection.incarnation);
        let message = Box::new(FromClient {
            connection: connection.id,
            end_offset,
            message: message.map(|message| through_wire(&message)),
        });
        self.at(
            at,
            What::FromClient {
                server,
                incarnation,
                who,
                message,
            },
        );
    }

    /// A server answers on a client's connection.
    pub fn respond(&mut self, s: usize, to: ClientRef, message: &Message) {
        let who = Who::of(to.channel);
        let connection = self.connection(who);
        if connection.id != to.connection || connection.server != s {
            return;
        }
        let breaks = self.rng.random_bool(0.003);
        let at = self.now + self.rng.random_range(10..1_000);
        let connection = self.connection_mut(who);
        connection.down_at = connection.down_at.max(at);
        let at = connection.down_at;
        let message = if breaks {
            ToClient::Gone
        } else {
            ToClient::Message(through_wire(message))
        };
        self.at(
            at,
            What::ToClient {
                who,
                connection: to.connection,
                message: Box::new(message),
            },
        );
    }

    /// The server's process is gone, and its sockets with it.
    pub fn break_clients(&mut self, s: usize) {
        let writers = (0..self.writers.len()).map(Who::Writer);
        for who in writers.chain((0..self.readers.len()).map(Who::Reader)) {
            let connection = self.connection(who);
            let (id, down_at) = (connection.id, connection.down_at);
            if id == 0 || connection.server != s {
                continue;
            }
            let at = down_at.max(self.now) + self.rng.random_range(10..1_000);
            self.at(
                at,
                What::ToClient {
                    who,
                    connection: id,
                    message: Box::new(ToClient::Gone),
                },
            );
        }
    }

    pub fn at_client(&mut self, who: Who, connection: u64, message: ToClient) {
        if self.connection(who).id != connection {
            return;
        }
        match (message, who) {
            (ToClient::Gone, _) => self.close(who),
            (ToClient::Message(message), _) => {
                self.connection_mut(who).was_attached |= matches!(message, Message::Attached(_));
                match who {
                    Who::Writer(c) => self.at_writer(c, message),
                    Who::Reader(r) => self.at_reader(r, message),
                }
            }
        }
    }
}
