//! Hangs: servers whose heartbeats go on while a shard's thread, or a sync of their journal, does not. They say so
//! themselves (`hung_ms` of a heartbeat and of a registration), since other threads than those send it.
//!
//! - A server that has hung for `hung_ms` has failed, as one whose lease has expired. It is not let in while it hangs.
//! - When more than half of the live servers hang, none has failed for it ([`super::shared_cause`]). A server counts from
//!   half of `hung_ms` on, as not all see a common cause at the same moment.
//! - A server that hangs again within `well_ms` is slow, too, so that it is not elected over and over, as far as more
//!   servers may count as slow ([`super::suspicions`]). A hang that is found twice, as its server was let in meanwhile, is
//!   one.

use std::collections::BTreeMap;

use quorate_types::ServerId;
use quorate_types::limits::HANGING_MS;
use quorate_types::planted::{self, Bug};

use super::shared_cause;
use super::suspicions::{SuspicionTimes, may_become_slow};
use crate::command::Command;
use crate::state::CoordinatorState;

/// Times are milliseconds of a clock that never goes back.
#[derive(Debug)]
pub struct Hangs {
    times: SuspicionTimes,
    claims: BTreeMap<ServerId, Claim>,
    /// The last time at which each server was found hung.
    found_ms: BTreeMap<ServerId, u64>,
}

/// A server's last word about itself.
#[derive(Debug, Clone, Copy)]
struct Claim {
    hung_ms: u64,
    at_ms: u64,
    /// The time at which it last said that it hangs.
    hanging_at_ms: u64,
}

impl Claim {
    fn began_ms(&self) -> u64 {
        self.at_ms.saturating_sub(self.hung_ms)
    }
}

impl Hangs {
    pub fn new(times: SuspicionTimes) -> Self {
        Self {
            times,
            claims: BTreeMap::new(),
            found_ms: BTreeMap::new(),
        }
    }

    /// Takes in what a server says of itself, in a heartbeat or when it asks to be let in.
    pub fn hear(&mut self, server: ServerId, hung_ms: u64, now_ms: u64) {
        let is_hanging = hung_ms >= HANGING_MS.min(self.times.hung_ms) && !planted::on(Bug::HangUnnoticed);
        if is_hanging {
            let (at_ms, hanging_at_ms) = (now_ms, now_ms);
            let claim = Claim {
                hung_ms,
                at_ms,
                hanging_at_ms,
            };
            self.claims.insert(server, claim);
        } else if let Some(claim) = self.claims.get_mut(&server) {
            (claim.hung_ms, claim.at_ms) = (0, now_ms);
        }
        let life_ms = self.life_ms();
        self.claims
            .retain(|_, claim| now_ms.saturating_sub(claim.hanging_at_ms) <= life_ms);
    }

    /// Whether the server hangs for so long that it is no witness of its peers, or did a moment ago: reports by it and of
    /// it end a little later than the hang.
    pub fn is_hanging(&self, server: ServerId, now_ms: u64) -> bool {
        let claim = self.claims.get(&server);
        claim.is_some_and(|claim| now_ms.saturating_sub(claim.hanging_at_ms) <= self.life_ms())
    }

    /// The commands that are due by now.
    pub fn due(&mut self, state: &CoordinatorState, now_ms: u64) -> Vec<Command> {
        let hung = self.hung_for(self.times.hung_ms, now_ms);
        let servers: Vec<ServerId> = hung.filter(|id| state.is_alive(*id)).collect();
        if servers.is_empty() || self.is_shared(state, now_ms) {
            return Vec::new();
        }
        let well_ms = self.times.well_ms;
        self.found_ms
            .retain(|_, found_ms| now_ms.saturating_sub(*found_ms) < well_ms);
        let mut again = Vec::new();
        for server in servers.iter().copied() {
            let began_ms = self.claims[&server].began_ms();
            let found_ms = self.found_ms.insert(server, now_ms);
            if found_ms.is_some_and(|found_ms| began_ms > found_ms) {
                again.push(Command::ServerSlow {
                    server,
                    cause: Some("a thread or a sync of it hangs again and again".to_string()),
                });
            }
        }
        again.truncate(may_become_slow(state));
        let failed = Command::ServersHung { servers };
        std::iter::once(failed).chain(again).collect()
    }

    /// Whether a server that asks to be let in has to wait until it hangs no more.
    pub fn keeps_out(&self, state: &CoordinatorState, server: ServerId, now_ms: u64) -> bool {
        let is_hung = self
            .hung_for(self.times.hung_ms, now_ms)
            .any(|hung| hung == server);
        is_hung && !self.is_shared(state, now_ms) && !planted::on(Bug::HungLetIn)
    }

    /// Whether the cause is not the servers' own.
    fn is_shared(&self, state: &CoordinatorState, now_ms: u64) -> bool {
        let hanging = self.hung_for(self.times.hung_ms / 2, now_ms);
        shared_cause::is_shared(state, hanging) && !planted::on(Bug::SharedHangEvicts)
    }

    fn hung_for(&self, hung_ms: u64, now_ms: u64) -> impl Iterator<Item = ServerId> + '_ {
        self.current(now_ms)
            .filter(move |(_, claim)| claim.hung_ms >= hung_ms)
            .map(|(id, _)| id)
    }

    /// How long a claim is good. Those who wait to be let in ask less often than heartbeats come.
    fn life_ms(&self) -> u64 {
        2 * self.times.stale_ms
    }

    fn current(&self, now_ms: u64) -> impl Iterator<Item = (ServerId, Claim)> + '_ {
        let life_ms = self.life_ms();
        let claims = self.claims.iter();
        claims
            .filter(move |(_, claim)| now_ms.saturating_sub(claim.at_ms) <= life_ms)
            .map(|(id, claim)| (*id, *claim))
    }
}
