//! Messages of the control connection between a replica server and the coordinator
//! (`docs/internals/coordinator.md`). JSON in `u32`-length frames; unknown fields are ignored.

use serde::{Deserialize, Serialize};

use crate::config::{GroupConfig, GroupId, GroupState, Role, ServerId};
use crate::cost::ResourceVector;
use crate::machine::Machine;
use crate::sla::Durability;
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
    /// folder does not say. When the one that the coordinator knows is not among them, the folder is an older copy:
    /// what it holds may lack committed entries.
    #[serde(default)]
    pub previous_incarnations: Vec<String>,
    pub capacity: ResourceVector,
    pub failure_domain: Option<String>,
    pub region: String,
    /// What it holds from before: persistent groups found in its journal.
    pub held: Vec<HeldGroup>,
    pub version: String,
    /// What it runs on, so that a cost profile of other machines is noticed. Older servers do not say.
    #[serde(default)]
    pub machine: Option<Machine>,
    /// A certificate signing request for the server's own key, in PEM. Of it only the key counts.
    #[serde(default)]
    pub certificate_request_pem: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldGroup {
    pub group_id: GroupId,
    pub epoch: Epoch,
    pub durability: Durability,
    pub last_index: Index,
    /// The last batch of which the disk proves that it was committed: nobody whose log ends before it has kept all.
    #[serde(default)]
    pub committed_epoch: Epoch,
    #[serde(default)]
    pub committed_index: Index,
    /// Records are missing or fail their checksums: what is left may lack committed entries, so the server may
    /// learn the group anew, and is no replica of it until then.
    #[serde(default)]
    pub damaged: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Heartbeat {
    pub seq: u64,
    pub groups: Vec<GroupReport>,
    /// Peers whose link is broken and did not come back.
    pub unreachable: Vec<ServerId>,
    /// Why persistent groups on this server are read-only, when they are.
    pub storage_fault: Option<String>,
    /// Servers (this one among them) that slow groups here by more than `SLOW_REPORT_MS`.
    #[serde(default)]
    pub slow: Vec<SlowReport>,
}

/// A server that holds up groups which this server has a part in: seen by what waits for it, not by its
/// heartbeat. The server that names itself means its own journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SlowReport {
    pub server: ServerId,
    /// How long the oldest of what waits for it has waited.
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
    /// The replica of a group on it does not get on, though what it needs has been sent.
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
    /// Admission promises another share of the server's capacity from now on, as in the welcome: a cost profile with
    /// another safety factor is in use.
    PromisedShare {
        share: f64,
    },
    /// What has become of the server's drain. It changes nothing in what the server does.
    Drain {
        state: DrainState,
    },
    /// Nothing of the group's log is left: the server, once a replica of it, answers clients `group_lost`, until
    /// it is configured for the group again or told to drop it.
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
    /// Nothing is left on it: it may stop, and its stop is no failure.
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
    /// What admission promises of the server's capacity, as a share: the profile's safety factor. Absent: servers do
    /// not know what is free, and lend nothing.
    #[serde(default)]
    pub promised_share: Option<f64>,
    /// When the registration asked for one.
    #[serde(default)]
    pub certificate_pem: Option<String>,
}
