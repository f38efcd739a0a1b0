//! Other shards' connections that have groups of this shard attached: their backlogs, for what is sent to them.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use quorate_chain::ClientRef;
use quorate_group::Request;
use quorate_wire::client::Message;

use crate::backlog::{Backlog, weight_of};
use crate::messages::{ClientMessage, ShardMessage};

#[derive(Default)]
pub struct RemoteConnections {
    by_connection: HashMap<u64, Remote>,
}

struct Remote {
    backlog: Arc<Backlog>,
    /// Attached channels: when the last is gone, nothing more is sent there.
    channels: HashSet<u32>,
    is_closed: bool,
}

impl RemoteConnections {
    /// Takes note of a request that came from a connection of another shard.
    pub fn note(&mut self, client: ClientRef, request: &Request, backlog: Arc<Backlog>) {
        match request {
            Request::Attach { .. } => {
                let remote = self.by_connection.entry(client.connection).or_insert(Remote {
                    backlog,
                    channels: HashSet::new(),
                    is_closed: false,
                });
                remote.channels.insert(client.channel);
            }
            Request::Gone => self.forget(client),
            Request::Message { .. } => {}
        }
    }

    /// The channel has no group of this shard any more, or never got one.
    pub fn forget(&mut self, client: ClientRef) {
        if let Some(remote) = self.by_connection.get_mut(&client.connection) {
            remote.channels.remove(&client.channel);
            if remote.channels.is_empty() {
                self.by_connection.remove(&client.connection);
            }
        }
    }

    /// The message for the connection's shard, or, once, that the connection is to be closed. A message for a
    /// connection that is gone is lost with it.
    pub fn for_client(&mut self, client: ClientRef, message: Message) -> Option<ShardMessage> {
        let remote = self.by_connection.get_mut(&client.connection)?;
        let weight = weight_of(&message);
        if remote.is_closed {
            return None;
        }
        if remote.backlog.add(weight) {
            return Some(ShardMessage::Client(ClientMessage::Answer {
                client,
                message,
                weight,
            }));
        }
        remote.is_closed = true;
        let connection = client.connection;
        Some(ShardMessage::Client(ClientMessage::Close { connection }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backlog::BACKLOG_BYTES_MAX;
    use quorate_types::Permission;

    fn client(channel: u32) -> ClientRef {
        ClientRef {
            connection: 7,
            channel,
        }
    }

    fn attach() -> Request {
        Request::Attach {
            number: 1,
            session: 1,
            permission: Permission {
                may_append: true,
                may_read: true,
                project: None,
                layout: quorate_types::Layout(0),
                expires_at_s: 0,
            },
        }
    }

    fn acks() -> Message {
        Message::Acked(vec![(1, 1); 4_000])
    }

    #[test]
    fn a_connection_that_takes_nothing_in_is_closed_once() {
        let (mut remotes, backlog) = (RemoteConnections::default(), Arc::new(Backlog::default()));
        assert!(
            remotes.for_client(client(1), acks()).is_none(),
            "nobody is attached"
        );
        remotes.note(client(1), &attach(), backlog.clone());
        let weight = weight_of(&acks());
        for _ in 0..BACKLOG_BYTES_MAX / weight {
            let message = remotes.for_client(client(1), acks());
            assert!(matches!(
                message,
                Some(ShardMessage::Client(ClientMessage::Answer { .. }))
            ));
        }
        let cut = remotes.for_client(client(1), acks());
        assert!(matches!(
            cut,
            Some(ShardMessage::Client(ClientMessage::Close { connection: 7 }))
        ));
        assert!(remotes.for_client(client(1), acks()).is_none());
        assert!(backlog.answers_bytes() <= BACKLOG_BYTES_MAX);
    }

    #[test]
    fn what_arrives_makes_room_and_the_last_channel_ends_it() {
        let (mut remotes, backlog) = (RemoteConnections::default(), Arc::new(Backlog::default()));
        remotes.note(client(1), &attach(), backlog.clone());
        remotes.note(client(2), &attach(), backlog.clone());
        for _ in 0..100_000 {
            match remotes.for_client(client(1), acks()) {
                Some(ShardMessage::Client(ClientMessage::Answer { weight, .. })) => backlog.arrived(weight),
                _ => panic!("there is room"),
            }
        }
        remotes.note(client(1), &Request::Gone, backlog.clone());
        assert!(remotes.for_client(client(2), acks()).is_some());
        remotes.note(client(2), &Request::Gone, backlog);
        assert!(remotes.for_client(client(2), acks()).is_none());
    }

    #[test]
    fn a_channel_that_is_refused_and_detached_is_forgotten_once() {
        let (mut remotes, backlog) = (RemoteConnections::default(), Arc::new(Backlog::default()));
        remotes.note(client(1), &attach(), backlog.clone());
        remotes.note(client(2), &attach(), backlog.clone());
        remotes.forget(client(1));
        remotes.note(client(1), &Request::Gone, backlog);
        assert!(
            remotes.for_client(client(2), acks()).is_some(),
            "the other is still there"
        );
    }
}
