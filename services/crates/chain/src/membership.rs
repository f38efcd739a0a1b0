//! Role, neighbours and epoch of this replica, from the configuration that it adopted last.

use quorate_types::{Epoch, GroupConfig, Role, ServerId};

#[derive(Debug)]
pub(crate) struct Membership {
    me: ServerId,
    config: Option<GroupConfig>,
    role: Role,
    /// Kept beside the configuration, whose members lie elsewhere in memory: each batch asks for it.
    predecessor: Option<ServerId>,
}

impl Membership {
    pub fn new(me: ServerId) -> Self {
        Self {
            me,
            config: None,
            role: Role::None,
            predecessor: None,
        }
    }

    pub fn adopt(&mut self, config: GroupConfig) {
        self.role = config.role_of(self.me);
        self.predecessor = config.predecessor_of(self.me).map(|m| m.server_id);
        self.config = Some(config);
    }

    pub fn config(&self) -> Option<&GroupConfig> {
        self.config.as_ref()
    }

    /// 0 before the first configuration.
    pub fn epoch(&self) -> Epoch {
        self.config.as_ref().map_or(0, |c| c.epoch)
    }

    pub fn role(&self) -> Role {
        self.role
    }

    pub fn is_head(&self) -> bool {
        matches!(self.role, Role::Head | Role::Sole)
    }

    /// Whether the chain ends here: a learner that follows is fed by this replica.
    pub fn is_chain_end(&self) -> bool {
        matches!(self.role, Role::Tail | Role::Sole)
    }

    pub fn head(&self) -> Option<ServerId> {
        let config = self.config.as_ref()?;
        config.head().map(|m| m.server_id)
    }

    pub fn predecessor(&self) -> Option<ServerId> {
        self.predecessor
    }

    pub fn successor(&self) -> Option<ServerId> {
        let config = self.config.as_ref()?;
        config.successor_of(self.me).map(|m| m.server_id)
    }

    pub fn role_of(&self, server: ServerId) -> Role {
        self.config.as_ref().map_or(Role::None, |c| c.role_of(server))
    }

    /// Whether the chain has the replicas that commitment needs.
    pub fn has_quorum(&self) -> bool {
        self.config.as_ref().is_some_and(GroupConfig::has_quorum)
    }
}
