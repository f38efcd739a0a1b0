//! Cost of group logs: bytes written for each byte journalled, processor time of the thread, latency of the journal's
//! submitters. `cargo run --release -p quorate-group-log --example copy_bench [directory]`

use std::path::Path;
use std::sync::mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_group_log::{GroupLogOptions, GroupLogs, Meaning, Opened};
use quorate_journal::{Event, Journal};
use quorate_types::GroupId;
use uuid::Uuid;

const BYTES: u64 = 512 << 20;
const GROUPS: u64 = 10;
const HEAD_BYTES: usize = 96;
/// One submission each millisecond at most: a load that does not saturate a disk.
const INTERVAL: Duration = Duration::from_millis(1);

fn classify(_: u8, head: &[u8]) -> Option<(GroupId, Meaning)> {
    let id = GroupId(Uuid::from_slice(head.get(..16)?).ok()?);
    let index = u64::from_le_bytes(head.get(16..24)?.try_into().ok()?);
    Some((id, Meaning::Batch { index }))
}

fn main() {
    let dir = std::env::args().nth(1).unwrap_or_else(|| ".".to_string());
    println!(
        "| record bytes | copying | journal bytes/s | p50 us | p99 us | written / journalled | thread CPU s / GB |"
    );
    println!("| --- | --- | --- | --- | --- | --- | --- |");
    for record_bytes in [1_024, 16_384, 65_536] {
        for is_copying in [false, true] {
            run(Path::new(&dir), record_bytes, is_copying);
        }
    }
}

fn run(parent: &Path, record_bytes: usize, is_copying: bool) {
    let dir = parent.join(format!("copy-bench-{}", std::process::id()));
    let opened = Opened::open(
        &dir.join("groups"),
        &dir.join("pair"),
        GroupLogOptions {
            keep_segments: 0,
            ..GroupLogOptions::new(classify)
        },
        |_, _| {},
    )
    .expect("open");
    let (journal, _) = Journal::open(
        &dir.join("journal"),
        quorate_journal::JournalOptions::default(),
        |_| {},
    )
    .expect("open");
    let journal = Arc::new(journal);
    let logs = is_copying.then(|| {
        opened
            .start(journal.clone(), Vec::new(), Arc::new(|_| {}))
            .expect("start")
    });
    let started = Instant::now();
    let latencies = load(&journal, record_bytes);
    let elapsed = started.elapsed().as_secs_f64();
    let journalled = journal.stats().bytes as f64;
    let (written, cpu_s) = logs.as_ref().map_or((0.0, 0.0), |logs| settle(&journal, logs));
    let at = |share: f64| latencies[((latencies.len() - 1) as f64 * share) as usize];
    println!(
        "| {record_bytes} | {is_copying} | {:.0} M | {} | {} | {:.3} | {:.2} |",
        journalled / elapsed / 1e6,
        at(0.5),
        at(0.99),
        written / journalled,
        cpu_s / (journalled / 1e9),
    );
    drop((logs, journal));
    std::fs::remove_dir_all(dir).expect("remove");
}

/// Submits in batches of 32 KiB at least, one each interval; answers the latencies in microseconds, sorted.
fn load(journal: &Journal, record_bytes: usize) -> Vec<u64> {
    let (sender, durable) = mpsc::channel();
    let sender = Mutex::new(sender);
    let submitter = journal.submitter(Arc::new(move |event| {
        if let Event::Durable { tag, .. } = event {
            sender.lock().expect("sender").send(tag).expect("main waits");
        }
    }));
    let payload = Bytes::from(vec![7; record_bytes - HEAD_BYTES]);
    let together = (32_768 / record_bytes).max(1) as u64;
    let (mut sent, mut latencies) = (0, Vec::new());
    while sent * (record_bytes as u64) < BYTES {
        let started = Instant::now();
        for _ in 0..together {
            sent += 1;
            let id = Uuid::from_u128(u128::from(sent % GROUPS + 1));
            let head = [id.as_bytes(), &sent.to_le_bytes()[..], &[0; HEAD_BYTES - 24][..]].concat();
            while submitter.submit(1, &head, &payload, sent).is_err() {
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        while durable.recv().expect("the journal runs") < sent {}
        latencies.push(started.elapsed().as_micros() as u64);
        std::thread::sleep(INTERVAL.saturating_sub(started.elapsed()));
    }
    latencies.sort_unstable();
    latencies
}

/// Waits until all full segments are copied; answers the bytes written, as if the last one were too, and CPU seconds.
fn settle(journal: &Journal, logs: &GroupLogs) -> (f64, f64) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while journal.stats().segments > 1 && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    let stats = logs.stats();
    let share = journal.stats().durable_lsn as f64 / stats.copied_lsn.max(1) as f64;
    (stats.bytes_written as f64 * share, thread_cpu_s() * share)
}

fn thread_cpu_s() -> f64 {
    let tasks = std::fs::read_dir("/proc/self/task").expect("Linux");
    let of = |dir: std::path::PathBuf| {
        let name = std::fs::read_to_string(dir.join("comm")).ok()?;
        let stat = std::fs::read_to_string(dir.join("schedstat")).ok()?;
        let nanoseconds: f64 = stat.split_whitespace().next()?.parse().ok()?;
        (name.trim() == "group-logs").then_some(nanoseconds / 1e9)
    };
    tasks.filter_map(|task| of(task.ok()?.path())).sum()
}
