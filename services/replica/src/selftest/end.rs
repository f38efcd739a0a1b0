//! An end of the test: a link and its stream, and the lines by which two processes meet.

use std::io::{BufRead, Write};
use std::rc::Rc;
use std::time::{Duration, Instant};

use quorate_fabric::{Completion, Domain, Link, Offer};
use quorate_rings::{RING_BYTES, SLOTS, Side};
use serde::{Deserialize, Serialize};

use super::measure::{PATIENCE, PIECE_BYTES, STREAM_BYTES};

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

/// A link and its stream.
pub struct End {
    link: Link,
    side: Side,
}

impl End {
    /// Meets the other process over the channel. Nobody writes before both know one another.
    pub fn open<I: BufRead, O: Write>(
        domain: &Rc<Domain>,
        channel: &mut Channel<I, O>,
    ) -> Result<Self, String> {
        let mut link = Link::open(domain, RING_BYTES, SLOTS as usize).map_err(|e| e.to_string())?;
        let Offer { name, base, key } = link.offer().map_err(|e| e.to_string())?;
        let incarnation = rand::random();
        let told = Told {
            name,
            base,
            key,
            incarnation,
        };
        channel.say(&serde_json::to_string(&told).expect("offers serialise"))?;
        let heard: Told =
            serde_json::from_str(&channel.hear()?).map_err(|e| format!("the other's offer: {e}"))?;
        let others = heard.incarnation;
        let offer = Offer {
            name: heard.name,
            base: heard.base,
            key: heard.key,
        };
        link.connect(&offer).map_err(|e| e.to_string())?;
        channel.say("ready")?;
        channel.hear()?;
        let side = Side::new(incarnation, others, SLOTS);
        Ok(Self { link, side })
    }

    pub fn poll(&mut self) -> Result<(), String> {
        let (side, mut fault) = (&mut self.side, None);
        let polled = self.link.poll(|completion| match completion {
            Completion::Ended { number } => assert!(side.complete(number), "it was under way"),
            Completion::Landed { immediate } => fault = side.arrive(immediate).err().or(fault),
        });
        polled.map_err(|e| e.to_string())?;
        fault.map_or(Ok(()), |fault| Err(fault.to_string()))
    }

    /// As much of the bytes as there is room for.
    pub fn put(&mut self, bytes: &[u8]) -> Result<usize, String> {
        let Some((write, taken)) = self.side.put([bytes], self.link.staging()) else {
            return Ok(0);
        };
        self.launch(write)?;
        Ok(taken)
    }

    fn launch(&mut self, write: quorate_rings::Write) -> Result<(), String> {
        let begun = Instant::now();
        loop {
            match self
                .link
                .write(write.offset, write.bytes, write.immediate, write.number)
            {
                Ok(()) => return Ok(()),
                Err(quorate_fabric::FabricError::Again) if begun.elapsed() < PATIENCE => self.poll()?,
                Err(error) => return Err(error.to_string()),
            }
        }
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

    /// Adds what has come.
    pub fn receive(&mut self, into: &mut Vec<u8>) -> Result<(), String> {
        self.poll()?;
        let (side, ring) = (&mut self.side, self.link.ring());
        while side
            .read(ring, |record| into.extend_from_slice(record))
            .map_err(|fault| fault.to_string())?
        {}
        if let Some(credit) = self.side.put_credit(false, self.link.staging()) {
            self.launch(credit)?;
        }
        Ok(())
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
        // The last word of the other side may need this one's work.
        while self.link.under_way() > 0 && begun.elapsed() < patience {
            self.poll()?;
        }
        Ok(())
    }
}

/// The byte at a place of a stream.
pub fn byte_at(at: usize) -> u8 {
    (at ^ (at >> 8) ^ (at >> 16)) as u8
}
