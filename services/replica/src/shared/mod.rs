//! State that the threads of a server share, a part for each concern. Everything else belongs to one shard.
//!
//! - [`Shards`]: which shard owns what, and messages to it
//! - [`Access`]: keys, tokens, TLS
//! - [`Peers`]: servers that groups here have to do with
//! - [`Coordinator`]: reports to it, and the time of its last answer
//! - [`GroupCosts`]: costs of groups' appends and reads, for the queue between tenants
//! - [`BurstShared`]: burst capacity
//! - [`Guarantees`]: shares of projects' guarantees
//! - [`Vitals`]: signs of life of the shards
//! - [`Processors`]: their time on processors
//! - [`Capacity`]: estimates of what the server can do
//! - [`Settings`]: the options that an operator set

mod access;
mod burst;
mod capacity;
mod coordinator;
mod group_costs;
mod group_reads;
mod guarantees;
mod peers;
mod processors;
mod settings;
mod shards;
mod vitals;

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock, Weak};

use quorate_group_log::GroupLogs;
use quorate_telemetry::SpanSender;
use quorate_types::control::ToCoordinator;
use quorate_types::{GroupConfig, ServerId};
use tokio::sync::mpsc;

pub use access::{Access, Plaintext};
pub use burst::{BurstShared, BurstUpdate};
pub use capacity::{Capacity, Estimated};
pub use coordinator::Coordinator;
pub use group_costs::{GroupCost, GroupCosts, WEIGHT_MIN, attach_cost, frame_cost};
pub use guarantees::{Guarantees, ToldShares};
pub use peers::Peers;
pub use processors::Processors;
pub use settings::Settings;
pub use shards::Shards;
pub use vitals::{Pulse, Vitals};

use crate::connection_slots::ConnectionSlots;

pub struct Shared {
    /// Random at each start, so that others can tell this process from the one before it.
    pub incarnation: String,
    server_id: AtomicU32,
    pub connections: ConnectionSlots,
    pub shards: Arc<Shards>,
    pub access: Access,
    pub peers: Peers,
    pub coordinator: Coordinator,
    pub group_costs: GroupCosts,
    pub burst: BurstShared,
    pub guarantees: Guarantees,
    pub vitals: Vitals,
    pub processors: Processors,
    pub capacity: Capacity,
    pub settings: Arc<Settings>,
    /// The way of spans; `None` when nobody exports them.
    pub spans: Option<SpanSender>,
    /// Owned by the main thread, which ends them last.
    group_logs: OnceLock<Weak<GroupLogs>>,
}

impl Shared {
    pub fn new(
        incarnation: String,
        plaintext: Plaintext,
        settings: Settings,
        to_coordinator: mpsc::UnboundedSender<ToCoordinator>,
        spans: Option<SpanSender>,
    ) -> Self {
        Self {
            incarnation,
            server_id: AtomicU32::new(0),
            connections: ConnectionSlots::default(),
            shards: Arc::default(),
            access: Access::new(plaintext),
            peers: Peers::default(),
            coordinator: Coordinator::new(to_coordinator),
            group_costs: GroupCosts::default(),
            burst: BurstShared::default(),
            guarantees: Guarantees::default(),
            vitals: Vitals::default(),
            processors: Processors::default(),
            capacity: Capacity::default(),
            settings: Arc::new(settings),
            spans,
            group_logs: OnceLock::new(),
        }
    }

    pub fn server_id(&self) -> ServerId {
        ServerId(self.server_id.load(Ordering::Acquire))
    }

    pub fn set_server_id(&self, id: ServerId) {
        self.server_id.store(id.0, Ordering::Release);
    }

    pub fn set_group_logs(&self, logs: &Arc<GroupLogs>) {
        let set = self.group_logs.set(Arc::downgrade(logs));
        assert!(set.is_ok(), "group logs are set once");
    }

    /// `None` before they are started, and when the server is stopping.
    pub fn group_logs(&self) -> Option<Arc<GroupLogs>> {
        self.group_logs.get().and_then(Weak::upgrade)
    }

    /// Takes in a group's configuration: its peers, and what its appends cost.
    pub fn note_config(&self, config: &GroupConfig) {
        let me = self.server_id();
        self.peers.note(me, config, &self.shards);
        let capacity = self.settings.shard_capacity_milli(self.shards.count());
        self.group_costs.set(config, me, capacity, crate::clock::now_us());
    }
}
