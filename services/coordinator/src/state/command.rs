//! What changes the state, and what follows from it. Commands are what the durable log holds.

use quorate_placement::Profile;
use quorate_types::control::{HeldGroup, RefuseCode, ToServer};
use quorate_types::cost::ResourceVector;
use quorate_types::sla::{Refusal, Sla};
use quorate_types::{Epoch, GroupId, Machine, Offset, ServerId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::placement::Placement;

/// SHA-256 as 64 hex digits: what is kept of a join token or a credential.
pub type Digest = String;

/// A change of the state. Everything random or read from outside is in it, so that applying the same
/// commands in the same order gives the same state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// A profile other than the one in use; groups keep what they were admitted with.
    UseProfile {
        profile: Box<Profile>,
    },
    /// How servers are chosen from now on; replicas stay where they are.
    UsePlacement {
        placement: Placement,
    },
    IssueJoinToken {
        digest: Digest,
        token: JoinTokenTerms,
    },
    /// Nobody is to join with this token any more ([`super::join_tokens::id_of`]).
    RevokeJoinToken {
        id: String,
    },
    Register(Box<Registration>),
    /// Their leases expired, or their connections broke and did not come back. Also for servers that
    /// were down with a whole chain, when another of the chain has returned and they have not.
    ServersFailed {
        servers: Vec<ServerId>,
    },
    /// A server's own word on its storage; `None` when the fault is gone.
    StorageFault {
        server: ServerId,
        fault: Option<String>,
    },
    /// A server says that it cannot reach a peer which still has its lease: noted. It may pass.
    PeerUnreachable {
        server: ServerId,
        peer: ServerId,
    },
    /// Two servers have not reached one another for so long that one of them makes way in each group in which
    /// they need one another; or (`severed` false) they do again.
    Severed {
        server: ServerId,
        peer: ServerId,
        severed: bool,
    },
    /// A server holds up its groups, and why; `None` when it has long ceased to.
    ServerSlow {
        server: ServerId,
        cause: Option<String>,
    },
    /// All replicas shall leave the server.
    Drain {
        server: ServerId,
    },
    /// … or need not any more.
    CallOffDrain {
        server: ServerId,
    },
    /// A failed server will not come back, nor its disk: its operator says so.
    Forget {
        server: ServerId,
    },
    /// The owner of a lost group has it begin anew. `epoch`: in which the owner saw it lost, so that a
    /// repetition resets nothing twice. What usage had counted goes on from `entries_before`, `bytes_before`.
    Reset {
        group_id: GroupId,
        epoch: Epoch,
        entries_before: u64,
        bytes_before: u64,
    },
    /// The group is to have another SLA from now on, where it is. `revision`: of the new SLA, one above the present
    /// one's, so that a repetition that comes late changes nothing back.
    Resize {
        group_id: GroupId,
        sla: Sla,
        revision: u64,
    },
    /// A group's offsets have come near what is set aside for them ([`super::group::Group::offset_ceiling`]).
    OffsetsReached {
        group_id: GroupId,
        commit_offset: Offset,
    },
    Admit {
        group_id: GroupId,
        project_id: Uuid,
        sla: Sla,
    },
    Delete {
        group_id: GroupId,
    },
    Applied {
        server: ServerId,
        group_id: GroupId,
        epoch: Epoch,
    },
    LearnerCaughtUp {
        server: ServerId,
        group_id: GroupId,
        epoch: Epoch,
        learner: ServerId,
    },
    Dropped {
        server: ServerId,
        group_id: GroupId,
    },
}

impl Command {
    /// Whether a replacement that found no server may find one afterwards.
    pub(super) fn may_free_capacity(&self) -> bool {
        match self {
            Command::UseProfile { .. }
            | Command::UsePlacement { .. }
            | Command::Register(_)
            | Command::ServersFailed { .. }
            | Command::StorageFault { .. }
            | Command::Severed { .. }
            | Command::ServerSlow { .. }
            | Command::Drain { .. }
            | Command::CallOffDrain { .. }
            | Command::Forget { .. }
            | Command::Resize { .. }
            | Command::Delete { .. } => true,
            Command::IssueJoinToken { .. }
            | Command::RevokeJoinToken { .. }
            | Command::PeerUnreachable { .. }
            | Command::Admit { .. }
            | Command::Reset { .. }
            | Command::OffsetsReached { .. }
            | Command::Applied { .. }
            | Command::LearnerCaughtUp { .. }
            | Command::Dropped { .. } => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct JoinTokenTerms {
    pub expires_at_ms: u64,
    /// The only server name that may use it, when given.
    pub name: Option<String>,
    /// The server that uses it takes replacements of failed replicas only.
    #[serde(default)]
    pub auxiliary: bool,
}

/// A server's `register`, with the secrets replaced by digests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Registration {
    pub proof: Proof,
    pub name: String,
    pub address: String,
    pub incarnation: String,
    pub capacity: ResourceVector,
    pub failure_domain: Option<String>,
    pub region: String,
    pub held: Vec<HeldGroup>,
    #[serde(default)]
    pub previous_incarnations: Vec<String>,
    pub version: String,
    /// Older servers do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine: Option<Machine>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Proof {
    JoinToken {
        digest: Digest,
        /// Of the credential that the server gets if it is accepted.
        credential_digest: Digest,
    },
    Credential(Digest),
}

/// What to do once the command is durable, in order.
#[allow(clippy::large_enum_variant)] // A few at a time, moved once: boxes would cost more than the bytes.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// The registering connection belongs to this server from here on. `joined`: with a join token, so
    /// the welcome carries the new credential.
    Accept {
        server: ServerId,
        joined: bool,
    },
    /// The registering connection is refused and closed.
    Refuse {
        code: RefuseCode,
        message: String,
    },
    /// To the server's connection; lost when it has none, since registration sends everything again.
    Send {
        server: ServerId,
        message: ToServer,
    },
    /// The server counts as failed: its connection is closed, so that it registers again.
    Disconnect {
        server: ServerId,
    },
    Reply(Reply),
}

/// The answer to whoever gave the command through the API.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    Admitted {
        created: bool,
    },
    Refused(Refusal),
    /// The id is in use for something else, or was.
    Conflict {
        code: &'static str,
        message: String,
    },
    Deleted,
    TokenIssued,
    /// There is no such group or server.
    Unknown,
    /// It is as was asked, now or already.
    Done,
}
