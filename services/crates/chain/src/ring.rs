//! At the head: what the other replicas of the chain have said of themselves in this epoch.

use quorate_types::planted::{self, Bug};
use quorate_types::{Durability, GroupConfig, Index, Role, ServerId};
use quorate_wire::peer::ChainAck;

/// Those whose word the head waits for. In a persistent group each replica syncs for itself and speaks for itself. In memory
/// a replica holds what those behind it hold, and has heard what they have heard: so the tail speaks for all.
#[derive(Debug, Default)]
pub(crate) struct Ring {
    speakers: Vec<Speaker>,
}

#[derive(Debug)]
struct Speaker {
    server: ServerId,
    said: Option<ChainAck>,
}

/// Whether a replica in this role tells the head what it has.
pub(crate) fn speaks(role: Role, durability: Durability) -> bool {
    match durability {
        Durability::Persistent => matches!(role, Role::Follower | Role::Tail),
        Durability::InMemory => role == Role::Tail,
    }
}

impl Ring {
    /// Nobody has spoken yet in the epoch of `config`.
    pub fn of(config: &GroupConfig, durability: Durability) -> Self {
        let must_speak = |id: &ServerId| {
            let role = config.role_of(*id);
            let is_ignored = role == Role::Follower && planted::on(Bug::FollowersIgnored);
            speaks(role, durability) && !is_ignored
        };
        let speakers = config.replicas.iter().map(|m| m.server_id).filter(must_speak);
        Self {
            speakers: speakers.map(|server| Speaker { server, said: None }).collect(),
        }
    }

    /// Neither levels nor rounds of an epoch ever go back.
    pub fn hear(&mut self, from: ServerId, ack: ChainAck) {
        let Some(speaker) = self.speakers.iter_mut().find(|s| s.server == from) else {
            return;
        };
        let before = speaker.said.unwrap_or_default();
        speaker.said = Some(ChainAck {
            level: before.level.max(ack.level),
            storage_fault: ack.storage_fault,
            trim_level: before.trim_level.max(ack.trim_level),
            round: before.round.max(ack.round),
        });
    }

    /// Whether all have spoken, and so agree with the head's log.
    pub fn is_closed(&self) -> bool {
        self.speakers.iter().all(|s| s.said.is_some())
    }

    /// All have up to this; unbounded where the head is alone.
    pub fn level(&self) -> Index {
        self.least(|said| said.level)
    }

    pub fn trim_level(&self) -> Index {
        self.least(|said| said.trim_level)
    }

    /// The last round that has reached all.
    pub fn round(&self) -> u64 {
        self.least(|said| said.round)
    }

    /// Whether any of them cannot write.
    pub fn fault(&self) -> bool {
        self.speakers
            .iter()
            .any(|s| s.said.is_some_and(|said| said.storage_fault))
    }

    fn least(&self, of: impl Fn(ChainAck) -> u64) -> u64 {
        let each = self.speakers.iter().map(|s| s.said.map_or(0, &of));
        each.min().unwrap_or(u64::MAX)
    }
}
