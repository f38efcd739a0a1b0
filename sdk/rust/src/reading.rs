//! The queue from a [`crate::Client`]'s readers to their link's task, and the port that sends their calls.

use std::sync::{Arc, Mutex};

use quorate_transport::Outbox;
use quorate_types::{Micros, Offset};
use quorate_wire::client::{Attached, Entries, Message, StatusOk};
use quorate_wire::{Frame, WireError};
use tokio::sync::{mpsc, oneshot};

use crate::codes::client_side;
use crate::entries::Entry;
use crate::errors::Failure;
use crate::port::Port;
use crate::reads::{Ask, ReadAction, Reads};
use crate::waker::Wake;
use crate::writer::Reroute;

/// A page of a tail: its request, the next entries, the credit due when they are consumed.
pub(crate) type TailPage = Result<(u32, Vec<Entry>, u32), Failure>;

pub(crate) type Answer<T> = oneshot::Sender<Result<T, Failure>>;

pub(crate) enum ReadCall {
    Page {
        ask: Ask,
        deadline: Micros,
        reply: Answer<Entries>,
    },
    Status {
        deadline: Micros,
        reply: Answer<StatusOk>,
    },
    Trim {
        before_offset: Offset,
        deadline: Micros,
        reply: Answer<Offset>,
    },
    Tail {
        offset: Offset,
        credit_bytes: u32,
        sender: mpsc::UnboundedSender<TailPage>,
    },
    Consumed {
        request: u32,
        bytes: u32,
    },
    Cancel {
        request: u32,
    },
}

#[derive(Default)]
pub(crate) struct ReadInbox {
    calls: Mutex<Calls>,
    pub wake: Arc<Wake>,
}

#[derive(Default)]
struct Calls {
    calls: Vec<ReadCall>,
    is_finished: bool,
}

impl ReadInbox {
    /// The queue is bounded: the task takes all calls at once, and refuses those beyond its limit. A call that comes
    /// too late is dropped, which ends its caller's wait.
    pub fn push(&self, call: ReadCall) {
        let mut calls = self.calls.lock().expect("no holder of the lock panics");
        if !calls.is_finished {
            calls.calls.push(call);
            self.wake.notify_one();
        }
    }

    pub fn finish(&self) {
        self.calls
            .lock()
            .expect("no holder of the lock panics")
            .is_finished = true;
        self.wake.notify_one();
    }
}

pub(crate) enum ReadTicket {
    Page(Answer<Entries>),
    Status(Answer<StatusOk>),
    Trim(Answer<Offset>),
}

type TailSender = mpsc::UnboundedSender<TailPage>;

pub(crate) struct ReadPort {
    inbox: Arc<ReadInbox>,
    reads: Reads<ReadTicket, TailSender>,
    actions: Vec<ReadAction<ReadTicket, TailSender>>,
    reroute: Option<Reroute>,
    is_finished: bool,
}

impl ReadPort {
    pub fn new(inbox: Arc<ReadInbox>) -> Self {
        Self {
            inbox,
            reads: Reads::new(),
            actions: Vec::new(),
            reroute: None,
            is_finished: false,
        }
    }

    fn take_call(&mut self, call: ReadCall) {
        match call {
            ReadCall::Page { ask, deadline, reply } => {
                if let Err((ticket, failure)) = self.reads.ask(deadline, ask, ReadTicket::Page(reply)) {
                    fail(ticket, failure);
                }
            }
            ReadCall::Status { deadline, reply } => {
                let asked = self.reads.ask(deadline, Ask::Status, ReadTicket::Status(reply));
                if let Err((ticket, failure)) = asked {
                    fail(ticket, failure);
                }
            }
            ReadCall::Trim {
                before_offset,
                deadline,
                reply,
            } => {
                let ask = Ask::Trim { before_offset };
                if let Err((ticket, failure)) = self.reads.ask(deadline, ask, ReadTicket::Trim(reply)) {
                    fail(ticket, failure);
                }
            }
            ReadCall::Tail {
                offset,
                credit_bytes,
                sender,
            } => {
                if let Err((sender, failure)) = self.reads.subscribe(offset, credit_bytes, sender) {
                    let _gone = sender.send(Err(failure));
                }
            }
            ReadCall::Consumed { request, bytes } => self.reads.consumed(request, bytes),
            ReadCall::Cancel { request } => self.reads.cancel(request),
        }
    }

    fn carry_out(&mut self) {
        for action in std::mem::take(&mut self.actions) {
            match action {
                ReadAction::Page {
                    ticket: ReadTicket::Page(reply),
                    page,
                    ..
                } => {
                    let _gone = reply.send(Ok(page));
                }
                ReadAction::Status {
                    ticket: ReadTicket::Status(reply),
                    status,
                } => {
                    let _gone = reply.send(Ok(status));
                }
                ReadAction::Trimmed {
                    ticket: ReadTicket::Trim(reply),
                    trim_offset,
                } => {
                    let _gone = reply.send(Ok(trim_offset));
                }
                ReadAction::Page { .. } | ReadAction::Status { .. } | ReadAction::Trimmed { .. } => {
                    unreachable!("an answer of another kind was refused as malformed")
                }
                ReadAction::Failed { ticket, failure } => fail(ticket, failure),
                ReadAction::Tailed {
                    request,
                    ticket,
                    entries,
                    bytes,
                } => {
                    if ticket.send(Ok((request, entries, bytes))).is_err() {
                        self.reads.cancel(request);
                    }
                }
                ReadAction::Ended { ticket, failure } => {
                    let _gone = ticket.send(Err(failure));
                }
                ReadAction::Reroute(reroute) => {
                    self.reroute.get_or_insert(reroute);
                }
            }
        }
    }
}

/// A caller may have stopped waiting.
fn fail(ticket: ReadTicket, failure: Failure) {
    match ticket {
        ReadTicket::Page(reply) => {
            let _gone = reply.send(Err(failure));
        }
        ReadTicket::Status(reply) => {
            let _gone = reply.send(Err(failure));
        }
        ReadTicket::Trim(reply) => {
            let _gone = reply.send(Err(failure));
        }
    }
}

impl Port for ReadPort {
    fn session(&self) -> u64 {
        0
    }

    fn on_attached(&mut self, attached: &Attached, _now: Micros) -> Option<Reroute> {
        self.reads.on_attached(attached)
    }

    fn on_frame(&mut self, frame: &Frame, now: Micros) -> Result<(), WireError> {
        self.reads
            .on_message(Message::decode(frame)?, now, &mut self.actions)?;
        self.carry_out();
        Ok(())
    }

    fn on_detached(&mut self, reason: &Failure) {
        self.reads.on_detached(reason.clone());
        self.reroute = None;
    }

    fn set_reason(&mut self, reason: &Failure) {
        self.reads.set_reason(reason.clone());
    }

    fn on_hopeless(&mut self, failure: &Failure, _now: Micros) {
        self.reads.fail_all(failure, &mut self.actions);
        self.carry_out();
    }

    fn turn(&mut self, now: Micros) {
        let calls = {
            let mut inbox = self.inbox.calls.lock().expect("no holder of the lock panics");
            self.is_finished = inbox.is_finished;
            std::mem::take(&mut inbox.calls)
        };
        for call in calls {
            self.take_call(call);
        }
        if self.is_finished {
            self.reads
                .fail_all(&Failure::new(client_side::CLIENT_CLOSED, ""), &mut self.actions);
        }
        self.reads.on_time(now, &mut self.actions);
        self.carry_out();
    }

    fn write(&mut self, now: Micros, channel: u32, outbox: &mut Outbox) {
        while let Some(message) = self.reads.next_message(now) {
            outbox.push(|out| message.encode(channel, None, out));
        }
    }

    fn wake_at(&self) -> Micros {
        self.reads.wake_at()
    }

    fn take_reroute(&mut self) -> Option<Reroute> {
        self.reroute.take()
    }

    /// A read may wait for its `wait_ms` and a tail for ever; a PING shows whether the server is alive.
    fn awaits_answer(&self) -> bool {
        !self.reads.is_idle()
    }

    fn is_busy(&self) -> bool {
        !self.reads.is_idle()
    }

    fn is_over(&self) -> bool {
        self.is_finished && self.reads.is_idle()
    }
}
