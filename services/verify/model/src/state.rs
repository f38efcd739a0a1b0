//! The whole state of the model at one moment.

use crate::bounds::Bounds;
use crate::config::{ChainConfig, Role};
use crate::history::History;
use crate::ids::{Epoch, ServerId};
use crate::message::ModelMessage;
use crate::server::ServerState;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelState {
    pub coordinator: CoordinatorState,
    pub servers: Vec<ServerState>,
    /// Messages under way from server a to server b, oldest first, at `a * servers + b`.
    pub links: Vec<Vec<ModelMessage>>,
    pub spent: Spent,
    pub history: History,
}

/// Faults so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Spent {
    pub crashes: u8,
    pub breaks: u8,
    pub wrong_suspicions: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CoordinatorState {
    /// The configuration of epoch e at e - 1.
    pub configs: Vec<ChainConfig>,
    /// Servers that it believes to live.
    pub alive: Vec<bool>,
    /// A report of a learner that has caught up, not yet looked at.
    pub report: Option<Report>,
    pub lost: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Report {
    pub epoch: Epoch,
    pub from: ServerId,
    pub learner: ServerId,
}

impl ModelState {
    /// The first configuration is issued, and no server has heard of it.
    pub fn first(bounds: &Bounds) -> Self {
        let count = usize::from(bounds.servers);
        let server = ServerState {
            up: true,
            ..ServerState::default()
        };
        let config = ChainConfig {
            chain: (0..bounds.degree as ServerId).collect(),
            learner: None,
        };
        Self {
            coordinator: CoordinatorState {
                configs: vec![config],
                alive: vec![true; count],
                report: None,
                lost: false,
            },
            servers: vec![server; count],
            links: vec![Vec::new(); count * count],
            spent: Spent::default(),
            history: History::default(),
        }
    }

    pub fn server(&self, id: ServerId) -> &ServerState {
        &self.servers[usize::from(id)]
    }

    pub fn epoch(&self) -> Epoch {
        self.coordinator.configs.len() as Epoch
    }

    /// The configuration of an epoch from 1.
    pub fn config(&self, epoch: Epoch) -> Option<&ChainConfig> {
        self.coordinator.configs.get(usize::from(epoch).checked_sub(1)?)
    }

    pub fn latest(&self) -> &ChainConfig {
        self.coordinator.configs.last().expect("there is always a first")
    }

    /// The role of a server in the epoch that it knows.
    pub fn role(&self, id: ServerId) -> Role {
        self.config(self.server(id).epoch)
            .map_or(Role::None, |config| config.role_of(id))
    }
}
