//! `history`: clients append, read, tail and ask for the log's end, with every operation on record.
//!
//! The record is the input of `loadtest/chaos`. Each operation has its times of call and return, on one clock of this
//! machine, and its outcome: acked, refused or unknown. The line of an append is written at its call, so that no log
//! can hold an entry that is not on record.

mod appending;
mod group;
mod readback;
mod reading;
mod record;

use std::cell::Cell;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use clap::Args;
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::task::{JoinHandle, LocalSet, spawn_local};

use crate::entry::ENTRY_BYTES_MIN;
use crate::files::read_handle;
use crate::flags::seconds;
use group::HistoryGroup;
use record::Recorder;

/// Outstanding operations end by their own deadline after the end of the load; this much later the command stops.
const END_GRACE: Duration = Duration::from_secs(5);

#[derive(Args)]
pub struct HistoryFlags {
    /// File with a handle; read again whenever a fresh one is needed. Each group gets clients of its own
    #[arg(long = "handle", value_name = "FILE", required = true)]
    handles: Vec<PathBuf>,
    /// File for the operations, one JSON object a line
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Seconds of calls
    #[arg(long, default_value_t = 20.0)]
    seconds: f64,
    /// Seed of all choices: batch sizes, offsets, conditions
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
    /// Each group has its appenders and one reader only
    #[arg(long)]
    light: bool,
    /// The number of the first client: clients of one history have different numbers
    #[arg(long, default_value_t = 0)]
    first_client: u64,
}

#[derive(Args)]
pub struct ReadbackFlags {
    /// File with a handle: the log is read from each of its endpoints
    #[arg(long = "handle", value_name = "FILE", required = true)]
    handles: Vec<PathBuf>,
    /// File for the logs, which are added at its end
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
    /// Longest time for one replica's whole log
    #[arg(long, default_value_t = 20_000, value_parser = clap::value_parser!(u32).range(1..=600_000))]
    timeout_ms: u32,
}

/// Runs the clients to their end. `false`: one of them stopped early.
pub fn history(flags: &HistoryFlags, plaintext: bool) -> Result<bool, String> {
    let seconds = seconds("--seconds", flags.seconds, 0.1)?;
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
            let group = Rc::new(HistoryGroup {
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

fn start(group: &Rc<HistoryGroup>, flags: &HistoryFlags, client: &mut u64, tasks: &mut Vec<JoinHandle<()>>) {
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
    if flags.light {
        let (number, random) = next();
        return tasks.push(spawn_local(reading::reading(group.clone(), number, random)));
    }
    let (number, random) = next();
    tasks.push(spawn_local(appending::expecting(group.clone(), number, random)));
    let (number, random) = next();
    tasks.push(spawn_local(appending::fencing(group.clone(), number, random)));
    for _ in 0..2 {
        let (number, random) = next();
        tasks.push(spawn_local(reading::reading(group.clone(), number, random)));
    }
    let (number, _) = next();
    tasks.push(spawn_local(reading::tailing(group.clone(), number)));
    let (number, random) = next();
    tasks.push(spawn_local(reading::probing(group.clone(), number, random)));
}

/// Reads every replica's log to its end. `false`: one replica's log was not complete in time.
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
