//! A drain, or a move of a single replica, takes no group below its degree. A replica that leaves a server which is well leaves a
//! whole chain behind. Every member of that chain has all that was committed.

use quorate_coordinator_core::state::{CoordinatorState, Group};
use quorate_types::{Epoch, GroupId, Index, ServerId};

use crate::fleet::World;
use crate::ledger::Adoption;

/// A chain before the coordinator took something in.
#[derive(Debug)]
pub struct Before {
    group_id: GroupId,
    epoch: Epoch,
    /// Members that have no other reason to leave than a drain or a move.
    leaving: Vec<Leaving>,
}

#[derive(Debug)]
struct Leaving {
    id: ServerId,
    /// The process that ran there.
    incarnation: String,
    /// The end of the log with which it returned, until all members are in one epoch again.
    returned_with: Option<(Epoch, Index)>,
}

pub fn before(state: &CoordinatorState, may_move: bool) -> Vec<Before> {
    let none_drains = state.servers.values().all(|server| server.drain.is_none());
    if none_drains && !may_move {
        return Vec::new();
    }
    let leaving = |group: &Group, id: ServerId| Leaving {
        id,
        incarnation: state.servers[&id].incarnation.clone(),
        returned_with: group.returned.get(&id).map(|returned| returned.end),
    };
    let of = |group: &Group| Before {
        group_id: group.group_id,
        epoch: group.epoch,
        leaving: group
            .chain
            .iter()
            .filter(|id| is_well(state, **id))
            .map(|id| leaving(group, *id))
            .collect(),
    };
    state.groups.values().map(of).collect()
}

fn is_well(state: &CoordinatorState, id: ServerId) -> bool {
    let server = &state.servers[&id];
    let is_in_a_pair = state.unreachable_pairs.count_of(id) > 0;
    server.alive && server.slow.is_none() && server.storage_fault.is_none() && !is_in_a_pair
}

pub fn check(world: &World, before: &[Before]) {
    let state = world.coordinators.state();
    for Before {
        group_id,
        epoch,
        leaving,
    } in before
    {
        let Some(group) = state.groups.get(group_id) else {
            continue;
        };
        let begins = group.beginning.is_some_and(|beginning| beginning.epoch > *epoch);
        // The second of two epochs at once has a reason of its own: an unreachable pair, a slow server.
        if group.epoch != *epoch + 1 || begins || group.is_deleting() {
            continue;
        }
        for member in leaving {
            let id = &member.id;
            if group.quarantine.servers.contains(id) {
                continue;
            }
            let is_as_before = is_well(state, *id) && state.servers[id].incarnation == member.incarnation;
            if group.chain.contains(id) || !is_as_before || is_older(group, member) {
                continue;
            }
            assert!(
                group.chain.len() >= group.degree(),
                "the replica on server {id} leaves {} of {} behind in epoch {}",
                group.chain.len(),
                group.degree(),
                group.epoch
            );
            whole(world, *group_id, *epoch, *id, &group.chain);
        }
    }
}

/// Whether the member leaves since it returned with an older copy than another did.
fn is_older(group: &Group, member: &Leaving) -> bool {
    let proven = group.returned.values().map(|one| one.committed).max();
    member.returned_with.is_some_and(|end| Some(end) < proven)
}

fn whole(world: &World, group_id: GroupId, before: Epoch, leaves: ServerId, chain: &[ServerId]) {
    let ledger = &world.ledgers[World::index_of(group_id)];
    let Some(last) = ledger.last() else { return };
    for m in chain.iter().filter_map(|id| world.server_of(*id)) {
        let lineage = world.servers[m].lineage(group_id);
        let keeps = |adoption: &Adoption| adoption.lineage == lineage;
        // A loss since then, without the coordinator knowing, is not the move's doing. Nor is that of a disk that lied.
        let has_lied = world.servers[m].lied.contains_key(&group_id);
        if !has_lied && ledger.adopted.get(&(before, m)).is_some_and(keeps) {
            assert!(
                world.has(m, group_id, last.index, last.epoch),
                "server {leaves} has left the group, and s{} has not what was committed at {}",
                m + 1,
                last.index
            );
        }
    }
}
