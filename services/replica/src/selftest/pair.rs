//! The testing side: it starts the other process, and judges.

use std::fmt;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use quorate_fabric::{Domain, FabricError, Link, Provider};
use quorate_rings::{RING_BYTES, SLOTS};

use super::end::{Channel, End};
use super::measure::{COMMAND, MESSAGE_BYTES, PATIENCE, ROUND_TRIPS, STREAM_BYTES, WARM_UP};

/// A write that must not land has so long to land.
const SHUT_OUT: Duration = Duration::from_millis(300);

#[derive(Debug)]
pub struct Report {
    p50: Duration,
    p99: Duration,
    megabytes_per_s: f64,
}

#[derive(Debug, thiserror::Error)]
pub enum Failure {
    #[error("{0}")]
    Missing(String),
    #[error("{0}")]
    Wrong(String),
}

impl From<FabricError> for Failure {
    fn from(error: FabricError) -> Self {
        match error {
            FabricError::NoProvider { reason, .. } => Failure::Missing(reason),
            other => Failure::Wrong(other.to_string()),
        }
    }
}

impl From<String> for Failure {
    fn from(problem: String) -> Self {
        Failure::Wrong(problem)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let us = |span: Duration| span.as_nanos() as f64 / 1e3;
        write!(
            f,
            "ok: {MESSAGE_BYTES} bytes there and back p50 {:.1} µs, p99 {:.1} µs; {:.0} MB/s each way; a writer is shut out",
            us(self.p50),
            us(self.p99),
            self.megabytes_per_s
        )
    }
}

/// The other process, which ends with this.
struct Peer {
    child: Child,
    channel: Channel<BufReader<ChildStdout>, ChildStdin>,
}

impl Peer {
    fn start(provider: Provider, host: &str) -> Result<Self, String> {
        let program = std::env::current_exe().map_err(|e| e.to_string())?;
        let mut child = Command::new(program)
            .args([COMMAND, "ofi-peer", "--provider", provider.name(), "--host", host])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .map_err(|e| format!("the other process: {e}"))?;
        let input = BufReader::new(child.stdout.take().expect("piped"));
        let output = child.stdin.take().expect("piped");
        Ok(Self {
            child,
            channel: Channel { input, output },
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ended = self.child.kill().is_ok();
        let _reaped = self.child.wait().is_ok();
    }
}

pub fn test(provider: Provider, host: &str) -> Result<Report, Failure> {
    let domain = Domain::open(provider, host)?;
    let mut peer = Peer::start(provider, host)?;
    let mut end = End::open(&domain, &mut peer.channel)?;
    let mut trips = round_trips(&mut end)?;
    trips.sort_unstable();
    let megabytes_per_s = stream(&mut end)?;
    work_until_said(&mut end, &mut peer.channel)?;
    drop(end);
    shut_out(&domain, &mut peer.channel)?;
    Ok(Report {
        p50: trips[trips.len() / 2],
        p99: trips[trips.len() * 99 / 100],
        megabytes_per_s,
    })
}

/// The other process sends back what it gets.
fn round_trips(end: &mut End) -> Result<Vec<Duration>, String> {
    let mut trips = Vec::with_capacity(ROUND_TRIPS);
    let mut back = Vec::with_capacity(MESSAGE_BYTES);
    for number in 0..WARM_UP + ROUND_TRIPS {
        let message = [number as u8; MESSAGE_BYTES];
        let begun = Instant::now();
        end.send(&message, PATIENCE)?;
        back.clear();
        while back.len() < MESSAGE_BYTES {
            end.receive(&mut back)?;
            if begun.elapsed() > PATIENCE {
                return Err("a message did not come back".into());
            }
        }
        if back != message {
            return Err("another message came back".into());
        }
        if number >= WARM_UP {
            trips.push(begun.elapsed());
        }
    }
    Ok(trips)
}

/// Both sides send, and check each byte.
fn stream(end: &mut End) -> Result<f64, String> {
    let begun = Instant::now();
    end.exchange_streams(PATIENCE)?;
    Ok(STREAM_BYTES as f64 / 1e6 / begun.elapsed().as_secs_f64())
}

/// Lets the provider work until the other process says that it has the whole stream: its last writes need this end.
fn work_until_said<I: BufRead + Send, O: Write + Send>(
    end: &mut End,
    channel: &mut Channel<I, O>,
) -> Result<(), String> {
    thread::scope(|scope| {
        let heard = scope.spawn(|| channel.hear());
        while !heard.is_finished() {
            end.poll()?;
        }
        heard.join().expect("reading a line does not panic").map(drop)
    })
}

/// The other process goes on writing into memory that is registered no more. Nothing may reach the next link.
fn shut_out<I: BufRead, O: Write>(domain: &Rc<Domain>, channel: &mut Channel<I, O>) -> Result<(), String> {
    let mut next = Link::open(domain, RING_BYTES, SLOTS as usize).map_err(|e| e.to_string())?;
    channel.say("write on")?;
    let (begun, mut has_landed) = (Instant::now(), false);
    while begun.elapsed() < SHUT_OUT {
        next.poll(|_| has_landed = true).map_err(|e| e.to_string())?;
    }
    if has_landed || next.ring().iter().any(|byte| *byte != 0) {
        return Err(
            "a write with the key of an earlier link landed: a former writer would not be shut out".into(),
        );
    }
    Ok(())
}
