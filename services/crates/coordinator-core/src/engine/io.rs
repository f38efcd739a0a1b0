//! Inputs and outputs of the engine.

use std::net::IpAddr;

use quorate_types::control::{
    FlowReport, RefuseCode, Register, SharingReport, ToCoordinator, ToServer, Welcome,
};
use quorate_types::{Place, ServerId};
use serde_json::Value;

use crate::command::{Command, Proof, Reply, Timed};
use crate::ids::{CallId, ConnectionId};
use crate::planner::{LeaseTimes, SuspicionTimes};
use crate::state::ProfileRefused;

/// The interval between two [`Input::Tick`].
pub const TICK_MS: u64 = 50;

/// Readings of the clocks.
#[derive(Debug, Clone, Copy)]
pub struct Now {
    /// A clock that never goes back and begins with the process: for leases.
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
}

/// A server that asks to be let in, with the shell's findings about its secrets.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub connection: ConnectionId,
    pub from: IpAddr,
    pub register: Register,
    /// Digests of its join token or credential, and of `credential`. `None`: it does not show exactly one of the two.
    pub proof: Option<Proof>,
    /// New and random: its credential if it joins.
    pub credential: String,
    /// Whether the certificate it shows is its own, and the one it asks for can be issued; the error says why not.
    pub certificates: Result<(), String>,
    /// It shows a certificate that the fleet's authority issued to a server that was not given up since.
    pub is_certified: bool,
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
    /// A command of the API.
    Command {
        call: CallId,
        command: Command,
    },
    /// The fleet's version is raised, if everything can read the newest forms.
    RaiseFleetVersion {
        call: CallId,
        /// Coordinators that cannot, in words.
        members: Vec<String>,
    },
    /// The keys that sign clients' tokens have changed.
    ClientKeys(Value),
    RenewPeerTokens,
    /// An operator answers for the servers that a roll call misses: nobody has been told more than the log says.
    EndRollCall,
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
    /// The shell adds a peer token, and the certificate that was ordered.
    Welcome {
        connection: ConnectionId,
        welcome: Welcome,
        certificate: Option<CertificateOrder>,
    },
    Certificate {
        connection: ConnectionId,
        order: CertificateOrder,
    },
    /// The shell adds the token.
    PeerToken {
        connection: ConnectionId,
        server: ServerId,
    },
    Close(ConnectionId),
    /// A server's report of what it shares, for the shell to compute with.
    Sharing {
        connection: ConnectionId,
        server: ServerId,
        report: SharingReport,
    },
    /// A server's report of groups that share their projects' guarantees, for the shell to compute with.
    Flows {
        connection: ConnectionId,
        server: ServerId,
        report: FlowReport,
    },
    Answer {
        call: CallId,
        reply: Reply,
    },
    /// The call was not taken in: the caller is to repeat it.
    Unanswered {
        call: CallId,
    },
}

/// A line for the process's own log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Note {
    Registered {
        server: ServerId,
        name: String,
    },
    /// The cost profile in use does not match its machine, or its version.
    Mismatched {
        server: ServerId,
        how: String,
        /// It takes no new replicas for that reason.
        is_refused: bool,
    },
    /// The cost profile of this process stays out of use.
    ProfileRefused(ProfileRefused),
    Refused {
        name: String,
        code: RefuseCode,
        message: String,
    },
    /// It shows a credential that this log does not know, and was told of commands that this log lacks.
    OfAnotherLog {
        name: String,
    },
    /// It asks to be let in while it hangs.
    KeptOut {
        server: ServerId,
        hung_ms: u64,
    },
    Failed(ServerId),
    ConnectionBroke(ServerId),
    ClientKeysChanged,
    /// Servers are heard before any epoch is issued.
    RollCallBegan {
        servers: usize,
    },
    /// Too few servers were heard.
    RollCallStuck(RollCallView),
    RollCallOver {
        heard: usize,
        missing: usize,
    },
}

/// The output since the last one: the commands are made durable before anything of the rest is sent.
#[derive(Debug, Default)]
pub struct Output {
    pub commands: Vec<Timed>,
    pub outgoing: Vec<Outgoing>,
    pub notes: Vec<Note>,
    /// The end of the log once the commands are durable: every message goes out with it.
    pub place: Option<Place>,
    /// The log is behind the servers. Nothing of this output may leave, and the coordinator ends.
    pub behind: Option<Behind>,
}

/// A server's proof that the log is behind it, in words for the operator of the coordinator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    pub evidence: String,
}

/// A roll call, for people who wait for its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RollCallView {
    pub awaited: usize,
    pub heard: usize,
    /// Servers that are missing; their number when there are many.
    pub missing: Vec<ServerId>,
    /// Too few have been heard, and only their return or an operator ends it.
    pub is_stuck: bool,
}
