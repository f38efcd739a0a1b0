//! The bare-socket baseline: the same bytes through three hops of bare sockets, without any work on them.
//!
//! ```text
//! client ──▶ head ──▶ middle ──▶ tail
//!    ▲────── head ◀── count ──────┘
//! ```
//!
//! Each hop is a process that reads into one buffer and writes the bytes on: no frames, no checksums, no log, no state.
//! The tail answers each read with the number of bytes it has received; the head passes that to the client. A thread
//! for each direction blocks in `read`, so a hop costs two system calls a read and no more. The client writes batches
//! of the size that Quorate's client makes under the same load.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use clap::ValueEnum;
use hdrhistogram::Histogram;
use serde::Serialize;

use crate::cpu::CpuSeconds;

/// Bytes around a batch's entries between servers: a frame's header and head, a batch's header.
const FRAME_BYTES: u64 = 160;
const BUFFER_BYTES: usize = 128 << 10;
const COUNT_BYTES: usize = 8;
const LATENCY_US_MAX: u64 = 60_000_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Hop {
    Head,
    Middle,
    Tail,
}

#[derive(Debug, Clone, Copy)]
pub struct SocketLoad {
    pub size: u32,
    pub batch_entries: u32,
    pub outstanding: u32,
    pub warmup: Duration,
    pub window: Duration,
}

#[derive(Debug, Serialize)]
pub struct Baseline {
    pub size_bytes: u32,
    pub batch_entries: u32,
    pub outstanding: u32,
    pub acked_per_s: f64,
    pub p50_us: u64,
    pub p99_us: u64,
    /// Processor seconds for a million entries.
    pub servers_cpu_s_per_m: f64,
    pub client_cpu_s_per_m: f64,
}

pub fn baseline(load: &SocketLoad) -> Result<Baseline, String> {
    let hops = Hops::start().map_err(|error| format!("cannot start the hops: {error}"))?;
    let mut client = Client::connect(hops.head, load).map_err(|error| format!("cannot connect: {error}"))?;
    client.run(load.warmup)?;
    client.begin();
    let before = CpuSeconds::now(&hops.pids())?;
    let began = Instant::now();
    client.run(load.window)?;
    let used = CpuSeconds::now(&hops.pids())?.since(&before);
    let acked = client.acked_entries as f64;
    let quantile = |q| client.latency_us.value_at_quantile(q);
    Ok(Baseline {
        size_bytes: load.size,
        batch_entries: load.batch_entries,
        outstanding: load.outstanding,
        acked_per_s: acked / began.elapsed().as_secs_f64(),
        p50_us: quantile(0.5),
        p99_us: quantile(0.99),
        servers_cpu_s_per_m: used.servers * 1e6 / acked.max(1.0),
        client_cpu_s_per_m: used.client * 1e6 / acked.max(1.0),
    })
}

struct Client {
    stream: TcpStream,
    load: SocketLoad,
    sent_bytes: u64,
    seen_bytes: u64,
    /// Entries on their way, and their batches.
    outstanding: u32,
    batches: VecDeque<Batch>,
    buffer: Vec<u8>,
    acked_entries: u64,
    latency_us: Histogram<u64>,
}

struct Batch {
    /// Its end among all bytes sent.
    end: u64,
    entries: u32,
    since: Instant,
}

impl Client {
    fn connect(head: SocketAddr, load: &SocketLoad) -> std::io::Result<Self> {
        let stream = connect(head)?;
        let batches = u64::from(load.outstanding.div_ceil(load.batch_entries));
        let window_bytes = bytes(load, load.outstanding) + (batches - 1) * FRAME_BYTES;
        Ok(Self {
            stream,
            load: *load,
            sent_bytes: 0,
            seen_bytes: 0,
            outstanding: 0,
            batches: VecDeque::new(),
            buffer: vec![0x5a; window_bytes as usize],
            acked_entries: 0,
            latency_us: Histogram::new_with_bounds(1, LATENCY_US_MAX, 3).expect("the bounds are sound"),
        })
    }

    fn begin(&mut self) {
        self.acked_entries = 0;
        self.latency_us.reset();
    }

    /// Keeps `load.outstanding` entries outstanding for a while. All due batches go in one write; the last one is
    /// shorter if the number is no multiple of the batch.
    fn run(&mut self, span: Duration) -> Result<(), String> {
        let until = Instant::now() + span;
        while Instant::now() < until {
            self.turn()
                .map_err(|error| format!("the hops ended early: {error}"))?;
        }
        Ok(())
    }

    fn turn(&mut self) -> std::io::Result<()> {
        let now = Instant::now();
        let before = self.sent_bytes;
        while self.outstanding < self.load.outstanding {
            let entries = self
                .load
                .batch_entries
                .min(self.load.outstanding - self.outstanding);
            self.outstanding += entries;
            self.sent_bytes += bytes(&self.load, entries);
            self.batches.push_back(Batch {
                end: self.sent_bytes,
                entries,
                since: now,
            });
        }
        self.stream
            .write_all(&self.buffer[..(self.sent_bytes - before) as usize])?;
        let mut counts = [0; 64 * COUNT_BYTES];
        let mut filled = self.stream.read(&mut counts)?;
        if filled == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        let part = filled % COUNT_BYTES;
        if part != 0 {
            self.stream
                .read_exact(&mut counts[filled..filled + COUNT_BYTES - part])?;
            filled += COUNT_BYTES - part;
        }
        let last = counts[..filled]
            .last_chunk::<COUNT_BYTES>()
            .expect("at least one count");
        self.seen_bytes = u64::from_le_bytes(*last);
        let now = Instant::now();
        while let Some(batch) = self.batches.pop_front_if(|batch| batch.end <= self.seen_bytes) {
            self.outstanding -= batch.entries;
            self.acked_entries += u64::from(batch.entries);
            let latency_us = (now - batch.since).as_micros() as u64;
            self.latency_us
                .record(latency_us.clamp(1, LATENCY_US_MAX))
                .expect("clamped to the bounds");
        }
        Ok(())
    }
}

/// Bytes of one batch.
fn bytes(load: &SocketLoad, entries: u32) -> u64 {
    u64::from(entries) * (u64::from(load.size) + 4) + FRAME_BYTES
}

/// Three processes of this program.
struct Hops {
    children: Vec<Child>,
    head: SocketAddr,
}

impl Hops {
    fn start() -> std::io::Result<Self> {
        let mut children = Vec::new();
        let mut start = |hop: &str, next: &[SocketAddr]| {
            let mut command = Command::new(std::env::current_exe()?);
            command
                .args(["floor-hop", hop])
                .stdin(Stdio::null())
                .stdout(Stdio::piped());
            command.args(next.iter().map(ToString::to_string));
            let child = command.spawn()?;
            children.push(child);
            let stdout = children.last_mut().and_then(|child| child.stdout.as_mut());
            let mut line = String::new();
            BufReader::new(stdout.expect("it is piped")).read_line(&mut line)?;
            line.trim().parse().map_err(std::io::Error::other)
        };
        let started = (|| {
            let tail = start("tail", &[])?;
            let middle = start("middle", &[tail])?;
            start("head", &[middle, tail])
        })();
        let mut hops = Self {
            children,
            head: SocketAddr::from(([127, 0, 0, 1], 0)),
        };
        hops.head = started?;
        Ok(hops)
    }

    fn pids(&self) -> Vec<u32> {
        self.children.iter().map(Child::id).collect()
    }
}

impl Drop for Hops {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ended_by_itself = child.kill().is_err();
            let _waited = child.wait().is_err();
        }
    }
}

/// Runs one hop until its connections end. `next`: for the middle the tail, for the head the middle and the tail.
pub fn hop(hop: Hop, next: &[SocketAddr]) -> Result<(), String> {
    let listening = || {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        println!("{}", listener.local_addr()?);
        Ok(listener)
    };
    let ended = match (hop, next) {
        (Hop::Tail, []) => listening().and_then(|own| tail(&own)),
        (Hop::Middle, [next]) => listening().and_then(|own| middle(&own, *next)),
        (Hop::Head, [next, tail]) => listening().and_then(|own| head(&own, *next, *tail)),
        _ => return Err("a hop needs the addresses to connect to".to_string()),
    };
    ended.map_err(|error| format!("{hop:?}: {error}"))
}

fn head(own: &TcpListener, middle: SocketAddr, tail: SocketAddr) -> std::io::Result<()> {
    let (forward, mut counts) = (connect(middle)?, connect(tail)?);
    counts.write_all(b"h")?;
    let client = accept(own)?;
    let back = client.try_clone()?;
    let answers = std::thread::spawn(move || pump(counts, back));
    pump(client, forward)?;
    let _also_ended = answers.is_finished();
    Ok(())
}

fn middle(own: &TcpListener, tail: SocketAddr) -> std::io::Result<()> {
    let mut forward = connect(tail)?;
    forward.write_all(b"m")?;
    pump(accept(own)?, forward)
}

/// Reports to the head the bytes received from the middle.
fn tail(own: &TcpListener) -> std::io::Result<()> {
    let mut first = accept(own)?;
    let mut second = accept(own)?;
    let mut name = [0; 1];
    first.read_exact(&mut name)?;
    let is_middle = name == *b"m";
    second.read_exact(&mut name)?;
    let (mut middle, mut head) = if is_middle {
        (first, second)
    } else {
        (second, first)
    };
    let mut buffer = vec![0; BUFFER_BYTES];
    let mut seen = 0u64;
    loop {
        match middle.read(&mut buffer)? {
            0 => return Ok(()),
            count => seen += count as u64,
        }
        head.write_all(&seen.to_le_bytes())?;
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream) -> std::io::Result<()> {
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            count => to.write_all(&buffer[..count])?,
        }
    }
}

fn connect(address: SocketAddr) -> std::io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn accept(listener: &TcpListener) -> std::io::Result<TcpStream> {
    let (stream, _) = listener.accept()?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listener() -> (TcpListener, SocketAddr) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        (listener, address)
    }

    #[test]
    fn bytes_through_the_hops_are_counted_at_the_tail_and_reported_to_the_client() {
        let [(own_head, head_at), (own_middle, middle_at), (own_tail, tail_at)] =
            std::array::from_fn(|_| listener());
        let hops = [
            std::thread::spawn(move || tail(&own_tail)),
            std::thread::spawn(move || middle(&own_middle, tail_at)),
            std::thread::spawn(move || head(&own_head, middle_at, tail_at)),
        ];
        // Ten entries in batches of four: the last batch is shorter, and all ten are outstanding.
        let load = SocketLoad {
            size: 100,
            batch_entries: 4,
            outstanding: 10,
            warmup: Duration::ZERO,
            window: Duration::from_millis(50),
        };
        let mut client = Client::connect(head_at, &load).unwrap();
        assert_eq!(client.buffer.len() as u64, 10 * 104 + 3 * FRAME_BYTES);
        client.turn().unwrap();
        let under_way: u32 = client.batches.iter().map(|batch| batch.entries).sum();
        assert_eq!(under_way + client.acked_entries as u32, 10);
        client.run(load.window).unwrap();
        client.begin();
        client.run(load.window).unwrap();
        assert!(client.acked_entries > 10, "{}", client.acked_entries);
        assert!(client.latency_us.max() > 0 && client.seen_bytes <= client.sent_bytes);
        let under_way: Vec<u32> = client.batches.iter().map(|batch| batch.entries).collect();
        assert!(
            under_way.iter().all(|entries| [2, 4].contains(entries)),
            "{under_way:?}"
        );
        drop(client);
        for hop in hops {
            hop.join().unwrap().unwrap();
        }
    }
}
