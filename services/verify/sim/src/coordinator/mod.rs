//! The coordinator: its real engine and state machine, with its log on a disk that crashes, and connections that break.
//!
//! - `disk`: the log's bytes
//! - `life`: it is stopped, killed, started
//! - `operator`: what people ask of it

mod disk;
mod life;
mod operator;

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, Ipv4Addr};

use quorate_coordinator::command::{Command, Proof, Reply};
use quorate_coordinator::engine::{Candidate, Engine, Input, Note, Now, Outgoing, Settings, TICK_MS};
use quorate_coordinator::planner::LeaseTimes;
use quorate_coordinator::state::CoordinatorState;
use quorate_placement::Profile;
use quorate_types::control::{Register, ToCoordinator, ToServer};
use quorate_types::planted::{self, Bug};
use quorate_types::{GroupId, Micros, ServerId, Sla};
use rand::Rng;

use crate::invariants;
use crate::plan::Plan;
use crate::schedule::{Node, What};
use crate::world::World;
use disk::LogDisk;

const TICK_US: Micros = TICK_MS * 1_000;

#[derive(Debug)]
pub struct Coordinator {
    life: u64,
    up: bool,
    paused_until: Micros,
    /// Messages that came while it was stopped, or while a sync ran.
    waiting: Vec<Arrived>,
    engine: Engine,
    log: LogDisk,
    is_syncing: bool,
    /// Messages that follow from the batch that is being synced.
    outgoing: Vec<Outgoing>,
    /// The server at the other end of each connection.
    places: BTreeMap<u64, usize>,
    /// Join tokens to be issued.
    pub invitations: Vec<String>,
    to_admit: Vec<(GroupId, Sla)>,
    pub wall_offset_us: i64,
    drift_permille: i64,
    started_at: Micros,
    credentials: u64,
    calls: u64,
    /// Servers that are to be drained.
    drains: BTreeSet<ServerId>,
}

#[derive(Debug)]
enum Arrived {
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
        peer_keys: serde_json::Value::Null,
    }
}

impl Coordinator {
    pub fn new(plan: &Plan, drift_permille: i64) -> Self {
        let state = CoordinatorState::new(Profile::default_profile());
        Self {
            life: 1,
            up: true,
            paused_until: 0,
            waiting: Vec::new(),
            log: LogDisk::new(&state),
            engine: Engine::new(state, settings(plan), 0),
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
        }
    }

    pub fn is_up(&self) -> bool {
        self.up
    }

    pub fn state(&self) -> &CoordinatorState {
        self.engine.state()
    }
}

impl World {
    /// The time by the coordinator's own clocks.
    fn coordinator_now(&self) -> Now {
        let coordinator = &self.coordinator;
        let since = (self.now - coordinator.started_at) as i64;
        let wall_us = 1_700_000_000_000_000 + self.now as i64 + coordinator.wall_offset_us;
        Now {
            ms: ((since + since * coordinator.drift_permille / 1_000) / 1_000) as u64,
            unix_ms: (wall_us / 1_000) as u64,
        }
    }

    /// A control message, or the end of its connection, arrives.
    pub fn at_coordinator(&mut self, place: usize, connection: u64) {
        if !self.coordinator.up || self.is_blocked(Node::Server(place), Node::Coordinator) {
            return;
        }
        let control = self.servers[place]
            .control
            .as_mut()
            .filter(|c| c.connection == connection);
        let arrived = match control {
            None => Arrived::Closed { connection },
            Some(control) => {
                let Some(bytes) = control.up.receive() else { return };
                let message = serde_json::from_slice(&bytes).expect("a control message");
                Arrived::Message {
                    place,
                    connection,
                    message,
                }
            }
        };
        self.coordinator_input(arrived);
    }

    pub fn coordinator_tick(&mut self, life: u64) {
        if self.coordinator.life != life || !self.coordinator.up {
            return;
        }
        if self.coordinator.paused_until <= self.now {
            self.coordinator_input(Arrived::Tick);
        }
        self.at(self.now + TICK_US, What::CoordinatorTick { life });
    }

    fn coordinator_input(&mut self, arrived: Arrived) {
        if self.coordinator.is_syncing || self.coordinator.paused_until > self.now {
            return self.coordinator.waiting.push(arrived);
        }
        self.take(arrived);
        self.commit();
    }

    fn take_waiting(&mut self) {
        if self.coordinator.is_syncing || self.coordinator.paused_until > self.now {
            return;
        }
        for arrived in std::mem::take(&mut self.coordinator.waiting) {
            self.take(arrived);
        }
        self.commit();
    }

    fn take(&mut self, arrived: Arrived) {
        match arrived {
            Arrived::Message {
                place,
                connection,
                message: ToCoordinator::Register(register),
            } => {
                let candidate = self.candidate(place, connection, *register);
                self.feed(Input::Register(candidate));
            }
            Arrived::Message {
                connection, message, ..
            } => self.feed(Input::Message { connection, message }),
            Arrived::Closed { connection } => {
                self.coordinator.places.remove(&connection);
                self.feed(Input::Closed { connection });
            }
            Arrived::Tick => {
                self.feed(Input::Tick);
                self.ask_coordinator();
            }
        }
    }

    fn feed(&mut self, input: Input) {
        let now = self.coordinator_now();
        let before = invariants::before_coordinator(self.coordinator.state());
        self.coordinator.engine.take(now, input);
        invariants::after_coordinator(self, &before);
        if self.counts.events.is_multiple_of(16) {
            let state = self.coordinator.state();
            state.validate().expect("the coordinator's state is sound");
        }
    }

    /// Gives the coordinator a command, as the API does.
    fn command(&mut self, command: Command) {
        self.coordinator.calls += 1;
        let call = self.coordinator.calls;
        self.feed(Input::Command { call, command });
    }

    /// Secrets are their own digests here.
    fn candidate(&mut self, place: usize, connection: u64, register: Register) -> Candidate {
        let coordinator = &mut self.coordinator;
        coordinator.places.insert(connection, place);
        coordinator.credentials += 1;
        let credential = format!("credential-{}-{}", coordinator.life, coordinator.credentials);
        let proof = match (&register.join_token, &register.credential) {
            (Some(token), None) => Proof::JoinToken {
                digest: token.clone(),
                credential_digest: credential.clone(),
            },
            (None, Some(known)) => Proof::Credential(known.clone()),
            _ => unreachable!("a server shows one of the two"),
        };
        Candidate {
            connection,
            from: IpAddr::V4(Ipv4Addr::from(place as u32)),
            register,
            proof: Some(proof),
            credential,
            certificates: Ok(()),
        }
    }

    /// Makes the batch durable; what follows from it is let out then.
    fn commit(&mut self) {
        let batch = self.coordinator.engine.take_output();
        for note in batch.notes {
            self.note(note);
        }
        self.coordinator.outgoing.extend(batch.outgoing);
        if batch.commands.is_empty() {
            return self.let_out();
        }
        for timed in &batch.commands {
            self.count_command(&timed.command);
        }
        if self.coordinator.log.wants_snapshot(self.plan.snapshot_bytes) {
            self.counts.snapshots += 1;
            self.coordinator.log.rewrite(self.coordinator.engine.state());
        } else {
            self.coordinator.log.append(batch.commands);
        }
        if planted::on(Bug::ActsBeforeLog) {
            self.let_out();
        }
        self.coordinator.is_syncing = true;
        let life = self.coordinator.life;
        let at = self.now + self.rng.random_range(50..=self.plan.coordinator_sync_us_max);
        self.at(at, What::CoordinatorSynced { life });
    }

    pub fn coordinator_synced(&mut self, life: u64) {
        if self.coordinator.life != life || !self.coordinator.up {
            return;
        }
        self.coordinator.is_syncing = false;
        self.coordinator.log.synced();
        self.let_out();
        self.take_waiting();
    }

    fn let_out(&mut self) {
        self.notice_beginnings();
        for outgoing in std::mem::take(&mut self.coordinator.outgoing) {
            match outgoing {
                Outgoing::Message(connection, message) => self.send_down(connection, Some(&message)),
                Outgoing::Welcome {
                    connection, welcome, ..
                } => self.send_down(connection, Some(&ToServer::Welcome(welcome))),
                Outgoing::Close(connection) => {
                    self.send_down(connection, None);
                    self.coordinator.places.remove(&connection);
                }
                Outgoing::Answer { reply, .. } => {
                    if let Reply::Refused(_) | Reply::Conflict { .. } = &reply {
                        self.trace.line(None, || format!("refused: {reply:?}"));
                    }
                }
                // Nobody here has a token or a certificate that ends.
                Outgoing::Certificate { .. } | Outgoing::PeerToken { .. } => {}
            }
        }
    }

    fn send_down(&mut self, connection: u64, message: Option<&ToServer>) {
        let Some(place) = self.coordinator.places.get(&connection).copied() else {
            return;
        };
        let bytes = message.map(|message| serde_json::to_vec(message).expect("control messages serialise"));
        let at = self.now + self.rng.random_range(20..=self.plan.control_delay_us_max);
        if let Some(control) = self.servers[place]
            .control
            .as_mut()
            .filter(|c| c.connection == connection)
        {
            let at = control.down.send(bytes, at);
            self.at(
                at,
                What::AtServer {
                    server: place,
                    connection,
                },
            );
        }
    }

    fn note(&mut self, note: Note) {
        match note {
            Note::Failed(server) => {
                self.counts.suspicions += 1;
                self.trace
                    .line(None, || format!("coordinator: server {server} failed"));
            }
            other => self.trace.line(None, || format!("coordinator: {other:?}")),
        }
    }

    fn count_command(&mut self, command: &Command) {
        match command {
            Command::LearnerCaughtUp { .. } => self.counts.promotions += 1,
            Command::PairUnreachable {
                unreachable: true, ..
            } => self.counts.severed += 1,
            Command::ServerSlow { cause: Some(_), .. } => self.counts.slow += 1,
            _ => {}
        }
    }

    /// The head of the group, as the API would name it.
    pub fn head_place(&self, group_id: GroupId) -> Option<usize> {
        let group = self.coordinator.state().groups.get(&group_id)?;
        self.server_of(*group.chain.first()?)
    }
}
