//! Appends in the log whose clients wait for their commitment.

use std::collections::VecDeque;

use quorate_types::{Code, Index};

use crate::command::{Arrival, ClientRef, Happened, ReplicaCommand};
use crate::log::Placed;

/// One for each batch, by index.
#[derive(Debug, Default)]
pub(crate) struct Waiters {
    waiting: VecDeque<Waiter>,
}

#[derive(Debug)]
struct Waiter {
    /// `None`: it is gone, and the time until commitment counts all the same.
    client: Option<ClientRef>,
    seq: u64,
    placed: Placed,
    arrival: Arrival,
}

impl Waiters {
    #[inline]
    pub fn add(&mut self, client: ClientRef, seq: u64, placed: Placed, arrival: Arrival) {
        let mut waiter = Waiter {
            client: Some(client),
            seq,
            placed,
            arrival,
        };
        if self
            .waiting
            .back()
            .is_none_or(|last| last.placed.index < placed.index)
        {
            return self.waiting.push_back(waiter);
        }
        match self
            .waiting
            .binary_search_by_key(&placed.index, |w| w.placed.index)
        {
            Ok(at) => {
                // A retry does not make the wait begin anew.
                waiter.arrival.start_us = self.waiting[at].arrival.start_us;
                self.waiting[at] = waiter;
            }
            Err(at) => self.waiting.insert(at, waiter),
        }
    }

    #[inline]
    pub fn acknowledge(&mut self, commit_index: Index, out: &mut Vec<ReplicaCommand>) {
        while self
            .waiting
            .front()
            .is_some_and(|w| w.placed.index <= commit_index)
        {
            let waiter = self.waiting.pop_front().expect("there is a front");
            out.push(ack(waiter.client, waiter.seq, waiter.placed, waiter.arrival));
        }
    }

    pub fn refuse(&mut self, code: Code, out: &mut Vec<ReplicaCommand>) {
        for waiter in self.waiting.drain(..) {
            let Some(client) = waiter.client else { continue };
            out.push(ReplicaCommand::Refuse {
                client,
                seq: waiter.seq,
                entry_count: waiter.placed.entry_count,
                code,
                happened: Happened::Unknown,
                retry_after_ms: 0,
            });
        }
    }

    pub fn forget_client(&mut self, client: ClientRef) {
        for waiter in &mut self.waiting {
            waiter.client = waiter.client.filter(|of| *of != client);
        }
    }
}

pub(crate) fn ack(client: Option<ClientRef>, seq: u64, placed: Placed, arrival: Arrival) -> ReplicaCommand {
    let Placed {
        base_offset,
        entry_count,
        ..
    } = placed;
    ReplicaCommand::Ack {
        client,
        seq,
        base_offset,
        entry_count,
        arrival,
    }
}
