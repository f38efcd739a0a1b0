//! Groups come to a server and leave it.

use quorate_chain::ReplicaEvent;
use quorate_group::{Event, Group, Standing};
use quorate_recovery::GroupRecord;
use quorate_types::control::ToCoordinator;
use quorate_types::{Epoch, GroupConfig, GroupId};

use super::{control, groups, journal};
use crate::fleet::World;
use crate::invariants;

pub(super) fn configure(world: &mut World, s: usize, mut config: GroupConfig) {
    let group_id = config.group_id;
    let g = World::index_of(group_id);
    config.retention_bytes = world.plan.groups[g].retention_bytes;
    config.retention_age_s = world.plan.groups[g].retention_age_s;
    match world.servers[s].quarantined.configure(&config) {
        Standing::Free => {}
        Standing::Stays => return,
        Standing::Ended => drop_data(world, s, group_id),
    }
    let now = world.now;
    let server = &mut world.servers[s];
    server.lost.remove(&group_id);
    if !server.groups.contains_key(&group_id) {
        let me = server.id.expect("a registered server is configured");
        let is_dropping = server.disk.is_dropping(group_id);
        let (hosting, now) = (server.new_hosting(), server.clock_us(now));
        let group = Group::new(group_id, me, config.durability, is_dropping, hosting, now);
        groups::host(world, s, group_id, group);
    }
    groups::step(world, s, group_id, Event::Configure(Box::new(config)));
    if world.servers[s].disk_fault {
        groups::step_replica(world, s, group_id, ReplicaEvent::StorageFault(true));
    }
}

/// Forgets a group and, once the journal has the drop record, its data.
pub(super) fn drop_group(world: &mut World, s: usize, group_id: GroupId, epoch: Option<Epoch>) {
    let g = World::index_of(group_id);
    world.trace.line(Some(g), || format!("s{} drops it", s + 1));
    world.servers[s].lost.remove(&group_id);
    if groups::step_only(world, s, group_id, Event::Leave) {
        invariants::after_leave(world, s, g);
        world.servers[s].groups.remove(&group_id);
        world.servers[s].reports.forget(group_id);
        world.servers[s].forget(group_id);
        world.counts.drops += 1;
        journal::write(world, s, GroupRecord::dropped(group_id));
    }
    if world.servers[s].quarantined.end(group_id) {
        drop_data(world, s, group_id);
    }
    control::report(world, s, ToCoordinator::Dropped { group_id, epoch });
}

/// The data of a replica that was in quarantine is dropped.
fn drop_data(world: &mut World, s: usize, group_id: GroupId) {
    world.servers[s].forget(group_id);
    world.counts.drops += 1;
    journal::write(world, s, GroupRecord::dropped(group_id));
}
