//! People's requests to the coordinator, through the API: join tokens, groups, drains, resets. A request without an
//! answer is made again.

use quorate_coordinator::command::{Command, JoinTokenTerms};
use quorate_coordinator::state::{GroupStatus, Server};
use quorate_types::control::DrainState;
use quorate_types::{GroupId, ServerId, Sla};
use rand::Rng;
use uuid::Uuid;

use crate::invariants;
use crate::world::World;

impl World {
    /// Somebody asks for these groups.
    pub fn admit(&mut self, slas: Vec<(GroupId, Sla)>) {
        self.coordinator.to_admit = slas;
    }

    /// Makes the requests that are still to be made, with each tick.
    pub(super) fn ask_coordinator(&mut self) {
        for digest in std::mem::take(&mut self.coordinator.invitations) {
            let token = JoinTokenTerms {
                expires_at_ms: u64::MAX / 2,
                name: None,
                auxiliary: false,
            };
            self.command(Command::IssueJoinToken { digest, token });
        }
        let joined = self.coordinator.state().servers.len();
        if joined >= self.servers.len() && !self.coordinator.to_admit.is_empty() {
            for (group_id, sla) in self.coordinator.to_admit.clone() {
                self.command(Command::Admit {
                    group_id,
                    project_id: Uuid::from_u128(1),
                    sla,
                });
            }
            self.forget_admitted();
        }
        self.ask_for_drains();
        self.give_up_machines();
        if self.plan.owners_reset {
            self.ask_for_resets();
        }
    }

    /// Somebody says after a while that replaced machines will not come back. The same is said of machines that were
    /// restarted before they were told that they had joined: those are refused by their own names.
    fn give_up_machines(&mut self) {
        let servers = self.coordinator.state().servers.values();
        let is_gone = |server: &&Server| {
            let here = (0..self.servers.len()).find(|s| self.name_of(*s) == server.name);
            let is_untold = |s: usize| {
                let process = &self.servers[s];
                process.id.is_none() && process.incarnation_name(s) != server.incarnation
            };
            !server.alive && here.map_or(self.plan.owners_reset, is_untold)
        };
        let failed: Vec<ServerId> = servers.filter(is_gone).map(|s| s.server_id).collect();
        for server in failed {
            if self.server_of(server).is_none() && self.rng.random_bool(0.02) {
                self.counts.forgotten += 1;
                self.command(Command::Forget { server });
            }
        }
    }

    /// Owners of lost groups have them begin anew, after a while; now and then one asks whose group is not lost.
    fn ask_for_resets(&mut self) {
        let groups = self.coordinator.state().groups.values();
        let groups: Vec<_> = groups.map(|g| (g.group_id, g.epoch, g.status)).collect();
        for (group_id, epoch, status) in groups {
            let is_lost = status == GroupStatus::Lost;
            if self.rng.random_bool(if is_lost { 0.05 } else { 0.005 }) {
                self.command(Command::Reset {
                    group_id,
                    epoch,
                    entries_before: 0,
                    bytes_before: 0,
                });
            }
        }
    }

    /// Notices the groups that have begun anew, for good.
    pub(super) fn notice_beginnings(&mut self) {
        for g in 0..self.ledgers.len() {
            let group = self.coordinator.state().groups.get(&Self::group_id(g));
            let beginning = group.and_then(|group| group.beginning);
            let begun = self.ledgers[g].begins_in();
            if let Some(beginning) = beginning.filter(|b| Some(b.epoch) != begun) {
                self.begin_anew(g, beginning);
            }
        }
    }

    fn ask_for_drains(&mut self) {
        let state = self.coordinator.state();
        let drains = |id: &ServerId| state.servers[id].drain.is_some();
        let other: Vec<ServerId> = state
            .servers
            .keys()
            .copied()
            .filter(|id| drains(id) != self.coordinator.drains.contains(id))
            .collect();
        for server in other {
            if self.coordinator.drains.contains(&server) {
                self.counts.drains += 1;
                self.command(Command::Drain { server });
            } else {
                self.command(Command::CallOffDrain { server });
            }
        }
    }

    /// From now on this server is to be drained, if the fleet can do without it.
    pub fn want_drain(&mut self, s: usize) -> bool {
        let Some(id) = self.servers[s].id else {
            return false;
        };
        let degree_max = self
            .plan
            .groups
            .iter()
            .map(|group| usize::from(group.degree))
            .max();
        let drained = self.servers.iter().filter_map(|server| server.id);
        let drained = drained.filter(|id| self.coordinator.drains.contains(id)).count();
        let may = drained + degree_max.unwrap_or(0) < self.servers.len();
        may && self.coordinator.drains.insert(id)
    }

    pub fn want_no_drain(&mut self, s: usize) -> bool {
        let id = self.servers[s].id;
        id.is_some_and(|id| self.coordinator.drains.remove(&id))
    }

    /// A server that was told that it is drained, and is still to be, may stop.
    pub fn stop_drained(&mut self, s: usize) -> bool {
        let server = &self.servers[s];
        let wanted = server.id.is_some_and(|id| self.coordinator.drains.contains(&id));
        if !wanted || !server.alive || server.drain != DrainState::Drained {
            return false;
        }
        invariants::when_drained(self, s);
        self.counts.drained_stops += 1;
        self.crash(s);
        true
    }

    /// Asks again for all that was asked of the coordinator and is not in its state.
    pub(super) fn ask_again(&mut self) {
        let slas = self.plan_slas();
        self.admit(slas);
        self.forget_admitted();
        for s in 0..self.servers.len() {
            if self.servers[s].id.is_none() {
                self.invite(s);
            }
        }
    }

    fn forget_admitted(&mut self) {
        let groups = &self.coordinator.engine.state().groups;
        self.coordinator
            .to_admit
            .retain(|(id, _)| !groups.contains_key(id));
    }
}
