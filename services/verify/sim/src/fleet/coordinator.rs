//! The coordinator: its real decisions, and the state of its process.

use std::collections::{BTreeMap, BTreeSet};

use quorate_coordinator_core::command::{PlacementPolicy, Relief};
use quorate_coordinator_core::coordinator::{Command, Coordinator as Decisions, Event, Start, read_state};
use quorate_coordinator_core::engine::{Engine, Now, Settings};
use quorate_coordinator_core::log::Base;
use quorate_coordinator_core::planner::LeaseTimes;
use quorate_coordinator_core::state::CoordinatorState;
use quorate_placement::Profile;
use quorate_quorum::{Event as QuorumEvent, MemberId};
use quorate_types::control::ToCoordinator;
use quorate_types::{FleetId, GroupId, Micros, Place, ServerId, Sla};

use super::CoordinatorLog;
use crate::plan::Plan;

#[derive(Debug)]
pub struct Coordinator {
    pub incarnation: u64,
    pub up: bool,
    pub paused_until: Micros,
    /// Messages that came while it was stopped, or while a sync ran.
    pub waiting: Vec<Arrived>,
    pub decisions: Decisions,
    pub log: CoordinatorLog,
    /// Said by the start, and to be carried out.
    pub said: Vec<Command>,
    pub is_syncing: bool,
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

fn settings(plan: &Plan) -> Settings {
    Settings {
        heartbeat_ms: plan.heartbeat_ms,
        leases: LeaseTimes {
            lease_ms: plan.lease_ms,
            reconnect_grace_ms: plan.reconnect_grace_ms,
        },
        suspicions: plan.suspicions,
        client_keys: serde_json::Value::Null,
    }
}

fn policy() -> PlacementPolicy {
    // As a coordinator's start has it; older logs relieve one group at a time.
    PlacementPolicy {
        relief: Relief::AtOnce,
        ..PlacementPolicy::default()
    }
}

/// Starts on a log, and leads. Everything that the start writes is synced before anything else happens. Gives what the
/// start has said.
pub fn start(plan: &Plan, log: &mut CoordinatorLog, seed: u64, now: Now) -> (Decisions, Vec<Command>) {
    let disk = log.recover();
    let start = Start {
        settings: settings(plan),
        profile: Profile::default_profile(),
        policy: policy(),
        secrets: None,
        address: None,
        release: "simulated".into(),
        next_run: seed,
    };
    let quorum = quorate_quorum::Settings {
        heartbeat_ms: 50,
        election_ms: 250,
        seed,
        append_bytes: 1 << 20,
        kept_bytes: 0,
    };
    let contents = disk.state.as_ref().expect("it begins with a state");
    let state = read_state(contents).expect("the coordinator's state is sound");
    let mut decisions = Decisions::new(
        disk.base.member,
        disk.to_quorum(),
        Some(state),
        start,
        quorum,
        now,
    );
    let mut said = Vec::new();
    decisions.take(now, Event::Tick);
    while decisions.engine().is_none() {
        for command in decisions.take_commands(now) {
            match command {
                Command::Write(write) => {
                    log.write(&write);
                    log.synced();
                    decisions.take(now, Event::Quorum(QuorumEvent::Written { id: write.id }));
                }
                other => said.push(other),
            }
        }
    }
    (decisions, said)
}

impl Coordinator {
    pub fn new(plan: &Plan, drift_permille: i64) -> Self {
        let mut state = CoordinatorState::new(Profile::default_profile());
        state.policy = policy();
        let base = Base::first(MemberId(1), FleetId(1), "coordinator".into());
        let mut log = CoordinatorLog::new(&base, &state);
        let (decisions, _) = start(plan, &mut log, 1, Now { ms: 0, unix_ms: 0 });
        Self {
            incarnation: 1,
            up: true,
            paused_until: 0,
            waiting: Vec::new(),
            log,
            said: Vec::new(),
            decisions,
            is_syncing: false,
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

    /// Alone it leads from its start on.
    pub fn engine(&self) -> &Engine {
        self.decisions.engine().expect("it leads")
    }

    pub fn state(&self) -> &CoordinatorState {
        self.engine().state()
    }

    /// The state of the newest log. While an older copy is in its place, the coordinator issues nothing, and what it
    /// takes for the state is not what servers, clients and operators go by.
    pub fn known(&self) -> &CoordinatorState {
        self.restores.newest_state.as_deref().unwrap_or(self.state())
    }
}
