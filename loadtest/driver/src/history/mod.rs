//! `history`: clients that append, read, tail and ask for the log's end, and every operation on record.
//!
//! What `loadtest/chaos` judges. Each operation is written with the times at which it was called and at which it
//! returned, on one clock of this machine, and with what came of it: acked, refused or unknown. The line of an
//! append is written when it is called, so that nothing can be in a log that is not on record.

mod appending;
mod asking;
mod readback;
mod record;

use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use clap::Args;
use quorate_client::{Client, Handle, HandleSource, Options};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use crate::entry::ENTRY_BYTES_MIN;
use crate::read_handle;
use record::Recorder;

/// After the end of the load, what is outstanding ends by its own deadline; this much later it is given up.
const END_GRACE: Duration = Duration::from_secs(5);

#[derive(Args)]
pub struct HistoryFlags {
    /// File with a handle; read again whenever a fresh one is needed. Each group gets clients of its own
    #[arg(long = "handle", value_name = "FILE", required = true)]
    handles: Vec<PathBuf>,
    /// Where the operations are written, one JSON object a line
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How long operations are called
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Choices follow from it: batch sizes, offsets, conditions
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Clients of each group that append many batches at a time, without conditions
    #[arg(long, default_value_t = 2, value_parser = clap::value_parser!(u32).range(0..=64))]
    appenders: u32,
    /// Batches a second of each of them
    #[arg(long, default_value_t = 60.0)]
    batches_per_s: f64,
    /// Entries of a batch: 1 to this many
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=4_096))]
    batch_entries_max: u32,
    /// Batches of one client outstanding at most
    #[arg(long, default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=256))]
    outstanding: u32,
    /// Bytes of each entry
    #[arg(long, default_value_t = 64, value_parser = clap::value_parser!(u32).range(i64::from(ENTRY_BYTES_MIN)..=65_536))]
    size: u32,
    /// Deadline of each operation
    #[arg(long, default_value_t = 4_000, value_parser = clap::value_parser!(u32).range(1..=60_000))]
    timeout_ms: u32,
    /// The number of the first client: clients of one history have different numbers
    #[arg(long, default_value_t = 0)]
    first_client: u64,
}

#[derive(Args)]
pub struct ReadbackFlags {
    /// File with a handle: the log is read from each of its endpoints
    #[arg(long = "handle", value_name = "FILE", required = true)]
    handles: Vec<PathBuf>,
    /// Where the logs are written, behind what is there
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// How long one replica may take to give the whole log
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=600_000))]
    timeout_ms: u32,
}

/// What all clients of one group share.
pub(crate) struct Group {
    pub name: String,
    pub handle: Handle,
    pub path: PathBuf,
    pub plaintext: bool,
    pub recorder: Recorder,
    pub size: u32,
    pub batch_entries_max: u32,
    pub timeout: Duration,
    /// When clients stop calling.
    pub end: tokio::time::Instant,
    /// The greatest end of an acknowledged append: where the next one probably goes.
    pub acked_end: Cell<u64>,
    /// The greatest fencing token that was called with.
    pub token: Cell<u64>,
}

impl Group {
    fn is_over(&self) -> bool {
        tokio::time::Instant::now() >= self.end
    }

    fn options(&self) -> Options {
        let (path, plaintext) = (self.path.clone(), self.plaintext);
        let source: HandleSource = Arc::new(move || {
            let handle = read_handle(&path, plaintext);
            Box::pin(async move { handle })
        });
        Options {
            timeout: self.timeout,
            handle_source: Some(source),
            // Servers are tried, and what they refuse.
            pace: false,
            ..Options::default()
        }
    }

    /// The same with what is known of the group now, the head first.
    pub fn fresh_client(&self) -> Client {
        let handle = read_handle(&self.path, self.plaintext).unwrap_or_else(|_| self.handle.clone());
        Client::open(handle, self.options())
    }

    /// A client that finds the head, and any replica to read from.
    pub fn client(&self) -> Client {
        Client::open(self.handle.clone(), self.options())
    }
}

/// Runs the clients to their end. `false`: something stopped before it.
pub fn history(flags: &HistoryFlags, plaintext: bool) -> Result<bool, String> {
    let seconds = crate::seconds("--seconds", flags.seconds, 0.1)?;
    if !(flags.batches_per_s > 0.0 && flags.batches_per_s <= 10_000.0) {
        return Err("--batches-per-s must be above 0 and at most 10000".to_string());
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    LocalSet::new().block_on(&runtime, async {
        let recorder = Recorder::create(&flags.out)?;
        let mut tasks = Vec::new();
        let mut client = flags.first_client;
        for path in &flags.handles {
            let handle = read_handle(path, plaintext)?;
            let group = Rc::new(Group {
                name: handle.name.clone(),
                handle,
                path: path.clone(),
                plaintext,
                recorder: recorder.clone(),
                size: flags.size,
                batch_entries_max: flags.batch_entries_max,
                timeout: Duration::from_millis(u64::from(flags.timeout_ms)),
                end: tokio::time::Instant::now() + seconds,
                acked_end: Cell::new(0),
                token: Cell::new(1),
            });
            start(&group, flags, &mut client, &mut tasks);
        }
        let patience = seconds + Duration::from_millis(u64::from(flags.timeout_ms)) + END_GRACE;
        let ended = tokio::time::timeout(patience, async {
            let mut all_ended = true;
            for task in &mut tasks {
                all_ended &= task.await.is_ok();
            }
            all_ended
        });
        let all_ended = ended.await.unwrap_or(false);
        recorder.flush()?;
        Ok(all_ended)
    })
}

fn start(group: &Rc<Group>, flags: &HistoryFlags, client: &mut u64, tasks: &mut Vec<JoinHandle<()>>) {
    let mut next = || {
        *client += 1;
        let number = *client - 1;
        (number, StdRng::seed_from_u64(flags.seed ^ (number << 32)))
    };
    for _ in 0..flags.appenders {
        let (number, random) = next();
        let pace = Duration::from_secs_f64(1.0 / flags.batches_per_s);
        let outstanding = flags.outstanding as usize;
        tasks.push(spawn_local(appending::pipelined(
            group.clone(),
            number,
            random,
            pace,
            outstanding,
        )));
    }
    let (number, random) = next();
    tasks.push(spawn_local(appending::expecting(group.clone(), number, random)));
    let (number, random) = next();
    tasks.push(spawn_local(appending::fencing(group.clone(), number, random)));
    for _ in 0..2 {
        let (number, random) = next();
        tasks.push(spawn_local(asking::reading(group.clone(), number, random)));
    }
    let (number, _) = next();
    tasks.push(spawn_local(asking::tailing(group.clone(), number)));
    let (number, random) = next();
    tasks.push(spawn_local(asking::probing(group.clone(), number, random)));
}

/// Reads every replica's log to its end. `false`: one of them did not give it in time.
pub fn readback(flags: &ReadbackFlags, plaintext: bool) -> Result<bool, String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("no runtime: {error}"))?;
    let patience = Duration::from_millis(u64::from(flags.timeout_ms));
    runtime.block_on(async {
        let recorder = Recorder::append(&flags.out)?;
        let mut is_whole = true;
        for path in &flags.handles {
            is_whole &= readback::read_group(&read_handle(path, plaintext)?, &recorder, patience).await?;
        }
        recorder.flush()?;
        Ok(is_whole)
    })
}

/// Waits about this long, at random: clients that keep step with one another meet the same states only.
async fn pause(about: Duration, random: &mut StdRng) {
    tokio::time::sleep(about.mul_f64(random.random_range(0.5..1.5))).await;
}

/// The same handle with one endpoint only.
fn only(handle: &Handle, address: &str) -> Handle {
    let mut handle = handle.clone();
    handle.endpoints.retain(|endpoint| endpoint.address == address);
    handle
}

fn endpoints(path: &Path) -> Vec<String> {
    read_handle(path, false).map_or_else(|_| Vec::new(), |handle| handle.addresses())
}
