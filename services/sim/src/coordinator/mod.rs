//! The coordinator: its real state machine, leases and log, with the engine of `services/coordinator/src/shell`
//! around them: nothing that follows from a command leaves before the command is on stable storage.

mod disk;

use std::collections::{BTreeMap, BTreeSet};

use quorate_coordinator::leases::{LeaseTimes, Leases};
use quorate_coordinator::log::Timed;
use quorate_coordinator::state::command::{Command, Effect, JoinTokenTerms, Proof, Registration, Reply};
use quorate_coordinator::state::{State, apply};
use quorate_placement::Profile;
use quorate_types::control::{Heartbeat, Register, ToCoordinator, ToServer, Welcome};
use quorate_types::planted::{self, Bug};
use quorate_types::{GroupId, Micros, ServerId, Sla};
use rand::Rng;
use uuid::Uuid;

use crate::schedule::{Node, What};
use crate::world::World;
use disk::LogDisk;

const TICK_US: Micros = 50_000;
/// As in the engine: how often what a server reports is compared with what it should hold.
const RECONCILE_US: Micros = 2_000_000;

#[derive(Debug)]
pub struct Coordinator {
    life: u64,
    up: bool,
    paused_until: Micros,
    /// What came while it was stopped, or while a sync ran.
    waiting: Vec<Input>,
    pub state: State,
    leases: Leases,
    log: LogDisk,
    is_syncing: bool,
    batch: Vec<Timed>,
    outgoing: Vec<Outgoing>,
    connections: BTreeMap<u64, Connection>,
    connection_of: BTreeMap<ServerId, u64>,
    /// Join tokens to be issued.
    pub invitations: Vec<String>,
    to_admit: Vec<(GroupId, Sla)>,
    pub wall_offset_us: i64,
    drift_permille: i64,
    started_at: Micros,
    credentials: u64,
}

#[derive(Debug)]
struct Connection {
    /// Index of the server at its other end.
    place: usize,
    server: Option<ServerId>,
    reconciled_at: Micros,
}

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "few are under way")]
enum Input {
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

#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "nearly all are messages")]
enum Outgoing {
    Message(u64, ToServer),
    Close(u64),
}

impl Coordinator {
    pub fn new(times: LeaseTimes, drift_permille: i64, to_admit: Vec<(GroupId, Sla)>) -> Self {
        let state = State::new(Profile::default_profile());
        Self {
            life: 1,
            up: true,
            paused_until: 0,
            waiting: Vec::new(),
            leases: Leases::new(times, [], 0),
            log: LogDisk::new(&state),
            state,
            is_syncing: false,
            batch: Vec::new(),
            outgoing: Vec::new(),
            connections: BTreeMap::new(),
            connection_of: BTreeMap::new(),
            invitations: Vec::new(),
            to_admit,
            wall_offset_us: 0,
            drift_permille,
            started_at: 0,
            credentials: 0,
        }
    }

    /// Somebody asks for these groups.
    pub fn admit(&mut self, slas: Vec<(GroupId, Sla)>) {
        self.to_admit = slas;
    }

    pub fn is_up(&self) -> bool {
        self.up
    }
}

impl World {
    /// Milliseconds of the coordinator's own clock, for leases.
    fn lease_ms(&self) -> u64 {
        let since = (self.now - self.coordinator.started_at) as i64;
        ((since + since * self.coordinator.drift_permille / 1_000) / 1_000) as u64
    }

    fn unix_ms(&self) -> u64 {
        ((1_700_000_000_000_000 + self.now as i64 + self.coordinator.wall_offset_us) / 1_000) as u64
    }

    fn lease_times(&self) -> LeaseTimes {
        LeaseTimes {
            lease_ms: self.plan.lease_ms,
            reconnect_grace_ms: self.plan.reconnect_grace_ms,
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
        let input = match control {
            None => Input::Closed { connection },
            Some(control) => {
                let Some(bytes) = control.up.receive() else { return };
                let message = serde_json::from_slice(&bytes).expect("a control message");
                Input::Message {
                    place,
                    connection,
                    message,
                }
            }
        };
        self.coordinator_input(input);
    }

    pub fn coordinator_tick(&mut self, life: u64) {
        if self.coordinator.life != life || !self.coordinator.up {
            return;
        }
        if self.coordinator.paused_until <= self.now {
            self.coordinator_input(Input::Tick);
        }
        self.at(self.now + TICK_US, What::CoordinatorTick { life });
    }

    fn coordinator_input(&mut self, input: Input) {
        if self.coordinator.is_syncing || self.coordinator.paused_until > self.now {
            return self.coordinator.waiting.push(input);
        }
        self.take(input);
        self.commit();
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Message {
                place,
                connection,
                message: ToCoordinator::Register(register),
            } => {
                self.register(place, connection, register);
            }
            Input::Message {
                connection, message, ..
            } => self.message(connection, message),
            Input::Closed { connection } => self.closed(connection),
            Input::Tick => self.lease_tick(),
        }
    }

    fn lease_tick(&mut self) {
        let now_ms = self.lease_ms();
        let failed = self.coordinator.leases.expired(now_ms);
        if !failed.is_empty() {
            self.trace
                .line(None, || format!("coordinator: {failed:?} failed"));
            self.counts.suspicions += failed.len() as u64;
            self.apply_and_act(Command::ServersFailed { servers: failed });
        }
        for digest in std::mem::take(&mut self.coordinator.invitations) {
            let token = JoinTokenTerms {
                expires_at_ms: u64::MAX / 2,
                name: None,
                auxiliary: false,
            };
            self.apply_and_act(Command::IssueJoinToken { digest, token });
        }
        let joined = self.coordinator.state.servers.len();
        if joined >= self.servers.len() && !self.coordinator.to_admit.is_empty() {
            for (group_id, sla) in self.coordinator.to_admit.clone() {
                self.apply_and_act(Command::Admit {
                    group_id,
                    project_id: Uuid::from_u128(1),
                    sla,
                });
            }
            let state = &self.coordinator.state;
            self.coordinator
                .to_admit
                .retain(|(id, _)| !state.groups.contains_key(id));
        }
    }

    fn apply_command(&mut self, command: Command) -> Vec<Effect> {
        let at_ms = self.unix_ms();
        let effects = apply(&mut self.coordinator.state, at_ms, &command);
        if self.counts.events.is_multiple_of(16) {
            self.coordinator
                .state
                .validate()
                .expect("the coordinator's state is sound");
        }
        self.coordinator.batch.push(Timed { at_ms, command });
        let (laggards, now_ms) = (self.coordinator.state.laggards(), self.lease_ms());
        self.coordinator.leases.watch(&laggards, now_ms);
        effects
    }

    fn apply_and_act(&mut self, command: Command) {
        for effect in self.apply_command(command) {
            self.act(effect);
        }
    }

    fn act(&mut self, effect: Effect) {
        match effect {
            Effect::Send { server, message } => {
                if let Some(connection) = self.coordinator.connection_of.get(&server) {
                    self.coordinator
                        .outgoing
                        .push(Outgoing::Message(*connection, message));
                }
            }
            Effect::Disconnect { server } => {
                if let Some(connection) = self.coordinator.connection_of.remove(&server) {
                    self.coordinator.outgoing.push(Outgoing::Close(connection));
                }
            }
            Effect::Reply(Reply::Refused(refusal)) => {
                self.trace.line(None, || format!("refused: {refusal:?}"))
            }
            Effect::Reply(_) => {}
            Effect::Accept { .. } | Effect::Refuse { .. } => unreachable!("of a registration"),
        }
    }

    fn register(&mut self, place: usize, connection: u64, register: Register) {
        let known = Connection {
            place,
            server: None,
            reconciled_at: self.now,
        };
        self.coordinator.connections.insert(connection, known);
        self.coordinator.credentials += 1;
        let credential = format!(
            "credential-{}-{}",
            self.coordinator.life, self.coordinator.credentials
        );
        let proof = match (&register.join_token, &register.credential) {
            (Some(token), None) => Proof::JoinToken {
                digest: token.clone(),
                credential_digest: credential.clone(),
            },
            (None, Some(known)) => Proof::Credential(known.clone()),
            _ => unreachable!("a server shows one of the two"),
        };
        let registration = Registration {
            proof,
            name: register.name,
            address: register.address,
            incarnation: register.incarnation,
            capacity: register.capacity,
            failure_domain: register.failure_domain,
            region: register.region,
            held: register.held,
            version: register.version,
            previous_incarnations: register.previous_incarnations,
        };
        for effect in self.apply_command(Command::Register(Box::new(registration))) {
            match effect {
                Effect::Accept { server, joined } => {
                    self.accept(connection, server, joined.then(|| credential.clone()));
                }
                Effect::Refuse { code, message } => {
                    let refusal = ToServer::Refuse { code, message };
                    self.coordinator
                        .outgoing
                        .push(Outgoing::Message(connection, refusal));
                }
                other => self.act(other),
            }
        }
    }

    fn accept(&mut self, connection: u64, server: ServerId, credential: Option<String>) {
        let (now, now_ms) = (self.now, self.lease_ms());
        let coordinator = &mut self.coordinator;
        if let Some(old) = coordinator.connection_of.insert(server, connection) {
            coordinator.outgoing.push(Outgoing::Close(old));
        }
        coordinator.leases.connected(server, connection, now_ms);
        if let Some(known) = coordinator.connections.get_mut(&connection) {
            known.server = Some(server);
            known.reconciled_at = now;
        }
        let welcome = Welcome {
            server_id: server,
            credential,
            heartbeat_ms: self.plan.heartbeat_ms,
            lease_ms: self.plan.lease_ms,
            client_keys: serde_json::Value::Null,
            peer_keys: serde_json::Value::Null,
            peer_token: String::new(),
            certificate_pem: None,
        };
        coordinator
            .outgoing
            .push(Outgoing::Message(connection, ToServer::Welcome(welcome)));
    }

    fn message(&mut self, connection: u64, message: ToCoordinator) {
        let coordinator = &self.coordinator;
        let Some(server) = coordinator
            .connections
            .get(&connection)
            .and_then(|known| known.server)
        else {
            return;
        };
        if coordinator.connection_of.get(&server) != Some(&connection) {
            return;
        }
        let state = &coordinator.state;
        match message {
            ToCoordinator::Register(_) => unreachable!("taken before"),
            ToCoordinator::RenewCertificate { .. } => {}
            ToCoordinator::Heartbeat(heartbeat) => self.heard(connection, server, heartbeat),
            ToCoordinator::Applied { group_id, epoch } => {
                if state
                    .groups
                    .get(&group_id)
                    .is_some_and(|g| g.awaits_applied(epoch))
                {
                    self.apply_and_act(Command::Applied {
                        server,
                        group_id,
                        epoch,
                    });
                }
            }
            ToCoordinator::LearnerCaughtUp {
                group_id,
                epoch,
                learner,
            } => {
                let is_current = |g: &quorate_coordinator::state::group::Group| {
                    (g.epoch == epoch || planted::on(Bug::StalePromotion)) && g.learner == Some(learner)
                };
                if state.groups.get(&group_id).is_some_and(is_current) {
                    self.counts.promotions += 1;
                    self.apply_and_act(Command::LearnerCaughtUp {
                        server,
                        group_id,
                        epoch,
                        learner,
                    });
                }
            }
            ToCoordinator::Dropped { group_id } => {
                if state.servers[&server].to_drop.contains_key(&group_id) {
                    self.apply_and_act(Command::Dropped { server, group_id });
                }
            }
        }
    }

    fn heard(&mut self, connection: u64, server: ServerId, heartbeat: Heartbeat) {
        let (now, now_ms) = (self.now, self.lease_ms());
        if !self.coordinator.leases.heartbeat(server, connection, now_ms) {
            return self.coordinator.outgoing.push(Outgoing::Close(connection));
        }
        let ack = ToServer::HeartbeatAck { seq: heartbeat.seq };
        self.coordinator.outgoing.push(Outgoing::Message(connection, ack));
        if self.coordinator.state.servers[&server].storage_fault != heartbeat.storage_fault {
            self.apply_and_act(Command::StorageFault {
                server,
                fault: heartbeat.storage_fault,
            });
        }
        let known = self
            .coordinator
            .connections
            .get_mut(&connection)
            .expect("it came on it");
        if now - known.reconciled_at >= RECONCILE_US {
            known.reconciled_at = now;
            for message in self.coordinator.state.corrections(server, &heartbeat.groups) {
                self.coordinator
                    .outgoing
                    .push(Outgoing::Message(connection, message));
            }
        }
    }

    fn closed(&mut self, connection: u64) {
        let now_ms = self.lease_ms();
        let coordinator = &mut self.coordinator;
        let server = coordinator
            .connections
            .remove(&connection)
            .and_then(|known| known.server);
        if let Some(server) =
            server.filter(|server| coordinator.connection_of.get(server) == Some(&connection))
        {
            coordinator.connection_of.remove(&server);
            coordinator.leases.disconnected(server, connection, now_ms);
        }
    }

    /// Makes the batch durable; what follows from it is let out then.
    fn commit(&mut self) {
        if self.coordinator.batch.is_empty() {
            return self.let_out();
        }
        let batch = std::mem::take(&mut self.coordinator.batch);
        if self.coordinator.log.wants_snapshot(self.plan.snapshot_bytes) {
            self.counts.snapshots += 1;
            self.coordinator.log.rewrite(&self.coordinator.state);
        } else {
            self.coordinator.log.append(batch);
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

    fn take_waiting(&mut self) {
        if self.coordinator.is_syncing || self.coordinator.paused_until > self.now {
            return;
        }
        for input in std::mem::take(&mut self.coordinator.waiting) {
            self.take(input);
        }
        self.commit();
    }

    fn let_out(&mut self) {
        for outgoing in std::mem::take(&mut self.coordinator.outgoing) {
            match outgoing {
                Outgoing::Message(connection, message) => {
                    let bytes = serde_json::to_vec(&message).expect("control messages serialise");
                    self.send_down(connection, Some(bytes));
                }
                Outgoing::Close(connection) => {
                    self.send_down(connection, None);
                    self.coordinator.connections.remove(&connection);
                }
            }
        }
    }

    fn send_down(&mut self, connection: u64, message: Option<Vec<u8>>) {
        let Some(place) = self
            .coordinator
            .connections
            .get(&connection)
            .map(|known| known.place)
        else {
            return;
        };
        let at = self.now + self.rng.random_range(20..=self.plan.control_delay_us_max);
        if let Some(control) = self.servers[place]
            .control
            .as_mut()
            .filter(|c| c.connection == connection)
        {
            let at = control.down.send(message, at);
            self.at(
                at,
                What::AtServer {
                    server: place,
                    connection,
                },
            );
        }
    }

    pub fn pause_coordinator(&mut self, until: Micros) {
        self.coordinator.paused_until = until;
        self.at(until, What::CoordinatorResume);
    }

    pub fn coordinator_resumes(&mut self) {
        if self.coordinator.up && self.coordinator.paused_until <= self.now {
            self.take_waiting();
        }
    }

    pub fn crash_coordinator(&mut self) -> bool {
        if !self.coordinator.up {
            return false;
        }
        self.coordinator.up = false;
        self.coordinator.life += 1;
        self.coordinator.log.crash(&mut self.rng);
        for s in 0..self.servers.len() {
            self.break_control(s);
        }
        let long = self.rng.random_bool(0.2);
        let length = if long { 4_000_000 } else { 400_000 };
        let at = self.now + self.rng.random_range(1_000..length);
        self.at(at, What::CoordinatorRestart);
        true
    }

    pub fn restart_coordinator(&mut self) {
        if self.coordinator.up {
            return;
        }
        let state = self.coordinator.log.recover();
        state.validate().expect("the coordinator's state is sound");
        self.trace.line(None, || {
            format!("the coordinator starts: {} groups", state.groups.len())
        });
        let alive: BTreeSet<ServerId> = state
            .servers
            .values()
            .filter(|s| s.alive)
            .map(|s| s.server_id)
            .collect();
        let times = self.lease_times();
        let now = self.now;
        let coordinator = &mut self.coordinator;
        coordinator.started_at = now;
        coordinator.leases = Leases::new(times, alive, 0);
        coordinator.leases.watch(&state.laggards(), 0);
        coordinator.state = state;
        coordinator.up = true;
        coordinator.paused_until = 0;
        coordinator.is_syncing = false;
        coordinator.waiting.clear();
        coordinator.batch.clear();
        coordinator.outgoing.clear();
        coordinator.connections.clear();
        coordinator.connection_of.clear();
        // Whoever issued the tokens and asked for the groups asks again.
        let life = coordinator.life;
        self.ask_again();
        self.at(now + 1_000, What::CoordinatorTick { life });
    }

    /// What was asked of the coordinator and is not in its state.
    fn ask_again(&mut self) {
        self.coordinator.to_admit = self.plan_slas();
        let state = &self.coordinator.state;
        self.coordinator
            .to_admit
            .retain(|(id, _)| !state.groups.contains_key(id));
        for s in 0..self.servers.len() {
            if self.servers[s].id.is_none() {
                self.invite(s);
            }
        }
    }

    /// The head of the group, as the API would name it.
    pub fn head_place(&self, group_id: GroupId) -> Option<usize> {
        let group = self.coordinator.state.groups.get(&group_id)?;
        self.server_of(*group.chain.first()?)
    }
}
