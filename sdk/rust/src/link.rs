//! Keeps one group attached: dials the route's addresses, attaches, starts again.
//!
//! The shell around [`crate::route`]. Its [`Port`] decides what travels over the connection. A link is a task that
//! looks for the head. On a connection, the link's state moves to the connection's task ([`crate::connection`]), which
//! serves it with those of other groups. It returns when the link must look elsewhere. So an answer passes through one
//! task between socket and caller, and the messages of many groups go out with one write.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use quorate_types::{Code, Micros};
use quorate_wire::client::Refused;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep_until;

use crate::clock::{instant_of, now_us};
use crate::codes::client_side;
use crate::errors::Failure;
use crate::handles::Handles;
use crate::link_state::{End, LinkState};
use crate::pool::Pool;
use crate::port::Port;
use crate::route::{Route, Step};
use crate::stream::{Returned, Stream};
use crate::waker::Wake;
use crate::writer::{Reroute, Target};

pub(crate) struct Link<P> {
    state: Box<LinkState<P>>,
    pool: Pool<P>,
}

impl<P: Port + 'static> Link<P> {
    pub fn new(port: P, handles: Arc<Handles>, pool: Pool<P>, wake: Arc<Wake>) -> Self {
        Self {
            state: Box::new(LinkState::new(port, handles, wake)),
            pool,
        }
    }

    pub fn spinning(mut self, spin: Duration) -> Self {
        self.state.spin = spin;
        self
    }

    /// Serves the port until it is over.
    pub async fn run(self) {
        let Self { mut state, pool } = self;
        loop {
            state.port.turn(now_us());
            if state.port.is_over() {
                return;
            }
            if !state.port.is_busy() {
                // Without a use for a connection, do not dial a fleet that may be gone.
                state.wake.notified().await;
                continue;
            }
            match state.route.next(now_us(), rand::random()) {
                Step::Dial { address, delay_us } => {
                    state.pause(delay_us).await;
                    let Some(returned) = visit(state, &pool, &address).await else {
                        return;
                    };
                    state = returned;
                }
                Step::Refresh { delay_us } => {
                    state.pause(delay_us).await;
                    state.refresh().await;
                }
            }
        }
    }
}

/// Takes a place on a connection, attaches, stays until the stream ends, and updates the route. `None`: the runtime
/// ends.
async fn visit<P: Port + 'static>(
    mut state: Box<LinkState<P>>,
    pool: &Pool<P>,
    address: &str,
) -> Option<Box<LinkState<P>>> {
    loop {
        let place = pool.place(address, &state.handles.current().0);
        let ready = place.ready();
        if let Err(failure) = state.meanwhile(ready).await {
            state.not_opened(address, &failure);
            return Some(state);
        }
        let (back, returned) = oneshot::channel();
        let streams = place.streams.clone();
        let Err(mpsc::error::SendError(stream)) = streams.send(Stream::new(state, place, back)) else {
            let Returned {
                mut link,
                was_attached,
                end,
            } = returned.await.ok()?;
            link.leave(address, was_attached, end);
            return Some(link);
        };
        // The connection has just ended.
        state = stream.into_link();
    }
}

impl<P: Port + 'static> LinkState<P> {
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
                .set_reason(&Failure::new(client_side::NO_CONNECTION, message));
        }
        let (handle, version) = self.handles.current();
        if version != self.seen_version {
            self.seen_version = version;
            self.route.replace(handle.addresses());
        }
    }

    /// Serves the port's callers and deadlines during another wait.
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

    fn not_opened(&mut self, address: &str, failure: &Failure) {
        tracing::debug!(address, reason = failure.message, "cannot connect");
        self.unreachable = address.to_string();
        self.port.set_reason(failure);
        if failure.code == client_side::SERVER_UNTRUSTED {
            tracing::warn!(address, reason = failure.message, "the server is not trusted");
            self.route.avoid(address);
            self.rejected(failure);
        }
    }

    /// The handle is wrong, here and everywhere. A fresh one may be right, but may be refused once too, while keys roll
    /// over.
    fn rejected(&mut self, failure: &Failure) {
        self.route.want_handle();
        self.rejections += 1;
        if !self.handles.can_refresh() || self.rejections > 2 {
            self.rejections = 0;
            self.end_all(&Failure {
                is_retryable: false,
                ..failure.clone()
            });
        }
    }

    fn leave(&mut self, address: &str, was_attached: bool, end: End) {
        let reason = end.failure(address);
        tracing::debug!(reason = reason.message, "left a connection");
        if was_attached {
            self.route.lost(rand::random());
            self.port.on_detached(&reason);
        } else {
            self.port.set_reason(&reason);
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
                    self.end_all(&failure);
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

    /// The head is isolated, or no member any more: it is no better than one that cannot be reached, and others may still name
    /// it for a while.
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
                let is_token =
                    [Code::TokenInvalid, Code::TokenExpired, Code::TokenRevoked].map(|code| code as u16);
                if is_token.contains(&refused.code) {
                    self.rejected(&Failure::refused(refused));
                }
            }
            _ => self.end_all(&Failure::refused(refused)),
        }
    }

    fn end_all(&mut self, failure: &Failure) {
        self.route = Route::new(self.handles.current().0.addresses(), self.handles.can_refresh());
        self.port.on_hopeless(failure, now_us());
    }
}
