//! Command line and environment (`docs/internals/processes.md`).

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Parser, ValueEnum};
use quorate_one_sided::{Fabric, TransportFlags};
use quorate_types::cost::ResourceVector;
use quorate_types::limits;
use quorate_types::names::host_of;

/// More would only hide that there is no load.
const SPIN_US_MAX: i64 = 10_000;
/// Longer than a hop with its work takes.
const OFI_SPIN_US: u32 = 200;

/// In the order of [`ResourceVector::to_array`].
const CAPACITY_FLAGS: [&str; 3] = ["--cpu", "--network-bytes-per-s", "--storage-io-per-s"];

/// A replica server of Quorate: hosts replicas of many groups. `quorate-replica selftest ofi` tests whether one-sided writes
/// work on this machine.
#[derive(Debug, Clone, Parser)]
#[command(name = "quorate-replica", version)]
pub struct Flags {
    /// Folder for the journal and the server's identity.
    #[arg(long, env = "QUORATE_DATA_DIR")]
    pub data_dir: PathBuf,
    /// Folder for the logs of persistent groups, on a device of its own if there is one; `groups` in the data folder
    /// by default.
    #[arg(long, env = "QUORATE_GROUP_LOGS_DIR")]
    pub group_logs_dir: Option<PathBuf>,
    /// Addresses of the coordinators' control listeners. One is enough to find the others' leader; give all.
    #[arg(long, env = "QUORATE_COORDINATOR", value_delimiter = ',', required = true)]
    pub coordinator: Vec<String>,
    /// File with a join token; needed only until the server has registered once.
    #[arg(long, env = "QUORATE_JOIN_TOKEN_FILE")]
    pub join_token_file: Option<PathBuf>,
    /// Address for clients and peers; port 0 takes a free one.
    #[arg(long, env = "QUORATE_LISTEN", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Address that others connect to, where it is not the one listened on.
    #[arg(long, env = "QUORATE_ADVERTISE")]
    pub advertise: Option<String>,
    /// Threads that serve groups; each group is on one.
    #[arg(long, env = "QUORATE_SHARDS", default_value_t = 1, value_parser = clap::value_parser!(u8).range(1..=64))]
    pub shards: u8,
    /// Name of the server, unique in the fleet; the host's name by default.
    #[arg(long, env = "QUORATE_NAME")]
    pub name: Option<String>,
    /// Domain that fails together with this server: a rack, a zone.
    #[arg(long, env = "QUORATE_FAILURE_DOMAIN")]
    pub failure_domain: Option<String>,
    #[arg(long, env = "QUORATE_REGION", default_value = "local")]
    pub region: String,
    /// Redis for telemetry; without it none is sent.
    #[arg(long, env = "QUORATE_REDIS_URL")]
    pub redis_url: Option<String>,
    /// OTLP endpoint for traces and metrics; without it none are exported.
    #[arg(long, env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    pub otlp_endpoint: Option<String>,
    /// Cores that admission may promise.
    #[arg(long, env = "QUORATE_CPU")]
    pub cpu: Option<f64>,
    /// Network bytes a second, in plus out, that admission may promise.
    #[arg(long, env = "QUORATE_NETWORK_BYTES_PER_S", default_value_t = 1.25e9)]
    pub network_bytes_per_s: f64,
    /// Storage operations a second that admission may promise, as the cost profile counts them: two for each
    /// request of up to 8 KiB. Group commit makes one sync of many, so this is far above the device's own rate.
    #[arg(long, env = "QUORATE_STORAGE_IO_PER_S", default_value_t = 400_000.0)]
    pub storage_io_per_s: f64,
    /// Memory that this server may take. Admission promises it to groups, but for what the server itself needs. By
    /// default three quarters of the machine's, or of the container's.
    #[arg(long, env = "QUORATE_MEMORY_BYTES")]
    pub memory_bytes: Option<u64>,
    /// Disk that this server may fill, where the groups' logs are. Admission promises it, but for a reserve and for the
    /// journal. By default what is free there, and what the server has there already.
    #[arg(long, env = "QUORATE_DISK_BYTES")]
    pub disk_bytes: Option<u64>,
    /// Bytes a second that replicas here may send to others that catch up; by default a share of what admission may
    /// promise of network and storage.
    #[arg(long, env = "QUORATE_CATCHUP_BYTES_PER_S")]
    pub catchup_bytes_per_s: Option<u64>,
    /// Size of one journal segment.
    #[arg(long, env = "QUORATE_JOURNAL_SEGMENT_BYTES", default_value_t = limits::JOURNAL_SEGMENT_BYTES)]
    pub journal_segment_bytes: u64,
    /// Full segments of the journal that wait before the oldest is copied into the groups' logs: what groups trim
    /// meanwhile is never copied. None waits longer than half a minute.
    #[arg(long, env = "QUORATE_JOURNAL_KEEP_SEGMENTS", default_value_t = limits::GROUP_LOG_KEEP_SEGMENTS as u8)]
    pub journal_keep_segments: u8,
    /// Accept clients and peers without TLS too. Anybody who sees the network then sees entries and tokens.
    #[arg(long, env = "QUORATE_ALLOW_PLAINTEXT")]
    pub allow_plaintext: bool,
    /// Connect to peers without TLS; they must all allow it. For measurements.
    #[arg(long, env = "QUORATE_PLAINTEXT_LINKS", requires = "allow_plaintext")]
    pub plaintext_links: bool,
    /// Before a shard sleeps, look so many microseconds long for what comes: saves wake-ups where cores are idle
    /// anyway, and costs a core for each shard while there is load. By default 0, and 200 with --transport ofi.
    #[arg(long, env = "QUORATE_SPIN_US", value_parser = clap::value_parser!(u32).range(..=SPIN_US_MAX))]
    pub spin_us: Option<u32>,
    #[command(flatten)]
    pub transport: TransportFlags,
    /// Result of `selftest ofi --out` on this machine: where it failed, links go by tcp. The coordinator is told.
    #[arg(long, env = "QUORATE_OFI_SELFTEST")]
    pub ofi_selftest: Option<PathBuf>,
    /// Capacity that groups may use above their SLA, as long as nobody else wants it: none, unallocated, or also
    /// unused. All servers of a fleet get the same.
    #[arg(long, env = "QUORATE_SHARE", value_enum, default_value = "off")]
    pub share: Share,
    /// How servers agree on it.
    #[arg(long, env = "QUORATE_SHARE_ALGORITHM", value_enum, default_value = "fleet")]
    pub share_algorithm: ShareAlgorithm,
    /// How often they do.
    #[arg(long, env = "QUORATE_SHARE_INTERVAL_MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(limits::SHARE_INTERVAL_MS_MIN..=limits::SHARE_INTERVAL_MS_MAX))]
    pub share_interval_ms: u64,
    /// Whether lending and admission go by what this server can really do: `lower` where that is less than admission
    /// promises; `raise` also where it is more, which is lent, up to --cpu and --storage-io-per-s.
    #[arg(long, env = "QUORATE_ESTIMATE_CAPACITY", value_enum, default_value = "lower")]
    pub estimate_capacity: EstimateCapacity,
    /// Signal USR1 turns budgets, queues and accounting of all groups off, and on again, to measure what they cost.
    /// Only for a server that listens on loopback.
    #[arg(long, env = "QUORATE_MEASURE_ISOLATION")]
    pub measure_isolation: bool,
    #[arg(long, env = "QUORATE_LOG_FORMAT", value_enum, default_value = "json")]
    pub log_format: LogFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Share {
    Off,
    Unallocated,
    Idle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ShareAlgorithm {
    /// The coordinators compute the rates of all groups; without their answers servers go by level.
    Fleet,
    /// Servers send one another the rise of their load.
    Level,
    /// Heads propose, and followers accept or refuse (Filo).
    Head,
    /// Each server by its own groups (Filo).
    All,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum EstimateCapacity {
    Off,
    Lower,
    Raise,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    Json,
    Text,
}

impl Flags {
    pub fn capacity(&self) -> ResourceVector {
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as f64;
        ResourceVector::new(
            self.cpu.unwrap_or(cores),
            self.network_bytes_per_s,
            self.storage_io_per_s,
        )
    }

    /// One-sided writes, where the operator wants them.
    pub fn one_sided(&self) -> Option<Fabric> {
        self.transport.fabric(self.listen.ip().to_string())
    }

    /// One-sided writes wake nobody by themselves.
    pub fn spin_us(&self) -> u32 {
        let default = if self.transport.is_ofi() { OFI_SPIN_US } else { 0 };
        self.spin_us.unwrap_or(default)
    }

    /// Rate at which replicas here may send to learners, in bytes a second.
    pub fn catchup_bytes_per_s(&self) -> u64 {
        // An operation of the cost profile is one half of a request of up to 8 KiB.
        let storage_bytes_per_s = self.storage_io_per_s * 4096.0;
        let least = self.network_bytes_per_s.min(storage_bytes_per_s);
        let share = least * limits::RECOVERY_SHARE_PERCENT as f64 / 100.0;
        let bytes_per_s = self.catchup_bytes_per_s.unwrap_or(share as u64);
        bytes_per_s.max(limits::CATCHUP_BYTES_PER_S_MIN)
    }

    /// The first flag at fault, and what to do.
    pub fn validate(&self) -> Result<(), String> {
        for (flag, amount) in CAPACITY_FLAGS.iter().zip(self.capacity().to_array()) {
            if !(amount.is_finite() && amount > 0.0) {
                return Err(format!(
                    "{flag} must be a number above 0: of what a server has nothing of, no request could pass"
                ));
            }
        }
        let least = limits::SERVER_MEMORY_BYTES_MIN;
        if self.memory_bytes.is_some_and(|bytes| bytes < least) {
            return Err(format!(
                "--memory-bytes must be at least {least}: a server itself takes most of that"
            ));
        }
        if self
            .catchup_bytes_per_s
            .is_some_and(|b| b < limits::CATCHUP_BYTES_PER_S_MIN)
        {
            let least = limits::CATCHUP_BYTES_PER_S_MIN;
            return Err(format!(
                "--catchup-bytes-per-s must be at least {least}, or catching up never ends"
            ));
        }
        if self.listen.ip().is_unspecified() && self.advertise.is_none() {
            return Err(format!(
                "--listen {} is no address that others can connect to: say with --advertise host:port where this \
                 server is reached; its certificate will carry that host",
                self.listen
            ));
        }
        if let Some(advertise) = &self.advertise
            && host_of(advertise).is_none()
        {
            return Err(format!("--advertise {advertise} must be host:port"));
        }
        if self.measure_isolation && !self.listen.ip().is_loopback() {
            return Err(format!(
                "--measure-isolation lets groups go without budgets: it is refused while --listen {} can be reached \
                 from elsewhere",
                self.listen
            ));
        }
        self.transport.validate()?;
        let least = 4 * u64::from(limits::FRAME_BYTES_MAX);
        if self.journal_segment_bytes < least || !self.journal_segment_bytes.is_multiple_of(4096) {
            return Err(format!(
                "--journal-segment-bytes must be a multiple of 4096 of at least {least}"
            ));
        }
        Ok(())
    }

    pub fn group_logs_dir(&self) -> PathBuf {
        self.group_logs_dir
            .clone()
            .unwrap_or_else(|| self.data_dir.join("groups"))
    }

    pub fn name(&self) -> String {
        let host = || std::fs::read_to_string("/proc/sys/kernel/hostname").map(|s| s.trim().to_string());
        self.name
            .clone()
            .or_else(|| host().ok())
            .unwrap_or_else(|| "server".to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn validated(more: &str) -> Result<(), String> {
        let needed = "quorate-replica --data-dir d --coordinator 127.0.0.1:1";
        let words = needed
            .split(' ')
            .chain(more.split(' ').filter(|word| !word.is_empty()));
        Flags::try_parse_from(words)
            .map_err(|e| e.to_string())?
            .validate()
    }

    #[test]
    fn a_server_has_something_of_each_resource() {
        assert_eq!(validated(""), Ok(()));
        assert_eq!(validated("--network-bytes-per-s 0.5"), Ok(()));
        for flag in CAPACITY_FLAGS {
            for amount in ["0", "-0", "-1", "nan", "inf", "-inf"] {
                let one = format!("{flag}={amount}");
                let said = validated(&one).expect_err(&one);
                assert!(said.starts_with(&format!("{flag} must be")), "{one}: {said}");
            }
        }
    }
}
