//! One connection, and the links that it serves: each has a channel of its own.
//!
//! What all of them have to say after a wake-up goes out with one write, and what comes in with one read is given to
//! each in turn. A link that leaves goes back to its own task, which decides where to go next ([`crate::link`]).

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use quorate_transport::spin::spin;
use quorate_transport::{FrameReader, Outbox, ReadFault, ReadHalf, WriteHalf};
use quorate_types::Micros;
use quorate_types::config::Role;
use quorate_wire::client::{Message, VERSION};
use quorate_wire::{Frame, WireError, client::kind};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep_until;

use crate::carriers::Place;
use crate::clock::{instant_of, now_us};
use crate::codes::client_side;
use crate::errors::Failure;
use crate::limits::{
    CONNECT_FRAME_BYTES_MAX, FRAME_BYTES_CEILING, HANDSHAKE_TIMEOUT_US, LIVENESS_TICK_US,
    NEW_HEAD_WAIT_US_MAX,
};
use crate::link::{End, Link, Port};
use crate::liveness::{Liveness, Verdict};
use crate::trust::Opened;
use crate::wake::Bell;
use crate::writer::{Reroute, Target};

const CLIENT_NAME: &str = concat!("quorate-rust/", env!("CARGO_PKG_VERSION"));

/// A link that is served over a connection.
pub(crate) struct Guest<P> {
    link: Box<Link<P>>,
    back: oneshot::Sender<Returned<P>>,
    /// Given up when it leaves.
    place: Option<Place<P>>,
    is_attached: bool,
    waiting: Option<Waiting>,
    /// It has to be served in this round.
    is_dirty: bool,
    /// When it said ATTACH, or was last told anything before it was attached.
    heard_at: Micros,
    wake_at: Micros,
}

/// A link that goes back to its own task, and why.
pub(crate) struct Returned<P> {
    pub link: Box<Link<P>>,
    pub was_attached: bool,
    pub end: End,
}

/// At a follower whose head cannot be reached: it will tell at once when there is another.
struct Waiting {
    reroute: Reroute,
    until: Micros,
}

impl<P> Guest<P> {
    pub fn new(link: Box<Link<P>>, place: Place<P>, back: oneshot::Sender<Returned<P>>) -> Self {
        Self {
            link,
            back,
            place: Some(place),
            is_attached: false,
            waiting: None,
            is_dirty: false,
            heard_at: 0,
            wake_at: 0,
        }
    }

    pub fn into_link(self) -> Box<Link<P>> {
        self.link
    }

    fn leave(self, end: End) {
        self.link.wake.stand();
        // First, or a link that comes back at once could find the place still taken.
        drop(self.place);
        let was_attached = self.is_attached;
        let _stopped = self.back.send(Returned {
            link: self.link,
            was_attached,
            end,
        });
    }
}

pub(crate) struct Carrier<P> {
    address: String,
    read_half: ReadHalf,
    write_half: WriteHalf,
    reader: FrameReader,
    outbox: Outbox,
    liveness: Liveness,
    is_greeted: bool,
    guests: HashMap<u32, Guest<P>>,
    boarded: mpsc::UnboundedReceiver<Guest<P>>,
    bell: Arc<Bell>,
    rung: Vec<u32>,
    /// The guests that are to be served in this round.
    dirty: Vec<u32>,
    /// Handed out so far: none is used twice, so that what was meant for a guest that left is known.
    channels: u32,
    /// Guests that leave when the round is over.
    leaving: Vec<(Guest<P>, End)>,
    /// No guest's time comes earlier.
    wake_at: Micros,
}

impl<P: Port + 'static> Carrier<P> {
    pub fn new(
        address: &str,
        (read_half, write_half, rest): Opened,
        boarded: mpsc::UnboundedReceiver<Guest<P>>,
    ) -> Self {
        let mut carrier = Self {
            address: address.to_string(),
            read_half,
            write_half,
            reader: FrameReader::with_rest(&rest, CONNECT_FRAME_BYTES_MAX),
            outbox: Outbox::default(),
            liveness: Liveness::new(now_us()),
            is_greeted: false,
            guests: HashMap::new(),
            boarded,
            bell: Arc::default(),
            rung: Vec::new(),
            dirty: Vec::new(),
            channels: 0,
            leaving: Vec::new(),
            wake_at: Micros::MAX,
        };
        let hello = Message::Hello {
            version: VERSION,
            client: CLIENT_NAME.to_string(),
        };
        carrier.send(0, &hello);
        carrier
    }

    /// Serves whoever comes until the connection breaks or `is_deserted`. Answers why it ended; then
    /// [`Carrier::end`] is due.
    pub async fn serve(&mut self, is_deserted: impl Fn() -> bool) -> End {
        let mut timer_at = now_us() + LIVENESS_TICK_US;
        let mut timer = pin!(sleep_until(instant_of(timer_at)));
        let bell = self.bell.clone();
        let mut has_spun = false;
        loop {
            let is_written = match self.round(&is_deserted) {
                Ok(is_written) => is_written,
                Err(end) => return end,
            };
            // Set anew only when it must be earlier: most deadlines are never reached.
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
                () = bell.rung() => self.take_calls(),
                Some(guest) = self.boarded.recv() => self.board(guest),
                () = &mut timer => {
                    timer_at = now_us() + LIVENESS_TICK_US;
                    timer.as_mut().reset(instant_of(timer_at));
                    self.mark_late(now_us());
                }
                () = spin(span), if !span.is_zero() => has_spun = true,
            }
        }
    }

    /// Sends everybody away who is there, and whoever was about to come.
    pub fn end(mut self, end: &End) {
        self.write_half.close();
        self.boarded.close();
        while let Ok(guest) = self.boarded.try_recv() {
            guest.leave(end.clone());
        }
        for (_, guest) in self.guests.drain() {
            guest.leave(end.clone());
        }
    }

    /// While an answer is awaited, it is looked for so long before the task sleeps.
    fn span_to_spin(&self) -> Duration {
        let awaiting = self.guests.values().filter(|guest| {
            !guest.link.spin.is_zero() && guest.is_attached && guest.link.port.awaits_answer()
        });
        awaiting.map(|guest| guest.link.spin).max().unwrap_or_default()
    }

    fn send(&mut self, channel: u32, message: &Message) {
        self.outbox.push(|out| message.encode(channel, None, out));
    }

    // Guests.

    fn board(&mut self, mut guest: Guest<P>) {
        self.channels += 1;
        let channel = self.channels;
        let handle = guest.link.handles.current().0;
        let attach = Message::Attach {
            group_id: handle.group_id,
            session: guest.link.port.session(),
            token: handle.token.clone(),
        };
        self.send(channel, &attach);
        guest.heard_at = now_us();
        guest.link.wake.sit(self.bell.clone(), channel);
        self.guests.insert(channel, guest);
        self.mark(channel);
    }

    fn mark(&mut self, channel: u32) {
        if let Some(guest) = self.guests.get_mut(&channel)
            && !guest.is_dirty
        {
            guest.is_dirty = true;
            self.dirty.push(channel);
        }
    }

    fn take_calls(&mut self) {
        let mut rung = std::mem::take(&mut self.rung);
        self.bell.take(&mut rung);
        for channel in rung.drain(..) {
            self.mark(channel);
        }
        self.rung = rung;
    }

    /// Marks who may have something to do though nothing happened.
    fn mark_late(&mut self, now: Micros) {
        self.wake_at = Micros::MAX;
        let mut late = Vec::new();
        for (channel, guest) in &self.guests {
            let is_silent = !guest.is_attached && now.saturating_sub(guest.heard_at) > HANDSHAKE_TIMEOUT_US;
            if guest.wake_at <= now || is_silent {
                late.push(*channel);
            } else {
                self.wake_at = self.wake_at.min(guest.wake_at);
            }
        }
        late.into_iter().for_each(|channel| self.mark(channel));
    }

    /// The guest goes back to its own task when the round is over; the server is told, unless it knows.
    fn leave(&mut self, channel: u32, end: End) {
        if let Some(guest) = self.guests.remove(&channel) {
            if !matches!(end, End::AttachRefused(_)) {
                self.send(channel, &Message::Detach);
            }
            self.leaving.push((guest, end));
        }
    }

    // Rounds.

    /// Everything that is due now, with one write. `true`: all is written.
    fn round(&mut self, is_deserted: impl Fn() -> bool) -> Result<bool, End> {
        let now = now_us();
        let mut dirty = std::mem::take(&mut self.dirty);
        for channel in dirty.drain(..) {
            let Some(guest) = self.guests.get_mut(&channel) else {
                continue;
            };
            guest.is_dirty = false;
            match guest.turn(now, channel, &mut self.outbox) {
                Ok(()) => self.wake_at = self.wake_at.min(guest.wake_at),
                Err(end) => self.leave(channel, end),
            }
        }
        self.dirty = dirty;
        if now >= self.liveness.tick_at() {
            self.check_liveness(now)?;
        }
        let written = self.outbox.try_write(&self.write_half);
        let is_written = written.map_err(|error| lost(ReadFault::Io(error)))?;
        match self.see_off(is_deserted) {
            Some(end) => Err(end),
            None => Ok(is_written),
        }
    }

    fn check_liveness(&mut self, now: Micros) -> Result<(), End> {
        let mut attached = self.guests.values().filter(|guest| guest.is_attached).peekable();
        let is_attached = attached.peek().is_some();
        let awaits = attached.any(|guest| guest.link.port.awaits_answer());
        match self.liveness.check(now, is_attached, awaits) {
            Verdict::Fine => {}
            Verdict::Ping => self.send(0, &Message::Ping { nonce: 1 }),
            Verdict::Dead(reason) => return Err(silent(reason)),
        }
        Ok(())
    }

    /// Those who leave go back to their tasks. With the last of them the connection ends, so that who comes back alone
    /// comes on a new one.
    fn see_off(&mut self, is_deserted: impl Fn() -> bool) -> Option<End> {
        if self.leaving.is_empty() {
            return None;
        }
        for (guest, _) in &mut self.leaving {
            guest.place = None;
        }
        let over = is_deserted().then_some(End::Over);
        for (guest, end) in self.leaving.drain(..) {
            guest.leave(end);
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
            kind::PING | kind::PONG | kind::GOODBYE | kind::HELLO_OK => return self.of_connection(frame),
            _ if !self.is_greeted || frame.channel == 0 || frame.channel > self.channels => {
                return Err(disorder().into());
            }
            _ => {}
        }
        // What was on its way to a guest that has left means nothing.
        let Some(guest) = self.guests.get_mut(&frame.channel) else {
            return Ok(());
        };
        let taken = guest.take_frame(&self.address, frame, now)?;
        self.mark(frame.channel);
        if let Err(end) = taken {
            self.leave(frame.channel, end);
        }
        Ok(())
    }

    fn of_connection(&mut self, frame: &Frame) -> Result<(), Broken> {
        match Message::decode(frame)? {
            Message::Ping { nonce } => self.send(0, &Message::Pong { nonce }),
            Message::Pong { .. } => {}
            Message::Goodbye { code, message } => {
                return Err(Broken::End(End::Goodbye(Failure::new(code, message))));
            }
            Message::HelloOk(hello) if !self.is_greeted && hello.version == VERSION => {
                self.is_greeted = true;
                self.reader
                    .set_frame_bytes_max(hello.frame_bytes_max.min(FRAME_BYTES_CEILING));
            }
            _ => return Err(disorder().into()),
        }
        Ok(())
    }
}

impl<P: Port + 'static> Guest<P> {
    /// Everything that is due for this guest.
    fn turn(&mut self, now: Micros, channel: u32, outbox: &mut Outbox) -> Result<(), End> {
        let port = &mut self.link.port;
        port.turn(now);
        if let Some(reroute) = port.take_reroute() {
            return Err(End::Left(reroute));
        }
        if let Some(waiting) = self.waiting.take_if(|waiting| waiting.until <= now) {
            return Err(End::Left(waiting.reroute));
        }
        if self.is_attached {
            port.write(now, channel, outbox);
        } else if now.saturating_sub(self.heard_at) > HANDSHAKE_TIMEOUT_US {
            return Err(silent("it did not attach in time"));
        }
        if port.is_over() {
            return Err(End::Over);
        }
        let waits_until = self.waiting.as_ref().map_or(Micros::MAX, |waiting| waiting.until);
        self.wake_at = port.wake_at().min(waits_until);
        Ok(())
    }

    /// The inner error ends this guest's stay.
    fn take_frame(
        &mut self,
        address: &str,
        frame: &Frame,
        now: Micros,
    ) -> Result<Result<(), End>, WireError> {
        if self.is_attached {
            self.link.port.on_frame(frame, now)?;
            if frame.kind != kind::NOTICE && frame.kind != kind::REFUSED {
                self.link.route.progressed();
            }
            return Ok(match self.link.port.take_reroute() {
                Some(reroute) => Err(End::Left(reroute)),
                None => Ok(()),
            });
        }
        self.heard_at = now;
        match Message::decode(frame)? {
            Message::Attached(attached) => {
                if let Some(reroute) = self.link.port.on_attached(&attached, now) {
                    return Ok(self.wait_or_leave(address, reroute, now));
                }
                tracing::debug!(address, epoch = attached.epoch, "attached");
                self.is_attached = true;
                self.link.attached(address);
            }
            Message::Notice(notice) if self.waiting.is_some() => {
                let head = if notice.role == Role::Head as u8 || notice.role == Role::Sole as u8 {
                    address.to_string()
                } else {
                    notice.head_address
                };
                if !head.is_empty() && head != self.link.unreachable {
                    let (to, reason) = (Target::Head(head), "there is a new head".to_string());
                    return Ok(Err(End::Left(Reroute { to, reason })));
                }
            }
            Message::Refused(refused) => return Ok(Err(End::AttachRefused(refused))),
            _ => return Err(disorder()),
        }
        Ok(Ok(()))
    }

    /// The replica is not the one. If it names a head that cannot be reached, a new head is on its way: to be told
    /// of it here is quicker than to ask one replica after the other, ever more slowly.
    fn wait_or_leave(&mut self, address: &str, reroute: Reroute, now: Micros) -> Result<(), End> {
        let is_gone =
            matches!(&reroute.to, Target::Head(head) if !head.is_empty() && *head == self.link.unreachable);
        if !is_gone {
            return Err(End::Left(reroute));
        }
        tracing::debug!(address, "waits for a new head");
        let until = now + NEW_HEAD_WAIT_US_MAX;
        self.waiting = Some(Waiting { reroute, until });
        Ok(())
    }
}

/// What ends a connection while frames are taken.
enum Broken {
    End(End),
    Protocol(WireError),
}

impl From<WireError> for Broken {
    fn from(error: WireError) -> Self {
        Broken::Protocol(error)
    }
}

fn disorder() -> WireError {
    WireError::Malformed {
        what: "order of the conversation",
    }
}

fn silent(reason: &str) -> End {
    End::Silent(Failure::new(client_side::NO_CONNECTION, reason))
}

fn lost(fault: ReadFault) -> End {
    let reason = match fault {
        ReadFault::Closed => "the server closed the connection".to_string(),
        ReadFault::Io(error) => format!("the connection was lost: {error}"),
        ReadFault::Wire(error) => error.to_string(),
    };
    End::Lost(Failure::new(client_side::NO_CONNECTION, reason))
}
