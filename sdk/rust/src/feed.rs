//! The interface of a producer of appends, and the port that sends them over a link.

use std::sync::Arc;
use std::time::Duration;

use quorate_transport::Outbox;
use quorate_types::{Micros, Offset};
use quorate_wire::client::{Attached, Message};
use quorate_wire::{Frame, WireError};

use crate::errors::Failure;
use crate::handle::Handle;
use crate::handles::{HandleSource, Handles};
use crate::link::Link;
use crate::pool::Pool;
use crate::port::Port;
use crate::waker::Wake;
use crate::writer::{Action, Batching, NEVER, Reroute, Share, Writer};

/// A producer of appends on its link's task: no hand-over between tasks for each append.
pub trait Feed {
    /// Identifies an append.
    type Ticket;

    /// Hands over entries to append. Called after each wake-up: answers came, [`Feed::wake_at`] was reached, the
    /// link's `wake` was notified.
    fn fill(&mut self, writer: &mut Writer<Self::Ticket>, now: Micros);
    /// The entries of the share have consecutive offsets from `base_offset`.
    fn acked(&mut self, share: Share<Self::Ticket>, base_offset: Offset, now: Micros);
    /// `is_unknown`: it may have happened; otherwise it did not and will not.
    fn failed(&mut self, share: Share<Self::Ticket>, failure: &Failure, is_unknown: bool, now: Micros);
    /// Time of the next [`Feed::fill`] if nothing else happens.
    fn wake_at(&self) -> Micros {
        NEVER
    }
    /// No append will follow: the link ends with the last outstanding one.
    fn is_finished(&self) -> bool;
    /// Whether a connection is of use without an append.
    fn wants_connection(&self) -> bool {
        !self.is_finished()
    }
    /// The link has a head now.
    fn attached(&mut self, _attached: &Attached) {}
    fn detached(&mut self) {}
    /// No replica will ever take an append. All appends have ended.
    fn hopeless(&mut self, _failure: &Failure) {}
}

/// Connections that feeds share: feeds with clones of it use one connection to a server. For feeds on the tasks of one
/// thread, within a `LocalSet`.
pub struct FeedConnections<F: Feed>(Pool<FeedPort<F>>);

impl<F: Feed + 'static> Default for FeedConnections<F> {
    fn default() -> Self {
        Self(Pool::local())
    }
}

impl<F: Feed> Clone for FeedConnections<F> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

/// Options of a feed.
pub struct FeedOptions<F: Feed> {
    pub source: Option<HandleSource>,
    pub batching: Batching,
    /// As in [`Options::pace`](crate::Options::pace).
    pub pace: bool,
    /// As in [`Options::spin`](crate::Options::spin).
    pub spin: Duration,
    pub connections: FeedConnections<F>,
}

/// Appends the entries of `feed` to the handle's group, until it is finished. Notify `wake` when there are new ones.
pub async fn run_feed<F: Feed + 'static>(handle: Handle, feed: F, wake: Arc<Wake>, options: FeedOptions<F>) {
    let handles = Arc::new(Handles::new(handle, options.source));
    let writer = Writer::new(handles.current().0.limits, options.batching, rand::random());
    let link = feed_link(handles, writer, options.pace, feed, options.connections.0, wake);
    link.spinning(options.spin).run().await;
}

pub(crate) fn feed_link<F: Feed + 'static>(
    handles: Arc<Handles>,
    writer: Writer<F::Ticket>,
    paces: bool,
    feed: F,
    pool: Pool<FeedPort<F>>,
    wake: Arc<Wake>,
) -> Link<FeedPort<F>> {
    let handle = handles.current().0;
    let port = FeedPort {
        feed,
        writer: match paces {
            true => writer.with_pacing(handle.charges),
            false => writer,
        },
        handles: handles.clone(),
        actions: Vec::new(),
        reroute: None,
    };
    Link::new(port, handles, pool, wake)
}

pub(crate) struct FeedPort<F: Feed> {
    feed: F,
    writer: Writer<F::Ticket>,
    handles: Arc<Handles>,
    actions: Vec<Action<F::Ticket>>,
    reroute: Option<Reroute>,
}

impl<F: Feed> FeedPort<F> {
    fn carry_out(&mut self, now: Micros) {
        for action in self.actions.drain(..) {
            match action {
                Action::Acked {
                    mut shares,
                    base_offset,
                } => {
                    for share in shares.drain(..) {
                        let first = base_offset + u64::from(share.first);
                        self.feed.acked(share, first, now);
                    }
                    self.writer.recycle(shares);
                }
                Action::Failed {
                    mut shares,
                    failure,
                    is_unknown,
                } => {
                    for share in shares.drain(..) {
                        self.feed.failed(share, &failure, is_unknown, now);
                    }
                    self.writer.recycle(shares);
                }
                // The first one is the cause; later ones are its consequences.
                Action::Reroute(reroute) => {
                    self.reroute.get_or_insert(reroute);
                }
            }
        }
    }
}

impl<F: Feed> Port for FeedPort<F> {
    fn session(&self) -> u64 {
        self.writer.session()
    }

    fn on_attached(&mut self, attached: &Attached, now: Micros) -> Option<Reroute> {
        // A resized group has another size, which a fresh handle states.
        self.writer.set_charges(self.handles.current().0.charges);
        self.writer.on_attached(attached, &mut self.actions);
        self.carry_out(now);
        if self.reroute.is_none() {
            self.feed.attached(attached);
        }
        self.reroute.take()
    }

    fn on_frame(&mut self, frame: &Frame, now: Micros) -> Result<(), WireError> {
        match Message::decode(frame)? {
            Message::Acked(acks) => self.writer.on_acked(&acks, &mut self.actions),
            Message::Refused(refused) => self.writer.on_refused(&refused, now, &mut self.actions),
            Message::Notice(notice) => self.writer.on_notice(&notice, &mut self.actions),
            _ => {
                return Err(WireError::Malformed {
                    what: "answer to an append",
                });
            }
        }
        self.carry_out(now);
        Ok(())
    }

    fn on_detached(&mut self, reason: &Failure) {
        self.writer.on_detached(reason.clone());
        self.reroute = None;
        self.feed.detached();
    }

    fn set_reason(&mut self, reason: &Failure) {
        self.writer.set_reason(reason.clone());
    }

    fn on_hopeless(&mut self, failure: &Failure, now: Micros) {
        self.writer.fail_all(failure, &mut self.actions);
        self.carry_out(now);
        self.feed.hopeless(failure);
    }

    fn turn(&mut self, now: Micros) {
        self.writer.on_time(now, &mut self.actions);
        self.carry_out(now);
        self.feed.fill(&mut self.writer, now);
    }

    fn write(&mut self, now: Micros, channel: u32, outbox: &mut Outbox) {
        while let Some((append, trace)) = self.writer.next_append(now) {
            let message = Message::Append(append);
            outbox.push(|out| message.encode(channel, trace.as_ref(), out));
        }
    }

    fn wake_at(&self) -> Micros {
        self.writer.wake_at().min(self.feed.wake_at())
    }

    fn take_reroute(&mut self) -> Option<Reroute> {
        self.reroute.take()
    }

    fn awaits_answer(&self) -> bool {
        self.writer.awaits_answer()
    }

    fn is_busy(&self) -> bool {
        !self.writer.is_idle() || self.feed.wants_connection()
    }

    fn is_over(&self) -> bool {
        self.writer.pending_calls() == 0 && self.feed.is_finished()
    }
}
