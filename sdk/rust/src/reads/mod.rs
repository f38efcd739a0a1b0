//! Reads, tails, trims and status calls, pure: open calls, messages to send, answers.
//!
//! All of them can be repeated without harm. So they stay open across connections until they are answered or their
//! deadline passes. A tail subscribes again from its next offset.

mod answers;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use quorate_types::config::{GroupState, Role};
use quorate_types::{Code, Epoch, Micros, Offset};
use quorate_wire::client::{Attached, Entries, Message, StatusOk};

use crate::codes::client_side;
use crate::entries::Entry;
use crate::errors::Failure;
use crate::limits::{READS_OUTSTANDING_MAX, TAILS_MAX};
use crate::writer::{NEVER, Reroute, Target};

/// A call with one answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// `wait_until`: time of an empty answer, if there is no entry.
    Read {
        offset: Offset,
        max_bytes: u32,
        max_entries: u32,
        wait_until: Micros,
    },
    Status,
    /// Discard the entries before the offset.
    Trim {
        before_offset: Offset,
    },
}

/// An action for the shell. `A` identifies a call, `S` a tail.
#[derive(Debug)]
pub enum ReadAction<A, S> {
    Page {
        ticket: A,
        offset: Offset,
        page: Entries,
    },
    Status {
        ticket: A,
        status: StatusOk,
    },
    Trimmed {
        ticket: A,
        trim_offset: Offset,
    },
    Failed {
        ticket: A,
        failure: Failure,
    },
    /// The next entries of a tail; `bytes` of credit are due when they are consumed.
    Tailed {
        request: u32,
        ticket: S,
        entries: Vec<Entry>,
        bytes: u32,
    },
    Ended {
        ticket: S,
        failure: Failure,
    },
    Reroute(Reroute),
}

enum Open<A, S> {
    Ask {
        ask: Ask,
        ticket: A,
        deadline: Micros,
        refusal: Option<Failure>,
    },
    Tail {
        ticket: S,
        next_offset: Offset,
        credit_bytes: u32,
        buffered_bytes: u32,
        owed_bytes: u32,
    },
}

struct Item<A, S> {
    open: Open<A, S>,
    /// Time to send it (again); [`NEVER`] while the server has it.
    send_at: Micros,
}

pub struct Reads<A, S> {
    items: BTreeMap<u32, Item<A, S>>,
    /// Small messages to send first: CREDIT, CANCEL.
    urgent: Vec<Message>,
    last_request: u32,
    is_attached: bool,
    /// No item is due earlier: saves looking at every item.
    send_at: Micros,
    earliest: Micros,
    offline_reason: Failure,
    pub epoch: Epoch,
}

impl<A, S: Clone> Default for Reads<A, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A, S: Clone> Reads<A, S> {
    pub fn new() -> Self {
        Self {
            items: BTreeMap::new(),
            urgent: Vec::new(),
            last_request: 0,
            is_attached: false,
            send_at: NEVER,
            earliest: NEVER,
            offline_reason: Failure::new(client_side::NO_CONNECTION, "not connected yet"),
            epoch: 0,
        }
    }

    pub fn ask(&mut self, deadline: Micros, ask: Ask, ticket: A) -> Result<(), (A, Failure)> {
        if self.items.len() >= READS_OUTSTANDING_MAX {
            let message = format!("{} reads are outstanding", self.items.len());
            return Err((ticket, Failure::new(client_side::QUEUE_FULL, message)));
        }
        self.earliest = self.earliest.min(deadline);
        self.start(Open::Ask {
            ask,
            ticket,
            deadline,
            refusal: None,
        });
        Ok(())
    }

    pub fn subscribe(&mut self, offset: Offset, credit_bytes: u32, ticket: S) -> Result<(), (S, Failure)> {
        let tails = self
            .items
            .values()
            .filter(|item| matches!(item.open, Open::Tail { .. }))
            .count();
        if tails >= TAILS_MAX {
            let message = format!("{tails} tails are open on this client");
            return Err((ticket, Failure::new(client_side::QUEUE_FULL, message)));
        }
        let (buffered_bytes, owed_bytes) = (0, 0);
        self.start(Open::Tail {
            ticket,
            next_offset: offset,
            credit_bytes,
            buffered_bytes,
            owed_bytes,
        });
        Ok(())
    }

    fn start(&mut self, open: Open<A, S>) {
        self.last_request = self.last_request.checked_add(1).unwrap_or(1);
        self.items.insert(self.last_request, Item { open, send_at: 0 });
        self.send_at = 0;
    }

    /// A tail's reader has consumed `bytes`. Credit is returned in quarters of the whole: smaller parts would cost a
    /// frame for each frame.
    pub fn consumed(&mut self, request: u32, bytes: u32) {
        let Some(item) = self.items.get_mut(&request) else {
            return;
        };
        let Open::Tail {
            credit_bytes,
            buffered_bytes,
            owed_bytes,
            ..
        } = &mut item.open
        else {
            return;
        };
        *buffered_bytes = buffered_bytes.saturating_sub(bytes);
        *owed_bytes = owed_bytes.saturating_add(bytes);
        if *owed_bytes >= *credit_bytes / 4 && self.is_attached && item.send_at == NEVER {
            self.urgent.push(Message::Credit {
                request,
                bytes: *owed_bytes,
            });
            *owed_bytes = 0;
        }
    }

    pub fn cancel(&mut self, request: u32) {
        if let Some(item) = self.items.remove(&request)
            && self.is_attached
            && item.send_at == NEVER
        {
            self.urgent.push(Message::Cancel { request });
        }
    }

    pub fn is_idle(&self) -> bool {
        self.items.is_empty()
    }

    /// The next message to send now.
    pub fn next_message(&mut self, now: Micros) -> Option<Message> {
        if !self.is_attached {
            return None;
        }
        if let Some(message) = self.urgent.pop() {
            return Some(message);
        }
        if self.send_at > now {
            return None;
        }
        let due = self.items.iter_mut().find(|(_, item)| item.send_at <= now);
        let Some((request, item)) = due else {
            self.send_at = self
                .items
                .values()
                .map(|item| item.send_at)
                .min()
                .unwrap_or(NEVER);
            return None;
        };
        item.send_at = NEVER;
        let request = *request;
        Some(match &mut item.open {
            Open::Ask { ask: Ask::Status, .. } => Message::Status { request },
            Open::Ask {
                ask: Ask::Trim { before_offset },
                ..
            } => Message::Trim {
                request,
                before_offset: *before_offset,
            },
            Open::Ask {
                ask:
                    Ask::Read {
                        offset,
                        max_bytes,
                        max_entries,
                        wait_until,
                    },
                ..
            } => {
                let wait_ms = (wait_until.saturating_sub(now) / 1_000).min(u64::from(u32::MAX)) as u32;
                let (max_bytes, max_entries) = (*max_bytes, *max_entries);
                Message::Read {
                    request,
                    max_bytes,
                    max_entries,
                    wait_ms,
                    offset: *offset,
                }
            }
            Open::Tail {
                next_offset,
                credit_bytes,
                buffered_bytes,
                owed_bytes,
                ..
            } => {
                *owed_bytes = 0;
                let credit_bytes = credit_bytes.saturating_sub(*buffered_bytes).max(1);
                Message::Subscribe {
                    request,
                    credit_bytes,
                    offset: *next_offset,
                }
            }
        })
    }

    pub fn wake_at(&self) -> Micros {
        if self.is_attached {
            self.earliest.min(self.send_at)
        } else {
            self.earliest
        }
    }

    // The connection.

    pub fn on_attached(&mut self, attached: &Attached) -> Option<Reroute> {
        let to = Target::Head(attached.head_address.clone());
        if attached.epoch < self.epoch {
            let reason = format!("its epoch {} is older than {}", attached.epoch, self.epoch);
            return Some(Reroute {
                to: Target::Other,
                reason,
            });
        }
        self.epoch = attached.epoch;
        if attached.role == Role::None as u8 || attached.state == GroupState::Syncing as u8 {
            return Some(Reroute {
                to,
                reason: "it has no readable replica".to_string(),
            });
        }
        self.is_attached = true;
        for item in self.items.values_mut() {
            item.send_at = 0;
        }
        self.send_at = 0;
        None
    }

    pub fn on_detached(&mut self, reason: Failure) {
        self.is_attached = false;
        self.urgent.clear();
        self.offline_reason = reason;
    }

    pub fn set_reason(&mut self, reason: Failure) {
        self.offline_reason = reason;
    }

    /// Ends calls past their deadline.
    pub fn on_time(&mut self, now: Micros, actions: &mut Vec<ReadAction<A, S>>) {
        if now < self.earliest {
            return;
        }
        let is_late = |item: &Item<A, S>| matches!(item.open, Open::Ask { deadline, .. } if deadline <= now);
        let late: Vec<u32> = self
            .items
            .iter()
            .filter(|(_, item)| is_late(item))
            .map(|(request, _)| *request)
            .collect();
        for request in late {
            let item = self.items.remove(&request).expect("found above");
            let failure = match &item.open {
                Open::Ask {
                    refusal: Some(refusal),
                    ..
                } => refusal.clone(),
                _ if self.is_attached => {
                    Failure::of(Code::DeadlineExceeded, "the read was not answered in time")
                }
                _ => Failure {
                    is_retryable: true,
                    ..self.offline_reason.clone()
                },
            };
            actions.push(item.fail(failure));
        }
        let deadlines = self.items.values().filter_map(|item| match item.open {
            Open::Ask { deadline, .. } => Some(deadline),
            Open::Tail { .. } => None,
        });
        self.earliest = deadlines.min().unwrap_or(NEVER);
    }

    pub fn fail_all(&mut self, failure: &Failure, actions: &mut Vec<ReadAction<A, S>>) {
        for (_, item) in std::mem::take(&mut self.items) {
            actions.push(item.fail(failure.clone()));
        }
        self.urgent.clear();
        self.earliest = NEVER;
        self.send_at = NEVER;
    }
}

impl<A, S> Item<A, S> {
    fn fail(self, failure: Failure) -> ReadAction<A, S> {
        match self.open {
            Open::Ask { ticket, .. } => ReadAction::Failed { ticket, failure },
            Open::Tail { ticket, .. } => ReadAction::Ended { ticket, failure },
        }
    }
}
