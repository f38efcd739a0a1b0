//! A link's frames over one-sided writes, once both servers have agreed on it (`docs/internals/one-sided.md`).

use bytes::Bytes;
use quorate_one_sided::{FabricError, Offer, Provider, RingStream, Trouble};
use quorate_transport::{FrameReader, Outbox};
use quorate_types::limits::{PEER_FRAME_BYTES_MAX, READ_BATCH_BYTES};
use quorate_wire::one_sided::{OneSided, RingOffer};

/// The next step after an offer, or another message about the ring.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Nothing,
    /// To be said on the socket.
    Say(OneSided),
    /// The socket's last frame is due: all others go into the ring from here on.
    SwitchOut,
}

/// There is trouble when it ends, and its link with it. The next links go by the socket for a while.
pub struct Ring {
    stream: RingStream,
    provider: &'static str,
    /// Frames go into the ring.
    is_out: bool,
    /// Frames come from the ring.
    is_in: bool,
    /// Trouble has ended it, and its link ends soon: nothing goes in or out any more.
    is_over: bool,
    /// Bytes of frames that have arrived.
    reader: FrameReader,
}

impl Ring {
    pub fn new(stream: RingStream, provider: Provider) -> Self {
        Self {
            stream,
            provider: provider.name(),
            is_out: false,
            is_in: false,
            is_over: false,
            reader: FrameReader::new(PEER_FRAME_BYTES_MAX),
        }
    }

    /// For the peer.
    pub fn offer(&self) -> Result<OneSided, FabricError> {
        let (offer, incarnation) = self.stream.offer()?;
        Ok(OneSided::Offer(RingOffer {
            provider: self.provider.to_string(),
            name: Bytes::from(offer.name),
            base: offer.base,
            key: offer.key,
            incarnation,
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
        let is_connected = self.stream.is_connected();
        match message {
            OneSided::Offer(offer) => self.connect(offer),
            OneSided::Ready if is_connected && !self.is_out => {
                self.is_out = true;
                Ok(Next::SwitchOut)
            }
            OneSided::Switch if is_connected && !self.is_in => {
                self.is_in = true;
                Ok(Next::Nothing)
            }
            OneSided::Wake => {
                self.stream.woken();
                Ok(Next::Nothing)
            }
            _ => Err(Trouble::OutOfTurn),
        }
    }

    fn connect(&mut self, offer: &RingOffer) -> Result<Next, Trouble> {
        if offer.provider != self.provider {
            let (theirs, ours) = (&offer.provider, self.provider);
            tracing::warn!(
                theirs,
                ours,
                "the peer has another provider; the link stays on its socket"
            );
            return Ok(Next::Nothing);
        }
        let endpoint = Offer {
            name: offer.name.to_vec(),
            base: offer.base,
            key: offer.key,
        };
        self.stream.connect(&endpoint, offer.incarnation)?;
        Ok(Next::Say(OneSided::Ready))
    }

    /// Puts as much into the peer's ring as there is room for.
    pub fn write(&mut self, outbox: &mut Outbox) -> Result<(), Trouble> {
        if self.is_over {
            return Ok(());
        }
        let _is_all = outbox.write_into(|slices| self.stream.put(slices));
        self.stream.launch()
    }

    /// Looks at completions, and moves the bytes that have arrived to the reader: once the socket has said that they are due.
    /// The answer: whether anything happened, and how many bytes came.
    pub fn poll(&mut self) -> Result<(bool, usize), Trouble> {
        if self.is_over {
            return Ok((false, 0));
        }
        let bytes_max = if self.is_in { READ_BATCH_BYTES } else { 0 };
        let reader = &mut self.reader;
        self.stream.poll(bytes_max, |record| reader.push(record))
    }

    /// Nothing has happened for a while. True: nobody needs to look at the ring until it is woken, or writes.
    pub fn rest(&mut self) -> Result<bool, Trouble> {
        match (self.is_over, self.is_in) {
            (true, _) => Ok(true),
            // Records may be there already: the socket tells when they are due.
            (false, false) => Ok(!self.stream.has_outstanding()),
            (false, true) => self.stream.rest(),
        }
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
        self.stream.take_rings()
    }
}
