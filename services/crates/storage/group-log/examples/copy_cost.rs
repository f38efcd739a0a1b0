//! Processor time of moving records from the journal into group logs: 256 MiB, as fast as possible.
//! `cargo run --release -p quorate-group-log --example copy_cost [directory]`

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_group_log::{GroupLogOptions, Meaning, Opened};
use quorate_journal::Journal;
use quorate_types::GroupId;
use uuid::Uuid;

const BYTES: u64 = 256 << 20;
const HEAD_BYTES: usize = 96;

fn classify(_: u8, head: &[u8]) -> Option<(GroupId, Meaning)> {
    let id = GroupId(Uuid::from_slice(head.get(..16)?).ok()?);
    let index = u64::from_le_bytes(head.get(16..24)?.try_into().ok()?);
    Some((id, Meaning::Batch { index }))
}

fn main() {
    let dir = std::env::args().nth(1).unwrap_or_else(|| ".".to_string());
    println!("| record bytes | groups | CPU s / GB | us / record |");
    println!("| --- | --- | --- | --- |");
    for record_bytes in [1_024, 16_384] {
        for groups in [1, 100] {
            run(Path::new(&dir), record_bytes, groups);
        }
    }
}

fn run(parent: &Path, record_bytes: usize, groups: u64) {
    let dir = parent.join(format!("copy-cost-{}", std::process::id()));
    let options = GroupLogOptions {
        scrub_bytes_per_s: 0,
        copy_bytes_per_s: 1 << 40,
        keep_segments: 0,
        ..GroupLogOptions::new(classify)
    };
    let opened = Opened::open(&dir.join("groups"), &dir.join("pair"), options, |_, _| {}).expect("open");
    let (journal, _) = Journal::open(
        &dir.join("journal"),
        quorate_journal::JournalOptions::default(),
        |_| {},
    )
    .expect("open");
    let journal = Arc::new(journal);
    fill(&journal, record_bytes, groups);
    let logs = opened
        .start(journal.clone(), Vec::new(), Arc::new(|_| {}))
        .expect("start");
    let deadline = Instant::now() + Duration::from_secs(120);
    while journal.stats().segments > 1 {
        assert!(
            Instant::now() < deadline,
            "not copied in time: {:?}",
            logs.stats()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    let (cpu_s, stats) = (thread_cpu_s(), logs.stats());
    println!(
        "| {record_bytes} | {groups} | {:.3} | {:.2} |",
        cpu_s / (stats.bytes_written as f64 / 1e9),
        cpu_s * 1e6 / stats.records as f64,
    );
    drop((logs, journal));
    std::fs::remove_dir_all(dir).expect("remove");
}

fn fill(journal: &Journal, record_bytes: usize, groups: u64) {
    let submitter = journal.submitter(Arc::new(|_| {}));
    let payload = Bytes::from(vec![7; record_bytes - HEAD_BYTES]);
    let count = BYTES / record_bytes as u64;
    for n in 1..=count {
        let id = Uuid::from_u128(u128::from(n % groups + 1));
        let head = [id.as_bytes(), &n.to_le_bytes()[..], &[0; HEAD_BYTES - 24][..]].concat();
        while submitter.submit(1, &head, &payload, n).is_err() {
            std::thread::sleep(Duration::from_micros(100));
        }
    }
    let deadline = Instant::now() + Duration::from_secs(60);
    while journal.stats().durable_lsn < count {
        assert!(Instant::now() < deadline, "not durable in time");
        std::thread::sleep(Duration::from_millis(1));
    }
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
