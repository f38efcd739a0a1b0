//! Two sides over writes that land in any order, in pieces, late, and on a connection that is over.

use std::collections::VecDeque;

use quorate_rings::{Fault, RECORD_BYTES_MAX, SLOT_BYTES, Side, Write};

const SLOTS: u64 = 16;
const RING_BYTES: usize = SLOTS as usize * SLOT_BYTES;
const STEPS: u64 = 1_500;
/// After that nothing new is sent. Everything must arrive, and both ends cease to look.
const HEALING_STEPS_MAX: u64 = 60_000;

/// xorshift64*.
pub struct Choices(u64);

impl Choices {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// A write on its way to the other end.
struct Flight {
    /// The sending end.
    from: usize,
    write: Write,
    /// The bytes, once the sending end may use its memory again.
    copy: Option<Vec<u8>>,
    landed: [bool; 2],
    /// It belongs to a connection that is over.
    is_stale: bool,
}

struct End {
    side: Side,
    ring: Vec<u8>,
    staging: Vec<u8>,
    wanted_bytes: u64,
    sent_bytes: u64,
    received_bytes: u64,
    /// Completions that it has not seen: low bits of numbers that arrived, and numbers that are done here.
    arrivals: VecDeque<u32>,
    completions: VecDeque<u64>,
    is_asleep: bool,
    /// A wake-up is on its way.
    is_called: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Counts {
    pub bytes: u64,
    pub records: u64,
    pub wakes: u64,
    pub breaks: u64,
    pub stale_faults: u64,
}

pub struct World {
    choices: Choices,
    incarnation: u64,
    ends: [End; 2],
    flights: Vec<Flight>,
    /// Writes of a connection that is over land all the same: its memory was not shut to them.
    keeps_memory_open: bool,
    has_stale: bool,
    pub counts: Counts,
}

/// The stream's byte at a position: each connection and direction has its own.
fn byte_at(incarnation: u64, from: usize, at: u64) -> u8 {
    let mixed =
        (at + 1).wrapping_mul(0x9e37_79b9) ^ (incarnation * 2 + from as u64).wrapping_mul(0x85eb_ca6b);
    (mixed ^ (mixed >> 15)) as u8
}

/// `own`: 0 or 1.
fn end(incarnation: u64, own: u64) -> End {
    End {
        side: Side::new(2 * incarnation + own, 2 * incarnation + 1 - own, SLOTS),
        ring: vec![0; RING_BYTES],
        staging: vec![0; RING_BYTES],
        wanted_bytes: 0,
        sent_bytes: 0,
        received_bytes: 0,
        arrivals: VecDeque::new(),
        completions: VecDeque::new(),
        is_asleep: false,
        is_called: false,
    }
}

/// Runs one world to its end; panics where the stream is wrong or stands still.
pub fn run(seed: u64) -> Counts {
    let mut choices = Choices::new(seed);
    let mut world = World {
        incarnation: 1,
        ends: [end(1, 0), end(1, 1)],
        flights: Vec::new(),
        keeps_memory_open: choices.one_in(8),
        has_stale: false,
        counts: Counts::default(),
        choices,
    };
    for _ in 0..STEPS {
        for own in 0..2 {
            let most = if world.choices.one_in(12) {
                3 * RECORD_BYTES_MAX as u64
            } else {
                200
            };
            let more = world.choices.below(most);
            if world.choices.one_in(4) {
                world.ends[own].wanted_bytes += more;
            }
        }
        world.step();
        if world.choices.one_in(700) {
            world.break_off();
        }
    }
    for _ in 0..HEALING_STEPS_MAX {
        if world.is_quiet() && world.ends.iter().all(|end| end.is_asleep) {
            return world.counts;
        }
        world.step();
    }
    panic!("it stands still: {}", world.describe());
}

impl World {
    fn step(&mut self) {
        let own = self.choices.below(2) as usize;
        match self.choices.below(6) {
            0..3 => self.act(own),
            3..5 => self.move_flight(),
            _ => self.call(own),
        }
    }

    fn is_quiet(&self) -> bool {
        self.ends.iter().enumerate().all(|(own, end)| {
            let other = &self.ends[1 - own];
            end.sent_bytes == end.wanted_bytes && other.received_bytes == end.sent_bytes
        })
    }

    /// The end looks at its completions, reads what is due, and writes.
    fn act(&mut self, own: usize) {
        if self.ends[own].is_asleep {
            return;
        }
        if let Err(fault) = self.look(own) {
            assert!(self.has_stale, "a fault on a sound connection: {fault}");
            self.counts.stale_faults += 1;
            return self.break_off();
        }
        self.write(own);
        if self.choices.one_in(3) {
            let end = &mut self.ends[own];
            if end.sent_bytes == end.wanted_bytes
                && let Some(write) = end.side.put_sleep(&mut end.staging)
            {
                self.launch(own, write);
            }
        }
        let end = &mut self.ends[own];
        end.is_asleep = end.sent_bytes == end.wanted_bytes && end.side.sleeps();
    }

    fn look(&mut self, own: usize) -> Result<(), Fault> {
        let incarnation = self.incarnation;
        let end = &mut self.ends[own];
        while let Some(number) = end.completions.pop_front() {
            assert!(end.side.complete(number), "it was under way");
        }
        while let Some(low) = end.arrivals.pop_front() {
            end.side.arrive(low)?;
        }
        let reads = self.choices.below(4);
        for _ in 0..reads {
            let (received, mut bytes) = (end.received_bytes, 0);
            let is_read = end.side.read(&end.ring, |record| {
                for (at, byte) in record.iter().enumerate() {
                    let expected = byte_at(incarnation, 1 - own, received + at as u64);
                    assert_eq!(*byte, expected, "another byte than was sent");
                }
                bytes = record.len() as u64;
            })?;
            end.received_bytes += bytes;
            self.counts.bytes += bytes;
            self.counts.records += u64::from(is_read);
        }
        Ok(())
    }

    fn write(&mut self, own: usize) {
        let end = &mut self.ends[own];
        let mut writes = Vec::new();
        while end.sent_bytes < end.wanted_bytes {
            let length =
                (end.wanted_bytes - end.sent_bytes).min(1 + self.choices.below(2 * RECORD_BYTES_MAX as u64));
            let bytes: Vec<u8> = (end.sent_bytes..end.sent_bytes + length)
                .map(|at| byte_at(self.incarnation, own, at))
                .collect();
            let (front, back) = bytes.split_at(bytes.len() / 2);
            let Some((write, taken)) = end.side.put([front, back], &mut end.staging) else {
                break;
            };
            end.sent_bytes += taken as u64;
            writes.push(write);
        }
        let is_idle = end.sent_bytes == end.wanted_bytes;
        writes.extend(end.side.put_credit(is_idle, &mut end.staging));
        for write in writes {
            self.launch(own, write);
        }
    }

    fn launch(&mut self, own: usize, write: Write) {
        self.flights.push(Flight {
            from: own,
            write,
            copy: None,
            landed: [false; 2],
            is_stale: false,
        });
        if self.ends[own].side.take_rings() {
            self.ends[1 - own].is_called = true;
        }
    }

    /// Part of a write lands, or it ends for its sender, in any order.
    fn move_flight(&mut self) {
        if self.flights.is_empty() {
            return;
        }
        let at = self.choices.below(self.flights.len() as u64) as usize;
        let choice = self.choices.below(3) as usize;
        let flight = &mut self.flights[at];
        let Write { offset, bytes, .. } = flight.write;
        if choice == 2 {
            if flight.copy.is_none() && !flight.is_stale {
                let end = &mut self.ends[flight.from];
                flight.copy = Some(end.staging[offset..offset + bytes].to_vec());
                end.completions.push_back(flight.write.number);
            }
        } else if !std::mem::replace(&mut flight.landed[choice], true) {
            let half = bytes / 2;
            let part = if choice == 0 { 0..half } else { half..bytes };
            let source = match &flight.copy {
                Some(copy) => copy.clone(),
                None => self.ends[flight.from].staging[offset..offset + bytes].to_vec(),
            };
            let is_shut = flight.is_stale && !self.keeps_memory_open;
            let target = &mut self.ends[1 - flight.from];
            if !is_shut {
                target.ring[offset + part.start..offset + part.end].copy_from_slice(&source[part]);
            }
            if flight.landed == [true; 2] && !is_shut {
                target.arrivals.push_back(flight.write.immediate);
            }
        }
        let is_done = flight.landed == [true; 2] && (flight.copy.is_some() || flight.is_stale);
        if is_done {
            self.flights.swap_remove(at);
        }
    }

    /// A wake-up reaches an end.
    fn call(&mut self, own: usize) {
        // An end asks its side also where it has only read.
        let rings = self.ends[1 - own].side.take_rings();
        let end = &mut self.ends[own];
        let is_called = std::mem::take(&mut end.is_called) || rings;
        let has_to_send = end.sent_bytes < end.wanted_bytes;
        if is_called || has_to_send {
            self.counts.wakes += u64::from(end.is_asleep && is_called);
            end.is_asleep = false;
            if is_called {
                end.side.woken();
            }
        }
    }

    /// The connection ends, and another begins. Writes of the old one are on their way still.
    fn break_off(&mut self) {
        self.counts.breaks += 1;
        self.incarnation += 1;
        for flight in &mut self.flights {
            let Write { offset, bytes, .. } = flight.write;
            let staging = &self.ends[flight.from].staging;
            flight
                .copy
                .get_or_insert_with(|| staging[offset..offset + bytes].to_vec());
            flight.is_stale = true;
        }
        self.has_stale = self.keeps_memory_open;
        for own in 0..2 {
            let ring = std::mem::take(&mut self.ends[own].ring);
            self.ends[own] = end(self.incarnation, own as u64);
            self.ends[own].ring = ring;
        }
    }

    fn describe(&self) -> String {
        let of = |own: usize| {
            let end = &self.ends[own];
            format!(
                "{own}: sent {} of {}, received {}, asleep {}",
                end.sent_bytes, end.wanted_bytes, end.received_bytes, end.is_asleep
            )
        };
        format!("{}; {}; {} writes under way", of(0), of(1), self.flights.len())
    }
}
