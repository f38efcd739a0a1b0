//! Messages of the control connection between a replica server and the coordinator
//! (`docs/internals/coordinator.md`). JSON in `u32`-length frames; unknown fields are ignored.

use serde::{Deserialize, Serialize};

use crate::config::{GroupConfig, GroupId, GroupState, Role, ServerId};
use crate::cost::ResourceVector;
use crate::sla::Durability;
use crate::{Epoch, Index, Offset};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToCoordinator {
    Register(Register),
    Heartbeat(Heartbeat),
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
    pub capacity: ResourceVector,
    pub failure_domain: Option<String>,
    pub region: String,
    /// What it holds from before: persistent groups found in its journal.
    pub held: Vec<HeldGroup>,
    pub version: String,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldGroup {
    pub group_id: GroupId,
    pub epoch: Epoch,
    pub durability: Durability,
    pub last_index: Index,
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
}
