//! Commands: the entries of the log, and the only way to change the state.

use quorate_placement::Profile;
use quorate_types::place::IssuedEpoch;
use quorate_types::sla::Sla;
use quorate_types::{Access, Epoch, GroupId, Layout, Offset, Revocation, RunId, ServerId};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::guarantee_change::GuaranteeChange;
use super::join_token::{Digest, JoinTokenTerms};
use super::partitions_change::{PartitionsChange, RateChange};
use super::policy::PlacementPolicy;
use super::registration::Registration;
use super::relocate::Relocate;
use super::secrets::FleetSecrets;

/// A command with the time at which it was proposed (Unix time): one entry of the log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Timed {
    pub at_ms: u64,
    pub command: Command,
    /// The epochs that followed from it, as a replay must find them again. Older logs do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued: Option<Vec<IssuedEpoch>>,
}

/// A change of the state. It contains everything random or read from outside, so that the same commands in the same
/// order give the same state.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "snake_case")]
pub enum Command {
    /// The coordinator starts on this log. Nothing else follows from it.
    BeginRun {
        run: RunId,
        /// The version of the process.
        release: String,
    },
    /// Another cost profile; groups keep the demand vectors of their admission.
    UseProfile {
        profile: Box<Profile>,
    },
    /// Another placement policy; replicas stay where they are.
    UsePlacement {
        #[serde(rename = "placement")]
        policy: PlacementPolicy,
    },
    /// The fleet's first keys, or the same encrypted with another key.
    UseSecrets {
        secrets: Box<FleetSecrets>,
    },
    /// Everything in the fleet reads forms of this version. It is never lowered.
    RaiseFleetVersion {
        to: u16,
    },
    IssueJoinToken {
        digest: Digest,
        token: JoinTokenTerms,
    },
    /// Nobody may join with this token any more ([`super::join_token::join_token_id`]).
    RevokeJoinToken {
        id: String,
    },
    /// Servers refuse the tokens of these credentials.
    Revoke {
        revocations: Vec<Revocation>,
    },
    Register(Box<Registration>),
    /// Servers whose leases expired, or whose connections broke and did not come back. Also servers that went down
    /// with a whole chain, when another of the chain has returned and they have not.
    ServersFailed {
        servers: Vec<ServerId>,
    },
    /// Servers that keep their leases while a thread or a sync of theirs hangs. They have failed as well.
    ServersHung {
        servers: Vec<ServerId>,
    },
    /// A server's own report on its storage; `None` when the fault is gone.
    StorageFault {
        server: ServerId,
        fault: Option<String>,
    },
    /// A storage fault has lasted so long that the server's persistent replicas are to leave it.
    StorageFaultLasts {
        server: ServerId,
    },
    /// A server reports a peer unreachable that still has its lease. The report becomes an event and nothing else.
    PeerUnreachable {
        server: ServerId,
        peer: ServerId,
    },
    /// Two servers have not reached one another for so long that one of them leaves each group in which they need one
    /// another. `unreachable` false: they reach one another again.
    #[serde(rename = "severed")]
    PairUnreachable {
        server: ServerId,
        peer: ServerId,
        #[serde(rename = "severed")]
        unreachable: bool,
        /// The one of the two that is to leave, where the planner could tell.
        #[serde(rename = "hung", default, skip_serializing_if = "Option::is_none")]
        at_fault: Option<ServerId>,
    },
    /// A server slows its groups, and why; `None` when it has long ceased to.
    ServerSlow {
        server: ServerId,
        cause: Option<String>,
    },
    /// A server has found out, by its own measurements, that it can do less than it registered with, or as much again. By
    /// resource, in thousandths of that.
    CapacityEstimated {
        server: ServerId,
        permille: [u16; 3],
    },
    /// All replicas shall leave the server.
    Drain {
        server: ServerId,
    },
    /// The server's replicas stay, and it takes new ones again.
    CallOffDrain {
        server: ServerId,
    },
    /// An operator's decision that a failed server and its disk will not come back.
    Forget {
        server: ServerId,
    },
    /// The owner resets a lost group. `epoch`: in which the owner saw it lost, so that a repetition resets nothing
    /// twice. Usage goes on counting from `entries_before` and `bytes_before`.
    Reset {
        group_id: GroupId,
        epoch: Epoch,
        entries_before: u64,
        bytes_before: u64,
    },
    /// Another SLA for a group in its place. `revision`: of the new SLA, one above the present one's, so that a late
    /// repetition changes nothing back.
    Resize {
        group_id: GroupId,
        sla: Sla,
        revision: u64,
    },
    /// A replica moves to another server.
    Relocate(Relocate),
    /// Clients may use another part of the group's service.
    SetAccess {
        group_id: GroupId,
        access: Access,
    },
    SetGuarantee(GuaranteeChange),
    SetPartitions(PartitionsChange),
    /// Groups' rates are divided otherwise among their partitions: all of them as told, or none where one lacks room.
    DivideRates {
        changes: Vec<RateChange>,
    },
    /// A partition has committed everything of former layouts; it lies before `end_offset`.
    LayoutSealed {
        group_id: GroupId,
        layout: Layout,
        end_offset: Offset,
    },
    /// A group's offsets approach the ceiling set aside for them (`offset_ceiling` of the group).
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
    /// An assertion stopped the server's replica of a group.
    Quarantined {
        server: ServerId,
        group_id: GroupId,
        reason: String,
    },
    /// An operator's decision that a group which is quarantined as a whole goes on.
    Release {
        group_id: GroupId,
    },
}

impl Command {
    /// Its name in the log.
    pub fn name(&self) -> String {
        let fields = serde_json::to_value(self).unwrap_or_default();
        fields["command"].as_str().unwrap_or("?").to_string()
    }

    /// Whether it can be the cause of an epoch. Such commands wait for the end of a roll call.
    pub fn may_issue_epochs(&self) -> bool {
        !matches!(
            self,
            Command::BeginRun { .. }
                | Command::UseSecrets { .. }
                | Command::IssueJoinToken { .. }
                | Command::RevokeJoinToken { .. }
                | Command::Revoke { .. }
        )
    }

    /// Whether a replacement that found no server may find one afterwards.
    pub fn may_free_capacity(&self) -> bool {
        match self {
            Command::UseProfile { .. }
            | Command::UsePlacement { .. }
            | Command::Register(_)
            | Command::ServersFailed { .. }
            | Command::ServersHung { .. }
            | Command::StorageFault { .. }
            | Command::StorageFaultLasts { .. }
            | Command::PairUnreachable { .. }
            | Command::ServerSlow { .. }
            | Command::CapacityEstimated { .. }
            | Command::Drain { .. }
            | Command::CallOffDrain { .. }
            | Command::Forget { .. }
            | Command::Resize { .. }
            | Command::Relocate(_)
            | Command::SetGuarantee(_)
            | Command::SetPartitions(_)
            | Command::DivideRates { .. }
            | Command::Delete { .. } => true,
            Command::BeginRun { .. }
            | Command::UseSecrets { .. }
            | Command::RaiseFleetVersion { .. }
            | Command::IssueJoinToken { .. }
            | Command::RevokeJoinToken { .. }
            | Command::Revoke { .. }
            | Command::PeerUnreachable { .. }
            | Command::Admit { .. }
            | Command::SetAccess { .. }
            | Command::LayoutSealed { .. }
            | Command::Reset { .. }
            | Command::OffsetsReached { .. }
            | Command::Applied { .. }
            | Command::LearnerCaughtUp { .. }
            | Command::Dropped { .. }
            | Command::Quarantined { .. }
            | Command::Release { .. } => false,
        }
    }
}
