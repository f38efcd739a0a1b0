//! Records that have arrived, in any order, and are taken in that of their numbers.

use quorate_types::planted::{self, Bug};

use crate::fault::Fault;

#[derive(Debug)]
pub struct Receiver {
    slots: u64,
    /// The next record to be taken.
    next: u64,
    arrived: Vec<bool>,
}

impl Receiver {
    pub fn new(slots: u64) -> Self {
        Self {
            slots,
            next: 0,
            arrived: vec![false; slots as usize],
        }
    }

    /// Records below it were taken.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// The low bits of a record's number came with its completion.
    pub fn arrive(&mut self, low: u32) -> Result<(), Fault> {
        let expected = self.next;
        let ahead = u64::from(low.wrapping_sub(expected as u32));
        let slot = ((expected + ahead) % self.slots) as usize;
        if ahead >= self.slots || self.arrived[slot] {
            return Err(Fault::Unexpected { expected });
        }
        self.arrived[slot] = true;
        Ok(())
    }

    /// The number of the next record, if it has arrived.
    pub fn due(&self) -> Option<u64> {
        let is_there = self.arrived[(self.next % self.slots) as usize];
        let is_any_there = planted::on(Bug::RingOrderIgnored) && self.arrived.contains(&true);
        (is_there || is_any_there).then_some(self.next)
    }

    /// The record that was due is taken: its slot may be written again once the other side knows.
    pub fn take(&mut self) {
        self.arrived[(self.next % self.slots) as usize] = false;
        self.next += 1;
    }
}
