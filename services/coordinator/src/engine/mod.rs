//! The coordinator's decisions, pure: `take(now, input)`, then `take_batch() -> commands to log, and what follows`.
//!
//! - `registration`: who is let in, and who is not answered any more
//! - `reports`: what servers say, and what of it reaches the log
//! - `refusals`: failed registrations, bounded
//!
//! No socket, clock, disk, secret or certificate: readings of clocks and digests come in with the inputs, and what
//! only the shell can make (a peer token, a certificate) it adds to what goes out. The simulator runs this very code.

mod refusals;
mod registration;
mod reports;

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use quorate_types::ServerId;
use quorate_types::control::{RefuseCode, Register, ToCoordinator, ToServer, Welcome};
use serde_json::Value;

use crate::leases::{ConnectionId, LeaseTimes, Leases};
use crate::log::Timed;
use crate::state::command::{Command, Effect, Proof, Reply};
use crate::state::{State, apply};
use crate::suspicions::{SuspicionTimes, Suspicions};
use refusals::Refusals;

/// Numbers a call of the API that waits for its answer.
pub type CallId = u64;

/// To be called with [`Input::Tick`] this often.
pub const TICK_MS: u64 = 50;

/// What the clocks say.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// Of a clock that never goes back and begins with the process: for leases.
    pub ms: u64,
    /// Wall-clock time, for people and tokens.
    pub unix_ms: u64,
}

/// Fixed for the life of the process, but for the clients' keys.
#[derive(Debug, Clone)]
pub struct Settings {
    pub heartbeat_ms: u64,
    pub leases: LeaseTimes,
    pub suspicions: SuspicionTimes,
    /// JWKS of the keys that sign clients' tokens.
    pub client_keys: Value,
    /// JWKS of the key that signs peer tokens.
    pub peer_keys: Value,
}

/// A server that asks to be let in, with what the shell found about its secrets.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub connection: ConnectionId,
    pub from: IpAddr,
    pub register: Register,
    /// Digests of what it shows, and of `credential`; `None`: it does not show exactly one thing.
    pub proof: Option<Proof>,
    /// New and random: what it gets when it joins.
    pub credential: String,
    /// Whether the certificate that it shows is its own, and the one that it asks for can be issued; or why not.
    pub certificates: Result<(), String>,
}

#[derive(Debug)]
#[allow(clippy::large_enum_variant)] // One at a time, taken in at once.
pub enum Input {
    Register(Candidate),
    Message {
        connection: ConnectionId,
        message: ToCoordinator,
    },
    Closed {
        connection: ConnectionId,
    },
    /// Of the API.
    Command {
        call: CallId,
        command: Command,
    },
    /// The keys that sign clients' tokens have changed.
    ClientKeys(Value),
    RenewPeerTokens,
    Tick,
}

/// A certificate for a server that was let in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CertificateOrder {
    pub server: ServerId,
    pub address: String,
    pub request_pem: String,
}

#[derive(Debug, Clone, PartialEq)]
pub enum Outgoing {
    Message(ConnectionId, ToServer),
    /// Lacks a peer token, and the certificate that was ordered.
    Welcome {
        connection: ConnectionId,
        welcome: Welcome,
        certificate: Option<CertificateOrder>,
    },
    Certificate {
        connection: ConnectionId,
        order: CertificateOrder,
    },
    /// A fresh one.
    PeerToken {
        connection: ConnectionId,
        server: ServerId,
    },
    Close(ConnectionId),
    Answer {
        call: CallId,
        reply: Reply,
    },
}

/// For the process's own log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    Registered {
        server: ServerId,
        name: String,
    },
    /// The cost profile in use is not that of its machine, or of its version.
    Foreign {
        server: ServerId,
        how: String,
        /// It takes no new replicas for that.
        is_refused: bool,
    },
    Refused {
        name: String,
        code: RefuseCode,
        message: String,
    },
    Failed(ServerId),
    ConnectionBroke(ServerId),
    ClientKeysChanged,
}

/// What came of the inputs since the last batch.
#[derive(Debug, Default)]
pub struct Batch {
    /// To be made durable ...
    pub commands: Vec<Timed>,
    /// ... before any of this is let out.
    pub outgoing: Vec<Outgoing>,
    pub notes: Vec<Note>,
}

#[derive(Debug, Default)]
struct Connection {
    server: Option<ServerId>,
    /// When what it reports was last compared with what it should hold.
    reconciled_ms: u64,
}

#[derive(Debug)]
pub struct Engine {
    state: State,
    settings: Settings,
    leases: Leases,
    suspicions: Suspicions,
    refusals: Refusals,
    connections: BTreeMap<ConnectionId, Connection>,
    connection_of: BTreeMap<ServerId, ConnectionId>,
    /// Pairs (server, peer) of which the first last said that it cannot reach the second.
    unreachable: BTreeSet<(ServerId, ServerId)>,
    batch: Batch,
}

impl Engine {
    /// Begins with a state as the log has it, when the clock of leases says `now_ms`: every server gets a full lease.
    pub fn new(state: State, settings: Settings, now_ms: u64) -> Self {
        let alive = state.servers.values().filter(|server| server.alive);
        let mut leases = Leases::new(settings.leases, alive.map(|server| server.server_id), now_ms);
        leases.watch(&state.laggards(), now_ms);
        Self {
            state,
            leases,
            suspicions: Suspicions::new(settings.suspicions),
            settings,
            refusals: Refusals::default(),
            connections: BTreeMap::new(),
            connection_of: BTreeMap::new(),
            unreachable: BTreeSet::new(),
            batch: Batch::default(),
        }
    }

    pub fn state(&self) -> &State {
        &self.state
    }

    /// Looks at the state; what is seen may be told once the next batch is durable. Dry runs leave it as it was.
    pub fn look<T>(&mut self, look: impl FnOnce(&mut State) -> T) -> T {
        look(&mut self.state)
    }

    pub fn take(&mut self, now: Now, input: Input) {
        match input {
            Input::Register(candidate) => self.register(now, candidate),
            Input::Message { connection, message } => self.message(now, connection, message),
            Input::Closed { connection } => self.closed(now, connection),
            Input::Command { call, command } => self.command(now, call, command),
            Input::ClientKeys(keys) => self.use_client_keys(keys),
            Input::RenewPeerTokens => self.renew_peer_tokens(),
            Input::Tick => self.tick(now),
        }
    }

    /// What came of all that was taken. Whoever takes the batch makes its commands durable, then lets the rest out.
    pub fn take_batch(&mut self) -> Batch {
        std::mem::take(&mut self.batch)
    }

    fn command(&mut self, now: Now, call: CallId, command: Command) {
        let mut answered = None;
        for effect in self.apply(now, command) {
            match effect {
                Effect::Reply(reply) => answered = Some(reply),
                other => self.act(other),
            }
        }
        let reply = answered.expect("a command of the API has an answer");
        self.batch.outgoing.push(Outgoing::Answer { call, reply });
    }

    fn apply(&mut self, now: Now, command: Command) -> Vec<Effect> {
        let at_ms = now.unix_ms;
        let effects = apply(&mut self.state, at_ms, &command);
        self.batch.commands.push(Timed { at_ms, command });
        self.leases.watch(&self.state.laggards(), now.ms);
        effects
    }

    fn apply_and_act(&mut self, now: Now, command: Command) {
        for effect in self.apply(now, command) {
            self.act(effect);
        }
    }

    fn act(&mut self, effect: Effect) {
        match effect {
            Effect::Send { server, message } => {
                if let Some(connection) = self.connection_of.get(&server).copied() {
                    self.send(connection, message);
                }
            }
            Effect::Disconnect { server } => {
                self.batch.notes.push(Note::Failed(server));
                if let Some(connection) = self.connection_of.remove(&server) {
                    self.close(connection);
                }
            }
            Effect::Accept { .. } | Effect::Refuse { .. } | Effect::Reply(_) => {
                unreachable!("handled where the command was given: {effect:?}")
            }
        }
    }

    fn send(&mut self, connection: ConnectionId, message: ToServer) {
        self.batch.outgoing.push(Outgoing::Message(connection, message));
    }

    /// What comes on it from here on counts no more.
    fn close(&mut self, connection: ConnectionId) {
        self.connections.remove(&connection);
        self.batch.outgoing.push(Outgoing::Close(connection));
    }

    fn closed(&mut self, now: Now, connection: ConnectionId) {
        let known = self.connections.remove(&connection);
        let server = known.and_then(|known| known.server);
        if let Some(server) = server.filter(|server| self.connection_of.get(server) == Some(&connection)) {
            self.connection_of.remove(&server);
            self.leases.disconnected(server, connection, now.ms);
            self.batch.notes.push(Note::ConnectionBroke(server));
        }
    }

    fn use_client_keys(&mut self, keys: Value) {
        self.batch.notes.push(Note::ClientKeysChanged);
        for connection in self.connection_of.values().copied().collect::<Vec<_>>() {
            self.send(connection, ToServer::ClientKeys { keys: keys.clone() });
        }
        self.settings.client_keys = keys;
    }

    fn renew_peer_tokens(&mut self) {
        for (server, connection) in &self.connection_of {
            self.batch.outgoing.push(Outgoing::PeerToken {
                connection: *connection,
                server: *server,
            });
        }
    }

    fn tick(&mut self, now: Now) {
        let failed = self.leases.expired(now.ms);
        if !failed.is_empty() {
            self.apply_and_act(now, Command::ServersFailed { servers: failed });
        }
        for command in self.suspicions.due(&self.state, now.ms) {
            self.apply_and_act(now, command);
        }
    }
}
