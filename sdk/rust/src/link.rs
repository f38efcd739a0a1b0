//! Keeps one group attached: dials where the route says, attaches, starts again.
//!
//! The shell around [`Route`]. What travels over the connection is its [`Port`]'s business. A link is a task that
//! looks for the head; where there is a connection to attach over, the link itself goes to the task that serves that
//! connection ([`crate::carrier`]) with those of other groups, and comes back when it has to look elsewhere. So an
//! answer passes through one task between socket and caller, and a round of many groups is one write.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use quorate_transport::Outbox;
use quorate_types::{Code, Micros};
use quorate_wire::client::{Attached, Refused};
use quorate_wire::{Frame, WireError};
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep_until;

use crate::carrier::{Guest, Returned};
use crate::carriers::Carriers;
use crate::clock::{instant_of, now_us};
use crate::codes::client_side;
use crate::errors::{Failure, info};
use crate::handles::Handles;
use crate::route::{Route, Step};
use crate::wake::Wake;
use crate::writer::{Reroute, Target};

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
    pub port: P,
    pub handles: Arc<Handles>,
    seen_version: u64,
    pub route: Route,
    carriers: Carriers<P>,
    pub wake: Arc<Wake>,
    /// While an answer is awaited, it is looked for so long before the task sleeps.
    pub spin: Duration,
    rejections: u32,
    /// The address that could not be reached last, whose connection broke, or which said that it is cut off.
    pub unreachable: String,
}

/// Why a connection is left.
#[derive(Clone)]
pub(crate) enum End {
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

impl<P: Port + 'static> Link<P> {
    pub fn new(port: P, handles: Arc<Handles>, carriers: Carriers<P>, wake: Arc<Wake>) -> Self {
        let (handle, seen_version) = handles.current();
        let route = Route::new(handle.addresses(), handles.can_refresh());
        Self {
            port,
            handles,
            seen_version,
            route,
            carriers,
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
    pub async fn run(self) {
        let mut link = Box::new(self);
        loop {
            link.port.turn(now_us());
            if link.port.is_over() {
                return;
            }
            if !link.port.is_busy() {
                // Nobody needs a connection: do not knock at a fleet that may be gone.
                link.wake.notified().await;
                continue;
            }
            match link.route.next(now_us(), rand::random()) {
                Step::Dial { address, delay_us } => {
                    link.pause(delay_us).await;
                    let Some(returned) = link.visit(&address).await else {
                        return;
                    };
                    link = returned;
                }
                Step::Refresh { delay_us } => {
                    link.pause(delay_us).await;
                    link.refresh().await;
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

    /// Takes a place on a connection, attaches, stays until it has to leave, and tells the route what is to be learnt
    /// from it. `None`: the runtime ends.
    async fn visit(mut self: Box<Self>, address: &str) -> Option<Box<Self>> {
        loop {
            let place = self.carriers.place(address, &self.handles.current().0);
            let ready = place.ready();
            if let Err(failure) = self.meanwhile(ready).await {
                self.not_opened(address, &failure);
                return Some(self);
            }
            let (back, returned) = oneshot::channel();
            let boarding = place.boarding.clone();
            let Err(mpsc::error::SendError(guest)) = boarding.send(Guest::new(self, place, back)) else {
                let Returned {
                    mut link,
                    was_attached,
                    end,
                } = returned.await.ok()?;
                link.leave(address, was_attached, end);
                return Some(link);
            };
            // The connection has just ended.
            self = guest.into_link();
        }
    }

    pub fn attached(&mut self, address: &str) {
        self.rejections = 0;
        self.unreachable.clear();
        self.route.attached(address);
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
