//! All there is at one moment. Small integers: a world is cloned and hashed millions of times.

use crate::bounds::{Bounds, SESSIONS_MAX};
use crate::past::Past;

pub type ServerId = u8;
/// Counts from 1; 0 is before the first.
pub type Epoch = u8;
/// Of a batch, from 1.
pub type Index = u8;
pub type Session = u8;

/// No bound: what a head hears that nobody has to tell anything.
pub const UNBOUNDED: Index = Index::MAX;

/// A batch: the only append of its session, in the epoch in which it was ordered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Entry {
    pub epoch: Epoch,
    pub session: Session,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct State {
    pub coordinator: Coordinator,
    pub servers: Vec<Server>,
    /// What is on its way from server a to server b, oldest first, at `a * servers + b`.
    pub links: Vec<Vec<Message>>,
    pub spent: Spent,
    pub past: Past,
}

/// Faults so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Spent {
    pub crashes: u8,
    pub breaks: u8,
    pub wrong_suspicions: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Coordinator {
    /// The configuration of epoch e at e - 1.
    pub configs: Vec<Config>,
    /// Whom it believes to live.
    pub alive: Vec<bool>,
    /// A report of a learner that has caught up, not yet looked at.
    pub report: Option<Report>,
    pub lost: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Config {
    /// Head first.
    pub chain: Vec<ServerId>,
    pub learner: Option<ServerId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Report {
    pub epoch: Epoch,
    pub from: ServerId,
    pub learner: ServerId,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    None,
    Sole,
    Head,
    Follower,
    Tail,
    Learner,
}

impl Config {
    pub fn role_of(&self, server: ServerId) -> Role {
        let last = self.chain.len().wrapping_sub(1);
        match self.chain.iter().position(|member| *member == server) {
            Some(0) if last == 0 => Role::Sole,
            Some(0) => Role::Head,
            Some(at) if at == last => Role::Tail,
            Some(_) => Role::Follower,
            None if self.learner == Some(server) => Role::Learner,
            None => Role::None,
        }
    }

    /// Chain and learner, in the order in which batches travel.
    pub fn line(&self) -> impl Iterator<Item = ServerId> + '_ {
        self.chain.iter().copied().chain(self.learner)
    }

    pub fn predecessor_of(&self, server: ServerId) -> Option<ServerId> {
        let before = self.line().zip(self.line().skip(1));
        before
            .into_iter()
            .find(|(_, second)| *second == server)
            .map(|(first, _)| first)
    }

    pub fn successor_of(&self, server: ServerId) -> Option<ServerId> {
        let mut pairs = self.line().zip(self.line().skip(1));
        pairs
            .find(|(first, _)| *first == server)
            .map(|(_, second)| second)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Server {
    pub up: bool,
    /// Starts of the process so far.
    pub life: u8,
    /// 0: not configured in this life.
    pub epoch: Epoch,
    /// The least epoch that it may still be sent.
    pub epochs_from: Epoch,
    pub log: Vec<Entry>,
    /// By session: the index of its batch, 0 for none.
    pub table: [Index; SESSIONS_MAX],
    pub commit: Index,
    pub durable: Index,
    /// What a restart finds.
    pub disk: Vec<Entry>,
    /// Handed to the disk and not yet synced, oldest first.
    pub unsynced: Vec<Write>,
    pub upstream: Upstream,
    pub downstream: Downstream,
    pub joining: Option<Joining>,
    /// At a head: whose word it waits for, and what they said that they have.
    pub ring: Vec<(ServerId, Option<Index>)>,
    pub told_head: Option<Index>,
    pub parked: Option<Parked>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Write {
    Batch(Index, Entry),
    Cut(Index),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Upstream {
    #[default]
    Unconfigured,
    IsHead,
    Asking,
    Following {
        /// As a learner: what it said that it has for good, once it lacked nothing.
        confirmed: Option<Index>,
        predecessor_last: Index,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Downstream {
    #[default]
    Nobody,
    Awaiting,
    Streaming {
        next: Index,
        /// Commit index as last told.
        told: Option<Index>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Joining {
    pub learner: ServerId,
    pub confirmed: Index,
    pub needed: Index,
}

/// A question that came before it could be answered.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Parked {
    pub from: ServerId,
    pub epoch: Epoch,
    pub history: Vec<Epoch>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Message {
    pub epoch: Epoch,
    pub body: Body,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Body {
    /// The link was broken and is there again: comes before anything of the new connection.
    LinkUp,
    Replicate {
        index: Index,
        entry: Entry,
        commit: Index,
        last: Index,
    },
    Notice {
        commit: Index,
    },
    /// The epoch of every batch held: the same as a history of intervals.
    SyncRequest {
        history: Vec<Epoch>,
    },
    SyncReply {
        common: Index,
        last: Index,
        commit: Index,
    },
    /// A learner's `level_with_sender`.
    Level {
        index: Index,
    },
    ChainAck {
        level: Index,
    },
}

impl State {
    /// The first configuration has been issued, and nobody has heard of it.
    pub fn first(bounds: &Bounds) -> Self {
        let count = usize::from(bounds.servers);
        let server = Server {
            up: true,
            ..Server::default()
        };
        let config = Config {
            chain: (0..bounds.degree as ServerId).collect(),
            learner: None,
        };
        Self {
            coordinator: Coordinator {
                configs: vec![config],
                alive: vec![true; count],
                report: None,
                lost: false,
            },
            servers: vec![server; count],
            links: vec![Vec::new(); count * count],
            spent: Spent::default(),
            past: Past::default(),
        }
    }

    pub fn server(&self, id: ServerId) -> &Server {
        &self.servers[usize::from(id)]
    }

    pub fn epoch(&self) -> Epoch {
        self.coordinator.configs.len() as Epoch
    }

    /// The configuration of an epoch from 1.
    pub fn config(&self, epoch: Epoch) -> Option<&Config> {
        self.coordinator.configs.get(usize::from(epoch).checked_sub(1)?)
    }

    pub fn latest(&self) -> &Config {
        self.coordinator
            .configs
            .last()
            .expect("the first is never taken back")
    }

    /// What a server is in the epoch that it knows.
    pub fn role(&self, id: ServerId) -> Role {
        self.config(self.server(id).epoch)
            .map_or(Role::None, |config| config.role_of(id))
    }
}

impl Server {
    pub fn last(&self) -> Index {
        self.log.len() as Index
    }

    /// A cut of the log that the disk does not have yet.
    pub fn has_pending_cut(&self) -> bool {
        self.unsynced.iter().any(|write| matches!(write, Write::Cut(_)))
    }

    pub fn is_head(&self) -> bool {
        self.upstream == Upstream::IsHead
    }

    /// Agrees with the head's log up to its end, for good.
    pub fn is_settled(&self) -> bool {
        matches!(self.upstream, Upstream::IsHead | Upstream::Following { .. }) && !self.has_pending_cut()
    }

    /// Whether all whose word the head waits for have spoken.
    pub fn ring_closed(&self) -> bool {
        self.ring.iter().all(|(_, said)| said.is_some())
    }

    /// What all of them have.
    pub fn ring_level(&self) -> Index {
        let said = self.ring.iter().map(|(_, said)| said.unwrap_or(0));
        said.min().unwrap_or(UNBOUNDED)
    }

    pub fn rebuild_table(&mut self) {
        self.table = [0; SESSIONS_MAX];
        for (at, entry) in self.log.iter().enumerate() {
            self.table[usize::from(entry.session)] = at as Index + 1;
        }
    }
}
