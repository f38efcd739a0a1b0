//! The way to Redis: a task that sends the contents of the books, and reconnects for ever.
//!
//! Only the task itself waits for Redis. While Redis is unreachable the books grow up to their bounds, and live entries are
//! dropped: nobody needs the chart of a past second.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use quorate_types::ServerId;
use quorate_types::limits::TELEMETRY_RECORDS_PER_ENTRY_MAX;
use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, IntoConnectionInfo};
use serde::Serialize;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::burst_grants::{GrantChange, GrantState, UnsentGrants};
use crate::usage::{LiveEntry, LiveMeter, Process, Sample, UsageEntry, WindowBook};

pub const USAGE_STREAM: &str = "quorate:usage";
pub const LIVE_STREAM: &str = "quorate:live";
pub const GRANTS_STREAM: &str = "quorate:lending";
/// Redis trims the streams to about these lengths: two days of one server's seconds, and five hours of charts. The last is
/// five hours of seconds in which burst capacity changed.
const USAGE_ENTRIES_MAX: usize = 200_000;
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
        })
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
        self.shared.updated.notify_one();
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
            add(connection, LIVE_STREAM, LIVE_ENTRIES_MAX, &live).await?;
        }
        let server_id = self.shared.publishing.server_id.0;
        loop {
            let pending = self.shared.unsent.borrow().grants.pending(server_id);
            let Some(entry) = pending else { break };
            add(connection, GRANTS_STREAM, GRANTS_ENTRIES_MAX, &entry).await?;
            self.shared.unsent.borrow_mut().grants.sent(&entry);
        }
        loop {
            let (batch, at_ms, process) = {
                let mut unsent = self.shared.unsent.borrow_mut();
                (
                    unsent.book.pending(TELEMETRY_RECORDS_PER_ENTRY_MAX),
                    unsent.at_ms,
                    unsent.process,
                )
            };
            if batch.records.is_empty() {
                return Ok(());
            }
            let entry = UsageEntry {
                v: 1,
                server_id: self.shared.publishing.server_id.0,
                incarnation: &self.shared.publishing.incarnation,
                at_ms,
                process,
                records: &batch.records,
            };
            add(connection, USAGE_STREAM, USAGE_ENTRIES_MAX, &entry).await?;
            self.shared.unsent.borrow_mut().book.mark_sent(&batch.marks);
        }
    }
}

async fn add(
    connection: &mut MultiplexedConnection,
    stream: &str,
    entries_max: usize,
    entry: &impl Serialize,
) -> redis::RedisResult<()> {
    let json = serde_json::to_string(entry).expect("an entry is plain data");
    let mut command = redis::cmd("XADD");
    command
        .arg(stream)
        .arg("MAXLEN")
        .arg("~")
        .arg(entries_max)
        .arg("*")
        .arg("d")
        .arg(json);
    command.exec_async(connection).await
}
