//! A link's frames over one-sided writes, once both servers have agreed on it (`docs/internals/one-sided.md`).

use std::collections::VecDeque;
use std::rc::Rc;

use bytes::Bytes;
use quorate_fabric::{Completion, Domain, FabricError, Link, Offer};
use quorate_rings::{Fault, RING_BYTES, SLOTS, Side, Write};
use quorate_transport::{FrameReader, Outbox};
use quorate_types::limits::{PEER_FRAME_BYTES_MAX, READ_BATCH_BYTES};
use quorate_wire::one_sided::{OneSided, RingOffer};
use thiserror::Error;

/// The end of a ring, and with it of the link. The next link goes by the socket for a while.
#[derive(Debug, Error)]
pub enum Trouble {
    #[error("{0}")]
    Fabric(#[from] FabricError),
    #[error("{0}")]
    Ring(#[from] Fault),
    #[error("the peer speaks of a ring out of turn")]
    OutOfTurn,
}

/// The next step after an offer, or another message about the ring.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Nothing,
    /// To be said on the socket.
    Say(OneSided),
    /// The socket's last frame is due: all others go into the ring from here on.
    SwitchOut,
}

pub struct Ring {
    fabric: Link,
    provider: &'static str,
    incarnation: u64,
    /// Once the peer's offer is known.
    side: Option<Side>,
    /// Frames go into the ring.
    is_out: bool,
    /// Frames come from the ring.
    is_in: bool,
    /// Trouble has ended it, and its link ends soon: nothing goes in or out any more.
    is_over: bool,
    /// Writes that the provider did not take yet, oldest first.
    waiting: VecDeque<Write>,
    /// Bytes of frames that have arrived.
    reader: FrameReader,
}

impl Ring {
    pub fn new(domain: &Rc<Domain>, incarnation: u64) -> Result<Self, FabricError> {
        Ok(Self {
            fabric: Link::open(domain, RING_BYTES, SLOTS as usize)?,
            provider: domain.provider().name(),
            incarnation,
            side: None,
            is_out: false,
            is_in: false,
            is_over: false,
            waiting: VecDeque::new(),
            reader: FrameReader::new(PEER_FRAME_BYTES_MAX),
        })
    }

    /// For the peer.
    pub fn offer(&self) -> Result<OneSided, FabricError> {
        let offer = self.fabric.offer()?;
        Ok(OneSided::Offer(RingOffer {
            provider: self.provider.to_string(),
            name: Bytes::from(offer.name),
            base: offer.base,
            key: offer.key,
            incarnation: self.incarnation,
        }))
    }

    pub fn is_out(&self) -> bool {
        self.is_out
    }

    /// There was trouble.
    pub fn end(&mut self) {
        self.is_over = true;
    }

    /// A message about the ring came on the socket.
    pub fn take(&mut self, message: &OneSided) -> Result<Next, Trouble> {
        match message {
            OneSided::Offer(offer) => self.connect(offer),
            OneSided::Ready if self.side.is_some() && !self.is_out => {
                self.is_out = true;
                Ok(Next::SwitchOut)
            }
            OneSided::Switch if self.side.is_some() && !self.is_in => {
                self.is_in = true;
                Ok(Next::Nothing)
            }
            OneSided::Wake => {
                if let Some(side) = &mut self.side {
                    side.woken();
                }
                Ok(Next::Nothing)
            }
            _ => Err(Trouble::OutOfTurn),
        }
    }

    fn connect(&mut self, offer: &RingOffer) -> Result<Next, Trouble> {
        if self.side.is_some() {
            return Err(Trouble::OutOfTurn);
        }
        if offer.provider != self.provider {
            let (theirs, ours) = (&offer.provider, self.provider);
            tracing::warn!(
                theirs,
                ours,
                "the peer has another provider; the link stays on its socket"
            );
            return Ok(Next::Nothing);
        }
        self.fabric.connect(&Offer {
            name: offer.name.to_vec(),
            base: offer.base,
            key: offer.key,
        })?;
        self.side = Some(Side::new(self.incarnation, offer.incarnation, SLOTS));
        Ok(Next::Say(OneSided::Ready))
    }

    /// Puts as much into the peer's ring as there is room for. True: all of it.
    pub fn write(&mut self, outbox: &mut Outbox) -> Result<bool, Trouble> {
        if self.is_over {
            return Ok(false);
        }
        let (fabric, waiting) = (&mut self.fabric, &mut self.waiting);
        let side = self.side.as_mut().expect("frames go into rings of a peer");
        let is_all = outbox.write_into(|slices| {
            let (write, bytes) = side.put(slices, fabric.staging())?;
            waiting.push_back(write);
            Some(bytes)
        });
        self.launch()?;
        Ok(is_all)
    }

    /// Gives the provider what it did not take yet.
    fn launch(&mut self) -> Result<(), Trouble> {
        while let Some(write) = self.waiting.front() {
            match self
                .fabric
                .write(write.offset, write.bytes, write.immediate, write.number)
            {
                Ok(()) => {
                    self.waiting.pop_front();
                }
                Err(FabricError::Again) => break,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Looks at completions, and moves the bytes that have arrived to the reader. The answer: whether anything happened, and
    /// how many bytes came.
    pub fn poll(&mut self) -> Result<(bool, usize), Trouble> {
        let Some(side) = self.side.as_mut().filter(|_| !self.is_over) else {
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
        let (reader, ring) = (&mut self.reader, self.fabric.ring());
        while self.is_in && bytes < READ_BATCH_BYTES {
            let is_read = side.read(ring, |record| {
                reader.push(record);
                bytes += record.len();
            })?;
            has_happened |= is_read;
            if !is_read {
                break;
            }
        }
        if let Some(credit) = side.put_credit(false, self.fabric.staging()) {
            self.waiting.push_back(credit);
        }
        self.launch()?;
        Ok((has_happened, bytes))
    }

    /// Nothing has happened for a while: tells the peer what it waits for. True: nobody needs to look at the ring until it is
    /// woken, or writes.
    pub fn rest(&mut self) -> Result<bool, Trouble> {
        let Some(side) = self.side.as_mut().filter(|_| !self.is_over) else {
            return Ok(true);
        };
        if !self.is_in {
            // Records may be there already: the socket tells when they are due.
            return Ok(!side.has_outstanding());
        }
        let word = side.put_credit(true, self.fabric.staging());
        let sleep = side.put_sleep(self.fabric.staging());
        self.waiting.extend(word.into_iter().chain(sleep));
        let sleeps = side.sleeps() && self.waiting.is_empty();
        self.launch()?;
        Ok(sleeps)
    }

    pub fn take_reader(&mut self) -> FrameReader {
        std::mem::replace(&mut self.reader, FrameReader::new(PEER_FRAME_BYTES_MAX))
    }

    /// Its link is the same still: nothing was read meanwhile.
    pub fn put_reader(&mut self, reader: FrameReader) {
        self.reader = reader;
    }

    /// Whether the peer has to be woken, on the socket.
    pub fn take_rings(&mut self) -> bool {
        self.side.as_mut().is_some_and(Side::take_rings)
    }
}
