//! The roll call after a start: no epoch is issued before the servers have been heard. Were the log an older copy, one of
//! them would say so.
//!
//! It ends when every server that the state has alive was heard. Once the lease of the others is over, a majority is
//! enough: the others have failed, as after any start. Below a majority it goes on until an operator ends it.

use std::collections::BTreeSet;

use quorate_types::ServerId;
use quorate_types::limits::HELD_CALLS_MAX;

use super::io::{Candidate, Now, RollCallView};
use crate::command::Command;
use crate::ids::{CallId, ConnectionId};

/// As long as callers of the API wait for an answer: they are told to repeat what takes longer.
const HELD_CALL_MS: u64 = 10_000;

#[derive(Debug)]
pub struct RollCall {
    awaited: BTreeSet<ServerId>,
    heard: BTreeSet<ServerId>,
    lease_ms: u64,
    /// The end of the wait for servers that are missing.
    until_ms: u64,
    is_ended: bool,
    /// Commands of this start.
    first: Vec<Command>,
    candidates: Vec<Candidate>,
    calls: Vec<HeldCall>,
    /// Servers whose leases have ended.
    overdue: BTreeSet<ServerId>,
}

#[derive(Debug)]
struct HeldCall {
    call: CallId,
    command: Command,
    until_ms: u64,
}

/// Inputs that waited for the end, in the order in which they are taken in.
#[derive(Debug)]
pub struct Held {
    pub first: Vec<Command>,
    pub candidates: Vec<Candidate>,
    pub calls: Vec<(CallId, Command)>,
    /// They live. If their connections have ended, they have as long to come back as after any start.
    pub heard: BTreeSet<ServerId>,
    /// Not heard, and failed.
    pub overdue: BTreeSet<ServerId>,
}

/// Missing servers that are named.
const MISSING_NAMED_MAX: usize = 10;

impl RollCall {
    /// `is_first`: the log begins with this start, so nobody can know more.
    pub fn new(
        awaited: BTreeSet<ServerId>,
        first: Vec<Command>,
        lease_ms: u64,
        is_first: bool,
        now_ms: u64,
    ) -> Self {
        Self {
            awaited,
            heard: BTreeSet::new(),
            lease_ms,
            until_ms: now_ms + lease_ms,
            is_ended: is_first,
            first,
            candidates: Vec::new(),
            calls: Vec::new(),
            overdue: BTreeSet::new(),
        }
    }

    /// A server has shown its credential, and knows nothing that the log lacks.
    pub fn hear(&mut self, server: ServerId, now: Now) {
        let was_majority = self.has_majority();
        if self.awaited.contains(&server) {
            self.heard.insert(server);
        }
        if self.has_majority() && !was_majority && now.ms > self.until_ms {
            // The whole fleet was started late: the others have as long again to follow.
            self.until_ms = now.ms + self.lease_ms;
        }
    }

    /// Keeps a registration that would be accepted. The connection of an earlier one of the same server.
    pub fn hold(&mut self, candidate: Candidate) -> Option<ConnectionId> {
        let same = |held: &Candidate| held.register.name == candidate.register.name;
        let earlier = self.candidates.iter().position(same);
        let earlier = earlier.map(|at| self.candidates.remove(at).connection);
        self.candidates.push(candidate);
        earlier
    }

    /// Keeps a call. False: too many wait.
    pub fn hold_call(&mut self, call: CallId, command: Command, now: Now) -> bool {
        let has_room = self.calls.len() < HELD_CALLS_MAX;
        if has_room {
            let until_ms = now.ms + HELD_CALL_MS;
            self.calls.push(HeldCall {
                call,
                command,
                until_ms,
            });
        }
        has_room
    }

    /// Calls whose callers have ceased to wait.
    pub fn take_expired_calls(&mut self, now: Now) -> Vec<CallId> {
        let expired = self.calls.extract_if(.., |held| held.until_ms <= now.ms);
        expired.map(|held| held.call).collect()
    }

    pub fn closed(&mut self, connection: ConnectionId) {
        self.candidates
            .retain(|candidate| candidate.connection != connection);
    }

    /// The leases of these have ended.
    pub fn note_overdue(&mut self, servers: Vec<ServerId>) {
        self.overdue.extend(servers);
    }

    /// An operator answers for the servers that are missing.
    pub fn end(&mut self) {
        self.is_ended = true;
    }

    pub fn is_over(&self, now: Now) -> bool {
        let is_late = now.ms >= self.until_ms;
        // A copy from before the first server knows none. Servers have the time to say so.
        let is_complete = self.heard == self.awaited && !self.awaited.is_empty();
        self.is_ended || is_complete || (is_late && self.has_majority())
    }

    fn has_majority(&self) -> bool {
        self.awaited.is_empty() || 2 * self.heard.len() > self.awaited.len()
    }

    pub fn into_held(self) -> Held {
        Held {
            first: self.first,
            candidates: self.candidates,
            calls: self
                .calls
                .into_iter()
                .map(|held| (held.call, held.command))
                .collect(),
            overdue: self.overdue.difference(&self.heard).copied().collect(),
            heard: self.heard,
        }
    }

    pub fn view(&self, now_ms: u64) -> RollCallView {
        let missing = self.awaited.difference(&self.heard).copied();
        RollCallView {
            awaited: self.awaited.len(),
            heard: self.heard.len(),
            missing: missing.take(MISSING_NAMED_MAX).collect(),
            is_stuck: now_ms >= self.until_ms && !self.has_majority(),
        }
    }
}
