//! Owners of groups and links among the shards, and messages to them.

use std::sync::OnceLock;

use quorate_types::{GroupId, ServerId};
use tokio::sync::mpsc;

use crate::messages::ShardMessage;

#[derive(Default)]
pub struct Shards(OnceLock<Vec<mpsc::UnboundedSender<ShardMessage>>>);

impl Shards {
    pub fn set(&self, shards: Vec<mpsc::UnboundedSender<ShardMessage>>) {
        assert!(self.0.set(shards).is_ok(), "shards are set once");
    }

    pub fn count(&self) -> usize {
        self.0.get().map_or(1, Vec::len)
    }

    /// The shard that owns a group.
    pub fn of_group(&self, group_id: GroupId) -> usize {
        let bytes = group_id.0.as_bytes();
        let tail = u64::from_le_bytes(bytes[8..16].try_into().expect("eight bytes"));
        (tail.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32) as usize % self.count()
    }

    /// The shard that owns the link to a peer.
    pub fn of_peer(&self, server: ServerId) -> usize {
        server.0 as usize % self.count()
    }

    /// Messages to a shard that has stopped are lost with it: the process is ending.
    pub fn send(&self, shard: usize, message: ShardMessage) {
        if let Some(sender) = self.0.get().and_then(|shards| shards.get(shard)) {
            let _stopped = sender.send(message).is_err();
        }
    }

    pub fn send_to_group(&self, group_id: GroupId, message: ShardMessage) {
        self.send(self.of_group(group_id), message);
    }

    pub fn send_to_peer(&self, server: ServerId, message: ShardMessage) {
        self.send(self.of_peer(server), message);
    }

    pub fn broadcast(&self, message: impl Fn() -> ShardMessage) {
        for shard in 0..self.count() {
            self.send(shard, message());
        }
    }
}
