//! The coordinator: its real engine, and the state of its process.

use std::collections::{BTreeMap, BTreeSet};

use quorate_coordinator_core::command::{Command, Relief};
use quorate_coordinator_core::engine::{Engine, Now, Outgoing, Settings};
use quorate_coordinator_core::planner::LeaseTimes;
use quorate_coordinator_core::state::{CoordinatorState, apply};
use quorate_placement::Profile;
use quorate_types::control::ToCoordinator;
use quorate_types::{GroupId, Micros, Place, RunId, ServerId, Sla};

use super::CoordinatorLog;
use crate::plan::Plan;

#[derive(Debug)]
pub struct Coordinator {
    pub incarnation: u64,
    pub up: bool,
    pub paused_until: Micros,
    /// Messages that came while it was stopped, or while a sync ran.
    pub waiting: Vec<Arrived>,
    pub engine: Engine,
    pub log: CoordinatorLog,
    pub is_syncing: bool,
    /// Messages that follow from the batch that is being synced.
    pub outgoing: Vec<Outgoing>,
    /// The server at the other end of each connection.
    pub places: BTreeMap<u64, usize>,
    /// Join tokens to be issued.
    pub invitations: Vec<String>,
    pub to_admit: Vec<(GroupId, Sla)>,
    pub wall_offset_us: i64,
    pub drift_permille: i64,
    pub started_at: Micros,
    pub credentials: u64,
    pub calls: u64,
    /// Servers that are to be drained.
    pub drains: BTreeSet<ServerId>,
    /// The end of the log, with which messages go out.
    pub place: Option<Place>,
    pub restores: Restores,
}

/// Copies of the log, and what an operator does with them.
#[derive(Debug, Default)]
pub struct Restores {
    pub copies: Vec<CoordinatorLog>,
    /// The newest log, while an older copy is in its place.
    pub newest: Option<CoordinatorLog>,
    /// The state that it replays to, until the coordinator has started on it, or has gone on with the copy.
    pub newest_state: Option<Box<CoordinatorState>>,
    pub lacks_epochs: bool,
    /// Servers that have registered since the start.
    pub heard: BTreeSet<usize>,
    /// A copy was gone on with.
    pub went_on: bool,
    /// The time at which the roll call was first seen to wait for an operator.
    pub stuck_since: Option<Micros>,
}

#[derive(Debug)]
pub enum Arrived {
    Message {
        place: usize,
        connection: u64,
        message: ToCoordinator,
    },
    Closed {
        connection: u64,
    },
    Tick,
}

pub fn settings(plan: &Plan) -> Settings {
    Settings {
        heartbeat_ms: plan.heartbeat_ms,
        leases: LeaseTimes {
            lease_ms: plan.lease_ms,
            reconnect_grace_ms: plan.reconnect_grace_ms,
        },
        suspicions: plan.suspicions,
        client_keys: serde_json::Value::Null,
        peer_keys: serde_json::Value::Null,
    }
}

/// The first command of each start.
pub fn begin_run(run: u64) -> Command {
    Command::BeginRun {
        run: RunId(run),
        release: "simulated".into(),
    }
}

impl Coordinator {
    pub fn new(plan: &Plan, drift_permille: i64) -> Self {
        let mut state = CoordinatorState::new(Profile::default_profile());
        // As a coordinator's start has it; older logs relieve one group at a time.
        state.policy.relief = Relief::AtOnce;
        apply(&mut state, 0, &begin_run(1));
        Self {
            incarnation: 1,
            up: true,
            paused_until: 0,
            waiting: Vec::new(),
            log: CoordinatorLog::new(&state),
            engine: Engine::new(state, settings(plan), Vec::new(), Now { ms: 0, unix_ms: 0 }),
            is_syncing: false,
            outgoing: Vec::new(),
            places: BTreeMap::new(),
            invitations: Vec::new(),
            to_admit: Vec::new(),
            wall_offset_us: 0,
            drift_permille,
            started_at: 0,
            credentials: 0,
            calls: 0,
            drains: BTreeSet::new(),
            place: None,
            restores: Restores::default(),
        }
    }

    pub fn is_up(&self) -> bool {
        self.up
    }

    pub fn state(&self) -> &CoordinatorState {
        self.engine.state()
    }

    /// The state of the newest log. While an older copy is in its place, the coordinator issues nothing, and what it
    /// takes for the state is not what servers, clients and operators go by.
    pub fn known(&self) -> &CoordinatorState {
        self.restores.newest_state.as_deref().unwrap_or(self.state())
    }
}
