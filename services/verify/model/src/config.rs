//! The configuration of an epoch: the chain, its learner, and their roles.

use crate::ids::ServerId;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ChainConfig {
    /// Head first.
    pub chain: Vec<ServerId>,
    pub learner: Option<ServerId>,
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

impl ChainConfig {
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
