//! An end of the test: its stream, and the lines by which two processes meet.

use std::io::{BufRead, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

use quorate_fabric::{Domain, Offer};
use serde::{Deserialize, Serialize};

use super::measure::{PIECE_BYTES, STREAM_BYTES};
use quorate_one_sided::RingStream;

/// Lines between the two processes, until they can write to one another.
pub struct Channel<I, O> {
    pub input: I,
    pub output: O,
}

#[derive(Serialize, Deserialize)]
struct Told {
    name: Vec<u8>,
    base: u64,
    key: u64,
    incarnation: u64,
}

impl<I: BufRead, O: Write> Channel<I, O> {
    pub fn say(&mut self, line: &str) -> Result<(), String> {
        let said = writeln!(self.output, "{line}").and_then(|()| self.output.flush());
        said.map_err(|e| format!("the other process: {e}"))
    }

    pub fn hear(&mut self) -> Result<String, String> {
        let mut line = String::new();
        match self.input.read_line(&mut line) {
            Ok(0) => Err("the other process ended".into()),
            Ok(_) => Ok(line.trim_end().to_string()),
            Err(error) => Err(format!("the other process: {error}")),
        }
    }
}

/// An end, by the very stream that links of servers have.
pub struct End {
    stream: RingStream,
}

impl End {
    /// Meets the other process over the channel. Nobody writes before both know one another.
    pub fn open<I: BufRead, O: Write>(
        domain: &Rc<Domain>,
        channel: &mut Channel<I, O>,
    ) -> Result<Self, String> {
        let mut stream = RingStream::open(domain).map_err(|e| e.to_string())?;
        let (Offer { name, base, key }, incarnation) = stream.offer().map_err(|e| e.to_string())?;
        let told = Told {
            name,
            base,
            key,
            incarnation,
        };
        channel.say(&serde_json::to_string(&told).expect("offers serialise"))?;
        let heard: Told =
            serde_json::from_str(&channel.hear()?).map_err(|e| format!("the other's offer: {e}"))?;
        let offer = Offer {
            name: heard.name,
            base: heard.base,
            key: heard.key,
        };
        stream
            .connect(&offer, heard.incarnation)
            .map_err(|e| e.to_string())?;
        channel.say("ready")?;
        channel.hear()?;
        Ok(Self { stream })
    }

    /// As much of the bytes as there is room for.
    pub fn put(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let taken = self.stream.put([bytes]).unwrap_or(0);
        self.stream.launch().map_err(|e| e.to_string())?;
        Ok(taken)
    }

    pub fn send(&mut self, mut bytes: &[u8], patience: Duration) -> Result<(), String> {
        let begun = Instant::now();
        while !bytes.is_empty() {
            let taken = self.put(bytes)?;
            bytes = &bytes[taken..];
            if taken == 0 {
                self.poll()?;
                if begun.elapsed() > patience {
                    return Err("the other side takes nothing".into());
                }
            }
        }
        Ok(())
    }

    /// Lets the provider work, and takes nothing in.
    pub fn poll(&mut self) -> Result<(), String> {
        let polled = self.stream.poll(0, |_| {});
        polled.map(drop).map_err(|e| e.to_string())
    }

    /// Adds what has come.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> Result<(), String> {
        let polled = self
            .stream
            .poll(usize::MAX, |record| into.extend_from_slice(record));
        polled.map(drop).map_err(|e| e.to_string())
    }

    /// Sends the stream, and checks the other's.
    pub fn exchange_streams(&mut self, patience: Duration) -> Result<(), String> {
        let (mut sent, mut received) = (0, 0);
        let (mut piece, mut come) = (Vec::new(), Vec::new());
        let begun = Instant::now();
        while sent < STREAM_BYTES || received < STREAM_BYTES {
            if sent < STREAM_BYTES {
                let end = (sent + PIECE_BYTES).min(STREAM_BYTES);
                piece.clear();
                piece.extend((sent..end).map(byte_at));
                sent += self.put(&piece)?;
            }
            come.clear();
            self.receive(&mut come)?;
            let is_right = come
                .iter()
                .enumerate()
                .all(|(at, byte)| *byte == byte_at(received + at));
            if !is_right {
                return Err("the stream came otherwise than it was sent".into());
            }
            received += come.len();
            if begun.elapsed() > patience {
                return Err(format!(
                    "a stream stands still: sent {sent}, received {received} bytes"
                ));
            }
        }
        // The last word of the other side may need this one's work. The other side may be gone once it has everything.
        while self.stream.has_outstanding() && begun.elapsed() < patience {
            if self.poll().is_err() {
                break;
            }
        }
        Ok(())
    }
}

/// The byte at a place of a stream.
pub fn byte_at(at: usize) -> u8 {
    (at ^ (at >> 8) ^ (at >> 16)) as u8
}
