//! Records a second of one journal: `cargo run --release --example journal_bench -- [DIR] [SECONDS]`.
//!
//! For each record size: one submitter keeps a number of records outstanding, as a shard does.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use quorate_journal::{Event, Journal, JournalOptions, Submission};

fn main() {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().unwrap_or_else(|| "build/journal_bench".into());
    let seconds: u64 = arguments.next().map_or(2, |s| s.parse().expect("seconds"));
    println!(
        "{:>8} {:>12} {:>12} {:>10} {:>9} {:>9} {:>9} {:>9}",
        "bytes", "outstanding", "records/s", "syncs/s", "MB/s", "p50 us", "p99 us", "cpu s/M"
    );
    for (bytes, outstanding) in [
        (64, 1),
        (64, 64),
        (64, 1024),
        (1024, 1024),
        (16_384, 128),
        (262_144, 16),
    ] {
        run(
            std::path::Path::new(&dir),
            bytes,
            outstanding,
            Duration::from_secs(seconds),
        );
    }
    std::fs::remove_dir_all(&dir).expect("remove the bench directory");
}

fn run(dir: &std::path::Path, bytes: usize, outstanding: u64, duration: Duration) {
    let (journal, _) = Journal::open(dir, JournalOptions::default(), |_| {}).expect("open");
    let durable = Arc::new(AtomicU64::new(0));
    let (sink, waiting) = (durable.clone(), std::thread::current());
    let submitter = journal.submitter(Arc::new(move |event| {
        if let Event::Durable { tag, .. } = event {
            sink.store(tag, Ordering::Release);
        }
        waiting.unpark();
    }));
    let payload = Bytes::from(vec![7; bytes]);
    let payload_crc = crc32fast::hash(&payload); // as servers know it
    let mut histogram = hdrhistogram::Histogram::<u64>::new(3).expect("histogram");
    let mut sent_at = std::collections::VecDeque::new();
    let (mut sent, mut acked, before) = (0u64, 0u64, journal.stats());
    let (started, cpu_before) = (Instant::now(), cpu_s());
    while started.elapsed() < duration {
        let now = Instant::now();
        let done = durable.load(Ordering::Acquire);
        while acked < done {
            acked += 1;
            let at: Instant = sent_at.pop_front().expect("was sent");
            histogram
                .record(now.duration_since(at).as_micros() as u64)
                .expect("in range");
        }
        journal.release_before(acked);
        let room = outstanding - (sent - acked);
        let batch: Vec<_> = (1..=room)
            .map(|i| Submission {
                kind: 1,
                head: &[0; 24],
                payload: &payload,
                payload_crc: Some(payload_crc),
                tag: sent + i,
                reserved: false,
            })
            .collect();
        let (mut placed, now) = (0, Instant::now());
        let _refused = submitter.submit_many(&batch, |_| placed += 1).is_err();
        sent_at.extend((0..placed).map(|_| now));
        sent += placed;
        if durable.load(Ordering::Acquire) == acked {
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }
    let (after, elapsed) = (journal.stats(), started.elapsed().as_secs_f64());
    println!(
        "{bytes:>8} {outstanding:>12} {:>12.0} {:>10.0} {:>9.1} {:>9} {:>9} {:>9.2}",
        (after.records - before.records) as f64 / elapsed,
        (after.syncs - before.syncs) as f64 / elapsed,
        (after.bytes - before.bytes) as f64 / elapsed / 1e6,
        histogram.value_at_quantile(0.5),
        histogram.value_at_quantile(0.99),
        (cpu_s() - cpu_before) * 1e6 / (after.records - before.records).max(1) as f64,
    );
}

/// Processor time of this process so far, in seconds.
fn cpu_s() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("Linux");
    let fields: Vec<&str> = stat.rsplit(')').next().expect("a name").split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().expect("ticks");
    (ticks(12) + ticks(13)) / 100.0
}
