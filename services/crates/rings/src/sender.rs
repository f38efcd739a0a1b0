//! Records under way to the other side.

use quorate_types::planted::{self, Bug};

/// Slots that records with bytes leave free: each side can always tell what it has consumed, or that it sleeps.
pub const CREDIT_SLOTS: u64 = 8;

#[derive(Debug)]
pub struct Sender {
    slots: u64,
    /// The next record's number.
    next: u64,
    /// Records below it were consumed by the other side.
    consumed: u64,
    /// The end of the records with bytes of the stream.
    bytes_end: u64,
    /// Records below it have been completed here, and others behind: their staged bytes are read no more.
    completed: u64,
    later: Vec<bool>,
}

impl Sender {
    pub fn new(slots: u64) -> Self {
        Self {
            slots,
            next: 0,
            consumed: 0,
            bytes_end: 0,
            completed: 0,
            later: vec![false; slots as usize],
        }
    }

    /// Records that may be put before others are consumed. `is_credit`: it has no bytes of the stream.
    pub fn room(&self, is_credit: bool) -> u64 {
        let kept_free = if is_credit { 0 } else { CREDIT_SLOTS };
        let oldest = match planted::on(Bug::RingSlotReused) {
            true => self.consumed,
            false => self.consumed.min(self.completed),
        };
        (self.slots - kept_free).saturating_sub(self.next - oldest)
    }

    pub fn next(&self) -> u64 {
        self.next
    }

    /// Whether the other side may lack bytes when it has consumed the records below.
    pub fn awaits(&self, consumed: u64) -> bool {
        self.bytes_end > consumed
    }

    /// Whether the other side is known to have all bytes.
    pub fn is_confirmed(&self) -> bool {
        !self.awaits(self.consumed)
    }

    pub fn has_outstanding(&self) -> bool {
        self.completed < self.next
    }

    /// Takes the next number.
    pub fn put(&mut self, has_bytes: bool) -> u64 {
        self.next += 1;
        if has_bytes {
            self.bytes_end = self.next;
        }
        self.next - 1
    }

    /// The write of a record has ended here. False: none of that number was under way.
    pub fn complete(&mut self, number: u64) -> bool {
        let is_under_way = (self.completed..self.next).contains(&number);
        let at = |number: u64| (number % self.slots) as usize;
        if !is_under_way || std::mem::replace(&mut self.later[at(number)], true) {
            return false;
        }
        while self.completed < self.next && self.later[at(self.completed)] {
            self.later[at(self.completed)] = false;
            self.completed += 1;
        }
        true
    }

    /// The other side has consumed all records below. False: it was never sent so many.
    pub fn credit(&mut self, consumed: u64) -> bool {
        if consumed > self.next {
            return false;
        }
        self.consumed = self.consumed.max(consumed);
        true
    }
}
