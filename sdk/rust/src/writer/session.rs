//! The session across connections: attaching, losing a connection, starting a new session.

use quorate_types::Code;
use quorate_types::config::Role;
use quorate_wire::client::{Attached, Notice};

use super::{Action, Reroute, Target, Writer};
use crate::errors::Failure;

pub(crate) fn is_head(role: u8) -> bool {
    role == Role::Head as u8 || role == Role::Sole as u8
}

impl<T> Writer<T> {
    /// The replica answered the ATTACH (with [`Writer::session`]). Without a [`Action::Reroute`], it is the head.
    pub fn on_attached(&mut self, attached: &Attached, actions: &mut Vec<Action<T>>) {
        let floor = self
            .floor_index
            .map_or(attached.last_index, |floor| floor.min(attached.last_index));
        self.floor_index = Some(floor);
        if attached.epoch < self.epoch {
            let reason = format!("its epoch {} is older than {}", attached.epoch, self.epoch);
            actions.push(Action::Reroute(Reroute {
                to: Target::Other,
                reason,
            }));
            return;
        }
        self.epoch = attached.epoch;
        self.rate_per_s = attached.rate_per_s;
        if !is_head(attached.role) {
            let to = Target::Head(attached.head_address.clone());
            actions.push(Action::Reroute(Reroute {
                to,
                reason: "it is not the head".to_string(),
            }));
            return;
        }
        self.window = attached.window_batches.min(self.batching.window_batches).max(1) as usize;
        self.hold_until = 0;
        let base = self.inflight.front().map_or(self.next_seq, |batch| batch.seq);
        if !(base..=self.next_seq).contains(&attached.next_seq) {
            // It forgot the session, or knows batches that were never sent: its numbers cannot be trusted.
            self.on_forgotten(0, actions);
            return;
        }
        self.is_attached = true;
        if attached.next_seq > 1 {
            for batch in &mut self.inflight {
                if batch.seq >= attached.next_seq {
                    batch.is_in_doubt = false;
                }
            }
        }
    }

    /// The connection is gone. Batches sent and not answered are in doubt.
    pub fn on_detached(&mut self, reason: Failure) {
        self.offline_reason = reason;
        if let Some(rewind) = self.rewind {
            // A refused batch was not ordered, nor was any batch that was sent after it.
            self.fold(rewind);
        }
        for batch in self.inflight.iter_mut().take(self.sent) {
            batch.is_in_doubt |= !batch.is_answered;
        }
        self.sent = 0;
        self.is_attached = false;
    }

    /// Sets the reason why no batch can be sent.
    pub fn set_reason(&mut self, reason: Failure) {
        self.offline_reason = reason;
    }

    pub fn on_notice(&mut self, notice: &Notice, actions: &mut Vec<Action<T>>) {
        let has_missed = notice.epoch > self.epoch + 1;
        self.epoch = self.epoch.max(notice.epoch);
        self.rate_per_s = notice.rate_per_s;
        let (to, reason) = match is_head(notice.role) {
            _ if !self.is_attached => return,
            true if !has_missed => return,
            true => (Target::Again, "it may not have been the head all the time"),
            false => (
                Target::Head(notice.head_address.clone()),
                "it is no longer the head",
            ),
        };
        // If another head was in between, batches may be lost: ATTACHED holds no longer, above all its floor. No batch
        // is sent until the next ATTACHED.
        self.is_attached = false;
        actions.push(Action::Reroute(Reroute {
            to,
            reason: reason.to_string(),
        }));
    }

    /// The head does not know the session. Batches from `index` on are not ordered by this connection.
    pub(super) fn on_forgotten(&mut self, index: usize, actions: &mut Vec<Action<T>>) {
        let failure = Failure::of(Code::SessionExpired, "");
        self.renew_session(index, &failure, "the session expired", actions);
    }

    /// Batches that may have been ordered under the session stay unknown, because of `failure`. The rest is sent in a
    /// new one. Batches from `index` on are not ordered by this connection.
    pub(super) fn renew_session(
        &mut self,
        index: usize,
        failure: &Failure,
        reason: &str,
        actions: &mut Vec<Action<T>>,
    ) {
        let sent_before = self.sent.min(index);
        for position in 0..self.inflight.len() {
            let batch = &self.inflight[position];
            let is_on_its_way = position < sent_before && !batch.is_answered;
            if batch.is_awaited() && (batch.is_in_doubt || is_on_its_way) {
                actions.push(self.fail(position, failure.clone(), true));
            }
        }
        while let Some(batch) = self.inflight.pop_back() {
            self.requeue(batch);
        }
        self.inflight_bytes = 0;
        self.sent = 0;
        self.rewind = None;
        self.floor_index = None;
        self.next_seq = 1;
        self.stuck = 0;
        self.is_attached = false;
        self.take_new_session();
        actions.push(Action::Reroute(Reroute {
            to: Target::Again,
            reason: reason.to_string(),
        }));
    }

    /// Ends all appends: the client closes, or no replica will ever take them.
    pub fn fail_all(&mut self, failure: &Failure, actions: &mut Vec<Action<T>>) {
        for index in 0..self.inflight.len() {
            let batch = &self.inflight[index];
            if batch.is_awaited() {
                let is_on_its_way = index < self.sent && !batch.is_answered;
                let is_unknown = batch.is_in_doubt || is_on_its_way;
                actions.push(self.fail(index, failure.clone(), is_unknown));
            }
        }
        for mut batch in std::mem::take(&mut self.queue) {
            let failure = batch.refusal.take().unwrap_or_else(|| failure.clone());
            actions.push(self.fail_queued(batch, failure));
        }
        let first = actions.len();
        self.renew_session(0, failure, &failure.message, actions);
        actions.truncate(first);
        self.earliest = super::NEVER;
    }

    /// Session numbers are random: splitmix64 from a random seed.
    pub(super) fn take_new_session(&mut self) {
        loop {
            self.next_session = self.next_session.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mut z = self.next_session;
            z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
            self.session = z ^ (z >> 31);
            if self.session != 0 {
                return;
            }
        }
    }

    pub(super) fn lateness(&self) -> Failure {
        if self.is_attached {
            return Failure::of(Code::DeadlineExceeded, "it was waiting in the client");
        }
        Failure {
            is_retryable: true,
            ..self.offline_reason.clone()
        }
    }
}
