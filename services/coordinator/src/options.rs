//! Flags of `quorate-coordinator`, each also an environment variable `QUORATE_<FLAG>`.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};

use quorate_coordinator_core::command::{Headroom, Mismatched};
use quorate_coordinator_core::state::Overpromising;
use quorate_one_sided::TransportFlags;
use quorate_policies::Policy;
use quorate_types::limits::{HANGING_MS, SLOW_REPORT_MS};

/// Admits groups, places their replicas, detects failures and issues epochs.
#[derive(Debug, Clone, Parser)]
#[command(
    name = "quorate-coordinator",
    version,
    after_help = "Commands for operators, each with --help: status, step-down, replace, remove, lead-alone"
)]
pub struct Options {
    /// Folder for the log of commands, the certificate of the fleet's authority, and addresses.json
    #[arg(long, env = "QUORATE_DATA_DIR")]
    pub data_dir: PathBuf,
    /// Address for replica servers; port 0 takes a free one
    #[arg(long, env = "QUORATE_LISTEN_CONTROL", default_value = "127.0.0.1:7400")]
    pub listen_control: SocketAddr,
    /// Address for the API; port 0 takes a free one
    #[arg(long, env = "QUORATE_LISTEN_HTTP", default_value = "127.0.0.1:7401")]
    pub listen_http: SocketAddr,
    /// Address for other coordinators; port 0 takes a free one. Without it this one stays alone
    #[arg(long, env = "QUORATE_LISTEN_MEMBERS")]
    pub listen_members: Option<SocketAddr>,
    /// Address under which other coordinators reach this one; default: --listen-members
    #[arg(long, env = "QUORATE_ADVERTISE_MEMBERS")]
    pub advertise_members: Option<String>,
    /// Address under which servers reach this one, told by the others while it leads; default: --listen-control
    #[arg(long, env = "QUORATE_ADVERTISE_CONTROL")]
    pub advertise_control: Option<String>,
    /// The same for callers of the HTTP interface; default: --listen-http
    #[arg(long, env = "QUORATE_ADVERTISE_HTTP")]
    pub advertise_http: Option<String>,
    /// Addresses of coordinators of the fleet, of which an empty --data-dir is to become another
    #[arg(long, env = "QUORATE_JOIN", value_delimiter = ',')]
    pub join: Vec<String>,
    /// With an empty --data-dir, begin the fleet once all of --join are there and their folders are empty as well. For one
    /// coordinator of a new fleet, which may keep it: where a fleet is, or may be, it joins that
    #[arg(long, env = "QUORATE_BEGIN", requires = "join")]
    pub begin: bool,
    /// File of mode 0600 with the key that all coordinators of the fleet have, by default fleet.key in --data-dir. The first
    /// coordinator makes it; copy it to the others. Elsewhere than on the disk of the log it protects a stolen disk
    #[arg(long, env = "QUORATE_FLEET_KEY_FILE", conflicts_with = "fleet_key_command")]
    pub fleet_key_file: Option<PathBuf>,
    /// Shell command that prints the key instead, for example of a key service
    #[arg(long, env = "QUORATE_FLEET_KEY_COMMAND")]
    pub fleet_key_command: Option<String>,
    #[command(flatten)]
    pub transport: TransportFlags,
    /// Cost profile (services/crates/placement/profiles/README.md); an estimate is built in
    #[arg(long, env = "QUORATE_PROFILE")]
    pub profile: Option<PathBuf>,
    /// Treatment of servers whose processor, number of cores or version differs from the profile's
    #[arg(long, env = "QUORATE_FOREIGN_PROFILE", value_enum, default_value_t = MismatchedProfile::Warn)]
    pub foreign_profile: MismatchedProfile,
    /// Treatment of a profile by whose costs the groups of a server need more than may be promised of it
    #[arg(long, env = "QUORATE_OVERPROMISING_PROFILE", value_enum, default_value_t = OverpromisingProfile::Refuse)]
    pub overpromising_profile: OverpromisingProfile,
    /// Share of each server that is kept from new groups, as room for replicas of failed servers: percent, or one-domain.
    /// One-domain is an N-th in a region with N failure domains, of which there must be four
    #[arg(
        long,
        env = "QUORATE_RECOVERY_HEADROOM",
        default_value = "0",
        value_name = "SHARE"
    )]
    pub recovery_headroom: Headroom,
    /// How capacity that nobody uses is shared among groups that want more than their SLAs. All coordinators get the same
    #[arg(long, env = "QUORATE_SHARING_POLICY", value_enum, default_value_t = SharingPolicy::Drf)]
    pub sharing_policy: SharingPolicy,
    /// JWKS file with the Ed25519 keys that sign clients' tokens
    #[arg(long, env = "QUORATE_TOKEN_PUBLIC_KEYS")]
    pub token_public_keys: PathBuf,
    /// File of mode 0600 with the token that calls to the HTTP interface must carry
    #[arg(long, env = "QUORATE_ADMIN_TOKEN_FILE")]
    pub admin_token_file: PathBuf,
    /// How long a silent server keeps its lease
    #[arg(long, env = "QUORATE_LEASE_MS", default_value_t = 1_000)]
    pub lease_ms: u64,
    /// How often servers send heartbeats; a lease must hold at least three
    #[arg(long, env = "QUORATE_HEARTBEAT_MS", default_value_t = 200)]
    pub heartbeat_ms: u64,
    /// How long a server whose connection broke may take to reconnect
    #[arg(long, env = "QUORATE_RECONNECT_GRACE_MS", default_value_t = 300)]
    pub reconnect_grace_ms: u64,
    /// How long syncs, messages or records may wait for a server before its replicas are moved away
    #[arg(long, env = "QUORATE_SLOW_MS", default_value_t = 800)]
    pub slow_ms: u64,
    /// How long a thread, or a sync, of a server may hang before it counts as failed
    #[arg(long, env = "QUORATE_HUNG_MS", default_value_t = 1_000)]
    pub hung_ms: u64,
    /// How long two servers that have their leases may report one another unreachable before one leaves their groups; they do
    /// so after half a second of silence
    #[arg(long, env = "QUORATE_UNREACHABLE_MS", default_value_t = 150)]
    pub unreachable_ms: u64,
    /// How long a slow server, or such a pair, must go unreported before it is trusted again, at most: a twelfth of it after the
    /// first time, and twice as long after each further one
    #[arg(long, env = "QUORATE_WELL_MS", default_value_t = 60_000)]
    pub well_ms: u64,
    /// OpenTelemetry collector; nothing is exported when unset
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub otlp_endpoint: Option<String>,
    /// json: one object a line, for machines; text: for people
    #[arg(long, env = "QUORATE_LOG_FORMAT", value_enum, default_value_t = LogFormat::Json)]
    pub log_format: LogFormat,
    /// How long servers' certificates are good; each server renews its own at half of it
    #[arg(long, env = "QUORATE_CERTIFICATE_LIFE_S", default_value_t = 86_400)]
    pub certificate_life_s: u64,
    /// Take HTTP without TLS from other machines too, not from this one alone; the admin token is then visible on the network
    #[arg(long, env = "QUORATE_ALLOW_PLAINTEXT")]
    pub allow_plaintext: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum MismatchedProfile {
    /// They are used, and the log says that the profile does not match.
    Warn,
    /// They take no new replicas. A profile under which servers in use would take none is not put in use.
    Refuse,
}

impl MismatchedProfile {
    pub fn treatment(self) -> Mismatched {
        match self {
            Self::Warn => Mismatched::Used,
            Self::Refuse => Mismatched::Refused,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum OverpromisingProfile {
    /// It is not put in use: each promise that was made holds by the profile in use.
    Refuse,
    /// It is put in use: new groups are admitted by it, and promises may be broken that were made before.
    Use,
}

impl OverpromisingProfile {
    pub fn treatment(self) -> Overpromising {
        match self {
            Self::Refuse => Overpromising::Refused,
            Self::Use => Overpromising::Used,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SharingPolicy {
    /// Equal dominant shares for all groups.
    Drf,
    /// Equal dominant shares for projects, and for the groups of each: a project with more groups gets no more.
    HierarchicalDrf,
    /// In the order in which groups were created, each as much as it wants.
    FirstFit,
}

impl From<SharingPolicy> for Policy {
    fn from(policy: SharingPolicy) -> Self {
        match policy {
            SharingPolicy::Drf => Self::Drf,
            SharingPolicy::HierarchicalDrf => Self::HierarchicalDrf,
            SharingPolicy::FirstFit => Self::FirstFit,
        }
    }
}

/// Seconds are for tests. A stolen key is good for as long as its certificate, so there is a longest lifetime, too.
const CERTIFICATE_LIFE_S: std::ops::RangeInclusive<u64> = 2..=90 * 86_400;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Json,
    Text,
}

impl Options {
    fn members_problem(&self) -> Option<String> {
        let Some(listen) = self.listen_members else {
            let is_alone = self.join.is_empty();
            return (!is_alone)
                .then(|| "--join needs --listen-members: the others send the log there".into());
        };
        let is_anywhere = listen.ip().is_unspecified() && self.advertise_members.is_none();
        is_anywhere.then(|| {
            format!("--listen-members {listen} is no address that others can reach: name one with --advertise-members")
        })
    }

    pub fn fleet_key_path(&self) -> PathBuf {
        let own = || self.data_dir.join("fleet.key");
        self.fleet_key_file.clone().unwrap_or_else(own)
    }

    /// The first contradiction between options, which clap cannot see.
    pub fn problem(&self) -> Option<String> {
        if let Some(problem) = self.members_problem() {
            return Some(problem);
        }
        if let Err(problem) = self.transport.validate() {
            return Some(problem);
        }
        if !CERTIFICATE_LIFE_S.contains(&self.certificate_life_s) {
            return Some(format!(
                "--certificate-life-s {} must be {} to {}",
                self.certificate_life_s,
                CERTIFICATE_LIFE_S.start(),
                CERTIFICATE_LIFE_S.end()
            ));
        }
        if self.heartbeat_ms == 0 || self.lease_ms < 3 * self.heartbeat_ms {
            return Some(format!(
                "--lease-ms {} must be at least three times --heartbeat-ms {}, so that one lost heartbeat fails nobody",
                self.lease_ms, self.heartbeat_ms
            ));
        }
        if self.slow_ms < SLOW_REPORT_MS {
            return Some(format!(
                "--slow-ms {} must be at least {SLOW_REPORT_MS}: servers report nothing that waits for less",
                self.slow_ms
            ));
        }
        if self.hung_ms < HANGING_MS {
            return Some(format!(
                "--hung-ms {} must be at least {HANGING_MS}: a sync of a slow disk, and a thread of a busy machine, take \
                 as long",
                self.hung_ms
            ));
        }
        if self.well_ms < self.slow_ms.max(self.unreachable_ms) {
            return Some(
                "--well-ms must be at least --slow-ms and --unreachable-ms, or replicas would move to and fro".into(),
            );
        }
        if self.lease_ms > 600_000 {
            return Some("--lease-ms must be at most 600000: failures would go unnoticed for longer".into());
        }
        (self.reconnect_grace_ms > self.lease_ms)
            .then(|| "--reconnect-grace-ms must not exceed --lease-ms, which ends the wait anyway".into())
    }
}
