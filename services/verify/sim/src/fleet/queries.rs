//! Questions about the whole fleet. None of them changes anything.

use quorate_types::{Durability, Epoch, GroupId, Index, Micros, ServerId};

use super::{Node, Outstanding, World};
use crate::plan::Fault;

/// A server that has hung for so long may be out of its chains soon.
const LONG_HANG_US: Micros = 100_000;

impl World {
    pub fn is_fault_on(&self, fault: Fault) -> bool {
        !self.is_healing && self.plan.faults.iter().any(|(f, _)| *f == fault)
    }

    pub fn is_blocked(&self, from: Node, to: Node) -> bool {
        self.blocked.contains_key(&(from, to))
    }

    pub fn server_of(&self, id: ServerId) -> Option<usize> {
        self.servers.iter().position(|server| server.id == Some(id))
    }

    /// The machine's name when it registers.
    pub fn name_of(&self, s: usize) -> String {
        format!("s{}m{}", s + 1, self.servers[s].machine)
    }

    pub fn address_of(s: usize) -> String {
        format!("127.0.0.1:{}", 7_001 + s)
    }

    pub fn server_at(&self, address: &str) -> Option<usize> {
        let port: usize = address.rsplit_once(':')?.1.parse().ok()?;
        port.checked_sub(7_001).filter(|s| *s < self.servers.len())
    }

    /// The place of the group's head, as the API would name it.
    pub fn head_of(&self, group_id: GroupId) -> Option<usize> {
        let group = self.coordinators.known().groups.get(&group_id)?;
        self.server_of(*group.chain.first()?)
    }

    pub fn in_memory_groups(&self, s: usize) -> Vec<usize> {
        self.in_memory_ids(s).into_iter().map(Self::index_of).collect()
    }

    pub fn in_memory_ids(&self, s: usize) -> Vec<GroupId> {
        let groups = self.servers[s].groups.iter();
        let in_memory = groups.filter(|(_, hosted)| hosted.replica().durability() == Durability::InMemory);
        in_memory.map(|(id, _)| *id).collect()
    }

    /// Whether the replica has the batch for good.
    pub fn has(&self, s: usize, group_id: GroupId, index: Index, epoch: Epoch) -> bool {
        let server = &self.servers[s];
        match self.plan.groups[Self::index_of(group_id)].durability {
            Durability::Persistent => server
                .image(group_id)
                .is_some_and(|image| image.has(index, epoch)),
            Durability::InMemory => server.groups.get(&group_id).is_some_and(|hosted| {
                let log = hosted.replica().log();
                index <= log.base().index || log.header(index).is_some_and(|h| h.epoch == epoch)
            }),
        }
    }

    /// Whether the group can do without the copy of server `s`: another replica of the chain has everything and looks
    /// well. Failures may still come together, and the group be lost.
    pub fn may_lose(&self, s: usize, g: usize) -> bool {
        // Damaged records on a running server are repaired from others, which keep theirs until then.
        let may_lose_all = self.plan.may_lose_groups && !self.servers.iter().any(|server| server.has_damage);
        may_lose_all || self.others_have(s, g)
    }

    /// Another replica of the group's chain has all that server `s` may hold of it, and looks well.
    pub fn others_have(&self, s: usize, g: usize) -> bool {
        if self.ledgers[g].is_lost {
            return true;
        }
        let group_id = Self::group_id(g);
        let Some(group) = self.coordinators.known().groups.get(&group_id) else {
            return true;
        };
        let last = self.ledgers[g].last();
        let is_well = |m: usize| {
            let server = &self.servers[m];
            let reaches_leader = server.control.as_ref().is_some_and(|control| {
                let leads = self.coordinators.leader() == Some(control.member);
                let (own, leader) = (Node::Server(m), Node::Coordinator(control.member));
                leads
                    && control.is_registered
                    && !self.is_blocked(own, leader)
                    && !self.is_blocked(leader, own)
            });
            server.alive
                && server.paused_until <= self.now
                && server.hang.lasted_us(self.now) < LONG_HANG_US
                && !server.has_damage
                && reaches_leader
                && last.is_none_or(|last| self.has(m, group_id, last.index, last.epoch))
        };
        let others = group
            .chain
            .iter()
            .filter_map(|id| self.server_of(*id))
            .filter(|m| *m != s);
        let is_member = group.chain.iter().any(|id| self.server_of(*id) == Some(s));
        !is_member || (self.coordinators.is_up() && others.into_iter().any(is_well))
    }

    /// The batch that the writer sent under this number on this connection and that has no answer.
    pub fn outstanding(&self, connection: u64, c: usize, seq: u64) -> Option<&Outstanding> {
        let writer = self.writers.get(c)?;
        let mut outstanding = writer.outstanding.iter();
        outstanding.find(|out| writer.connection.id == connection && out.seq == seq)
    }
}
