//! One link's stream on a connection: a channel number, its attachment, its deadlines.

use std::sync::Arc;

use quorate_transport::Outbox;
use quorate_types::Micros;
use quorate_types::config::Role;
use quorate_wire::client::{Message, kind};
use quorate_wire::{Frame, WireError};
use tokio::sync::oneshot;

use crate::codes::client_side;
use crate::errors::Failure;
use crate::limits::{HANDSHAKE_TIMEOUT_US, NEW_HEAD_WAIT_US_MAX};
use crate::link_state::{End, LinkState};
use crate::places::Place;
use crate::port::Port;
use crate::waker::ConnectionWaker;
use crate::writer::{Reroute, Target};

/// A link that is served over a connection.
pub(crate) struct Stream<P> {
    pub link: Box<LinkState<P>>,
    back: oneshot::Sender<Returned<P>>,
    /// Freed when the stream ends.
    place: Option<Place<Stream<P>>>,
    is_attached: bool,
    waiting: Option<Waiting>,
    /// Time of ATTACH, or of the last frame before it was attached.
    heard_at: Micros,
    pub wake_at: Micros,
}

/// A link that returns to its own task, and the reason.
pub(crate) struct Returned<P> {
    pub link: Box<LinkState<P>>,
    pub was_attached: bool,
    pub end: End,
}

/// The stream is at a follower whose head cannot be reached: the follower reports the next head at once.
struct Waiting {
    reroute: Reroute,
    until: Micros,
}

impl<P> Stream<P> {
    pub fn new(link: Box<LinkState<P>>, place: Place<Stream<P>>, back: oneshot::Sender<Returned<P>>) -> Self {
        Self {
            link,
            back,
            place: Some(place),
            is_attached: false,
            waiting: None,
            heard_at: 0,
            wake_at: 0,
        }
    }

    pub fn into_link(self) -> Box<LinkState<P>> {
        self.link
    }

    pub fn free_place(&mut self) {
        self.place = None;
    }

    /// Returns the link to its own task.
    pub fn end(self, end: End) {
        self.link.wake.reset();
        // First, or a link that returns at once could find the place still taken.
        drop(self.place);
        let was_attached = self.is_attached;
        let _stopped = self.back.send(Returned {
            link: self.link,
            was_attached,
            end,
        });
    }
}

impl<P: Port> Stream<P> {
    /// Begins on `channel`; answers the ATTACH to send.
    pub fn begin(&mut self, channel: u32, waker: Arc<ConnectionWaker>, now: Micros) -> Message {
        let handle = self.link.handles.current().0;
        self.heard_at = now;
        self.link.wake.pass_on(waker, channel);
        Message::Attach {
            group_id: handle.group_id,
            session: self.link.port.session(),
            token: handle.token.clone(),
        }
    }

    pub fn is_attached(&self) -> bool {
        self.is_attached
    }

    pub fn awaits_answer(&self) -> bool {
        self.is_attached && self.link.port.awaits_answer()
    }

    /// Whether the server has not attached it in time.
    pub fn is_late(&self, now: Micros) -> bool {
        !self.is_attached && now.saturating_sub(self.heard_at) > HANDSHAKE_TIMEOUT_US
    }

    /// Does everything that is due for this stream.
    pub fn turn(&mut self, now: Micros, channel: u32, outbox: &mut Outbox) -> Result<(), End> {
        let is_late = self.is_late(now);
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
        } else if is_late {
            return Err(silent("it did not attach in time"));
        }
        if port.is_over() {
            return Err(End::Over);
        }
        let waits_until = self.waiting.as_ref().map_or(Micros::MAX, |waiting| waiting.until);
        self.wake_at = port.wake_at().min(waits_until);
        Ok(())
    }

    /// The inner error ends this stream, the outer one the connection.
    pub fn take_frame(
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

    /// The replica is the wrong one. If it names a head that cannot be reached, a new head will follow. Waiting here
    /// for its report is quicker than asking one replica after the other, ever more slowly.
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

pub(crate) fn disorder() -> WireError {
    WireError::Malformed {
        what: "order of the conversation",
    }
}

pub(crate) fn silent(reason: &str) -> End {
    End::Silent(Failure::new(client_side::NO_CONNECTION, reason))
}
