//! Requests and answers on their way between a connection's shard and a group's: bounded for each connection.
//!
//! Only with several shards. The inbox of a shard has no bound of its own; what clients can have put into it is
//! bounded here: each connection has a backlog, shared by the shards, of what was sent either way and not taken in.
//! With too many requests on their way the connection is not read; with too many answers it is cut, as with an outbox.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use quorate_chain::ClientRef;
use quorate_types::limits::{CLIENT_CROSSING_BYTES_MAX, CLIENT_OUTBOX_BYTES_MAX};
use quorate_wire::client::Message;

use crate::shard::{ClientRequest, ShardMessage};

/// As an outbox: twice what stops reading from the client.
const BACKLOG_BYTES_MAX: usize = 2 * CLIENT_OUTBOX_BYTES_MAX;
/// What a message costs beside the payloads it carries: at least what its head takes.
const MESSAGE_BYTES: usize = 512;

/// Bytes on their way between one connection and groups of other shards.
#[derive(Debug, Default)]
pub struct Backlog {
    answers: AtomicUsize,
    requests: AtomicUsize,
}

impl Backlog {
    /// A request goes out; the answer is its weight, for [`Backlog::taken`].
    pub fn asked(&self, request: &ClientRequest) -> usize {
        let weight = weight_of_request(request);
        self.requests.fetch_add(weight, Ordering::Relaxed);
        weight
    }

    /// The group's shard has taken a request in.
    pub fn taken(&self, weight: usize) {
        let before = self.requests.fetch_sub(weight, Ordering::Relaxed);
        assert!(before >= weight, "no more is taken in than was asked");
    }

    /// The connection is not to be read until others have caught up with it.
    pub fn is_full_of_requests(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > CLIENT_CROSSING_BYTES_MAX
    }

    pub fn arrived(&self, weight: usize) {
        let before = self.answers.fetch_sub(weight, Ordering::Relaxed);
        assert!(before >= weight, "no more arrives than was sent");
    }

    /// False: it would be too much.
    fn add(&self, weight: usize) -> bool {
        let before = self.answers.fetch_add(weight, Ordering::Relaxed);
        let fits = before + weight <= BACKLOG_BYTES_MAX;
        if !fits {
            self.answers.fetch_sub(weight, Ordering::Relaxed);
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
    channels: HashSet<u32>,
    is_cut: bool,
}

impl Crossings {
    /// Takes note of a request that came from a connection of another shard.
    pub fn note(&mut self, client: ClientRef, request: &ClientRequest, backlog: Arc<Backlog>) {
        match request {
            ClientRequest::Attach { .. } => {
                let crossing = self.by_connection.entry(client.connection).or_insert(Crossing {
                    backlog,
                    channels: HashSet::new(),
                    is_cut: false,
                });
                crossing.channels.insert(client.channel);
            }
            ClientRequest::Gone => self.forget(client),
            ClientRequest::Message { .. } => {}
        }
    }

    /// The channel has no group of this shard any more, or never got one.
    pub fn forget(&mut self, client: ClientRef) {
        if let Some(crossing) = self.by_connection.get_mut(&client.connection) {
            crossing.channels.remove(&client.channel);
            if crossing.channels.is_empty() {
                self.by_connection.remove(&client.connection);
            }
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

fn weight_of_request(request: &ClientRequest) -> usize {
    let carried = match request {
        ClientRequest::Message {
            message: Message::Append(append),
            ..
        } => append.payload.len(),
        _ => 0,
    };
    MESSAGE_BYTES + carried
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use quorate_tokens::Permission;
    use quorate_wire::client::Append;

    fn client(channel: u32) -> ClientRef {
        ClientRef {
            connection: 7,
            channel,
        }
    }

    fn attach() -> ClientRequest {
        ClientRequest::Attach {
            number: 1,
            session: 1,
            permission: Permission {
                may_append: true,
                may_read: true,
                project: None,
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
        assert!(backlog.answers.load(Ordering::Relaxed) <= BACKLOG_BYTES_MAX);
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

    #[test]
    fn requests_that_nobody_takes_in_stop_the_reading() {
        let backlog = Backlog::default();
        let append = || ClientRequest::Message {
            message: Message::Append(Append {
                seq: 1,
                floor_index: 0,
                timeout_ms: 0,
                entry_count: 1,
                payload_crc: 0,
                expected_offset: 0,
                fencing_token: 0,
                payload: Bytes::from(vec![0; 1 << 20]),
            }),
            trace: None,
        };
        let mut weights = Vec::new();
        while !backlog.is_full_of_requests() {
            weights.push(backlog.asked(&append()));
            assert!(weights.len() < 100, "it never is");
        }
        let total: usize = weights.iter().sum();
        assert!(
            total <= CLIENT_CROSSING_BYTES_MAX + weights[0],
            "one frame beyond"
        );
        backlog.taken(weights.pop().expect("some"));
        assert!(!backlog.is_full_of_requests());
        assert!(
            backlog.asked(&ClientRequest::Gone) > 0,
            "what carries nothing costs, too"
        );
    }

    #[test]
    fn a_channel_that_is_refused_and_detached_is_forgotten_once() {
        let (mut crossings, backlog) = (Crossings::default(), Arc::new(Backlog::default()));
        crossings.note(client(1), &attach(), backlog.clone());
        crossings.note(client(2), &attach(), backlog.clone());
        crossings.forget(client(1));
        crossings.note(client(1), &ClientRequest::Gone, backlog);
        assert!(
            crossings.for_client(client(2), acks()).is_some(),
            "the other is still there"
        );
    }
}
