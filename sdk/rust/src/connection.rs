//! One connection, and the streams of the links that it serves: each has a channel of its own.
//!
//! The messages of all streams after a wake-up go out with one write, and each frame of one read goes to its stream.
//! A link whose stream ends returns to its own task, which decides where to connect next ([`crate::link`]).

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use quorate_transport::spin::spin;
use quorate_transport::{FrameReader, Outbox, ReadFault, ReadHalf, WriteHalf};
use quorate_types::{Micros, versions};
use quorate_wire::client::Message;
use quorate_wire::{Frame, WireError, client::kind};
use tokio::sync::mpsc;
use tokio::time::sleep_until;

use crate::clock::{instant_of, now_us};
use crate::codes::client_side;
use crate::errors::Failure;
use crate::limits::{CONNECT_FRAME_BYTES_MAX, FRAME_BYTES_CEILING, LIVENESS_TICK_US};
use crate::link_state::End;
use crate::liveness::{Liveness, Verdict};
use crate::port::Port;
use crate::stream::{Stream, disorder, silent};
use crate::trust::Opened;
use crate::waker::ConnectionWaker;

const CLIENT_NAME: &str = concat!("quorate-rust/", env!("CARGO_PKG_VERSION"));

pub(crate) struct Connection<P> {
    address: String,
    read_half: ReadHalf,
    write_half: WriteHalf,
    reader: FrameReader,
    outbox: Outbox,
    liveness: Liveness,
    has_hello: bool,
    streams: HashMap<u32, Served<P>>,
    new_streams: mpsc::UnboundedReceiver<Stream<P>>,
    waker: Arc<ConnectionWaker>,
    woken: Vec<u32>,
    /// Channels to serve in the next flush.
    dirty: Vec<u32>,
    /// The last channel number given. No number is used twice, so that late frames of an ended stream are known.
    last_channel: u32,
    /// Streams that end with the flush.
    leaving: Vec<(Stream<P>, End)>,
    /// No stream's time is earlier.
    wake_at: Micros,
}

struct Served<P> {
    stream: Stream<P>,
    /// Its channel is in [`Connection::dirty`].
    is_dirty: bool,
}

impl<P: Port + 'static> Connection<P> {
    pub fn new(
        address: &str,
        (read_half, write_half, rest): Opened,
        new_streams: mpsc::UnboundedReceiver<Stream<P>>,
    ) -> Self {
        let mut connection = Self {
            address: address.to_string(),
            read_half,
            write_half,
            reader: FrameReader::with_rest(&rest, CONNECT_FRAME_BYTES_MAX),
            outbox: Outbox::default(),
            liveness: Liveness::new(now_us()),
            has_hello: false,
            streams: HashMap::new(),
            new_streams,
            waker: Arc::default(),
            woken: Vec::new(),
            dirty: Vec::new(),
            last_channel: 0,
            leaving: Vec::new(),
            wake_at: Micros::MAX,
        };
        let hello = Message::Hello {
            versions: versions::CLIENT,
            client: CLIENT_NAME.to_string(),
        };
        connection.send(0, &hello);
        connection
    }

    /// Serves streams until the connection breaks or `is_deserted`. Answers why it ended; then [`Connection::end`] is
    /// due.
    pub async fn serve(&mut self, is_deserted: impl Fn() -> bool) -> End {
        let mut timer_at = now_us() + LIVENESS_TICK_US;
        let mut timer = pin!(sleep_until(instant_of(timer_at)));
        let waker = self.waker.clone();
        let mut has_spun = false;
        loop {
            let is_written = match self.flush(&is_deserted) {
                Ok(is_written) => is_written,
                Err(end) => return end,
            };
            // The timer is only ever set earlier: most deadlines are never reached.
            let wake_at = self.liveness.tick_at().min(self.wake_at);
            if wake_at < timer_at {
                timer_at = wake_at;
                timer.as_mut().reset(instant_of(timer_at));
            }
            let span = if has_spun {
                Duration::ZERO
            } else {
                self.span_to_spin()
            };
            has_spun = false;
            tokio::select! {
                biased;
                filled = self.reader.fill_from(&mut self.read_half) => {
                    if let Err(end) = filled.map_err(lost).and_then(|_| self.take_frames()) {
                        return end;
                    }
                }
                writable = self.write_half.writable(), if !is_written => {
                    if let Err(error) = writable {
                        return lost(ReadFault::Io(error));
                    }
                }
                () = waker.woken() => self.take_woken(),
                Some(stream) = self.new_streams.recv() => self.begin(stream),
                () = &mut timer => {
                    timer_at = now_us() + LIVENESS_TICK_US;
                    timer.as_mut().reset(instant_of(timer_at));
                    self.mark_late(now_us());
                }
                () = spin(span), if !span.is_zero() => has_spun = true,
            }
        }
    }

    /// Ends all streams, also those about to begin, and those that were leaving.
    pub fn end(mut self, end: &End) {
        self.write_half.close();
        self.new_streams.close();
        while let Ok(stream) = self.new_streams.try_recv() {
            stream.end(end.clone());
        }
        for (_, served) in self.streams.drain() {
            served.stream.end(end.clone());
        }
        // Streams that left since the last flush have an end of their own.
        for (stream, end) in self.leaving.drain(..) {
            stream.end(end);
        }
    }

    /// Time to poll for an awaited answer before the task sleeps.
    fn span_to_spin(&self) -> Duration {
        let streams = self.streams.values().map(|served| &served.stream);
        let awaiting = streams.filter(|stream| !stream.link.spin.is_zero() && stream.awaits_answer());
        awaiting.map(|stream| stream.link.spin).max().unwrap_or_default()
    }

    fn send(&mut self, channel: u32, message: &Message) {
        self.outbox.push(|out| message.encode(channel, None, out));
    }

    // Streams.

    fn begin(&mut self, mut stream: Stream<P>) {
        self.last_channel += 1;
        let channel = self.last_channel;
        let attach = stream.begin(channel, self.waker.clone(), now_us());
        self.send(channel, &attach);
        let is_dirty = false;
        self.streams.insert(channel, Served { stream, is_dirty });
        self.mark(channel);
    }

    fn mark(&mut self, channel: u32) {
        if let Some(served) = self.streams.get_mut(&channel)
            && !served.is_dirty
        {
            served.is_dirty = true;
            self.dirty.push(channel);
        }
    }

    fn take_woken(&mut self) {
        let mut woken = std::mem::take(&mut self.woken);
        self.waker.take(&mut woken);
        for channel in woken.drain(..) {
            self.mark(channel);
        }
        self.woken = woken;
    }

    /// Marks the streams whose time has come.
    fn mark_late(&mut self, now: Micros) {
        self.wake_at = Micros::MAX;
        let mut late = Vec::new();
        for (channel, Served { stream, .. }) in &self.streams {
            if stream.wake_at <= now || stream.is_late(now) {
                late.push(*channel);
            } else {
                self.wake_at = self.wake_at.min(stream.wake_at);
            }
        }
        late.into_iter().for_each(|channel| self.mark(channel));
    }

    /// Ends the stream with the next flush, and reports that to the server, unless it knows.
    fn leave(&mut self, channel: u32, end: End) {
        if let Some(served) = self.streams.remove(&channel) {
            if !matches!(end, End::AttachRefused(_)) {
                self.send(channel, &Message::Detach);
            }
            self.leaving.push((served.stream, end));
        }
    }

    // Flushes.

    /// Does everything that is due, with one write. `true`: all is written.
    fn flush(&mut self, is_deserted: impl Fn() -> bool) -> Result<bool, End> {
        let now = now_us();
        let mut dirty = std::mem::take(&mut self.dirty);
        for channel in dirty.drain(..) {
            let Some(served) = self.streams.get_mut(&channel) else {
                continue;
            };
            served.is_dirty = false;
            match served.stream.turn(now, channel, &mut self.outbox) {
                Ok(()) => self.wake_at = self.wake_at.min(served.stream.wake_at),
                Err(end) => self.leave(channel, end),
            }
        }
        self.dirty = dirty;
        if now >= self.liveness.tick_at() {
            self.check_liveness(now)?;
        }
        let written = self.outbox.try_write(&self.write_half);
        let is_written = written.map_err(|error| lost(ReadFault::Io(error)))?;
        match self.end_leaving(is_deserted) {
            Some(end) => Err(end),
            None => Ok(is_written),
        }
    }

    fn check_liveness(&mut self, now: Micros) -> Result<(), End> {
        let streams = self.streams.values().map(|served| &served.stream);
        let mut attached = streams.filter(|stream| stream.is_attached()).peekable();
        let is_attached = attached.peek().is_some();
        let awaits = attached.any(Stream::awaits_answer);
        match self.liveness.check(now, is_attached, awaits) {
            Verdict::Fine => {}
            Verdict::Ping => self.send(0, &Message::Ping { nonce: 1 }),
            Verdict::Dead(reason) => return Err(silent(reason)),
        }
        Ok(())
    }

    /// Ends the leaving streams. The connection ends with its last stream: a link that returns alone gets a new one.
    fn end_leaving(&mut self, is_deserted: impl Fn() -> bool) -> Option<End> {
        if self.leaving.is_empty() {
            return None;
        }
        for (stream, _) in &mut self.leaving {
            stream.free_place();
        }
        let over = is_deserted().then_some(End::Over);
        for (stream, end) in self.leaving.drain(..) {
            stream.end(end);
        }
        over
    }

    // Frames.

    fn take_frames(&mut self) -> Result<(), End> {
        let now = now_us();
        self.liveness.heard(now);
        loop {
            let taken = match self.reader.next_frame() {
                Ok(None) => return Ok(()),
                Ok(Some(frame)) => self.take_frame(&frame, now),
                Err(ReadFault::Wire(error)) => Err(Broken::Protocol(error)),
                Err(fault) => return Err(lost(fault)),
            };
            match taken {
                Ok(()) => {}
                Err(Broken::End(end)) => return Err(end),
                Err(Broken::Protocol(error)) => return Err(self.broke_protocol(error)),
            }
        }
    }

    fn broke_protocol(&mut self, error: WireError) -> End {
        tracing::warn!(address = self.address, %error, "the server broke the protocol");
        let goodbye = Message::Goodbye {
            code: error.code() as u16,
            message: error.to_string(),
        };
        self.send(0, &goodbye);
        let _best_effort = self.outbox.try_write(&self.write_half);
        End::Goodbye(error.into())
    }

    fn take_frame(&mut self, frame: &Frame, now: Micros) -> Result<(), Broken> {
        match frame.kind {
            kind::PING | kind::PONG | kind::GOODBYE | kind::HELLO_OK => {
                return self.take_connection_frame(frame);
            }
            _ if !self.has_hello || frame.channel == 0 || frame.channel > self.last_channel => {
                return Err(disorder().into());
            }
            _ => {}
        }
        // Frames for an ended stream may still arrive: they mean nothing.
        let Some(served) = self.streams.get_mut(&frame.channel) else {
            return Ok(());
        };
        let taken = served.stream.take_frame(&self.address, frame, now)?;
        self.mark(frame.channel);
        if let Err(end) = taken {
            self.leave(frame.channel, end);
        }
        Ok(())
    }

    fn take_connection_frame(&mut self, frame: &Frame) -> Result<(), Broken> {
        match Message::decode(frame)? {
            Message::Ping { nonce } => self.send(0, &Message::Pong { nonce }),
            Message::Pong { .. } => {}
            Message::Goodbye { code, message } => {
                return Err(Broken::End(End::Goodbye(Failure::new(code, message))));
            }
            Message::HelloOk(hello) if !self.has_hello && versions::CLIENT.has(hello.version) => {
                self.has_hello = true;
                self.reader
                    .set_frame_bytes_max(hello.frame_bytes_max.min(FRAME_BYTES_CEILING));
            }
            _ => return Err(disorder().into()),
        }
        Ok(())
    }
}

/// Reason for the end of a connection while frames are taken.
enum Broken {
    End(End),
    Protocol(WireError),
}

impl From<WireError> for Broken {
    fn from(error: WireError) -> Self {
        Broken::Protocol(error)
    }
}

fn lost(fault: ReadFault) -> End {
    let reason = match fault {
        ReadFault::Closed => "the server closed the connection".to_string(),
        ReadFault::Io(error) => format!("the connection was lost: {error}"),
        ReadFault::Wire(error) => error.to_string(),
    };
    End::Lost(Failure::new(client_side::NO_CONNECTION, reason))
}
