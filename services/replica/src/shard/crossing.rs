//! Answers on their way from a group's shard to the connection's: bounded for each connection, as its outbox is.
//!
//! Only with several shards. The inbox of a shard has no bound of its own; what clients can have put into it is
//! bounded here: each connection has a backlog, shared by the shards, of what was sent towards it and not taken in.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quorate_chain::ClientRef;
use quorate_types::limits::CLIENT_OUTBOX_BYTES_MAX;
use quorate_wire::client::Message;

use crate::shard::{ClientRequest, ShardMessage};

/// As an outbox: twice what stops reading from the client.
const BACKLOG_BYTES_MAX: usize = 2 * CLIENT_OUTBOX_BYTES_MAX;
/// What a message costs beside the payloads it carries: at least what its head takes.
const MESSAGE_BYTES: usize = 512;

/// Bytes on their way to one connection from groups of other shards.
#[derive(Debug, Default)]
pub struct Backlog(AtomicUsize);

impl Backlog {
    pub fn arrived(&self, weight: usize) {
        let before = self.0.fetch_sub(weight, Ordering::Relaxed);
        assert!(before >= weight, "no more arrives than was sent");
    }

    /// False: it would be too much.
    fn add(&self, weight: usize) -> bool {
        let before = self.0.fetch_add(weight, Ordering::Relaxed);
        let fits = before + weight <= BACKLOG_BYTES_MAX;
        if !fits {
            self.0.fetch_sub(weight, Ordering::Relaxed);
        }
        fits
    }
}

/// The backlogs of other shards' connections that have groups of this shard attached.
#[derive(Default)]
pub struct Crossings {
    by_connection: HashMap<u64, Crossing>,
}

struct Crossing {
    backlog: Arc<Backlog>,
    /// Attached channels: when the last is gone, nothing more is sent there.
    channels: usize,
    is_cut: bool,
}

impl Crossings {
    /// Takes note of a request that came from a connection of another shard.
    pub fn note(&mut self, client: ClientRef, request: &ClientRequest, backlog: Arc<Backlog>) {
        match request {
            ClientRequest::Attach { .. } => {
                let crossing = self.by_connection.entry(client.connection).or_insert(Crossing {
                    backlog,
                    channels: 0,
                    is_cut: false,
                });
                crossing.channels += 1;
            }
            ClientRequest::Gone => {
                if let Some(crossing) = self.by_connection.get_mut(&client.connection) {
                    crossing.channels -= 1;
                    if crossing.channels == 0 {
                        self.by_connection.remove(&client.connection);
                    }
                }
            }
            ClientRequest::Message { .. } => {}
        }
    }

    /// What to send to the connection's shard: the message, or, once, that the connection is to be cut. What is
    /// meant for a connection that is gone is lost with it.
    pub fn for_client(&mut self, client: ClientRef, message: Message) -> Option<ShardMessage> {
        let crossing = self.by_connection.get_mut(&client.connection)?;
        let weight = weight_of(&message);
        if crossing.is_cut {
            return None;
        }
        if crossing.backlog.add(weight) {
            return Some(ShardMessage::ToClient {
                client,
                message,
                weight,
            });
        }
        crossing.is_cut = true;
        let connection = client.connection;
        Some(ShardMessage::Cut { connection })
    }
}

fn weight_of(message: &Message) -> usize {
    let carried = match message {
        Message::Entries(entries) => {
            let payloads = entries.batches.iter().map(|batch| batch.payload.len());
            payloads.sum::<usize>() + 64 * entries.batches.len()
        }
        Message::Acked(acks) => 16 * acks.len(),
        _ => 0,
    };
    MESSAGE_BYTES + carried
}

#[cfg(test)]
mod tests {
    use super::*;
    use quorate_tokens::Permission;

    fn client(channel: u32) -> ClientRef {
        ClientRef {
            connection: 7,
            channel,
        }
    }

    fn attach() -> ClientRequest {
        ClientRequest::Attach {
            session: 1,
            permission: Permission {
                may_append: true,
                may_read: true,
                expires_at_s: 0,
            },
        }
    }

    fn acks() -> Message {
        Message::Acked(vec![(1, 1); 4_000])
    }

    #[test]
    fn a_connection_that_takes_nothing_in_is_cut_once() {
        let (mut crossings, backlog) = (Crossings::default(), Arc::new(Backlog::default()));
        assert!(
            crossings.for_client(client(1), acks()).is_none(),
            "nobody is attached"
        );
        crossings.note(client(1), &attach(), backlog.clone());
        let weight = weight_of(&acks());
        for _ in 0..BACKLOG_BYTES_MAX / weight {
            let message = crossings.for_client(client(1), acks());
            assert!(matches!(message, Some(ShardMessage::ToClient { .. })));
        }
        let cut = crossings.for_client(client(1), acks());
        assert!(matches!(cut, Some(ShardMessage::Cut { connection: 7 })));
        assert!(crossings.for_client(client(1), acks()).is_none());
        assert!(backlog.0.load(Ordering::Relaxed) <= BACKLOG_BYTES_MAX);
    }

    #[test]
    fn what_arrives_makes_room_and_the_last_channel_ends_it() {
        let (mut crossings, backlog) = (Crossings::default(), Arc::new(Backlog::default()));
        crossings.note(client(1), &attach(), backlog.clone());
        crossings.note(client(2), &attach(), backlog.clone());
        for _ in 0..100_000 {
            match crossings.for_client(client(1), acks()) {
                Some(ShardMessage::ToClient { weight, .. }) => backlog.arrived(weight),
                _ => panic!("there is room"),
            }
        }
        crossings.note(client(1), &ClientRequest::Gone, backlog.clone());
        assert!(crossings.for_client(client(2), acks()).is_some());
        crossings.note(client(2), &ClientRequest::Gone, backlog);
        assert!(crossings.for_client(client(2), acks()).is_none());
    }
}
