//! Messages of the control connection between a replica server and the coordinator
//! (`docs/internals/coordinator.md`). JSON in `u32`-length frames; unknown fields are ignored.

use serde::{Deserialize, Serialize};

use crate::config::{GroupConfig, GroupId, GroupState, Role, ServerId};
use crate::cost::ResourceVector;
use crate::durability::Durability;
use crate::machine::Machine;
use crate::space::Room;
use crate::{Epoch, Index, Offset};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToCoordinator {
    Register(Box<Register>),
    Heartbeat(Heartbeat),
    /// Asks for a new certificate before the old one ends; answered by [`ToServer::Certificate`].
    RenewCertificate {
        request_pem: String,
    },
    /// The server adopted this epoch's configuration.
    Applied {
        group_id: GroupId,
        epoch: Epoch,
    },
    /// The server forgot the group and its data.
    Dropped {
        group_id: GroupId,
    },
    /// Sent by the tail: the learner holds all that the tail holds.
    LearnerCaughtUp {
        group_id: GroupId,
        epoch: Epoch,
        learner: ServerId,
    },
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Register {
    /// One of the two is present.
    pub join_token: Option<String>,
    pub credential: Option<String>,
    pub name: String,
    pub address: String,
    /// Random at each start of the process, as hex.
    pub incarnation: String,
    /// Incarnations that ran on this data folder before, since one that the coordinator had confirmed; empty when the
    /// folder does not say. If the coordinator's incarnation is not among them, the folder is an older copy, and may lack
    /// committed entries.
    #[serde(default)]
    pub previous_incarnations: Vec<String>,
    pub capacity: ResourceVector,
    /// Memory and disk for replicas. Older servers do not say, and are not limited.
    #[serde(default)]
    pub room: Room,
    pub failure_domain: Option<String>,
    pub region: String,
    /// Persistent groups found in its journal.
    pub held: Vec<HeldGroup>,
    pub version: String,
    /// The server's machine, so that a mismatched cost profile is noticed. Older servers do not say.
    #[serde(default)]
    pub machine: Option<Machine>,
    /// A certificate signing request for the server's own key, in PEM. Only its key counts.
    #[serde(default)]
    pub certificate_request_pem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldGroup {
    pub group_id: GroupId,
    pub epoch: Epoch,
    pub durability: Durability,
    pub last_index: Index,
    /// The last batch that the disk proves to be committed: a log that ends before it has not kept all.
    #[serde(default)]
    pub committed_epoch: Epoch,
    #[serde(default)]
    pub committed_index: Index,
    /// Records are missing or fail their checksums: the log may lack committed entries. The server may learn the group
    /// again, and is no replica of it until then.
    #[serde(default)]
    pub damaged: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    pub seq: u64,
    pub groups: Vec<GroupReport>,
    /// Peers whose link is broken and did not come back.
    pub unreachable: Vec<ServerId>,
    /// The reason why persistent groups on this server are read-only, if they are.
    pub storage_fault: Option<String>,
    /// Servers (this one among them) that slow groups here by more than `SLOW_REPORT_MS`.
    #[serde(default)]
    pub slow: Vec<SlowReport>,
}

/// A server that slows groups of this server, as seen by pending bytes and records rather than by its heartbeat. A server
/// that names itself means its own journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlowReport {
    pub server: ServerId,
    /// How long the oldest pending byte or record has waited.
    pub behind_ms: u64,
    pub cause: SlowCause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SlowCause {
    /// Bytes wait in the outbox of the link to it.
    Link,
    /// Records wait for its disk.
    Journal,
    /// A group's replica on it makes no progress, though all that it needs has been sent.
    Chain,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct GroupReport {
    pub group_id: GroupId,
    pub epoch: Epoch,
    pub role: Role,
    pub state: GroupState,
    pub last_index: Index,
    pub commit_offset: Offset,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToServer {
    Welcome(Welcome),
    /// Registration refused; the server prints it and exits.
    Refuse {
        code: RefuseCode,
        message: String,
    },
    Configure {
        config: GroupConfig,
    },
    Drop {
        group_id: GroupId,
        epoch: Epoch,
    },
    HeartbeatAck {
        seq: u64,
    },
    /// A fresh peer token, before the old one expires.
    PeerToken {
        token: String,
    },
    /// A fresh certificate, in PEM, for the key of the request.
    Certificate {
        certificate_pem: String,
    },
    /// The keys that sign clients' tokens have changed: a JWKS, as in the welcome.
    ClientKeys {
        keys: serde_json::Value,
    },
    /// Admission promises another share of the server's capacity from now on, as in the welcome. A cost profile with
    /// another safety factor is in use.
    PromisedShare {
        share: f64,
    },
    /// The state of the server's drain, for information: the server acts as before.
    Drain {
        state: DrainState,
    },
    /// Nothing of the group's log is left. The server, once a replica of it, answers clients `group_lost`, until it is
    /// configured for the group again or drops it.
    Lost {
        group_id: GroupId,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DrainState {
    /// Called off.
    None,
    /// Replicas leave it one by one.
    Draining,
    /// No replica is left on it: it may stop, and its stop is no failure.
    Drained,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RefuseCode {
    JoinTokenInvalid,
    JoinTokenUsed,
    JoinTokenExpired,
    CredentialInvalid,
    NameTaken,
    RegisterInvalid,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Welcome {
    pub server_id: ServerId,
    /// Present at the first registration only: the server keeps it in a 0600 file.
    pub credential: Option<String>,
    pub heartbeat_ms: u64,
    pub lease_ms: u64,
    /// JWKS with the Ed25519 keys that sign clients' tokens.
    pub client_keys: serde_json::Value,
    /// JWKS with the coordinator's Ed25519 key, which signs peer tokens.
    pub peer_keys: serde_json::Value,
    pub peer_token: String,
    /// The share of the server's capacity that admission promises: the profile's safety factor. Absent: servers do not
    /// know their unallocated capacity, and grant no burst capacity.
    #[serde(default)]
    pub promised_share: Option<f64>,
    /// Present if the registration asked for one.
    #[serde(default)]
    pub certificate_pem: Option<String>,
}
