//! The way to Redis: a task that sends what the book holds, and connects again for ever.
//!
//! Nothing here waits for Redis but the task itself. While Redis is away the book grows up to its bound, and live
//! entries are dropped: nobody needs the chart of a past second.

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

use crate::lending::{Change, LendingBook, Standing};
use crate::usage::{LiveEntry, LiveMeter, Process, Sample, UsageEntry, WindowBook};

pub const USAGE_STREAM: &str = "quorate:usage";
pub const LIVE_STREAM: &str = "quorate:live";
pub const LENDING_STREAM: &str = "quorate:lending";
/// Redis trims the streams to about these lengths: two days of one server's seconds, five hours of charts, and as
/// many seconds in which what is lent changed.
const USAGE_ENTRIES_MAX: usize = 200_000;
const LIVE_ENTRIES_MAX: usize = 20_000;
const LENDING_ENTRIES_MAX: usize = 20_000;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);
const RETRY_DELAY_MIN: Duration = Duration::from_millis(100);
const RETRY_DELAY_MAX: Duration = Duration::from_secs(5);

/// Where to publish, and as whom.
pub struct Publishing {
    client: Client,
    /// The address without its password.
    address: String,
    server_id: ServerId,
    incarnation: String,
}

impl Publishing {
    /// Checks the address; does not connect.
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

/// What was sampled in one second.
#[derive(Debug, Clone)]
pub struct Round {
    pub at_ms: u64,
    pub process: Process,
    pub samples: Vec<Sample>,
    /// Of what is lent, since the last round.
    pub lending: Vec<Change>,
    /// All that is lent and borrowed, where it is time to tell that.
    pub standing: Option<Vec<Standing>>,
}

#[derive(Debug, thiserror::Error)]
#[error(
    "not the address of a Redis, such as redis://127.0.0.1:6379/0 (TLS is not supported in this version): {0}"
)]
pub struct RedisUrlInvalid(String);

/// A cheap handle; its clones share the book. Lives on one thread.
#[derive(Clone)]
pub struct Publisher {
    shared: Rc<Shared>,
}

struct Shared {
    publishing: Publishing,
    state: RefCell<State>,
    news: Notify,
    /// Told after each attempt to send everything.
    attempted: Notify,
    /// Connect now.
    hurry: Notify,
}

#[derive(Default)]
struct State {
    book: WindowBook,
    meter: LiveMeter,
    live: Option<LiveEntry>,
    lending: LendingBook,
    at_ms: u64,
    process: Process,
    told_dropped: u64,
}

impl Publisher {
    pub fn new(publishing: Publishing) -> Self {
        let shared = Shared {
            publishing,
            state: RefCell::default(),
            news: Notify::new(),
            attempted: Notify::new(),
            hurry: Notify::new(),
        };
        Self {
            shared: Rc::new(shared),
        }
    }

    /// Takes in one second; [`Publisher::run`] sends it.
    pub fn observe(&self, round: Round) {
        let mut state = self.shared.state.borrow_mut();
        for sample in &round.samples {
            state.book.observe(sample);
            state.meter.observe(sample);
        }
        state.book.end_round(round.at_ms);
        for change in round.lending {
            state.lending.note(change);
        }
        if let Some(standing) = round.standing {
            state.lending.tell(standing);
        }
        (state.at_ms, state.process) = (round.at_ms, round.process);
        let groups = state.meter.take();
        let (server_id, at_ms) = (self.shared.publishing.server_id.0, round.at_ms);
        state.live = (!groups.is_empty()).then_some(LiveEntry {
            v: 1,
            server_id,
            at_ms,
            groups,
        });
        let dropped = state.book.dropped();
        if dropped > state.told_dropped {
            tracing::warn!(
                windows = dropped - state.told_dropped,
                "telemetry that could not be sent was dropped"
            );
            state.told_dropped = dropped;
        }
        drop(state);
        self.shared.news.notify_one();
    }

    /// Sends, and connects again, for ever.
    pub async fn run(&self) {
        let mut delay = RETRY_DELAY_MIN;
        let mut is_away = false;
        loop {
            let trouble = match self.connect().await {
                Ok(connection) => {
                    if is_away {
                        tracing::info!(redis = self.shared.publishing.address, "telemetry is sent again");
                    }
                    is_away = false;
                    let connected_at = Instant::now();
                    let trouble = self.send_while_connected(connection).await;
                    if connected_at.elapsed() > RETRY_DELAY_MAX {
                        delay = RETRY_DELAY_MIN;
                    }
                    trouble
                }
                Err(trouble) => trouble,
            };
            if !is_away {
                tracing::warn!(
                    redis = self.shared.publishing.address,
                    trouble,
                    "Redis is away; telemetry is kept and sent later"
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

    /// Waits until everything was sent, or could not be. Bounded by the caller.
    pub async fn flush(&self) {
        let attempted = self.shared.attempted.notified();
        self.shared.news.notify_one();
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
        self.shared.state.borrow_mut().book.send_again();
        Ok(connection)
    }

    async fn send_while_connected(&self, mut connection: MultiplexedConnection) -> String {
        loop {
            if let Err(error) = self.send_all(&mut connection).await {
                return error.to_string();
            }
            self.shared.attempted.notify_waiters();
            self.shared.news.notified().await;
        }
    }

    async fn send_all(&self, connection: &mut MultiplexedConnection) -> redis::RedisResult<()> {
        let live = self.shared.state.borrow_mut().live.take();
        if let Some(live) = live {
            add(connection, LIVE_STREAM, LIVE_ENTRIES_MAX, &live).await?;
        }
        let server_id = self.shared.publishing.server_id.0;
        loop {
            let pending = self.shared.state.borrow().lending.pending(server_id);
            let Some(entry) = pending else { break };
            add(connection, LENDING_STREAM, LENDING_ENTRIES_MAX, &entry).await?;
            self.shared.state.borrow_mut().lending.sent(&entry);
        }
        loop {
            let (batch, at_ms, process) = {
                let mut state = self.shared.state.borrow_mut();
                (
                    state.book.pending(TELEMETRY_RECORDS_PER_ENTRY_MAX),
                    state.at_ms,
                    state.process,
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
            self.shared.state.borrow_mut().book.mark_sent(&batch.marks);
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
