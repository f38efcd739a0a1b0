//! Reading: readers, and the repairs that some of their pages wait for. A page is of one log generation.

use bytes::Bytes;
use quorate_chain::ClientRef;
use quorate_types::{Code, Index, Micros, ServerId};
use quorate_wire::Batch;
use quorate_wire::client::Message;

use crate::event::{CopierId, Generation, Lack, PageRead};
use crate::output::Outputs;
use crate::reads::{ReadRequest, Readers, Served, Serving};
use crate::repairs::{Repairing, Repairs, Unparked};
use crate::view::View;

#[derive(Debug)]
pub(crate) struct Reading {
    generation: Generation,
    readers: Readers,
    repairs: Repairs,
}

impl Reading {
    pub fn new(hosting: u64) -> Self {
        let generation = Generation { hosting, resets: 0 };
        Self {
            generation,
            readers: Readers::default(),
            repairs: Repairs::default(),
        }
    }

    pub fn generation(&self) -> Generation {
        self.generation
    }

    pub fn next_deadline(&self) -> Option<Micros> {
        self.readers.next_deadline()
    }

    /// A READ, SUBSCRIBE or CREDIT of a client that may read.
    pub fn message(&mut self, client: ClientRef, message: &Message, view: &mut View<'_>) {
        let (readers, mut serving) = self.serving(view);
        match *message {
            Message::Read {
                request,
                max_bytes,
                max_entries,
                wait_ms,
                offset,
            } => {
                let read = ReadRequest {
                    request,
                    max_bytes,
                    max_entries,
                    wait_ms,
                    offset,
                };
                readers.read(client, read, &mut serving);
            }
            Message::Subscribe {
                request,
                credit_bytes,
                offset,
            } => {
                readers.subscribe(client, request, credit_bytes, offset, &mut serving);
            }
            Message::Credit { request, bytes } => readers.credit(client, request, bytes, &mut serving),
            _ => {}
        }
    }

    pub fn cancel(&mut self, client: ClientRef, request: u32) {
        self.readers.cancel(client, request);
    }

    /// The client's ATTACH is refused.
    pub fn refuse_client(&mut self, client: ClientRef, code: Code, out: &mut Outputs) {
        self.readers
            .refuse_where(code, |reader| reader.client == client, out);
    }

    /// The client's channel is gone.
    pub fn forget(&mut self, client: ClientRef) {
        self.readers.forget(client);
    }

    pub fn serve(&mut self, view: &mut View<'_>) {
        let (readers, mut serving) = self.serving(view);
        readers.serve(&mut serving);
    }

    pub fn page_read(&mut self, read: PageRead, payloads: Vec<Result<Bytes, Lack>>, view: &mut View<'_>) {
        let (readers, mut serving) = self.serving(view);
        match readers.page_read(read, payloads, &mut serving) {
            Served::Done => {}
            Served::Damaged(read, missing) => {
                let unparked = self.repairs.park(read, missing, &mut view.repairing());
                self.unpark(unparked, view);
            }
        }
    }

    pub fn damaged(&mut self, damaged: Vec<(Index, Option<CopierId>)>, view: &mut View<'_>) {
        let unparked = self.repairs.begin(damaged, &mut view.repairing());
        self.unpark(unparked, view);
    }

    pub fn fetched(&mut self, from: ServerId, index: Index, batch: Option<Batch>, view: &mut View<'_>) {
        let unparked = self.repairs.fetched(from, index, batch, &mut view.repairing());
        self.unpark(unparked, view);
    }

    pub fn advance_repairs(&mut self, view: &mut View<'_>) {
        let unparked = self.repairs.advance(&mut view.repairing());
        self.unpark(unparked, view);
    }

    /// The log is reset: pages and repairs of the old one end.
    pub fn reset(&mut self, view: &mut View<'_>) {
        self.generation.resets += 1;
        for read in self.repairs.take_parked() {
            let (readers, mut serving) = self.serving(view);
            readers.answer_without(&read, "the log was reset meanwhile", &mut serving);
        }
        self.repairs.abandon(&mut view.repairing());
    }

    pub fn refuse_all(&mut self, code: Code, view: &mut View<'_>) {
        self.readers.refuse_where(code, |_| true, view.out);
    }

    /// The group leaves this server.
    pub fn leave(&mut self, view: &mut View<'_>) {
        self.refuse_all(Code::GroupNotHere, view);
        self.repairs.abandon(&mut view.repairing());
    }

    /// The shard's places for repairs that the group takes.
    pub fn repair_places(&self) -> usize {
        self.repairs.places()
    }

    fn unpark(&mut self, unparked: Vec<Unparked>, view: &mut View<'_>) {
        for one in unparked {
            let (readers, mut serving) = self.serving(view);
            match one {
                Unparked::Repaired(read) => readers.resume(read, &mut serving),
                Unparked::Unrepaired(read, index) => {
                    let reason = format!("batch {index} is damaged here, and no other replica has it now");
                    readers.answer_without(&read, &reason, &mut serving);
                }
            }
        }
    }

    fn serving<'a>(&'a mut self, view: &'a mut View<'_>) -> (&'a mut Readers, Serving<'a>) {
        let serving = Serving {
            replica: view.replica,
            generation: self.generation,
            counters: view.counters,
            turn: view.turn,
            out: view.out,
        };
        (&mut self.readers, serving)
    }
}

impl View<'_> {
    fn repairing(&mut self) -> Repairing<'_> {
        Repairing {
            group_id: self.group_id,
            me: self.me,
            replica: self.replica,
            turn: self.turn,
            out: self.out,
        }
    }
}
