//! A coordinator's process: its real decisions, its disk and its clocks.

use std::collections::BTreeMap;

use quorate_coordinator_core::command::{PlacementPolicy, Relief};
use quorate_coordinator_core::coordinator::{Command, Coordinator as Decisions, Event, Start, read_state};
use quorate_coordinator_core::engine::{Now, Settings};
use quorate_coordinator_core::planner::LeaseTimes;
use quorate_placement::Profile;
use quorate_quorum::{Event as QuorumEvent, MemberId, Message};
use quorate_types::control::ToCoordinator;
use quorate_types::{Micros, Place};

use super::MemberLog;
use crate::plan::Plan;

#[derive(Debug)]
pub struct Member {
    pub id: MemberId,
    pub incarnation: u64,
    pub up: bool,
    /// It is removed, or its disk is lost: nobody starts it again.
    pub is_gone: bool,
    pub paused_until: Micros,
    /// Events that came while it was stopped, or servers' while it was not open.
    pub waiting: Vec<Arrived>,
    pub decisions: Decisions,
    pub log: MemberLog,
    /// Said by a start, and to be carried out.
    pub said: Vec<Command>,
    pub is_syncing: bool,
    /// How much slower its disk is than others.
    pub sync_factor: u64,
    /// The server at the other end of each connection.
    pub places: BTreeMap<u64, usize>,
    pub wall_offset_us: i64,
    pub drift_permille: i64,
    pub started_at: Micros,
    /// The end of the log, with which messages go out.
    pub place: Option<Place>,
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
    FromMember {
        from: MemberId,
        message: Box<Message>,
    },
    MemberClosed {
        member: MemberId,
    },
    Tick,
}

impl Member {
    pub fn new(plan: &Plan, id: MemberId, log: MemberLog, drift_permille: i64, started_at: Micros) -> Self {
        let mut log = log;
        // The quorum wants other numbers for each member.
        let seed = id.0.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let decisions = start(plan, &mut log, seed, started_at);
        Self {
            id,
            incarnation: 1,
            up: true,
            is_gone: false,
            paused_until: 0,
            waiting: Vec::new(),
            decisions,
            log,
            said: Vec::new(),
            is_syncing: false,
            sync_factor: 1,
            places: BTreeMap::new(),
            wall_offset_us: 0,
            drift_permille,
            started_at,
            place: None,
        }
    }

    /// Starts on its log, as a new process.
    pub fn restart(&mut self, plan: &Plan, seed: u64, now: Micros) {
        self.decisions = start(plan, &mut self.log, seed, now);
        self.started_at = now;
        self.up = true;
        self.paused_until = 0;
        self.is_syncing = false;
        self.waiting.clear();
        self.said.clear();
        self.places.clear();
        let state = self.decisions.agreed_state();
        self.place = state.and_then(|state| state.history.place());
    }

    /// Alone it leads at once. Everything that it writes meanwhile is synced before anything else happens.
    pub fn lead_at_once(&mut self, now: Micros) {
        let now = self.clocks(now);
        self.decisions.take(now, Event::Tick);
        while self.decisions.engine().is_none() {
            for command in self.decisions.take_commands(now) {
                match command {
                    Command::Write(write) => {
                        let id = write.id;
                        self.log.write(write);
                        self.log.synced();
                        self.decisions
                            .take(now, Event::Quorum(QuorumEvent::Written { id }));
                    }
                    other => self.said.push(other),
                }
            }
        }
        let state = self.decisions.engine().expect("it leads").state();
        self.place = state.history.place();
    }

    /// The time by its own clocks.
    pub fn clocks(&self, now: Micros) -> Now {
        let since = (now - self.started_at) as i64;
        let wall_us = 1_700_000_000_000_000 + now as i64 + self.wall_offset_us;
        Now {
            ms: ((since + since * self.drift_permille / 1_000) / 1_000) as u64,
            unix_ms: (wall_us / 1_000) as u64,
        }
    }

    pub fn leads(&self) -> bool {
        self.up && self.decisions.engine().is_some()
    }

    pub fn runs(&self, now: Micros) -> bool {
        self.up && self.paused_until <= now
    }
}

/// For people who look into a run.
impl std::fmt::Display for Member {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let decisions = &self.decisions;
        write!(
            f,
            "{} up {} in term {}, agreed to {}, leads {}, syncs {}, waits {}",
            self.id,
            self.up,
            decisions.term(),
            decisions.agreed_position().0,
            self.leads(),
            self.is_syncing,
            self.waiting.len()
        )
    }
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

pub fn policy() -> PlacementPolicy {
    // As a coordinator's start has it; older logs relieve one group at a time.
    PlacementPolicy {
        relief: Relief::AtOnce,
        ..PlacementPolicy::default()
    }
}

fn start(plan: &Plan, log: &mut MemberLog, seed: u64, now: Micros) -> Decisions {
    let disk = log.recover();
    let start = Start {
        settings: settings(plan),
        profile: Profile::default_profile(),
        policy: policy(),
        overpromising: Default::default(),
        secrets: None,
        address: None,
        release: "simulated".into(),
        next_run: seed,
    };
    let quorum = quorate_quorum::Settings {
        heartbeat_ms: 50,
        election_ms: 250,
        seed,
        append_bytes: plan.append_bytes,
        kept_bytes: plan.kept_bytes,
    };
    let contents = disk.state.as_ref();
    let state = contents.map(|contents| read_state(contents).expect("the coordinator's state is sound"));
    let clocks = Now {
        ms: 0,
        unix_ms: now / 1_000,
    };
    Decisions::new(disk.base.member, disk.to_quorum(), state, start, quorum, clocks)
}
