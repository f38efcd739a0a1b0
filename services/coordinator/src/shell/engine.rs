//! The one task that owns the state: takes inputs, applies commands, makes them durable, acts on effects.
//!
//! Nothing that follows from a command leaves this task before the command is on stable storage: answers
//! and messages wait in `outgoing` until the batch is synced. While one sync runs, inputs queue.

use std::collections::{HashMap, HashSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quorate_certificates::control::is_issued_to;
use quorate_certificates::{Authority, pin};
use quorate_types::ServerId;
use quorate_types::control::{RefuseCode, Register, ToCoordinator, ToServer, Welcome};
use quorate_types::limits::COORDINATOR_QUEUE_MAX;
use rustls::pki_types::CertificateDer;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{info, warn};

use super::refusals::Refusals;
use super::secret::{PEER_TOKEN_TTL_S, PeerKey, digest, random_secret};
use crate::exit::Failure;
use crate::leases::{ConnectionId, Leases};
use crate::log::{DurableLog, Timed};
use crate::state::command::{Command, Effect, Proof, Registration, Reply};
use crate::state::{Refused, State, apply};
use crate::suspicions::Suspicions;

/// Messages to one connection; dropping it closes the connection.
pub type Outbox = mpsc::Sender<ToServer>;
type Release = Box<dyn FnOnce() + Send>;
type Read = Box<dyn FnOnce(&mut State) -> Release + Send>;

/// What comes to the engine from outside.
pub enum Input {
    Register {
        connection: ConnectionId,
        from: IpAddr,
        outbox: Outbox,
        register: Box<Register>,
        /// What the server showed on its connection, trusted but for whose it is.
        certificate: Option<CertificateDer<'static>>,
    },
    /// The file with the keys that sign clients' tokens has changed.
    ClientKeys(Value),
    Message {
        connection: ConnectionId,
        message: ToCoordinator,
    },
    Closed {
        connection: ConnectionId,
    },
    Command {
        command: Command,
        reply: oneshot::Sender<Reply>,
    },
    Read(Read),
}

/// The coordinator is stopping, or so far behind that it is better to ask later.
#[derive(Debug, thiserror::Error)]
#[error("the coordinator is stopping or overloaded")]
pub struct Unavailable;

/// How HTTP calls reach the engine.
#[derive(Clone)]
pub struct Handle {
    pub inputs: mpsc::Sender<Input>,
    /// The last event's number, as made durable.
    pub events: watch::Receiver<u64>,
}

const CALL_TIMEOUT: Duration = Duration::from_secs(10);

impl Handle {
    /// Applies a command and answers when it is durable.
    pub async fn command(&self, command: Command) -> Result<Reply, Unavailable> {
        let (reply, answer) = oneshot::channel();
        self.ask(Input::Command { command, reply }, answer).await
    }

    /// Looks at the state, all of which is durable by the time of the answer.
    pub async fn read<T: Send + 'static>(
        &self,
        look: impl FnOnce(&mut State) -> T + Send + 'static,
    ) -> Result<T, Unavailable> {
        let (reply, answer) = oneshot::channel();
        let read: Read = Box::new(move |state| {
            let seen = look(state);
            Box::new(move || drop(reply.send(seen)))
        });
        self.ask(Input::Read(read), answer).await
    }

    async fn ask<T>(&self, input: Input, answer: oneshot::Receiver<T>) -> Result<T, Unavailable> {
        let asked = async {
            self.inputs.send(input).await.map_err(|_| Unavailable)?;
            answer.await.map_err(|_| Unavailable)
        };
        tokio::time::timeout(CALL_TIMEOUT, asked)
            .await
            .map_err(|_| Unavailable)?
    }
}

/// Fixed for the life of the process.
pub struct Settings {
    pub heartbeat_ms: u64,
    pub lease_ms: u64,
    pub client_keys: Value,
    pub peer_key: PeerKey,
    pub authority: Arc<Authority>,
    /// Of servers' certificates.
    pub certificate_life: Duration,
}

struct Connection {
    outbox: Outbox,
    server: Option<ServerId>,
    /// When what it reports was last compared with what it should hold.
    reconciled: Option<Instant>,
}

#[expect(clippy::large_enum_variant, reason = "nearly all are messages")]
enum Outgoing {
    Message(ConnectionId, ToServer),
    Close(ConnectionId),
    Release(Release),
}

pub struct Engine {
    state: State,
    leases: Leases,
    suspicions: Suspicions,
    refusals: Refusals,
    log: Option<DurableLog>,
    settings: Settings,
    started: Instant,
    connections: HashMap<ConnectionId, Connection>,
    connection_of: HashMap<ServerId, ConnectionId>,
    /// Pairs (server, peer) of which the first last said that it cannot reach the second.
    unreachable: HashSet<(ServerId, ServerId)>,
    batch: Vec<Timed>,
    outgoing: Vec<Outgoing>,
    events: watch::Sender<u64>,
}

/// Inputs taken in before one sync.
const BATCH_INPUTS: usize = 256;
const TICK: Duration = Duration::from_millis(50);
/// What a server reports may be a heartbeat behind what it was just sent.
const RECONCILE_EVERY: Duration = Duration::from_secs(2);

impl Engine {
    pub fn new(
        state: State,
        leases: Leases,
        suspicions: Suspicions,
        log: DurableLog,
        settings: Settings,
        started: Instant,
    ) -> (Self, Handle, mpsc::Receiver<Input>) {
        let (inputs, receiver) = mpsc::channel(COORDINATOR_QUEUE_MAX);
        let (events, events_seen) = watch::channel(state.events.last_seq());
        let engine = Self {
            state,
            leases,
            suspicions,
            refusals: Refusals::default(),
            log: Some(log),
            settings,
            started,
            connections: HashMap::new(),
            connection_of: HashMap::new(),
            unreachable: HashSet::new(),
            batch: Vec::new(),
            outgoing: Vec::new(),
            events,
        };
        (
            engine,
            Handle {
                inputs,
                events: events_seen,
            },
            receiver,
        )
    }

    /// Runs until `stop` says so, or the disk fails.
    pub async fn run(
        mut self,
        mut inputs: mpsc::Receiver<Input>,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), Failure> {
        let mut tick = interval(TICK);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut renew = interval(Duration::from_secs(PEER_TOKEN_TTL_S / 2));
        renew.tick().await;
        let mut taken = Vec::with_capacity(BATCH_INPUTS);
        loop {
            tokio::select! {
                biased;
                _ = stop.changed() => return Ok(()),
                _ = tick.tick() => self.tick(),
                _ = renew.tick() => self.renew_peer_tokens(),
                _ = inputs.recv_many(&mut taken, BATCH_INPUTS) => {}
            }
            for input in taken.drain(..) {
                self.take(input);
            }
            self.commit().await?;
        }
    }

    fn take(&mut self, input: Input) {
        match input {
            Input::Register {
                connection,
                from,
                outbox,
                register,
                certificate,
            } => self.register(connection, from, outbox, *register, certificate.as_ref()),
            Input::ClientKeys(keys) => self.use_client_keys(keys),
            Input::Message { connection, message } => self.message(connection, message),
            Input::Closed { connection } => self.closed(connection),
            Input::Command { command, reply } => {
                let mut answered = None;
                for effect in self.apply(command) {
                    match effect {
                        Effect::Reply(answer) => answered = Some(answer),
                        other => self.act(other),
                    }
                }
                let answer = answered.expect("a command of the API has an answer");
                self.outgoing
                    .push(Outgoing::Release(Box::new(move || drop(reply.send(answer)))));
            }
            Input::Read(read) => {
                let release = read(&mut self.state);
                self.outgoing.push(Outgoing::Release(release));
            }
        }
    }

    fn apply(&mut self, command: Command) -> Vec<Effect> {
        let at_ms = unix_ms();
        let effects = apply(&mut self.state, at_ms, &command);
        self.batch.push(Timed { at_ms, command });
        self.leases
            .watch(&self.state.laggards(), self.started.elapsed().as_millis() as u64);
        effects
    }

    fn apply_and_act(&mut self, command: Command) {
        for effect in self.apply(command) {
            self.act(effect);
        }
    }

    fn act(&mut self, effect: Effect) {
        match effect {
            Effect::Send { server, message } => {
                if let Some(connection) = self.connection_of.get(&server) {
                    self.outgoing.push(Outgoing::Message(*connection, message));
                }
            }
            Effect::Disconnect { server } => {
                warn!(server_id = server.0, "server failed");
                if let Some(connection) = self.connection_of.remove(&server) {
                    self.outgoing.push(Outgoing::Close(connection));
                }
            }
            Effect::Accept { .. } | Effect::Refuse { .. } | Effect::Reply(_) => {
                unreachable!("handled where the command was given: {effect:?}")
            }
        }
    }

    fn register(
        &mut self,
        connection: ConnectionId,
        from: IpAddr,
        outbox: Outbox,
        register: Register,
        certificate: Option<&CertificateDer<'static>>,
    ) {
        self.connections.insert(
            connection,
            Connection {
                outbox,
                server: None,
                reconciled: None,
            },
        );
        let credential = random_secret("qsc_");
        let proof = match (&register.join_token, &register.credential) {
            (Some(token), None) => Proof::JoinToken {
                digest: digest(pin::split(token).0),
                credential_digest: digest(&credential),
            },
            (None, Some(known)) => Proof::Credential(digest(known)),
            _ => {
                let message = "register needs either a join_token or a credential".to_string();
                return self.reject(
                    connection,
                    from,
                    &register.name,
                    (RefuseCode::RegisterInvalid, message),
                );
            }
        };
        let registration = Registration {
            proof,
            name: register.name.clone(),
            address: register.address,
            incarnation: register.incarnation,
            capacity: register.capacity,
            failure_domain: register.failure_domain,
            region: register.region,
            held: register.held,
            previous_incarnations: register.previous_incarnations,
            version: register.version,
        };
        // Nothing of a stranger's reaches the log.
        if let Err(refused) = self.state.vet(&registration, unix_ms()) {
            return self.reject(connection, from, &register.name, refused);
        }
        // A signature is made on trial here: only for those who have proved something.
        let request = register.certificate_request_pem.as_deref();
        let credential_shown = register.credential.as_deref();
        let address = &registration.address;
        if let Err(message) = self.check_certificates(credential_shown, request, address, certificate) {
            let refused = (RefuseCode::RegisterInvalid, message);
            return self.reject(connection, from, &register.name, refused);
        }
        for effect in self.apply(Command::Register(Box::new(registration))) {
            match effect {
                Effect::Accept { server, joined } => {
                    let certificate = request.and_then(|request| self.issue(server, request));
                    let credential = joined.then(|| credential.clone());
                    self.accept(connection, server, &register.name, credential, certificate);
                }
                Effect::Refuse { code, message } => self.refuse(connection, &register.name, code, message),
                other => self.act(other),
            }
        }
    }

    /// Before anything is changed: a certificate shown is the server's own, and one asked for can be issued.
    fn check_certificates(
        &self,
        credential: Option<&str>,
        request: Option<&str>,
        address: &str,
        shown: Option<&CertificateDer<'static>>,
    ) -> Result<(), String> {
        if let Some(shown) = shown {
            let digest = credential.map(digest);
            let known = digest.and_then(|digest| {
                let mut servers = self.state.servers.values();
                servers.find(|server| server.credential_digest == digest)
            });
            if !known.is_some_and(|known| is_issued_to(shown, known.server_id)) {
                return Err("the certificate that the server shows is not its own".into());
            }
        }
        if let Some(request) = request {
            let (nobody, now) = (ServerId(0), SystemTime::now());
            let (authority, life) = (&self.settings.authority, self.settings.certificate_life);
            authority
                .issue(request, nobody, address, life, now)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn issue(&self, server: ServerId, request: &str) -> Option<String> {
        let address = &self.state.servers.get(&server)?.address;
        let (authority, life) = (&self.settings.authority, self.settings.certificate_life);
        match authority.issue(request, server, address, life, SystemTime::now()) {
            Ok(certificate) => {
                info!(
                    server_id = server.0,
                    address,
                    life_s = life.as_secs(),
                    "certificate issued"
                );
                Some(certificate)
            }
            Err(error) => {
                warn!(server_id = server.0, %error, "no certificate for a server");
                None
            }
        }
    }

    fn accept(
        &mut self,
        connection: ConnectionId,
        server: ServerId,
        name: &str,
        credential: Option<String>,
        certificate_pem: Option<String>,
    ) {
        info!(server_id = server.0, name, "server registered");
        if let Some(old) = self.connection_of.insert(server, connection) {
            self.outgoing.push(Outgoing::Close(old));
        }
        self.leases.connected(server, connection, self.now_ms());
        if let Some(known) = self.connections.get_mut(&connection) {
            known.server = Some(server);
            known.reconciled = Some(Instant::now());
        }
        let welcome = Welcome {
            server_id: server,
            credential,
            heartbeat_ms: self.settings.heartbeat_ms,
            lease_ms: self.settings.lease_ms,
            client_keys: self.settings.client_keys.clone(),
            peer_keys: self.settings.peer_key.jwks().clone(),
            peer_token: self.settings.peer_key.token(server, unix_ms() / 1_000),
            certificate_pem,
        };
        self.outgoing
            .push(Outgoing::Message(connection, ToServer::Welcome(welcome)));
    }

    /// Refuses somebody who has proved nothing: the name is as it came.
    fn reject(&mut self, connection: ConnectionId, from: IpAddr, name: &str, refused: Refused) {
        let now_ms = self.now_ms();
        if self.refusals.may_answer(from, now_ms) {
            let name: String = name.chars().take(64).collect();
            self.refuse(connection, &name, refused.0, refused.1);
        } else {
            self.outgoing.push(Outgoing::Close(connection));
        }
    }

    fn use_client_keys(&mut self, keys: Value) {
        info!("the keys that sign clients' tokens have changed; servers are told");
        self.settings.client_keys = keys;
        for connection in self.connection_of.values() {
            let keys = self.settings.client_keys.clone();
            self.outgoing
                .push(Outgoing::Message(*connection, ToServer::ClientKeys { keys }));
        }
    }

    fn refuse(&mut self, connection: ConnectionId, name: &str, code: RefuseCode, message: String) {
        warn!(name, ?code, message, "registration refused");
        self.outgoing
            .push(Outgoing::Message(connection, ToServer::Refuse { code, message }));
        self.outgoing.push(Outgoing::Close(connection));
    }

    fn message(&mut self, connection: ConnectionId, message: ToCoordinator) {
        let Some(server) = self.connections.get(&connection).and_then(|known| known.server) else {
            return;
        };
        if self.connection_of.get(&server) != Some(&connection) {
            return;
        }
        match message {
            ToCoordinator::Register(_) => self.outgoing.push(Outgoing::Close(connection)),
            ToCoordinator::Heartbeat(heartbeat) => self.heartbeat(connection, server, heartbeat),
            ToCoordinator::RenewCertificate { request_pem } => {
                if let Some(certificate_pem) = self.issue(server, &request_pem) {
                    let message = ToServer::Certificate { certificate_pem };
                    self.outgoing.push(Outgoing::Message(connection, message));
                }
            }
            ToCoordinator::Applied { group_id, epoch } => {
                // Only the first chain's word changes anything; the log is spared the rest.
                if self
                    .state
                    .groups
                    .get(&group_id)
                    .is_some_and(|g| !g.formed && g.epoch == epoch)
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
                let current = |g: &crate::state::group::Group| g.epoch == epoch && g.learner == Some(learner);
                if self.state.groups.get(&group_id).is_some_and(current) {
                    self.apply_and_act(Command::LearnerCaughtUp {
                        server,
                        group_id,
                        epoch,
                        learner,
                    });
                }
            }
            ToCoordinator::Dropped { group_id } => {
                if self.state.servers[&server].to_drop.contains_key(&group_id) {
                    self.apply_and_act(Command::Dropped { server, group_id });
                }
            }
        }
    }

    fn heartbeat(
        &mut self,
        connection: ConnectionId,
        server: ServerId,
        heartbeat: quorate_types::control::Heartbeat,
    ) {
        let now_ms = self.now_ms();
        if !self.leases.heartbeat(server, connection, now_ms) {
            return self.outgoing.push(Outgoing::Close(connection));
        }
        self.outgoing.push(Outgoing::Message(
            connection,
            ToServer::HeartbeatAck { seq: heartbeat.seq },
        ));
        if self.state.servers[&server].storage_fault != heartbeat.storage_fault {
            self.apply_and_act(Command::StorageFault {
                server,
                fault: heartbeat.storage_fault,
            });
        }
        for (group_id, commit_offset) in self.state.offsets_due(server, &heartbeat.groups) {
            self.apply_and_act(Command::OffsetsReached {
                group_id,
                commit_offset,
            });
        }
        self.suspicions
            .heartbeat(server, &heartbeat.unreachable, &heartbeat.slow, now_ms);
        let reported: HashSet<ServerId> = heartbeat.unreachable.into_iter().collect();
        self.unreachable
            .retain(|(from, peer)| *from != server || reported.contains(peer));
        for peer in reported {
            if self.state.is_alive(peer) && self.unreachable.insert((server, peer)) {
                self.apply_and_act(Command::PeerUnreachable { server, peer });
            }
        }
        let due = |at: Instant| at.elapsed() >= RECONCILE_EVERY;
        if let Some(known) = self.connections.get_mut(&connection)
            && known.reconciled.is_none_or(due)
        {
            known.reconciled = Some(Instant::now());
            for message in self.state.corrections(server, &heartbeat.groups) {
                self.outgoing.push(Outgoing::Message(connection, message));
            }
        }
    }

    fn closed(&mut self, connection: ConnectionId) {
        let server = self
            .connections
            .remove(&connection)
            .and_then(|known| known.server);
        if let Some(server) = server.filter(|server| self.connection_of.get(server) == Some(&connection)) {
            self.connection_of.remove(&server);
            self.leases.disconnected(server, connection, self.now_ms());
            warn!(server_id = server.0, "control connection broke");
        }
    }

    fn tick(&mut self) {
        let failed = self.leases.expired(self.now_ms());
        if !failed.is_empty() {
            self.apply_and_act(Command::ServersFailed { servers: failed });
        }
        for command in self.suspicions.due(&self.state, self.now_ms()) {
            self.apply_and_act(command);
        }
    }

    fn renew_peer_tokens(&mut self) {
        for (server, connection) in &self.connection_of {
            let token = self.settings.peer_key.token(*server, unix_ms() / 1_000);
            self.outgoing
                .push(Outgoing::Message(*connection, ToServer::PeerToken { token }));
        }
    }

    /// Makes the batch durable, then lets out what follows from it.
    async fn commit(&mut self) -> Result<(), Failure> {
        if !self.batch.is_empty() {
            let batch = std::mem::take(&mut self.batch);
            let mut log = self.log.take().expect("the log is put back after each use");
            let snapshot = log.wants_snapshot().then(|| self.state.clone());
            let written = tokio::task::spawn_blocking(move || {
                match &snapshot {
                    // The state includes the batch.
                    Some(state) => log.rewrite(state)?,
                    None => log.append(batch)?,
                }
                Ok::<_, Failure>(log)
            });
            self.log = Some(
                written
                    .await
                    .map_err(|e| Failure::disk(format!("writing the log: {e}")))??,
            );
        }
        for outgoing in std::mem::take(&mut self.outgoing) {
            self.let_out(outgoing);
        }
        let last = self.state.events.last_seq();
        self.events
            .send_if_modified(|seen| std::mem::replace(seen, last) != last);
        Ok(())
    }

    fn let_out(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Message(connection, message) => {
                let Some(known) = self.connections.get(&connection) else {
                    return;
                };
                if known.outbox.try_send(message).is_err() {
                    warn!(
                        server_id = known.server.map(|s| s.0),
                        "a server does not read what it is sent; disconnected"
                    );
                    self.closed(connection);
                }
            }
            Outgoing::Close(connection) => {
                self.connections.remove(&connection);
            }
            Outgoing::Release(release) => release(),
        }
    }

    /// Milliseconds of a clock that never goes back, for leases.
    fn now_ms(&self) -> u64 {
        self.started.elapsed().as_millis() as u64
    }
}

/// Wall-clock time, for people and tokens.
pub fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |elapsed| elapsed.as_millis() as u64)
}
