//! The way to Redis: a task that sends the contents of the books, and reconnects for ever.
//!
//! Only the task itself waits for Redis. While Redis is unreachable, or has as many entries as it should hold for the
//! worker, records of minutes that are over go to the [spool](crate::spool). Live entries are dropped: nobody needs the
//! chart of a past second.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use quorate_types::ServerId;
use quorate_types::limits::{
    TELEMETRY_RECORDS_PER_ENTRY_MAX, TELEMETRY_SPOOL_ENTRIES_PER_ROUND_MAX, TELEMETRY_STREAM_ENTRIES_MAX,
};
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo};
use serde::Serialize;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::burst_grants::{GrantChange, GrantState, UnsentGrants};
use crate::spool::Spool;
use crate::usage::{LiveEntry, LiveMeter, Process, Sample, UsageBatch, UsageEntry, WindowBook};

pub const USAGE_STREAM: &str = "quorate:usage";
pub const LIVE_STREAM: &str = "quorate:live";
pub const GRANTS_STREAM: &str = "quorate:lending";
/// The worker's word: entries of the usage stream before this one are stored.
pub const STORED_KEY: &str = "quorate:usage:stored";
/// Redis trims the streams to about these lengths: five hours of one server's charts, and five hours of seconds in which
/// burst capacity changed.
const LIVE_ENTRIES_MAX: usize = 20_000;
const GRANTS_ENTRIES_MAX: usize = 20_000;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
const RETRY_DELAY_MIN: Duration = Duration::from_millis(100);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(5);

/// The Redis to publish to, and the identity of the publishing server.
pub struct Publishing {
    client: Client,
    /// The address without its password.
    address: String,
    server_id: ServerId,
    incarnation: String,
    spool: RefCell<Option<Spool>>,
}

impl Publishing {
    /// Checks the address, and does not connect.
    pub fn new(redis_url: &str, server_id: ServerId, incarnation: &str) -> Result<Self, RedisUrlInvalid> {
        let invalid = |error: redis::RedisError| RedisUrlInvalid(error.to_string());
        let info = redis_url.into_connection_info().map_err(invalid)?;
        let address = info.addr().to_string();
        let client = Client::open(info).map_err(invalid)?;
        Ok(Self {
            client,
            address,
            server_id,
            incarnation: incarnation.to_string(),
            spool: RefCell::new(None),
        })
    }

    /// Keeps on disk the records that Redis cannot take in time. Without it memory alone keeps some.
    pub fn with_spool(self, spool: Spool) -> Self {
        self.spool.replace(Some(spool));
        self
    }
}

/// The samples of one second.
#[derive(Debug, Clone)]
pub struct Round {
    pub at_ms: u64,
    pub process: Process,
    pub samples: Vec<Sample>,
    /// Changes of burst capacity since the last second.
    pub grant_changes: Vec<GrantChange>,
    /// The burst capacity of all groups, when its report is due.
    pub grant_states: Option<Vec<GrantState>>,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "not the address of a Redis, such as redis://127.0.0.1:6379/0 (TLS is not supported in this version): {0}"
)]
pub struct RedisUrlInvalid(String);

/// A cheap handle; its clones share the book. It stays on one thread.
#[derive(Clone)]
pub struct Publisher {
    shared: Rc<Shared>,
}

struct Shared {
    publishing: Publishing,
    unsent: RefCell<Unsent>,
    updated: Notify,
    /// Notified after each attempt to send everything.
    attempted: Notify,
    /// Notified to connect without delay.
    hurry: Notify,
}

/// Telemetry that waits for Redis.
#[derive(Default)]
struct Unsent {
    book: WindowBook,
    meter: LiveMeter,
    live: Option<LiveEntry>,
    grants: UnsentGrants,
    at_ms: u64,
    process: Process,
    reported_dropped: u64,
    reported_dropped_files: u64,
}

impl Publisher {
    pub fn new(publishing: Publishing) -> Self {
        let shared = Shared {
            publishing,
            unsent: RefCell::default(),
            updated: Notify::new(),
            attempted: Notify::new(),
            hurry: Notify::new(),
        };
        Self {
            shared: Rc::new(shared),
        }
    }

    /// Takes in one second; [`Publisher::run`] sends it.
    pub fn observe(&self, round: Round) {
        let mut unsent = self.shared.unsent.borrow_mut();
        for sample in &round.samples {
            unsent.book.observe(sample);
            unsent.meter.observe(sample);
        }
        unsent.book.end_round(round.at_ms);
        for change in round.grant_changes {
            unsent.grants.note(change);
        }
        if let Some(states) = round.grant_states {
            unsent.grants.replace_states(states);
        }
        (unsent.at_ms, unsent.process) = (round.at_ms, round.process);
        let groups = unsent.meter.take();
        let (server_id, at_ms) = (self.shared.publishing.server_id.0, round.at_ms);
        unsent.live = (!groups.is_empty()).then_some(LiveEntry {
            v: 1,
            server_id,
            at_ms,
            groups,
        });
        let dropped = unsent.book.dropped();
        if dropped > unsent.reported_dropped {
            tracing::warn!(
                windows = dropped - unsent.reported_dropped,
                "telemetry windows were dropped before they could be sent"
            );
            unsent.reported_dropped = dropped;
        }
        drop(unsent);
        self.spool(|book| book.overdue(round.at_ms, TELEMETRY_RECORDS_PER_ENTRY_MAX));
        self.shared.updated.notify_one();
    }

    /// Puts all unsent records on the disk, for the next process: the last call.
    pub fn keep(&self) {
        self.spool(|book| book.left(TELEMETRY_RECORDS_PER_ENTRY_MAX));
    }

    /// Whether something waits for Redis, in memory or on the disk.
    pub fn has_unsent(&self) -> bool {
        self.shared.unsent.borrow().book.has_pending() || self.spooled_bytes() > 0
    }

    /// Bytes that wait on the disk.
    pub fn spooled_bytes(&self) -> u64 {
        let spool = self.shared.publishing.spool.borrow();
        spool.as_ref().map_or(0, Spool::bytes)
    }

    /// Moves batches from the book to the disk until there is none. Records stay in the book where the disk takes none.
    fn spool(&self, batch_of: impl Fn(&WindowBook) -> UsageBatch) {
        let mut spool = self.shared.publishing.spool.borrow_mut();
        let Some(spool) = spool.as_mut() else { return };
        let mut unsent = self.shared.unsent.borrow_mut();
        let now_s = unsent.at_ms / 1000;
        spool.forget_old(now_s);
        loop {
            let batch = batch_of(&unsent.book);
            if batch.records.is_empty() {
                break;
            }
            if let Err(error) = spool.append(&self.shared.publishing.incarnation, &batch.records, now_s) {
                tracing::warn!(%error, "telemetry cannot be kept on the disk; memory keeps some of it");
                break;
            }
            unsent.book.mark_spooled(&batch.marks);
        }
        let dropped = spool.dropped_files();
        if dropped > unsent.reported_dropped_files {
            let files = dropped - unsent.reported_dropped_files;
            tracing::warn!(files, "files of telemetry were dropped before they could be sent");
            unsent.reported_dropped_files = dropped;
        }
    }

    /// Sends, and reconnects, for ever.
    pub async fn run(&self) {
        let mut delay = RETRY_DELAY_MIN;
        let mut is_away = false;
        loop {
            let reason = match self.connect().await {
                Ok(connection) => {
                    if is_away {
                        tracing::info!(redis = self.shared.publishing.address, "telemetry is sent again");
                    }
                    is_away = false;
                    let connected_at = Instant::now();
                    let reason = self.send_while_connected(connection).await;
                    if connected_at.elapsed() > RETRY_DELAY_MAX {
                        delay = RETRY_DELAY_MIN;
                    }
                    reason
                }
                Err(reason) => reason,
            };
            if !is_away {
                tracing::warn!(
                    redis = self.shared.publishing.address,
                    reason,
                    "Redis is unreachable; telemetry is kept and sent later"
                );
            }
            is_away = true;
            self.shared.attempted.notify_waiters();
            let _hurried = tokio::time::timeout(delay, self.shared.hurry.notified())
                .await
                .is_ok();
            delay = (delay * 2).min(RETRY_DELAY_MAX);
        }
    }

    /// Waits for one attempt to send everything. The caller bounds the time.
    pub async fn flush(&self) {
        let attempted = self.shared.attempted.notified();
        self.shared.updated.notify_one();
        self.shared.hurry.notify_one();
        attempted.await;
    }

    async fn connect(&self) -> Result<MultiplexedConnection, String> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(CONNECT_TIMEOUT))
            .set_response_timeout(Some(ANSWER_TIMEOUT));
        let connection = self
            .shared
            .publishing
            .client
            .get_multiplexed_async_connection_with_config(&config)
            .await;
        let connection = connection.map_err(|e| e.to_string())?;
        self.shared.unsent.borrow_mut().book.send_again();
        Ok(connection)
    }

    async fn send_while_connected(&self, mut connection: MultiplexedConnection) -> String {
        loop {
            if let Err(error) = self.send_all(&mut connection).await {
                return error.to_string();
            }
            self.shared.attempted.notify_waiters();
            self.shared.updated.notified().await;
        }
    }

    async fn send_all(&self, connection: &mut MultiplexedConnection) -> redis::RedisResult<()> {
        let live = self.shared.unsent.borrow_mut().live.take();
        if let Some(live) = live {
            add(connection, LIVE_STREAM, Some(LIVE_ENTRIES_MAX), &live).await?;
        }
        let server_id = self.shared.publishing.server_id.0;
        loop {
            let pending = self.shared.unsent.borrow().grants.pending(server_id);
            let Some(entry) = pending else { break };
            add(connection, GRANTS_STREAM, Some(GRANTS_ENTRIES_MAX), &entry).await?;
            self.shared.unsent.borrow_mut().grants.sent(&entry);
        }
        if !self.has_room(connection).await? {
            return Ok(());
        }
        loop {
            let batch = {
                let mut unsent = self.shared.unsent.borrow_mut();
                unsent.book.pending(TELEMETRY_RECORDS_PER_ENTRY_MAX)
            };
            if batch.records.is_empty() {
                break;
            }
            let incarnation = &self.shared.publishing.incarnation;
            let entry = self.usage_entry(incarnation, &batch.records);
            add(connection, USAGE_STREAM, None, &entry).await?;
            self.shared.unsent.borrow_mut().book.mark_sent(&batch.marks);
        }
        self.send_spooled(connection).await
    }

    /// Whether the stream has room. Removes what is stored from it.
    async fn has_room(&self, connection: &mut MultiplexedConnection) -> redis::RedisResult<bool> {
        let mut asked = redis::pipe();
        asked.cmd("GET").arg(STORED_KEY).cmd("XLEN").arg(USAGE_STREAM);
        let (stored, entries): (Option<String>, usize) = asked.query_async(connection).await?;
        if let Some(id) = stored.filter(|id| is_entry_id(id)) {
            let mut trim = redis::cmd("XTRIM");
            trim.arg(USAGE_STREAM).arg("MINID").arg("~").arg(id);
            trim.exec_async(connection).await?;
        }
        Ok(entries < TELEMETRY_STREAM_ENTRIES_MAX)
    }

    /// Sends some of what is on the disk.
    async fn send_spooled(&self, connection: &mut MultiplexedConnection) -> redis::RedisResult<()> {
        for _ in 0..TELEMETRY_SPOOL_ENTRIES_PER_ROUND_MAX {
            let next = self
                .shared
                .publishing
                .spool
                .borrow_mut()
                .as_mut()
                .and_then(Spool::first);
            let Some(block) = next else { break };
            let entry = self.usage_entry(&block.incarnation, &block.records);
            add(connection, USAGE_STREAM, None, &entry).await?;
            if let Some(spool) = self.shared.publishing.spool.borrow_mut().as_mut() {
                spool.mark_sent();
            }
        }
        Ok(())
    }

    fn usage_entry<'a, R: ?Sized>(&self, incarnation: &'a str, records: &'a R) -> UsageEntry<'a, R> {
        let unsent = self.shared.unsent.borrow();
        UsageEntry {
            v: 1,
            server_id: self.shared.publishing.server_id.0,
            incarnation,
            at_ms: unsent.at_ms,
            process: unsent.process,
            records,
        }
    }
}

fn is_entry_id(text: &str) -> bool {
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    text.split_once('-')
        .is_some_and(|(ms, number)| is_number(ms) && is_number(number))
}

async fn add(
    connection: &mut MultiplexedConnection,
    stream: &str,
    entries_max: Option<usize>,
    entry: &impl Serialize,
) -> redis::RedisResult<()> {
    let json = serde_json::to_string(entry).expect("an entry is plain data");
    let mut command = redis::cmd("XADD");
    command.arg(stream);
    if let Some(entries_max) = entries_max {
        command.arg("MAXLEN").arg("~").arg(entries_max);
    }
    command.arg("*").arg("d").arg(json);
    command.exec_async(connection).await
}
