//! Puts reads on one replica: pages of a log that is there, at random places, a number of them under way at a time.
//!
//! A replica sends whole batches. So pages begin at multiples of their length, and their log is to be of such batches.
//! Latency counts from the call to the page. The cost of the server is its processor time for each entry.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use quorate_client::{Client, Entry, Handle, Options, Status};
use serde::{Deserialize, Serialize};
use tokio::task::{JoinSet, LocalSet};

use crate::processes::{Counters, Process};

/// A page that takes longer fails.
const TIMEOUT: Duration = Duration::from_secs(30);

/// How often the log is looked at until its beginning stays where it is.
const SETTLE: Duration = Duration::from_millis(300);
const SETTLES_MAX: u32 = 50;

pub struct ReadLoad {
    /// Entries of a page at most.
    pub page_entries: u32,
    /// Pages under way, over all connections.
    pub outstanding: u32,
    pub connections: u32,
    /// Pages a second, whatever the server does; latency counts from the time at which each was due.
    pub rate_per_s: Option<f64>,
    pub warmup: Duration,
    pub window: Duration,
    pub server: Option<u32>,
    /// The share of the log that is read, from its beginning on.
    pub oldest_share: f64,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ReadResult {
    pub page_entries: f64,
    pub pages_per_s: f64,
    pub entries_per_s: f64,
    pub bytes_per_s: f64,
    pub p50_us: u64,
    pub p99_us: u64,
    /// CPU of the server for each entry; absent without its process.
    pub cpu_ns: Option<f64>,
    /// The part of its busiest thread.
    pub busiest_ns: Option<f64>,
}

struct Tally {
    pages: u64,
    entries: u64,
    bytes: u64,
    latency_us: Histogram<u64>,
}

impl Tally {
    fn new() -> Self {
        Self {
            pages: 0,
            entries: 0,
            bytes: 0,
            latency_us: Histogram::new_with_bounds(1, 60_000_000, 3).expect("bounds are in order"),
        }
    }
}

/// Reads from the replica that the handle names first.
pub fn read(handle: &Handle, load: &ReadLoad) -> Result<ReadResult, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    LocalSet::new().block_on(&runtime, run(handle, load))
}

async fn run(handle: &Handle, load: &ReadLoad) -> Result<ReadResult, String> {
    let mut clients = Vec::new();
    for _ in 0..load.connections {
        let options = Options {
            timeout: TIMEOUT,
            ..Options::default()
        };
        clients.push(Client::open(handle.clone(), options));
    }
    let status = settled(&clients[0]).await?;
    let (first, end) = (status.trim_offset, status.commit_offset);
    let read = (end.saturating_sub(first) as f64 * load.oldest_share) as u64;
    let pages = read / u64::from(load.page_entries);
    if pages == 0 {
        return Err(format!("the log has fewer than --page-entries: {first} to {end}"));
    }
    let tally = Rc::new(RefCell::new(Tally::new()));
    let mut readers = JoinSet::new();
    let each = load.rate_per_s.map(|rate| f64::from(load.outstanding) / rate);
    for number in 0..load.outstanding {
        let reader = Reader {
            client: clients[(number % load.connections) as usize].clone(),
            first,
            pages,
            page_entries: load.page_entries,
            every: each.map(Duration::from_secs_f64),
            begin: each
                .map(|each| Duration::from_secs_f64(each * f64::from(number) / f64::from(load.outstanding))),
            tally: tally.clone(),
        };
        readers.spawn_local(reader.run(u64::from(number)));
    }
    let result = tokio::select! {
        failed = readers.join_next() => match failed {
            Some(Ok(reason)) => Err(reason),
            other => Err(format!("a reader ended: {other:?}")),
        },
        result = window(&tally, load) => result,
    };
    readers.abort_all();
    result
}

/// The log's bounds once nothing is trimmed any more: retention goes on behind the last append.
async fn settled(client: &Client) -> Result<Status, String> {
    let status = async || {
        let answer = client.status().await;
        answer.map_err(|error| format!("no status: {error}"))
    };
    let mut before = status().await?;
    for _ in 0..SETTLES_MAX {
        tokio::time::sleep(SETTLE).await;
        let now = status().await?;
        if now.trim_offset == before.trim_offset {
            return Ok(now);
        }
        before = now;
    }
    Err("the log is trimmed all the time".to_string())
}

async fn window(tally: &RefCell<Tally>, load: &ReadLoad) -> Result<ReadResult, String> {
    tokio::time::sleep(load.warmup).await;
    let counters = || load.server.map(|pid| Counters::of(Process(pid))).transpose();
    let before = counters()?;
    *tally.borrow_mut() = Tally::new();
    let began = Instant::now();
    tokio::time::sleep(load.window).await;
    let (after, seconds) = (counters()?, began.elapsed().as_secs_f64());
    let tally = tally.borrow();
    if tally.entries == 0 {
        return Err("no page came in the window".to_string());
    }
    let used = after
        .zip(before)
        .map(|(after, before)| after.since(&before).each(tally.entries));
    Ok(ReadResult {
        page_entries: tally.entries as f64 / tally.pages as f64,
        pages_per_s: tally.pages as f64 / seconds,
        entries_per_s: tally.entries as f64 / seconds,
        bytes_per_s: tally.bytes as f64 / seconds,
        p50_us: tally.latency_us.value_at_quantile(0.5),
        p99_us: tally.latency_us.value_at_quantile(0.99),
        cpu_ns: used.map(|used| used.cpu_ns),
        busiest_ns: used.map(|used| used.busiest_ns),
    })
}

struct Reader {
    client: Client,
    first: u64,
    /// Whole pages from there on.
    pages: u64,
    page_entries: u32,
    /// The time between two pages of an open loop, and the first one's.
    every: Option<Duration>,
    begin: Option<Duration>,
    tally: Rc<RefCell<Tally>>,
}

impl Reader {
    /// Reads until it fails; the reason.
    async fn run(self, seed: u64) -> String {
        let mut random = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1;
        let mut due = Instant::now() + self.begin.unwrap_or_default();
        loop {
            let begun = match self.every {
                None => Instant::now(),
                Some(every) => {
                    tokio::time::sleep_until(due.into()).await;
                    due += every;
                    due - every
                }
            };
            // Xorshift: places only need to be spread.
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let offset = self.first + random % self.pages * u64::from(self.page_entries);
            match self.client.read(offset, self.page_entries, Duration::ZERO).await {
                Ok(page) => self.note(&page.entries, begun.elapsed()),
                Err(error) => return format!("a read at {offset} failed: {error}"),
            }
        }
    }

    fn note(&self, entries: &[Entry], latency: Duration) {
        let mut tally = self.tally.borrow_mut();
        tally.pages += 1;
        tally.entries += entries.len() as u64;
        tally.bytes += entries.iter().map(|entry| entry.data.len() as u64).sum::<u64>();
        tally
            .latency_us
            .saturating_record((latency.as_micros() as u64).max(1));
    }
}
