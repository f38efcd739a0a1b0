//! Acknowledgements to the head by the other replicas of the chain, in this epoch.

use quorate_types::planted::{self, Bug};
use quorate_types::{Durability, GroupConfig, Index, Role, ServerId};
use quorate_wire::peer::ChainAck;

/// In a persistent group each replica syncs, and acknowledges, for itself. In memory a replica holds what the replicas
/// behind it hold, and has heard what they have heard: so the tail acknowledges for all.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    members: Vec<Member>,
}

/// A replica whose acknowledgement the head waits for.
#[derive(Debug)]
struct Member {
    server: ServerId,
    acknowledged: Option<ChainAck>,
}

/// Whether a replica in this role acknowledges to the head.
pub(crate) fn acknowledges(role: Role, durability: Durability) -> bool {
    match durability {
        Durability::Persistent => matches!(role, Role::Follower | Role::Tail),
        Durability::InMemory => role == Role::Tail,
    }
}

impl Ring {
    /// No member has acknowledged anything in the epoch of `config`.
    pub fn of(config: &GroupConfig, durability: Durability) -> Self {
        let is_member = |server: &ServerId| {
            let role = config.role_of(*server);
            let is_ignored = role == Role::Follower && planted::on(Bug::FollowersIgnored);
            acknowledges(role, durability) && !is_ignored
        };
        let servers = config.replicas.iter().map(|m| m.server_id).filter(is_member);
        let fresh = |server| Member {
            server,
            acknowledged: None,
        };
        Self {
            members: servers.map(fresh).collect(),
        }
    }

    /// Neither indexes nor passes of an epoch ever go back.
    pub fn hear(&mut self, from: ServerId, ack: ChainAck) {
        let Some(member) = self.members.iter_mut().find(|m| m.server == from) else {
            return;
        };
        let before = member.acknowledged.unwrap_or_default();
        member.acknowledged = Some(ChainAck {
            acknowledged_index: before.acknowledged_index.max(ack.acknowledged_index),
            storage_fault: ack.storage_fault,
            trim_index: before.trim_index.max(ack.trim_index),
            ring_pass: before.ring_pass.max(ack.ring_pass),
        });
    }

    /// Whether all members have acknowledged in this epoch, and so agree with the head's log.
    pub fn is_agreed(&self) -> bool {
        self.members.iter().all(|m| m.acknowledged.is_some())
    }

    /// All members have the log up to this; unbounded where the head is alone.
    pub fn acknowledged_index(&self) -> Index {
        self.least(|ack| ack.acknowledged_index)
    }

    /// All members have taken in clients' trims up to this.
    pub fn trim_index(&self) -> Index {
        self.least(|ack| ack.trim_index)
    }

    /// The last pass that has reached all members.
    pub fn pass(&self) -> u64 {
        self.least(|ack| ack.ring_pass)
    }

    /// Whether any member cannot write.
    pub fn has_fault(&self) -> bool {
        self.members
            .iter()
            .any(|m| m.acknowledged.is_some_and(|ack| ack.storage_fault))
    }

    fn least(&self, of: impl Fn(ChainAck) -> u64) -> u64 {
        let each = self.members.iter().map(|m| m.acknowledged.map_or(0, &of));
        each.min().unwrap_or(u64::MAX)
    }
}
