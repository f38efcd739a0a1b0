//! Keeps one connection to a group's replicas: dials where the route says, attaches, starts again.
//!
//! The shell around [`Route`] and [`Liveness`]: it owns the clock, the socket and the waits. What travels over the
//! connection is its [`Port`]'s business. A link is one task; it waits for its socket, for its port's time, and for
//! `wake`, by which callers say that there is something new.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use quorate_transport::spin::spin;
use quorate_transport::{FrameReader, Outbox, ReadFault, ReadHalf, WriteHalf};
use quorate_types::config::Role;
use quorate_types::{Code, Micros};
use quorate_wire::client::{Attached, Message, Refused, VERSION};
use quorate_wire::{Frame, WireError, client::kind};
use tokio::sync::Notify;
use tokio::time::{sleep_until, timeout};

use crate::clock::{instant_of, now_us};
use crate::codes::client_side;
use crate::errors::{Failure, info};
use crate::handles::Handles;
use crate::limits::{
    CONNECT_FRAME_BYTES_MAX, DIAL_TIMEOUT, FRAME_BYTES_CEILING, LIVENESS_TICK_US, NEW_HEAD_WAIT_US_MAX,
};
use crate::liveness::{Liveness, Verdict};
use crate::route::{Route, Step};
use crate::trust::{Opened, open};
use crate::writer::{Reroute, Target};

/// A connection carries one group, so one channel is enough.
const CHANNEL: u32 = 1;
const CLIENT_NAME: &str = concat!("quorate-rust/", env!("CARGO_PKG_VERSION"));

/// What uses a link's connection.
pub(crate) trait Port {
    /// To be named in ATTACH; 0 when nothing will be appended.
    fn session(&self) -> u64;
    /// A [`Reroute`] means that the replica is not the one.
    fn on_attached(&mut self, attached: &Attached, now: Micros) -> Option<Reroute>;
    fn on_frame(&mut self, frame: &Frame, now: Micros) -> Result<(), WireError>;
    fn on_detached(&mut self, trouble: &Failure);
    /// There is still no connection, and this is why.
    fn set_trouble(&mut self, trouble: &Failure);
    /// No retry will help: whoever waits is told. The next call starts the link anew.
    fn on_hopeless(&mut self, failure: &Failure, now: Micros);
    /// Takes what callers ask for and gives up on what is late, connected or not.
    fn turn(&mut self, now: Micros);
    /// Puts what is to be sent now into the outbox.
    fn write(&mut self, now: Micros, channel: u32, outbox: &mut Outbox);
    /// When `turn` and `write` are due, whatever else happens.
    fn wake_at(&self) -> Micros;
    /// Set by what happened since it was asked last.
    fn take_reroute(&mut self) -> Option<Reroute>;
    fn awaits_answer(&self) -> bool;
    /// Whether there is any use for a connection now.
    fn is_busy(&self) -> bool;
    /// Nothing will come any more, and nothing is left to do.
    fn is_over(&self) -> bool;
}

pub(crate) struct Link<P> {
    port: P,
    handles: Arc<Handles>,
    seen_version: u64,
    route: Route,
    wake: Arc<Notify>,
    /// While an answer is awaited, it is looked for so long before the task sleeps.
    spin: Duration,
    rejections: u32,
    /// The address that could not be reached last, whose connection broke, or which said that it is cut off.
    unreachable: String,
}

/// Why a connection is left.
enum End {
    Lost(Failure),
    /// Nothing came back.
    Silent(Failure),
    Left(Reroute),
    AttachRefused(Refused),
    Goodbye(Failure),
    Over,
}

impl End {
    fn failure(&self, address: &str) -> Failure {
        let message = match self {
            End::Lost(failure) | End::Silent(failure) | End::Goodbye(failure) => failure.message.clone(),
            End::Left(reroute) => reroute.reason.clone(),
            End::AttachRefused(refused) => {
                format!("attach refused with {}", info(refused.code).name)
            }
            End::Over => "closed".to_string(),
        };
        Failure::new(client_side::NO_CONNECTION, format!("{address}: {message}"))
    }
}

impl<P: Port> Link<P> {
    pub fn new(port: P, handles: Arc<Handles>, wake: Arc<Notify>) -> Self {
        let (handle, seen_version) = handles.current();
        let route = Route::new(handle.addresses(), handles.can_refresh());
        Self {
            port,
            handles,
            seen_version,
            route,
            wake,
            spin: Duration::ZERO,
            rejections: 0,
            unreachable: String::new(),
        }
    }

    pub fn spinning(self, spin: Duration) -> Self {
        Self { spin, ..self }
    }

    /// Serves the port until it is over.
    pub async fn run(mut self) {
        loop {
            self.port.turn(now_us());
            if self.port.is_over() {
                return;
            }
            if !self.port.is_busy() {
                // Nobody needs a connection: do not knock at a fleet that may be gone.
                self.wake.notified().await;
                continue;
            }
            match self.route.next(now_us(), rand::random()) {
                Step::Dial { address, delay_us } => {
                    self.pause(delay_us).await;
                    self.visit(&address).await;
                }
                Step::Refresh { delay_us } => {
                    self.pause(delay_us).await;
                    self.refresh().await;
                }
            }
        }
    }

    async fn pause(&mut self, delay_us: Micros) {
        if delay_us > 0 {
            let until = instant_of(now_us() + delay_us);
            self.meanwhile(sleep_until(until)).await;
        }
    }

    async fn refresh(&mut self) {
        let handles = self.handles.clone();
        let known = self.seen_version;
        if let Err(reason) = self.meanwhile(async move { handles.refresh(known).await }).await {
            tracing::warn!(reason, "no new handle");
            let message = format!("no new handle: {reason}");
            self.port
                .set_trouble(&Failure::new(client_side::NO_CONNECTION, message));
        }
        let (handle, version) = self.handles.current();
        if version != self.seen_version {
            self.seen_version = version;
            self.route.replace(handle.addresses());
        }
    }

    /// Serves the port's callers and deadlines while something else is waited for.
    async fn meanwhile<R>(&mut self, other: impl Future<Output = R>) -> R {
        let mut other = pin!(other);
        loop {
            self.port.turn(now_us());
            let wake_at = self.port.wake_at().max(now_us() + 1_000);
            tokio::select! {
                biased;
                result = &mut other => return result,
                () = self.wake.notified() => {}
                () = sleep_until(instant_of(wake_at)) => {}
            }
        }
    }

    /// Dials, attaches, stays until the connection ends, and tells the route what is to be learnt from it.
    async fn visit(&mut self, address: &str) {
        let trust = self.handles.current().0.trust();
        let opening = timeout(DIAL_TIMEOUT, open(address.to_string(), trust));
        let opened = self.meanwhile(opening).await.unwrap_or_else(|_| {
            let message = format!("{address}: it did not answer in time");
            Err(Failure::new(client_side::NO_CONNECTION, message))
        });
        let stream = match opened {
            Ok(stream) => stream,
            Err(failure) => return self.not_opened(address, &failure),
        };
        let mut visit = Visit::new(address, stream, now_us());
        let end = visit.stay(self).await;
        visit.write_half.close();
        self.leave(address, visit.is_attached, end);
    }

    fn not_opened(&mut self, address: &str, failure: &Failure) {
        tracing::debug!(address, reason = failure.message, "cannot connect");
        self.unreachable = address.to_string();
        self.port.set_trouble(failure);
        if failure.code == client_side::SERVER_UNTRUSTED {
            tracing::warn!(address, reason = failure.message, "the server is not trusted");
            self.route.avoid(address);
            self.rejected(failure);
        }
    }

    /// What the handle says does not hold, here as anywhere. A fresh one may, but may be refused once too, while keys
    /// roll over.
    fn rejected(&mut self, failure: &Failure) {
        self.route.want_handle();
        self.rejections += 1;
        if !self.handles.can_refresh() || self.rejections > 2 {
            self.rejections = 0;
            self.give_up(&Failure {
                is_retryable: false,
                ..failure.clone()
            });
        }
    }

    fn leave(&mut self, address: &str, was_attached: bool, end: End) {
        let trouble = end.failure(address);
        tracing::debug!(reason = trouble.message, "left a connection");
        if was_attached {
            self.route.lost(rand::random());
            self.port.on_detached(&trouble);
        } else {
            self.port.set_trouble(&trouble);
        }
        if matches!(end, End::Lost(_) | End::Silent(_)) {
            self.unreachable = address.to_string();
        }
        match end {
            End::Lost(_) | End::Over => {}
            End::Silent(_) => self.route.avoid(address),
            End::Goodbye(failure) => {
                self.route.avoid(address);
                if failure.is(Code::UnsupportedVersion) || failure.is(Code::TlsRequired) {
                    self.give_up(&failure);
                }
            }
            End::Left(Reroute {
                to: Target::Again, ..
            }) => {}
            End::Left(Reroute {
                to: Target::Other, ..
            }) => self.route.avoid(address),
            End::Left(Reroute {
                to: Target::Handle, ..
            }) => {
                self.route.avoid(address);
                self.route.want_handle();
            }
            End::Left(Reroute {
                to: Target::Elsewhere,
                ..
            }) => self.look_elsewhere(address),
            End::Left(Reroute {
                to: Target::Head(head),
                ..
            }) => {
                self.route.avoid(address);
                self.route.redirect(&head, rand::random());
            }
            End::AttachRefused(refused) => self.attach_refused(address, &refused),
        }
    }

    /// The head there is cut off: it is no better than one that cannot be reached.
    fn look_elsewhere(&mut self, address: &str) {
        self.route.avoid(address);
        self.route.want_handle();
        self.unreachable = address.to_string();
    }

    fn attach_refused(&mut self, address: &str, refused: &Refused) {
        self.route.avoid(address);
        match refused.retry {
            1 => self
                .route
                .wait_at_least(Micros::from(refused.retry_after_ms) * 1_000),
            2 => self.route.redirect(&refused.head_address, rand::random()),
            3 if refused.code == Code::CutOff as u16 => self.look_elsewhere(address),
            3 => {
                self.route.want_handle();
                let is_token = [Code::TokenInvalid, Code::TokenExpired].map(|code| code as u16);
                if is_token.contains(&refused.code) {
                    self.rejected(&Failure::refused(refused));
                }
            }
            _ => self.give_up(&Failure::refused(refused)),
        }
    }

    fn give_up(&mut self, failure: &Failure) {
        self.route = Route::new(self.handles.current().0.addresses(), self.handles.can_refresh());
        self.port.on_hopeless(failure, now_us());
    }
}

/// One connection.
struct Visit<'a> {
    address: &'a str,
    read_half: ReadHalf,
    write_half: WriteHalf,
    reader: FrameReader,
    outbox: Outbox,
    liveness: Liveness,
    is_greeted: bool,
    is_attached: bool,
    waiting: Option<Waiting>,
}

/// At a follower whose head cannot be reached: it will tell at once when there is another.
struct Waiting {
    reroute: Reroute,
    until: Micros,
}

impl<'a> Visit<'a> {
    fn new(address: &'a str, (read_half, write_half, rest): Opened, now: Micros) -> Self {
        Self {
            address,
            read_half,
            write_half,
            reader: FrameReader::with_rest(&rest, CONNECT_FRAME_BYTES_MAX),
            outbox: Outbox::default(),
            liveness: Liveness::new(now),
            is_greeted: false,
            is_attached: false,
            waiting: None,
        }
    }

    fn send(&mut self, channel: u32, message: &Message) {
        self.outbox.push(|out| message.encode(channel, None, out));
    }

    async fn stay<P: Port>(&mut self, link: &mut Link<P>) -> End {
        let handle = link.handles.current().0;
        let (group_id, session, token) = (handle.group_id, link.port.session(), handle.token.clone());
        self.send(
            0,
            &Message::Hello {
                version: VERSION,
                client: CLIENT_NAME.to_string(),
            },
        );
        self.send(
            CHANNEL,
            &Message::Attach {
                group_id,
                session,
                token,
            },
        );
        let mut timer_at = now_us() + LIVENESS_TICK_US;
        let mut timer = pin!(sleep_until(instant_of(timer_at)));
        let mut has_spun = false;
        loop {
            let is_written = match self.turn(link) {
                Ok(is_written) => is_written,
                Err(end) => return end,
            };
            // Set anew only when it must be earlier: most deadlines are never reached.
            let waits_until = self.waiting.as_ref().map_or(Micros::MAX, |waiting| waiting.until);
            let wake_at = self.liveness.tick_at().min(link.port.wake_at()).min(waits_until);
            if wake_at < timer_at {
                timer_at = wake_at;
                timer.as_mut().reset(instant_of(timer_at));
            }
            let spins = !link.spin.is_zero() && link.port.awaits_answer() && !has_spun;
            has_spun = false;
            tokio::select! {
                biased;
                filled = self.reader.fill_from(&mut self.read_half) => {
                    if let Err(end) = filled.map_err(lost).and_then(|()| self.take_frames(link)) {
                        return end;
                    }
                }
                writable = self.write_half.writable(), if !is_written => {
                    if let Err(error) = writable {
                        return lost(ReadFault::Io(error));
                    }
                }
                () = link.wake.notified() => {}
                () = &mut timer => {
                    timer_at = now_us() + LIVENESS_TICK_US;
                    timer.as_mut().reset(instant_of(timer_at));
                }
                () = spin(link.spin), if spins => has_spun = true,
            }
        }
    }

    /// Everything that is due now. `true`: all is written.
    fn turn<P: Port>(&mut self, link: &mut Link<P>) -> Result<bool, End> {
        let now = now_us();
        link.port.turn(now);
        if let Some(reroute) = link.port.take_reroute() {
            return Err(End::Left(reroute));
        }
        if let Some(waiting) = self.waiting.take_if(|waiting| waiting.until <= now) {
            return Err(End::Left(waiting.reroute));
        }
        if self.is_attached {
            link.port.write(now, CHANNEL, &mut self.outbox);
        }
        let awaits = self.is_attached && link.port.awaits_answer();
        match self.liveness.check(now, self.is_attached, awaits) {
            Verdict::Fine => {}
            Verdict::Ping => self.send(0, &Message::Ping { nonce: 1 }),
            Verdict::Dead(reason) => {
                return Err(End::Silent(Failure::new(client_side::NO_CONNECTION, reason)));
            }
        }
        let is_over = link.port.is_over();
        if is_over {
            self.send(CHANNEL, &Message::Detach);
        }
        let written = self.outbox.try_write(&self.write_half);
        let is_written = written.map_err(|error| lost(ReadFault::Io(error)))?;
        if is_over { Err(End::Over) } else { Ok(is_written) }
    }

    fn take_frames<P: Port>(&mut self, link: &mut Link<P>) -> Result<(), End> {
        let now = now_us();
        self.liveness.heard(now);
        loop {
            let taken = match self.reader.next_frame() {
                Ok(None) => return Ok(()),
                Ok(Some(frame)) => self.take_frame(link, &frame, now),
                Err(ReadFault::Wire(error)) => Err(Broken::Protocol(error)),
                Err(fault) => return Err(lost(fault)),
            };
            match taken {
                Ok(()) => {}
                Err(Broken::End(end)) => return Err(end),
                Err(Broken::Protocol(error)) => {
                    tracing::warn!(address = self.address, %error, "the server broke the protocol");
                    let message = error.to_string();
                    self.send(
                        0,
                        &Message::Goodbye {
                            code: error.code() as u16,
                            message,
                        },
                    );
                    let _best_effort = self.outbox.try_write(&self.write_half);
                    return Err(End::Goodbye(error.into()));
                }
            }
        }
    }

    fn take_frame<P: Port>(&mut self, link: &mut Link<P>, frame: &Frame, now: Micros) -> Result<(), Broken> {
        if self.is_attached && frame.channel == CHANNEL && frame.kind != kind::GOODBYE {
            link.port.on_frame(frame, now)?;
            if frame.kind != kind::NOTICE && frame.kind != kind::REFUSED {
                link.route.progressed();
            }
            return match link.port.take_reroute() {
                Some(reroute) => Err(Broken::End(End::Left(reroute))),
                None => Ok(()),
            };
        }
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
            Message::Attached(attached) if self.is_greeted && !self.is_attached => {
                if let Some(reroute) = link.port.on_attached(&attached, now) {
                    return self.wait_or_leave(link, reroute, now);
                }
                tracing::debug!(address = self.address, epoch = attached.epoch, "attached");
                self.is_attached = true;
                link.rejections = 0;
                link.unreachable.clear();
                link.route.attached(self.address);
            }
            Message::Notice(notice) if self.waiting.is_some() => {
                let head = if notice.role == Role::Head as u8 || notice.role == Role::Sole as u8 {
                    self.address.to_string()
                } else {
                    notice.head_address
                };
                if !head.is_empty() && head != link.unreachable {
                    let (to, reason) = (Target::Head(head), "there is a new head".to_string());
                    return Err(Broken::End(End::Left(Reroute { to, reason })));
                }
            }
            Message::Refused(refused) if self.is_greeted && !self.is_attached => {
                return Err(Broken::End(End::AttachRefused(refused)));
            }
            _ => {
                return Err(Broken::Protocol(WireError::Malformed {
                    what: "order of the conversation",
                }));
            }
        }
        Ok(())
    }
}

impl Visit<'_> {
    /// The replica is not the one. If it names a head that cannot be reached, a new head is on its way: to be told
    /// of it here is quicker than to ask one replica after the other, ever more slowly.
    fn wait_or_leave<P: Port>(
        &mut self,
        link: &Link<P>,
        reroute: Reroute,
        now: Micros,
    ) -> Result<(), Broken> {
        let is_gone =
            matches!(&reroute.to, Target::Head(head) if !head.is_empty() && *head == link.unreachable);
        if !is_gone {
            return Err(Broken::End(End::Left(reroute)));
        }
        tracing::debug!(address = self.address, "waits for a new head");
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

fn lost(fault: ReadFault) -> End {
    let reason = match fault {
        ReadFault::Closed => "the server closed the connection".to_string(),
        ReadFault::Io(error) => format!("the connection was lost: {error}"),
        ReadFault::Wire(error) => error.to_string(),
    };
    End::Lost(Failure::new(client_side::NO_CONNECTION, reason))
}
