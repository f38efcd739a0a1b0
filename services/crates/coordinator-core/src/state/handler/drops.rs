//! Leftover data: servers that left a group drop what they hold of it, once that is safe.

use quorate_types::control::ToServer;
use quorate_types::{Epoch, GroupId, ServerId};

use super::outbox::Outbox;
use crate::state::table::{Groups, Servers};

/// May note and forget leftovers of servers; reads groups.
#[derive(Debug)]
pub struct Drops<'a> {
    servers: &'a mut Servers,
    groups: &'a Groups,
    out: Outbox<'a>,
}

/// Whether leftovers of a group may be dropped. They may not while its chain is short of a replica, partly down or
/// lost. A stale server's data may then be the most that anybody has.
pub fn may_drop(groups: &Groups, servers: &Servers, group_id: GroupId) -> bool {
    groups.get(&group_id).is_none_or(|group| {
        let whole = !group.chain.is_empty() && group.chain.iter().all(|server| servers.is_alive(*server));
        group.is_deleting() || (whole && !group.wants_learner() && group.may_change_members())
    })
}

/// The order to drop a leftover that was noted in this epoch. The server may have been told of a later epoch since, as one
/// that is no member of it. It obeys no order of an earlier one.
pub fn drop_order(groups: &Groups, group_id: GroupId, noted: Epoch) -> ToServer {
    let present = groups.get(&group_id).map_or(0, |group| group.epoch);
    let epoch = noted.max(present);
    ToServer::Drop { group_id, epoch }
}

impl<'a> Drops<'a> {
    pub fn new(servers: &'a mut Servers, groups: &'a Groups, out: Outbox<'a>) -> Self {
        Self { servers, groups, out }
    }

    /// Notes those of `before` that are members no more: they may still hold data of the group.
    pub fn note_departures(&mut self, group_id: GroupId, before: &[ServerId]) {
        let group = &self.groups[&group_id];
        for server in before.iter().filter(|server| !group.is_member(**server)) {
            self.servers.note_leftover(*server, group_id, group.epoch);
        }
    }

    /// The server's data is wanted again, or gone.
    pub fn forget(&mut self, server: ServerId, group_id: GroupId) {
        self.servers.forget_leftover(server, group_id);
    }

    /// Has the live holders of leftovers of this group drop them, if that is safe.
    pub fn send_for_group(&mut self, group_id: GroupId) {
        if !may_drop(self.groups, self.servers, group_id) {
            return;
        }
        for server in self.servers.holders_of(group_id) {
            let known = &self.servers[&server];
            if known.alive {
                let order = drop_order(self.groups, group_id, known.to_drop[&group_id]);
                self.out.send(server, order);
            }
        }
    }

    /// Has one server drop all its leftovers that it may.
    pub fn send_to_server(&mut self, server: ServerId) {
        for (group_id, epoch) in &self.servers[&server].to_drop {
            if may_drop(self.groups, self.servers, *group_id) {
                self.out.send(server, drop_order(self.groups, *group_id, *epoch));
            }
        }
    }
}
