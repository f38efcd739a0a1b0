//! Replicas that should move, since a server lacks room for what is wanted of it (`docs/internals/relocations.md`).

use std::collections::BTreeSet;

use quorate_placement::Amounts;
use quorate_types::limits::MIGRATIONS_MAX;
use quorate_types::{GroupId, ServerId};
use quorate_weights::{Migration, Pressure, Replica, Room, relieve};

use super::entity::{Group, Relocation, Server};
use super::machine::CoordinatorState;
use crate::command::{Cause, Relocate};

/// A server may be charged so many thousandths more than it can do before replicas leave it.
const OVERCHARGE_PERMILLE: u64 = 10;

impl CoordinatorState {
    /// Servers that have promised more than they can do by now, as their estimates say.
    pub fn overcharged(&self) -> Vec<Pressure> {
        let present = self
            .servers
            .values()
            .filter(|server| server.alive && !server.is_vacating());
        let pressure = |server: &Server| {
            let id = server.server_id;
            let fleet = self.fleets().in_region(&server.region)?;
            let (charged, promisable) = (fleet.allocated(id).rates(), fleet.promisable(id).rates());
            let lacking: [u64; 3] = std::array::from_fn(|i| charged[i].saturating_sub(promisable[i]));
            let is_worth_it = |i: usize| lacking[i] > promisable[i] / 1_000 * OVERCHARGE_PERMILLE;
            (0..3).any(is_worth_it).then_some(Pressure {
                server: id,
                lacking,
                wanting: None,
            })
        };
        present.filter_map(pressure).collect()
    }

    /// Moves that relieve these pressures. `room`: what is free on some servers, where it differs from what they are charged.
    /// `held`: replicas that stay, since a move of theirs was tried a short time ago.
    pub fn migrations(
        &self,
        pressures: &[Pressure],
        room: &Room,
        held: &BTreeSet<(GroupId, ServerId)>,
    ) -> Vec<Relocate> {
        let relocating = self.groups.relocating();
        let under_way: Vec<&Relocation> = relocating
            .iter()
            .filter_map(|id| self.groups[id].relocation.as_ref())
            .collect();
        let is_migration = |one: &&&Relocation| matches!(one.cause, Cause::Demand | Cause::Capacity);
        let mut left = MIGRATIONS_MAX.saturating_sub(under_way.iter().filter(is_migration).count());
        // A replica that leaves frees its room in a moment.
        let leaves = |server: ServerId| {
            under_way
                .iter()
                .any(|one| one.moves.iter().any(|one| one.from == server))
        };
        let mut asked = Vec::new();
        for region in self.fleets().regions() {
            let here = |one: &&Pressure| self.servers[&one.server].region == region && !leaves(one.server);
            let pressures: Vec<Pressure> = pressures.iter().filter(here).cloned().collect();
            if pressures.is_empty() || left == 0 {
                continue;
            }
            let (hosts, room) = self.hosts(&region, room.clone(), &pressures);
            let servers: BTreeSet<ServerId> = pressures.iter().map(|one| one.server).collect();
            let replicas: Vec<Replica> = servers
                .into_iter()
                .flat_map(|server| self.movable(server, held))
                .collect();
            let found = relieve(&pressures, &replicas, &hosts, &room, left);
            left -= found.len();
            asked.extend(found.into_iter().map(asked_for));
        }
        asked
    }

    /// Servers that take replicas, but for those under pressure, and what is free on each.
    fn hosts(&self, region: &str, room: Room, pressures: &[Pressure]) -> (Vec<ServerId>, Room) {
        let takes = |server: &&Server| {
            let is_pressed = pressures.iter().any(|one| one.server == server.server_id);
            server.region == region && !server.auxiliary && !is_pressed && self.takes_replicas(server)
        };
        let hosts: Vec<ServerId> = self
            .servers
            .values()
            .filter(takes)
            .map(|server| server.server_id)
            .collect();
        let fleet = self.fleets().in_region(region).expect("it has servers");
        let free = hosts
            .iter()
            .map(|id| (*id, fleet.free_for_applicants(*id).rates()));
        let room = room.beside(free);
        (hosts, room)
    }

    /// Replicas on the server that can move now.
    fn movable(&self, server: ServerId, held: &BTreeSet<(GroupId, ServerId)>) -> Vec<Replica> {
        let is_free = |group: &&Group| {
            let is_held = held.contains(&(group.group_id, server));
            group.is_settled(|id| self.is_alive(id)) && group.relocation.is_none() && !is_held
        };
        let groups = self.groups.on(server).map(|id| &self.groups[&id]);
        let replica = |group: &Group| Replica {
            group: group.group_id,
            server,
            charge: charged_on(group, server).rates(),
            elsewhere: group.tail_demand().whole().rates(),
            log_bytes: group.sla.retention_bytes,
            members: group.chain.clone(),
        };
        groups.filter(is_free).map(replica).collect()
    }
}

fn charged_on(group: &Group, server: ServerId) -> Amounts {
    let charges = group.charges();
    let own = charges.iter().find(|(id, _)| *id == server);
    own.map_or(Amounts::ZERO, |(_, demand)| demand.own)
}

fn asked_for(found: Migration) -> Relocate {
    Relocate {
        group_id: found.group,
        from: found.from,
        to: Some(found.to),
        cause: Cause::of(found.is_wanted_there),
    }
}
