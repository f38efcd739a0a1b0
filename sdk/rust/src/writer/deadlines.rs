//! Ending appends past their deadline.

use quorate_types::Micros;

use super::batch::Batch;
use super::{Action, NEVER, Reroute, Target, Writer};
use crate::codes::client_side;
use crate::errors::Failure;
use crate::limits::ABANDONED_SENDINGS_MAX;

/// Consequence for later appends.
const SESSION_ENDED: &str = "its session is given up, and later appends go in a new one";

impl<T> Writer<T> {
    /// Ends late appends. Call it at [`Writer::wake_at`] at the latest; earlier does no harm.
    pub fn on_time(&mut self, now: Micros, actions: &mut Vec<Action<T>>) {
        if now < self.earliest {
            return;
        }
        let mut fold_from = None;
        let mut is_stuck = false;
        for index in 0..self.inflight.len() {
            let batch = &self.inflight[index];
            if batch.deadline > now {
                continue;
            }
            if !batch.is_awaited() {
                is_stuck |= index < self.sent && !batch.is_answered;
                continue;
            }
            let was_refused_before = self.rewind.is_some_and(|rewind| batch.seq >= rewind);
            let is_on_its_way = index < self.sent && !batch.is_answered && !was_refused_before;
            if batch.is_in_doubt || is_on_its_way {
                let reason = if self.is_attached {
                    ""
                } else {
                    self.offline_reason.message.as_str()
                };
                let failure = Failure::new(client_side::NO_ANSWER, reason);
                actions.push(self.fail(index, failure, true));
                self.inflight[index].deadline = now + self.answer_wait_us;
            } else {
                if index >= self.sent && fold_from.is_none() && self.rewind.is_none() {
                    fold_from = Some(batch.seq);
                }
                let refusal = self.inflight[index].refusal.take();
                let failure = refusal.unwrap_or_else(|| self.lateness());
                actions.push(self.fail(index, failure, false));
            }
        }
        if let Some(seq) = fold_from {
            self.fold(seq);
        }
        self.expire_queue(now, actions);
        if is_stuck {
            self.on_stuck(actions);
        }
        let inflight = self
            .inflight
            .iter()
            .map(|batch| batch.deadline)
            .filter(|deadline| *deadline > now);
        let queued = self.queue.iter().map(|batch| batch.deadline);
        self.earliest = inflight.chain(queued).min().unwrap_or(NEVER);
    }

    fn expire_queue(&mut self, now: Micros, actions: &mut Vec<Action<T>>) {
        if self.queue.iter().all(|batch| batch.deadline > now) {
            return;
        }
        for mut batch in std::mem::take(&mut self.queue) {
            if batch.deadline > now {
                self.queue.push_back(batch);
                continue;
            }
            let failure = batch.refusal.take().unwrap_or_else(|| self.lateness());
            actions.push(self.fail_queued(batch, failure));
        }
    }

    /// A batch of the queue was not sent, or was refused: it did not happen.
    pub(super) fn fail_queued(&mut self, mut batch: Batch<T>, failure: Failure) -> Action<T> {
        let shares = std::mem::take(&mut batch.shares);
        self.pending_calls -= shares.len();
        self.pending_bytes -= batch.len() as u64;
        Action::Failed {
            shares,
            failure,
            is_unknown: false,
        }
    }

    /// An orphaned batch has no answer though the connection is alive. Send it on a new one, but not for ever.
    fn on_stuck(&mut self, actions: &mut Vec<Action<T>>) {
        self.stuck += 1;
        let base = self.inflight[0].seq;
        let reason = format!("no answer to batch {base}");
        if self.stuck > ABANDONED_SENDINGS_MAX {
            // Batches on their way may yet be ordered, under the old session, except those behind a refused batch.
            let index = self
                .rewind
                .map_or(self.inflight.len(), |rewind| rewind.saturating_sub(base) as usize);
            let message =
                format!("{reason}, which was sent again {ABANDONED_SENDINGS_MAX} times; {SESSION_ENDED}");
            let failure = Failure::new(client_side::NO_ANSWER, message);
            self.renew_session(index, &failure, &reason, actions);
            return;
        }
        actions.push(Action::Reroute(Reroute {
            to: Target::Again,
            reason,
        }));
    }
}
