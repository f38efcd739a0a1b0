//! A stream each way over one-sided writes: an endpoint of the fabric, and the side that counts what goes over it.

use std::collections::VecDeque;
use std::rc::Rc;

use quorate_fabric::{Completion, Domain, FabricError, Link, Offer};
use quorate_rings::{Fault, RING_BYTES, SLOTS, Side, Write};
use thiserror::Error;

/// The end of a stream: what is under way is lost, or has arrived.
#[derive(Debug, Error)]
pub enum Trouble {
    #[error("{0}")]
    Fabric(#[from] FabricError),
    #[error("{0}")]
    Ring(#[from] Fault),
    #[error("the peer speaks of a ring out of turn")]
    OutOfTurn,
}

pub struct RingStream {
    fabric: Link,
    /// Random: the peer's records name it.
    incarnation: u64,
    /// Once the peer is known.
    side: Option<Side>,
    /// Writes that the provider did not take yet, oldest first.
    waiting: VecDeque<Write>,
}

impl RingStream {
    pub fn open(domain: &Rc<Domain>) -> Result<Self, FabricError> {
        Ok(Self {
            fabric: Link::open(domain, RING_BYTES, SLOTS as usize)?,
            incarnation: rand::random(),
            side: None,
            waiting: VecDeque::new(),
        })
    }

    /// For the peer, with the incarnation of the ring that it is to write into.
    pub fn offer(&self) -> Result<(Offer, u64), FabricError> {
        Ok((self.fabric.offer()?, self.incarnation))
    }

    /// Once. Neither side may write before both have done so.
    pub fn connect(&mut self, offer: &Offer, incarnation: u64) -> Result<(), Trouble> {
        if self.side.is_some() {
            return Err(Trouble::OutOfTurn);
        }
        self.fabric.connect(offer)?;
        self.side = Some(Side::new(self.incarnation, incarnation, SLOTS));
        Ok(())
    }

    pub fn is_connected(&self) -> bool {
        self.side.is_some()
    }

    /// Stages a record with as many of the bytes as it takes; `None` without room. `launch` sends it.
    pub fn put<'b>(&mut self, bytes: impl IntoIterator<Item = &'b [u8]>) -> Option<usize> {
        let (write, taken) = self.side.as_mut()?.put(bytes, self.fabric.staging())?;
        self.waiting.push_back(write);
        Some(taken)
    }

    /// Gives the provider what it did not take yet.
    pub fn launch(&mut self) -> Result<(), Trouble> {
        while let Some(write) = self.waiting.front() {
            let begun = self
                .fabric
                .write(write.offset, write.bytes, write.immediate, write.number);
            match begun {
                Ok(()) => {
                    self.waiting.pop_front();
                }
                Err(FabricError::Again) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Looks at completions, and gives up to about `bytes_max` bytes that have arrived to `take`. The answer: whether anything
    /// happened, and how many bytes came.
    pub fn poll(&mut self, bytes_max: usize, mut take: impl FnMut(&[u8])) -> Result<(bool, usize), Trouble> {
        let Some(side) = &mut self.side else {
            return Ok((false, 0));
        };
        let (mut has_happened, mut fault) = (false, None);
        self.fabric.poll(|completion| {
            has_happened = true;
            match completion {
                Completion::Ended { number } => assert!(side.complete(number), "it was under way"),
                Completion::Landed { immediate } => fault = fault.or(side.arrive(immediate).err()),
            }
        })?;
        if let Some(fault) = fault {
            return Err(fault.into());
        }
        let mut bytes = 0;
        while bytes < bytes_max
            && side.read(self.fabric.ring(), |record| {
                take(record);
                bytes += record.len();
            })?
        {
            has_happened = true;
        }
        let credit = side.put_credit(false, self.fabric.staging());
        self.waiting.extend(credit);
        self.launch()?;
        Ok((has_happened, bytes))
    }

    /// Nothing has happened for a while: tells the peer what it waits for. True: nobody needs to look until the peer calls, or
    /// something is to be written.
    pub fn rest(&mut self) -> Result<bool, Trouble> {
        let Some(side) = &mut self.side else {
            return Ok(true);
        };
        let word = side.put_credit(true, self.fabric.staging());
        let sleep = side.put_sleep(self.fabric.staging());
        self.waiting.extend(word.into_iter().chain(sleep));
        let sleeps = side.sleeps() && self.waiting.is_empty();
        self.launch()?;
        Ok(sleeps)
    }

    /// The peer has called.
    pub fn woken(&mut self) {
        self.side.iter_mut().for_each(Side::woken);
    }

    /// Whether writes of this side have not ended.
    pub fn has_outstanding(&self) -> bool {
        self.side.as_ref().is_some_and(Side::has_outstanding)
    }

    /// Whether the peer has to be called by other means.
    pub fn take_rings(&mut self) -> bool {
        self.side.as_mut().is_some_and(Side::take_rings)
    }
}
