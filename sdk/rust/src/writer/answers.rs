//! The head's answers to batches: acks, refusals, and sending refused batches again.

use quorate_types::{Code, Micros, Offset};
use quorate_wire::client::{Outcome, Refused};

use super::batch::Batch;
use super::{Action, Reroute, Target, Writer};
use crate::errors::Failure;
use crate::limits::{BACKOFF_BASE_US, BACKOFF_MAX_US};

/// The `retry` byte of REFUSED; 0 and unknown values mean never.
const RETRY_HERE: u8 = 1;
const RETRY_HEAD: u8 = 2;
const RETRY_HANDLE: u8 = 3;

/// Position of a seq among the batches in flight.
enum Place {
    /// Answered before.
    Past,
    Sent(usize),
    NeverSent,
}

impl<T> Writer<T> {
    fn place_of(&self, seq: u64) -> Place {
        let base = self.inflight.front().map_or(self.next_seq, |batch| batch.seq);
        if seq < base {
            return Place::Past;
        }
        let index = (seq - base) as usize;
        if index < self.sent {
            Place::Sent(index)
        } else {
            Place::NeverSent
        }
    }

    /// Batches were committed: (seq, base_offset) of each.
    pub fn on_acked(&mut self, acks: &[(u64, Offset)], actions: &mut Vec<Action<T>>) {
        let mut is_out_of_order = false;
        for (seq, base_offset) in acks {
            let index = match self.place_of(*seq) {
                Place::Past => continue,
                Place::Sent(index) => index,
                Place::NeverSent => {
                    let reason = format!("it acknowledged batch {seq}, which was not sent");
                    actions.push(Action::Reroute(Reroute {
                        to: Target::Other,
                        reason,
                    }));
                    return;
                }
            };
            if self.inflight[index].is_awaited() {
                let shares = self.take_shares(index);
                actions.push(Action::Acked {
                    shares,
                    base_offset: *base_offset,
                });
            }
            self.inflight[index].is_in_doubt = false;
            self.inflight[index].is_answered = true;
            if index == 0 {
                self.pop_answered();
            } else {
                is_out_of_order = true;
            }
        }
        self.refusals = 0;
        self.stuck = 0;
        if let Some(rewind) = self.rewind {
            if self.is_drained(rewind) {
                self.fold(rewind);
            }
        } else if is_out_of_order
            && self
                .inflight
                .iter()
                .take(self.sent)
                .any(|batch| batch.is_answered)
        {
            // Batches are committed in order, so no answer to an earlier one will follow.
            let reason = format!("no answer to batch {}", self.inflight[0].seq);
            actions.push(Action::Reroute(Reroute {
                to: Target::Again,
                reason,
            }));
        }
    }

    pub(super) fn pop_answered(&mut self) {
        while let Some(front) = self.inflight.front() {
            let is_over = self.sent > 0 && front.is_answered && !front.is_awaited();
            if !is_over || self.rewind.is_some_and(|rewind| front.seq >= rewind) {
                return;
            }
            let batch = self.inflight.pop_front().expect("looked at above");
            self.inflight_bytes -= batch.len() as u64;
            self.sent -= 1;
            self.drop_batch(batch);
        }
    }

    /// The head refused a batch.
    pub fn on_refused(&mut self, refused: &Refused, now: Micros, actions: &mut Vec<Action<T>>) {
        let seq = refused.id;
        let index = match self.place_of(seq) {
            Place::Past => return,
            Place::Sent(index) => index,
            Place::NeverSent => {
                let reason = format!("it refused batch {seq}, which was not sent");
                actions.push(Action::Reroute(Reroute {
                    to: Target::Other,
                    reason,
                }));
                return;
            }
        };
        if refused.code == Code::SessionExpired as u16 {
            self.on_forgotten(index, actions);
        } else if refused.outcome != Outcome::Refused as u8 {
            self.on_unknown(index, refused, actions);
        } else {
            self.on_not_ordered(index, refused, now, actions);
        }
    }

    /// The head does not know a batch's outcome. Sent again, the batch gets it from its session.
    fn on_unknown(&mut self, index: usize, refused: &Refused, actions: &mut Vec<Action<T>>) {
        if !matches!(refused.retry, RETRY_HERE..=RETRY_HANDLE) && self.inflight[index].is_awaited() {
            actions.push(self.fail(index, Failure::refused(refused), true));
        }
        actions.push(Action::Reroute(reroute_of(refused)));
    }

    fn on_not_ordered(&mut self, index: usize, refused: &Refused, now: Micros, actions: &mut Vec<Action<T>>) {
        let is_gap = refused.code == Code::SequenceGap as u16;
        if self.rewind.is_none() && is_gap {
            // No batch before it was refused. If none is before it at all, the head lost the session's position.
            if index == 0 {
                self.on_forgotten(index, actions);
            } else {
                let reason = "it lost a batch".to_string();
                actions.push(Action::Reroute(Reroute {
                    to: Target::Again,
                    reason,
                }));
            }
            return;
        }
        let seq = self.inflight[index].seq;
        let rewind = self.rewind.map_or(seq, |rewind| rewind.min(seq));
        self.rewind = Some(rewind);
        self.inflight[index].is_answered = true;
        self.inflight[index].is_in_doubt = false;
        if !is_gap {
            let failure = Failure::refused(refused);
            match refused.retry {
                RETRY_HERE if seq == rewind => self.hold(now, failure.retry_after_us()),
                RETRY_HERE => {}
                RETRY_HEAD | RETRY_HANDLE => actions.push(Action::Reroute(reroute_of(refused))),
                _ if self.inflight[index].is_awaited() => {
                    actions.push(self.fail(index, failure.clone(), false));
                }
                _ => {}
            }
            self.inflight[index].refusal = Some(failure);
        }
        if self.is_drained(rewind) {
            self.fold(rewind);
        }
    }

    /// Whether every sent batch from the refused one on has been answered. A batch in the head's queue is answered
    /// after a later one that the queue had no room for. If it were sent again before its answer, the first answer
    /// would be taken for the second.
    fn is_drained(&self, rewind: u64) -> bool {
        let sent = self.inflight.iter().take(self.sent);
        sent.filter(|batch| batch.seq >= rewind)
            .all(|batch| batch.is_answered)
    }

    /// Waits as long as asked. Repeated refusals without a time make the wait grow.
    fn hold(&mut self, now: Micros, retry_after_us: Micros) {
        let patience_us = BACKOFF_BASE_US * ((1 << self.refusals.min(6)) - 1);
        self.refusals += 1;
        let wait_us = retry_after_us.max(patience_us.min(BACKOFF_MAX_US));
        self.hold_until = self.hold_until.max(now + wait_us);
    }

    /// Moves the batches from `seq` on, none of them in doubt, back to the front of the queue.
    pub(super) fn fold(&mut self, seq: u64) {
        let base = self.inflight.front().map_or(self.next_seq, |batch| batch.seq);
        let kept = seq.saturating_sub(base) as usize;
        while self.inflight.len() > kept {
            let batch = self.inflight.pop_back().expect("more than are kept");
            self.inflight_bytes -= batch.len() as u64;
            self.requeue(batch);
        }
        self.next_seq = seq;
        self.sent = self.sent.min(self.inflight.len());
        self.rewind = None;
        self.pop_answered();
    }

    pub(super) fn requeue(&mut self, mut batch: Batch<T>) {
        batch.seq = 0;
        batch.is_in_doubt = false;
        batch.is_answered = false;
        if batch.is_awaited() {
            self.queue.push_front(batch);
        } else {
            self.drop_batch(batch);
        }
    }

    pub(super) fn fail(&mut self, index: usize, failure: Failure, is_unknown: bool) -> Action<T> {
        Action::Failed {
            shares: self.take_shares(index),
            failure,
            is_unknown,
        }
    }

    fn take_shares(&mut self, index: usize) -> Vec<super::Share<T>> {
        let batch = &mut self.inflight[index];
        let shares = std::mem::take(&mut batch.shares);
        assert!(!shares.is_empty(), "its callers were answered before");
        self.pending_calls -= shares.len();
        self.pending_bytes -= batch.len() as u64;
        shares
    }
}

fn reroute_of(refused: &Refused) -> Reroute {
    let reason = format!("it answered {}", Failure::refused(refused));
    let to = match refused.retry {
        RETRY_HEAD => Target::Head(refused.head_address.clone()),
        RETRY_HANDLE => Target::Handle,
        _ => Target::Other,
    };
    Reroute { to, reason }
}
