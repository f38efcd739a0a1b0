//! The one task that owns the [`Engine`](crate::engine::Engine): feeds it inputs with the time, makes its batches
//! durable, and lets out what follows, with the tokens and certificates that it asks for.
//!
//! Nothing that follows from a command leaves this task before the command is on stable storage. While one sync
//! runs, inputs queue.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use quorate_certificates::control::is_issued_to;
use quorate_certificates::{Authority, pin};
use quorate_types::ServerId;
use quorate_types::control::{Register, ToCoordinator, ToServer};
use quorate_types::limits::COORDINATOR_QUEUE_MAX;
use rustls::pki_types::CertificateDer;
use serde_json::Value;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, MissedTickBehavior, interval};
use tracing::{info, warn};

use super::profile_file;
use super::secret::{PEER_TOKEN_TTL_S, PeerKey, digest, random_secret};
use crate::engine::{self, CallId, Candidate, CertificateOrder, Engine, Note, Now, Outgoing, TICK_MS};
use crate::exit::Failure;
use crate::leases::ConnectionId;
use crate::log::{DurableLog, Timed};
use crate::state::State;
use crate::state::command::{Command, Proof, Reply};

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
pub struct Secrets {
    pub peer_key: PeerKey,
    pub authority: Arc<Authority>,
    /// Of servers' certificates.
    pub certificate_life: Duration,
}

pub struct EngineTask {
    engine: Engine,
    log: Option<DurableLog>,
    secrets: Secrets,
    started: Instant,
    outboxes: HashMap<ConnectionId, Outbox>,
    calls: HashMap<CallId, oneshot::Sender<Reply>>,
    calls_made: CallId,
    /// What was read from the state, until that is durable.
    releases: Vec<Release>,
    events: watch::Sender<u64>,
}

/// Inputs taken in before one sync.
const BATCH_INPUTS: usize = 256;

impl EngineTask {
    pub fn new(
        engine: Engine,
        log: DurableLog,
        secrets: Secrets,
        started: Instant,
    ) -> (Self, Handle, mpsc::Receiver<Input>) {
        let (inputs, receiver) = mpsc::channel(COORDINATOR_QUEUE_MAX);
        let (events, events_seen) = watch::channel(engine.state().events.last_seq());
        let task = Self {
            engine,
            log: Some(log),
            secrets,
            started,
            outboxes: HashMap::new(),
            calls: HashMap::new(),
            calls_made: 0,
            releases: Vec::new(),
            events,
        };
        let events = events_seen;
        (task, Handle { inputs, events }, receiver)
    }

    /// Runs until `stop` says so, or the disk fails.
    pub async fn run(
        mut self,
        mut inputs: mpsc::Receiver<Input>,
        mut stop: watch::Receiver<bool>,
    ) -> Result<(), Failure> {
        let mut tick = interval(Duration::from_millis(TICK_MS));
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut renew = interval(Duration::from_secs(PEER_TOKEN_TTL_S / 2));
        renew.tick().await;
        let mut taken = Vec::with_capacity(BATCH_INPUTS);
        loop {
            tokio::select! {
                biased;
                _ = stop.changed() => return Ok(()),
                _ = tick.tick() => self.feed(engine::Input::Tick),
                _ = renew.tick() => self.feed(engine::Input::RenewPeerTokens),
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
            } => {
                self.outboxes.insert(connection, outbox);
                let candidate = self.candidate(connection, from, *register, certificate.as_ref());
                self.feed(engine::Input::Register(candidate));
            }
            Input::ClientKeys(keys) => self.feed(engine::Input::ClientKeys(keys)),
            Input::Message { connection, message } => {
                self.feed(engine::Input::Message { connection, message });
            }
            Input::Closed { connection } => {
                self.outboxes.remove(&connection);
                self.feed(engine::Input::Closed { connection });
            }
            Input::Command { command, reply } => {
                self.calls_made += 1;
                let call = self.calls_made;
                self.calls.insert(call, reply);
                self.feed(engine::Input::Command { call, command });
            }
            Input::Read(read) => self.releases.push(self.engine.look(read)),
        }
    }

    fn feed(&mut self, input: engine::Input) {
        let now = Now {
            ms: self.started.elapsed().as_millis() as u64,
            unix_ms: unix_ms(),
        };
        self.engine.take(now, input);
    }

    fn candidate(
        &self,
        connection: ConnectionId,
        from: IpAddr,
        register: Register,
        shown: Option<&CertificateDer<'static>>,
    ) -> Candidate {
        let credential = random_secret("qsc_");
        let proof = match (&register.join_token, &register.credential) {
            (Some(token), None) => Some(Proof::JoinToken {
                digest: digest(pin::split(token).0),
                credential_digest: digest(&credential),
            }),
            (None, Some(known)) => Some(Proof::Credential(digest(known))),
            _ => None,
        };
        let mut candidate = Candidate {
            connection,
            from,
            proof,
            credential,
            certificates: Ok(()),
            register,
        };
        // A signature is made on trial here: only for those who have proved something.
        if self.engine.is_welcome(&candidate, unix_ms()) {
            candidate.certificates = self.check_certificates(&candidate.register, shown);
        }
        candidate
    }

    /// Before anything is changed: a certificate shown is the server's own, and one asked for can be issued.
    fn check_certificates(
        &self,
        register: &Register,
        shown: Option<&CertificateDer<'static>>,
    ) -> Result<(), String> {
        if let Some(shown) = shown {
            let digest = register.credential.as_deref().map(digest);
            let known = digest.and_then(|digest| {
                let mut servers = self.engine.state().servers.values();
                servers.find(|server| server.credential_digest == digest)
            });
            if !known.is_some_and(|known| is_issued_to(shown, known.server_id)) {
                return Err("the certificate that the server shows is not its own".into());
            }
        }
        if let Some(request) = &register.certificate_request_pem {
            let (nobody, now) = (ServerId(0), SystemTime::now());
            let (authority, life) = (&self.secrets.authority, self.secrets.certificate_life);
            authority
                .issue(request, nobody, &register.address, life, now)
                .map_err(|error| error.to_string())?;
        }
        Ok(())
    }

    fn issue(&self, order: &CertificateOrder) -> Option<String> {
        let (server, address) = (order.server, &order.address);
        let (authority, life) = (&self.secrets.authority, self.secrets.certificate_life);
        match authority.issue(&order.request_pem, server, address, life, SystemTime::now()) {
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

    fn peer_token(&self, server: ServerId) -> String {
        self.secrets.peer_key.token(server, unix_ms() / 1_000)
    }

    /// Makes the batch durable, then lets out what follows from it.
    async fn commit(&mut self) -> Result<(), Failure> {
        let batch = self.engine.take_batch();
        batch.notes.iter().for_each(write_down);
        if !batch.commands.is_empty() {
            self.append(batch.commands).await?;
        }
        for outgoing in batch.outgoing {
            self.let_out(outgoing);
        }
        for release in std::mem::take(&mut self.releases) {
            release();
        }
        let last = self.engine.state().events.last_seq();
        self.events
            .send_if_modified(|seen| std::mem::replace(seen, last) != last);
        Ok(())
    }

    async fn append(&mut self, commands: Vec<Timed>) -> Result<(), Failure> {
        let mut log = self.log.take().expect("the log is put back after each use");
        let snapshot = log.wants_snapshot().then(|| self.engine.state().clone());
        let written = tokio::task::spawn_blocking(move || {
            match &snapshot {
                // The state includes the batch.
                Some(state) => log.rewrite(state)?,
                None => log.append(commands)?,
            }
            Ok::<_, Failure>(log)
        });
        let written = written.await;
        self.log = Some(written.map_err(|e| Failure::disk(format!("writing the log: {e}")))??);
        Ok(())
    }

    fn let_out(&mut self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Message(connection, message) => self.send(connection, message),
            Outgoing::Welcome {
                connection,
                mut welcome,
                certificate,
            } => {
                welcome.peer_token = self.peer_token(welcome.server_id);
                welcome.certificate_pem = certificate.and_then(|order| self.issue(&order));
                self.send(connection, ToServer::Welcome(welcome));
            }
            Outgoing::Certificate { connection, order } => {
                if let Some(certificate_pem) = self.issue(&order) {
                    self.send(connection, ToServer::Certificate { certificate_pem });
                }
            }
            Outgoing::PeerToken { connection, server } => {
                let token = self.peer_token(server);
                self.send(connection, ToServer::PeerToken { token });
            }
            Outgoing::Close(connection) => {
                self.outboxes.remove(&connection);
            }
            Outgoing::Answer { call, reply } => {
                // Whoever has ceased to wait does not need it.
                let _ = self.calls.remove(&call).map(|waiting| waiting.send(reply));
            }
        }
    }

    fn send(&mut self, connection: ConnectionId, message: ToServer) {
        let Some(outbox) = self.outboxes.get(&connection) else {
            return;
        };
        if outbox.try_send(message).is_err() {
            warn!(connection, "a server does not read what it is sent; disconnected");
            self.outboxes.remove(&connection);
            self.feed(engine::Input::Closed { connection });
        }
    }
}

fn write_down(note: &Note) {
    match note {
        Note::Registered { server, name } => info!(server_id = server.0, name, "server registered"),
        Note::Foreign {
            server,
            how,
            is_refused,
        } => profile_file::note_foreign(*server, how, *is_refused),
        Note::Refused { name, code, message } => warn!(name, ?code, message, "registration refused"),
        Note::Failed(server) => warn!(server_id = server.0, "server failed"),
        Note::ConnectionBroke(server) => warn!(server_id = server.0, "control connection broke"),
        Note::ClientKeysChanged => info!("the keys that sign clients' tokens have changed; servers are told"),
    }
}

/// Wall-clock time, for people and tokens.
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.map_or(0, |elapsed| elapsed.as_millis() as u64)
}
