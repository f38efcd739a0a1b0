//! The thread that has all rings to and from other coordinators: the fabric's endpoints belong to one thread.
//!
//! Frames of messages go through a ring as a stream of length-prefixed frames, as through a socket. The socket stays, as the
//! sign that the other process lives, and for calls: an empty frame says that the receiver has to look at its ring.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use bytes::{Buf, Bytes, BytesMut};
use quorate_one_sided::{Fabric, FabricError, Next, Offer, Pace, RingStream, Trouble, Way};
use quorate_quorum::MemberId;
use tokio::sync::mpsc::error::TryRecvError;
use tokio::sync::{mpsc, oneshot};
use tokio_util::codec::{Decoder, Encoder, LengthDelimitedCodec};

use super::hello::frame_codec;
use super::ring_offer::RingOffer;

/// Frames that wait for the thread, and for the link.
const FRAMES_MAX: usize = 64;
/// Bytes that are encoded and not in the ring. One frame may be larger.
const OUT_BYTES: usize = 64 << 10;
/// Bytes that are taken from a ring before others have their turn.
const IN_BYTES: usize = 256 << 10;
/// A link whose ring had trouble goes by its socket so long.
const AGAIN: Duration = Duration::from_secs(60);
/// Coordinators sleep at once: a core of their machines is no price for a call.
const SPIN: Duration = Duration::ZERO;

/// Opens rings.
#[derive(Clone)]
pub struct Rings {
    provider: &'static str,
    wanted: mpsc::Sender<oneshot::Sender<Option<Ring>>>,
    troubles: Arc<Mutex<BTreeMap<MemberId, Instant>>>,
}

/// One ring: frames go in, and come out. Dropping it ends the stream, and shuts the other side's writes out.
#[derive(Debug)]
pub struct Ring {
    pub offer: RingOffer,
    inputs: mpsc::Sender<Input>,
    outputs: mpsc::Receiver<Output>,
}

#[derive(Debug)]
enum Input {
    Connect(RingOffer),
    Frame(Bytes),
    Woken,
}

#[derive(Debug, PartialEq, Eq)]
pub enum Output {
    /// The other side has written it.
    Frame(Bytes),
    /// The other side sleeps: it has to be called on the socket.
    Call,
    /// The ring has ended, and its link is to end with it.
    Trouble(String),
}

impl Rings {
    pub fn start(fabric: Fabric) -> io::Result<Self> {
        let provider = fabric.provider.name();
        let (wanted, asked) = mpsc::channel(FRAMES_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()?;
        let serve = move || tokio::task::LocalSet::new().block_on(&runtime, serve(Way::new(fabric), asked));
        std::thread::Builder::new().name("rings".into()).spawn(serve)?;
        Ok(Self {
            provider,
            wanted,
            troubles: Arc::default(),
        })
    }

    /// A ring for a link to the member. None: this machine has no one-sided writes, or the last ring had trouble lately.
    pub async fn open(&self, member: MemberId) -> Option<Ring> {
        if self.had_trouble(member) {
            return None;
        }
        let (answer, opened) = oneshot::channel();
        self.wanted.send(answer).await.ok()?;
        opened.await.ok().flatten()
    }

    /// The same, for a member that has offered its own ring. None as well: it has another provider.
    pub async fn answer(&self, member: MemberId, offer: &RingOffer) -> Option<Ring> {
        if offer.provider != self.provider {
            let (theirs, ours) = (&offer.provider, self.provider);
            tracing::warn!(%member, theirs, ours, "a coordinator has another provider; its link stays on its socket");
            return None;
        }
        let ring = self.open(member).await?;
        ring.connect(offer.clone()).await.ok()?;
        Some(ring)
    }

    /// Links with the member go by their sockets for a while.
    pub fn note_trouble(&self, member: MemberId, trouble: &str) {
        tracing::warn!(%member, trouble, "one-sided writes failed; the link goes by tcp for a minute");
        let mut troubles = self.troubles.lock().expect("no holder of the lock panics");
        troubles.insert(member, Instant::now());
    }

    fn had_trouble(&self, member: MemberId) -> bool {
        let mut troubles = self.troubles.lock().expect("no holder of the lock panics");
        troubles.retain(|_, at| at.elapsed() < AGAIN);
        troubles.contains_key(&member)
    }
}

impl Ring {
    /// The other side's ring, to be written into. Once, and before anything is sent.
    pub async fn connect(&self, offer: RingOffer) -> Result<(), String> {
        self.put(Input::Connect(offer)).await
    }

    /// A message, once there is room for it.
    pub async fn send(&self, frame: Bytes) -> Result<(), String> {
        self.put(Input::Frame(frame)).await
    }

    /// The other side has called.
    pub async fn woken(&self) -> Result<(), String> {
        self.put(Input::Woken).await
    }

    pub async fn next(&mut self) -> Output {
        let ended = || Output::Trouble("its thread has ended".into());
        self.outputs.recv().await.unwrap_or_else(ended)
    }

    async fn put(&self, input: Input) -> Result<(), String> {
        let put = self.inputs.send(input).await;
        put.map_err(|_| "the ring has ended".to_string())
    }
}

/// Ends when nobody can want a ring any more.
async fn serve(mut way: Way, mut asked: mpsc::Receiver<oneshot::Sender<Option<Ring>>>) {
    while let Some(answer) = asked.recv().await {
        let ring = way
            .stream()
            .and_then(|stream| match open(stream, way.provider().name()) {
                Ok(ring) => Some(ring),
                Err(error) => {
                    tracing::warn!(%error, "no ring; the link goes by tcp");
                    None
                }
            });
        let _waits_no_more = answer.send(ring).is_err();
    }
}

fn open(stream: Result<RingStream, FabricError>, provider: &str) -> Result<Ring, FabricError> {
    let stream = stream?;
    let (Offer { name, base, key }, incarnation) = stream.offer()?;
    let offer = RingOffer {
        provider: provider.to_string(),
        name,
        base,
        key,
        incarnation,
    };
    let (inputs, taken) = mpsc::channel(FRAMES_MAX);
    let (given, outputs) = mpsc::channel(FRAMES_MAX);
    let carrier = Carrier {
        stream,
        codec: frame_codec(),
        out: BytesMut::new(),
        come: BytesMut::new(),
        outputs: given,
    };
    tokio::task::spawn_local(carrier.run(taken));
    Ok(Ring {
        offer,
        inputs,
        outputs,
    })
}

/// Moves frames between a ring and its link.
struct Carrier {
    stream: RingStream,
    codec: LengthDelimitedCodec,
    /// Encoded, and not in the ring.
    out: BytesMut,
    /// From the ring, and not a whole frame.
    come: BytesMut,
    outputs: mpsc::Sender<Output>,
}

/// The link has dropped its ring, or there was trouble.
enum End {
    Dropped,
    Trouble(String),
}

impl From<Trouble> for End {
    fn from(trouble: Trouble) -> Self {
        Self::Trouble(trouble.to_string())
    }
}

impl Carrier {
    async fn run(mut self, mut inputs: mpsc::Receiver<Input>) {
        if let Err(End::Trouble(trouble)) = self.carry(&mut inputs).await {
            let _gone = self.outputs.send(Output::Trouble(trouble)).await.is_err();
        }
    }

    async fn carry(&mut self, inputs: &mut mpsc::Receiver<Input>) -> Result<(), End> {
        let mut pace = Pace::new(SPIN);
        loop {
            while self.out.len() < OUT_BYTES {
                match inputs.try_recv() {
                    Ok(input) => self.take(input)?,
                    Err(TryRecvError::Empty) => break,
                    Err(TryRecvError::Disconnected) => return Err(End::Dropped),
                }
            }
            if self.turn().await? {
                pace.moved();
                tokio::task::yield_now().await;
                continue;
            }
            let input = match pace.quiet(Instant::now(), || self.stream.rest())? {
                Next::Look => {
                    std::thread::yield_now();
                    tokio::task::yield_now().await;
                    continue;
                }
                Next::Sleep => inputs.recv().await,
                Next::Slowly(pause) => match tokio::time::timeout(pause, inputs.recv()).await {
                    Ok(input) => input,
                    Err(_) => continue,
                },
            };
            self.take(input.ok_or(End::Dropped)?)?;
        }
    }

    fn take(&mut self, input: Input) -> Result<(), End> {
        match input {
            Input::Connect(offer) => {
                let endpoint = Offer {
                    name: offer.name,
                    base: offer.base,
                    key: offer.key,
                };
                self.stream.connect(&endpoint, offer.incarnation)?;
            }
            Input::Frame(frame) => {
                let encoded = self.codec.encode(frame, &mut self.out);
                encoded.map_err(|e| End::Trouble(e.to_string()))?;
            }
            Input::Woken => self.stream.woken(),
        }
        Ok(())
    }

    /// Writes as much as there is room for, and gives the frames that have come. False: nothing happened.
    async fn turn(&mut self) -> Result<bool, End> {
        let mut has_moved = false;
        while !self.out.is_empty() {
            let Some(taken) = self.stream.put([&self.out[..]]) else {
                break;
            };
            self.out.advance(taken);
            has_moved = true;
        }
        let come = &mut self.come;
        let (has_happened, _) = self
            .stream
            .poll(IN_BYTES, |record| come.extend_from_slice(record))?;
        if self.stream.take_rings() {
            self.give(Output::Call).await?;
        }
        let undecodable = |e: io::Error| End::Trouble(e.to_string());
        while let Some(frame) = self.codec.decode(&mut self.come).map_err(undecodable)? {
            self.give(Output::Frame(frame.freeze())).await?;
        }
        Ok(has_moved || has_happened)
    }

    async fn give(&self, output: Output) -> Result<(), End> {
        self.outputs.send(output).await.map_err(|_| End::Dropped)
    }
}
