//! Messages of the control connection between a replica server and the coordinator
//! (`docs/internals/coordinator.md`). JSON in `u32`-length frames; unknown fields are ignored. Each message to a server
//! stands in a [`Placed`].

use serde::{Deserialize, Serialize};

use crate::config::{GroupConfig, GroupId, GroupState, Layout, Role, ServerId};
use crate::cost::ResourceVector;
use crate::durability::Durability;
use crate::limits::{LINK_TRANSPORT_CHARS_MAX, SHARING_ENTRIES_MAX};
use crate::machine::Machine;
use crate::place::{ConfigDigest, Place};
use crate::revocation::Revocation;
use crate::space::Room;
use crate::versions::Versions;
use crate::{Epoch, Index, Micros, Offset};

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum ToCoordinator {
    /// Comes before `Register`, from a server that holds more groups than one message names: some of them. `Register`
    /// has the last ones. A coordinator that does not know this message refuses the server, and decides nothing on a part.
    Held {
        groups: Vec<HeldGroup>,
    },
    Register(Box<Register>),
    Heartbeat(Heartbeat),
    /// Asks for a new certificate before the old one ends; answered by [`ToServer::Certificate`].
    RenewCertificate {
        request_pem: String,
    },
    /// The server has adopted this epoch's configuration. The digest is that of the configuration it goes by, which may be
    /// another than the one it was just sent. Older servers do not say.
    Applied {
        group_id: GroupId,
        epoch: Epoch,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        digest: Option<ConfigDigest>,
    },
    /// The server forgot the group and its data. `epoch`: of the order; servers of earlier releases do not say it.
    Dropped {
        group_id: GroupId,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        epoch: Option<Epoch>,
    },
    /// Sent by the tail: the learner holds all that the tail holds.
    LearnerCaughtUp {
        group_id: GroupId,
        epoch: Epoch,
        learner: ServerId,
    },
    /// Sent by the head of a partition: everything of former layouts lies before `end_offset`, and is committed.
    /// Only a coordinator that names layouts takes it.
    LayoutSealed {
        group_id: GroupId,
        layout: Layout,
        end_offset: Offset,
    },
    /// An interval of sharing has begun. Only a coordinator whose welcome says so takes it.
    Sharing(SharingReport),
    /// Groups whose heads are here, and that may use a part of their project's guarantee. Only a coordinator whose welcome says
    /// so takes it.
    Flows(FlowReport),
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
    /// As in a heartbeat: a server that hangs is not let in.
    #[serde(default)]
    pub hung_ms: u64,
    /// A certificate signing request for the server's own key, in PEM. Only its key counts.
    #[serde(default)]
    pub certificate_request_pem: Option<String>,
    /// The last place in the coordinator's log that it was told, by its disk. Older servers do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// Versions of these messages that it speaks. Older servers do not say: the first.
    #[serde(default)]
    pub versions: Versions,
    /// Versions of the fleet that it can be part of. Older servers do not say: the first.
    #[serde(default)]
    pub fleet_versions: Versions,
    /// How its links to other servers go. Older servers do not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<LinkTransport>,
}

/// How a server's links to other servers go, by its own words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkTransport {
    /// `tcp`, or `ofi`: one-sided writes to servers that have them, too.
    pub transport: String,
    /// libfabric's provider that the server was started with, or that was tested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The outcome of the machine's self-test, for people; or why links go by tcp all the same.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selftest: Option<String>,
}

impl LinkTransport {
    /// Cut to what anybody needs to read.
    pub fn shortened(self) -> Self {
        let cut = |words: String| words.chars().take(LINK_TRANSPORT_CHARS_MAX).collect::<String>();
        Self {
            transport: cut(self.transport),
            provider: self.provider.map(cut),
            selftest: self.selftest.map(cut),
        }
    }
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
    /// Present: `groups` has only those that changed since the last heartbeat on this connection. Absent: it has all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub changes: Option<ReportChanges>,
    /// Replicas that an assertion stopped in this process, until the server drops them. All of them each time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quarantined: Vec<QuarantinedReplica>,
    /// The longest time for which one of its shards has not ticked, or a write or sync of its journal has been under way.
    /// Heartbeats do not come from those threads, so only this tells. Older servers do not say.
    #[serde(default)]
    pub hung_ms: u64,
    /// Absent where nothing is estimated, and from older servers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub estimated: Option<Box<EstimatedCapacity>>,
}

/// The capacity that a server really has, by its own measurements (Pulsar §4.3).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct EstimatedCapacity {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CapacityEstimate>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_io: Option<CapacityEstimate>,
}

/// The estimate of one resource.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapacityEstimate {
    /// In the unit of the capacity that the server registered with: cores, or operations each second.
    pub capacity: f64,
    /// `increasing`, `reverted`, `waiting` or `stable`, for people.
    pub phase: String,
    /// A saturated resource has shown it. Otherwise it is an assumption.
    pub is_measured: bool,
    /// The part of the registered capacity that admission should go by, in thousandths: the estimate has been no higher for
    /// long. 1000: there is no reason to promise less.
    pub lasting_permille: u16,
}

impl EstimatedCapacity {
    /// Phases cut to what anybody needs to read.
    pub fn shortened(self) -> Self {
        let cut = |one: CapacityEstimate| CapacityEstimate {
            phase: one.phase.chars().take(LINK_TRANSPORT_CHARS_MAX).collect(),
            ..one
        };
        Self {
            cpu: self.cpu.map(cut),
            storage_io: self.storage_io.map(cut),
        }
    }

    /// In the order of [`crate::cost::RESOURCES`], in thousandths.
    pub fn lasting_permille(&self) -> [u16; 3] {
        let of = |one: &Option<CapacityEstimate>| {
            let lasting = one.as_ref().map_or(1_000, |one| one.lasting_permille);
            lasting.clamp(1, 1_000)
        };
        [of(&self.cpu), 1_000, of(&self.storage_io)]
    }
}

/// A server's part of what is shared in an interval (`docs/internals/allocation.md`, "Who computes"). Reports of one interval
/// belong together.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharingReport {
    /// The number of the interval that has begun.
    pub interval: u64,
    /// Its length.
    pub interval_us: Micros,
    /// CPU, network and storage IO that nobody here needs, in thousandths of tokens each second.
    pub free: [u64; 3],
    /// Groups whose heads are here, and that want more than they reserved, or use more.
    pub wants: Vec<SharingWant>,
}

impl SharingReport {
    /// The same in several messages, none too long.
    pub fn parts(&self) -> Vec<Self> {
        let part = |wants: &[SharingWant]| Self {
            wants: wants.to_vec(),
            ..*self
        };
        if self.wants.is_empty() {
            return vec![part(&[])];
        }
        self.wants.chunks(SHARING_ENTRIES_MAX).map(part).collect()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharingWant {
    pub group_id: GroupId,
    pub epoch: Epoch,
    /// Requests/s that it wants above its reservation.
    pub extra_per_s: u64,
    /// The interval of the grant in use, if there is one; other grants are over.
    pub using: Option<u64>,
}

/// A group's rate above its reservation, as computed from the reports of all servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SharedRate {
    pub group_id: GroupId,
    pub epoch: Epoch,
    pub per_s: u64,
    /// The head's report: its interval, and the interval of the grant that it used.
    pub interval: u64,
    pub using: Option<u64>,
}

/// A server's groups that may use a part of their project's guarantee (`docs/internals/allocation.md`, "Guarantees of
/// projects"). A report has all of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FlowReport {
    /// Random for each connection. Shares that were told on an earlier one are in use only if `flows` has them.
    pub stream: u64,
    /// The last decision of this stream that is carried out; 0: none.
    pub decision: u64,
    pub flows: Vec<GroupFlow>,
    /// Rates that partitions want, of all that have their heads here. Reported once a second.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub partitions: Vec<PartitionWant>,
}

/// The rate that a partition wants in all, in requests/s of the declared size.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct PartitionWant {
    pub group_id: GroupId,
    pub wanted_per_s: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupFlow {
    pub group_id: GroupId,
    /// Requests/s of the declared size that it wants beside its own rate.
    pub wanted_per_s: u64,
    /// Its share of the guarantee, and the idle capacity that it may use beside it, in use now. `None`: all that it gets.
    pub share_per_s: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_max_per_s: Option<u64>,
}

/// A group's share of its project's guarantee, as long as its head stays the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GroupShare {
    pub group_id: GroupId,
    /// Requests/s of the declared size beside its own rate; `None`: it has no share any more, and reports none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_s: Option<u64>,
    /// Idle capacity that it may use beside that; `None`: all that it gets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idle_max_per_s: Option<u64>,
}

/// A replica that an assertion stopped: it is served no more by this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuarantinedReplica {
    pub group_id: GroupId,
    /// The epoch that it was in.
    pub epoch: Epoch,
    /// The assertion, for people.
    pub reason: String,
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

/// The meaning of a heartbeat's `groups` when it has changed ones alone ([`crate::reports`]).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReportChanges {
    /// All earlier reports are forgotten: `groups` begins anew.
    pub begins: bool,
    /// Some groups were never named: they are in the next heartbeats.
    pub continues: bool,
    /// Groups that are here no more.
    pub gone: Vec<GroupId>,
    /// All reports as the coordinator has them after this heartbeat.
    pub sum: ReportSum,
}

/// A number and a digest of reports, by which both sides notice that they differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ReportSum {
    pub groups: u64,
    /// The wrapping sum of [`GroupReport::digest`].
    pub digest: u64,
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

/// A message with the place of the log that it follows from. Older coordinators name none; older servers ignore it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Placed {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    #[serde(flatten)]
    pub message: ToServer,
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
    /// Another coordinator leads. The connection ends, and nothing was done.
    NotLeader {
        /// Its control address, if it is known.
        leader: Option<String>,
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
        /// The coordinator has other reports than the heartbeat's sum says: the next one begins anew.
        #[serde(default)]
        repeat: bool,
        /// The coordinator's wall clock; an older coordinator does not say.
        #[serde(default)]
        unix_ms: Option<u64>,
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
    /// Tokens of these credentials are refused from now on, and connections that showed one are closed.
    Revoked {
        revocations: Vec<Revocation>,
    },
    /// Admission promises another share of the server's capacity from now on, as in the welcome. A cost profile with
    /// another safety factor is in use.
    PromisedShare {
        share: f64,
    },
    /// The fleet's version was raised: its forms may be written from now on.
    FleetVersion {
        version: u16,
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
    /// Rates above reservations, for groups with a replica on this server, of all that share free amounts. Sent to servers
    /// that report what they share. Rates of an earlier round are over, and so are intervals before this one.
    Shares {
        round: u64,
        interval: u64,
        rates: Vec<SharedRate>,
    },
    /// Shares of projects' guarantees for groups whose heads are on this server; other groups' are as before. Sent to servers
    /// that report flows.
    ProjectShares {
        /// The stream of the report that this answers: on another connection it means nothing.
        stream: u64,
        /// Rises with each message.
        decision: u64,
        /// Reserved on this server for shared guarantees, in thousandths of tokens each second: it is not lent.
        #[serde(default)]
        reserved_milli: [u64; 3],
        shares: Vec<GroupShare>,
    },
    /// The group is quarantined as a whole in this epoch. A server that has its replica in quarantine answers clients
    /// `group_quarantined`, until a later epoch. Sent to such servers alone.
    Quarantined {
        group_id: GroupId,
        epoch: Epoch,
    },
}

impl ToServer {
    /// The group, and the epoch in which this server is not its head any more, if the message orders one.
    pub fn deposes(&self, me: ServerId) -> Option<(GroupId, Epoch)> {
        match self {
            ToServer::Configure { config } => {
                let is_head = config.head().is_some_and(|head| head.server_id == me);
                (!is_head).then_some((config.group_id, config.epoch))
            }
            ToServer::Drop { group_id, epoch } => Some((*group_id, epoch + 1)),
            _ => None,
        }
    }

    /// Whether the place that came with it is kept before it is obeyed. It changes what the server holds, or gives it a
    /// credential, which an older copy of the coordinator's log may not know.
    pub fn waits_for_place(&self) -> bool {
        match self {
            ToServer::Welcome(welcome) => welcome.credential.is_some(),
            ToServer::Configure { .. } | ToServer::Drop { .. } | ToServer::Lost { .. } => true,
            ToServer::Refuse { .. }
            | ToServer::NotLeader { .. }
            | ToServer::HeartbeatAck { .. }
            | ToServer::PeerToken { .. }
            | ToServer::Certificate { .. }
            | ToServer::ClientKeys { .. }
            | ToServer::Revoked { .. }
            | ToServer::PromisedShare { .. }
            | ToServer::FleetVersion { .. }
            | ToServer::Drain { .. }
            | ToServer::Shares { .. }
            | ToServer::ProjectShares { .. }
            | ToServer::Quarantined { .. } => false,
        }
    }
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
    /// Credentials whose tokens are refused. An older coordinator does not say: none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub revoked: Vec<Revocation>,
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
    /// The coordinator takes heartbeats with changed groups alone. Older ones take all groups each time.
    #[serde(default)]
    pub takes_changes: bool,
    /// The coordinator computes what is shared, from [`SharingReport`]s. Older ones do not.
    #[serde(default)]
    pub takes_sharing: bool,
    /// The coordinator divides projects' guarantees, from [`FlowReport`]s. Older ones do not.
    #[serde(default)]
    pub takes_flows: bool,
    /// The coordinator's wall clock; an older coordinator does not say.
    #[serde(default)]
    pub unix_ms: Option<u64>,
    /// The term in which the coordinator leads; an older coordinator does not say.
    #[serde(default)]
    pub term: Option<u64>,
    /// The version of this connection: the newest that both speak. An older coordinator does not say: the first.
    #[serde(default = "first")]
    pub version: u16,
    /// The fleet's version; an older coordinator does not say: the first.
    #[serde(default = "first")]
    pub fleet_version: u16,
}

fn first() -> u16 {
    1
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::place::RunId;

    #[test]
    fn a_place_stands_beside_the_fields_of_its_message_and_may_be_absent() {
        let place = Some(Place {
            run: RunId(u64::MAX),
            position: 9,
        });
        let message = ToServer::HeartbeatAck {
            seq: 4,
            unix_ms: Some(7),
            repeat: false,
        };
        let placed = Placed { place, message };
        let text = serde_json::to_string(&placed).unwrap();
        let fields: serde_json::Value = serde_json::from_str(&text).unwrap();
        let run = u64::MAX;
        let expected = json!({
            "type": "heartbeat_ack", "seq": 4, "repeat": false, "unix_ms": 7, "place": {"run": run, "position": 9},
        });
        assert_eq!(fields, expected);
        assert_eq!(serde_json::from_str::<Placed>(&text).unwrap(), placed);
        // An older server, and an older coordinator.
        assert_eq!(serde_json::from_str::<ToServer>(&text).unwrap(), placed.message);
        let bare: Placed = serde_json::from_str(r#"{"type":"heartbeat_ack","seq":4}"#).unwrap();
        assert_eq!(bare.place, None);
    }
}
