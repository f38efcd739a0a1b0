//! One side of a connection: its stream out, the other's stream in, what each knows of the other.

use quorate_types::planted::{self, Bug};

use crate::fault::Fault;
use crate::receiver::Receiver;
use crate::record::{Head, RECORD_BYTES_MAX, SLOT_BYTES, body};
use crate::sender::Sender;
use crate::shape::SLOTS_MIN;

/// A write to be made: so many bytes from the staged slot to the other side's slot at the same offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Write {
    pub offset: usize,
    pub bytes: usize,
    /// For the other side's completion queue: the low bits of the number.
    pub immediate: u32,
    /// The caller says `complete(number)` when the write has ended here.
    pub number: u64,
}

/// One end. It stages records in memory that the caller owns, and reads those of the other side from the ring.
#[derive(Debug)]
pub struct Side {
    /// Numbers of this side's ring, and of the other's.
    incarnations: [u64; 2],
    slots: u64,
    sender: Sender,
    receiver: Receiver,
    /// The last `consumed` that the other side was told.
    told: u64,
    /// Some of the records since then had bytes.
    owes_word: bool,
    /// The other side has said that it sleeps, and nobody has woken it since.
    other_sleeps: bool,
    /// It has to be woken by other means.
    rings: bool,
    /// The last record said that this side sleeps, and it was not woken since.
    has_said_sleep: bool,
}

impl Side {
    /// `own` and `others`: random numbers, one for each ring, which no other connection has.
    pub fn new(own: u64, others: u64, slots: u64) -> Self {
        assert!((SLOTS_MIN..1 << 31).contains(&slots), "slots of a ring");
        Self {
            incarnations: [own, others],
            slots,
            sender: Sender::new(slots),
            receiver: Receiver::new(slots),
            told: 0,
            owes_word: false,
            other_sleeps: false,
            rings: false,
            has_said_sleep: false,
        }
    }

    /// Stages the next record with as many of the bytes as it takes; `None` without room. The answer: the write, and the bytes
    /// that it has.
    pub fn put<'b>(
        &mut self,
        bytes: impl IntoIterator<Item = &'b [u8]>,
        staging: &mut [u8],
    ) -> Option<(Write, usize)> {
        if self.sender.room(false) == 0 {
            return None;
        }
        let slot = self.slot_of(self.sender.next());
        let into = body(&mut staging[slot * SLOT_BYTES..][..SLOT_BYTES]);
        let mut length = 0;
        for part in bytes {
            let taken = part.len().min(RECORD_BYTES_MAX - length);
            into[length..length + taken].copy_from_slice(&part[..taken]);
            length += taken;
        }
        Some((self.seal(length, false, staging), length))
    }

    /// A record without bytes, if it is due: the other side waits for room, or `is_idle` and it waits for a word on bytes
    /// that it sent. `None`: not due, or no slot is free at present.
    pub fn put_credit(&mut self, is_idle: bool, staging: &mut [u8]) -> Option<Write> {
        let owed = self.receiver.next() - self.told;
        let is_due = owed >= self.slots / 4 || (is_idle && self.owes_word);
        let is_forgotten = planted::on(Bug::RingCreditForgotten);
        (is_due && !is_forgotten && self.sender.room(true) > 0).then(|| self.seal(0, false, staging))
    }

    /// Says that this side will not look at its ring until it is woken. `None`: it has said so, or may not sleep now. Nobody
    /// sleeps whose bytes the other side may not have: its word that it sleeps may be on the way.
    pub fn put_sleep(&mut self, staging: &mut [u8]) -> Option<Write> {
        let may = !self.has_said_sleep && self.may_sleep() && self.sender.room(true) > 0;
        may.then(|| {
            let write = self.seal(0, true, staging);
            self.has_said_sleep = true;
            write
        })
    }

    /// Whether the caller may cease to look at the ring. The other side knows, or will know before it does so, too.
    pub fn sleeps(&self) -> bool {
        self.has_said_sleep && self.may_sleep()
    }

    fn may_sleep(&self) -> bool {
        let is_confirmed = self.sender.is_confirmed() || planted::on(Bug::RingSleeperMissed);
        is_confirmed && !self.sender.has_outstanding() && self.receiver.due().is_none()
    }

    /// The other side has woken it, and takes it for awake.
    pub fn woken(&mut self) {
        self.has_said_sleep = false;
    }

    /// Whether the other side must be woken by other means. The answer is given once.
    pub fn take_rings(&mut self) -> bool {
        std::mem::take(&mut self.rings)
    }

    /// A write has ended here. False: it was not under way.
    pub fn complete(&mut self, number: u64) -> bool {
        self.sender.complete(number)
    }

    pub fn has_outstanding(&self) -> bool {
        self.sender.has_outstanding()
    }

    /// A completion of the other side's write came, with these low bits.
    pub fn arrive(&mut self, low: u32) -> Result<(), Fault> {
        self.receiver.arrive(low)
    }

    /// Gives the next record's bytes to `take`, if it has arrived. False: it has not. A record may have none.
    pub fn read(&mut self, ring: &[u8], take: impl FnOnce(&[u8])) -> Result<bool, Fault> {
        let Some(number) = self.receiver.due() else {
            return Ok(false);
        };
        let slot = self.slot_of(number);
        let (head, bytes) = Head::read(
            &ring[slot * SLOT_BYTES..][..SLOT_BYTES],
            self.incarnations[0],
            number,
        )?;
        if !self.sender.credit(head.consumed) {
            return Err(Fault::Damaged {
                expected: number,
                what: "it confirms records that were not sent",
            });
        }
        self.other_sleeps = head.sleeps;
        if head.sleeps && self.sender.awaits(head.consumed) {
            // It fell asleep over bytes that are on their way.
            (self.other_sleeps, self.rings) = (false, true);
        }
        self.owes_word |= !bytes.is_empty();
        take(bytes);
        self.receiver.take();
        Ok(true)
    }

    fn seal(&mut self, length: usize, sleeps: bool, staging: &mut [u8]) -> Write {
        let number = self.sender.put(length > 0);
        let offset = self.slot_of(number) * SLOT_BYTES;
        (self.told, self.owes_word) = (self.receiver.next(), false);
        // Every later record says that it is awake.
        self.has_said_sleep = false;
        let head = Head {
            incarnation: self.incarnations[1],
            number,
            consumed: self.told,
            sleeps,
        };
        let bytes = head.put(length, &mut staging[offset..][..SLOT_BYTES]);
        // Records without bytes can wait until it wakes.
        if length > 0 && std::mem::take(&mut self.other_sleeps) {
            self.rings = true;
        }
        Write {
            offset,
            bytes,
            immediate: number as u32,
            number,
        }
    }

    fn slot_of(&self, number: u64) -> usize {
        (number % self.slots) as usize
    }
}
