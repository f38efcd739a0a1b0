//! A server that the coordinator has declared drained has no replica, until the drain is called off: it may stop.

use quorate_types::Role;

use crate::fleet::World;

pub fn check(world: &World, s: usize) {
    for (group_id, hosted) in &world.servers[s].groups {
        let role = hosted.replica().role();
        assert_eq!(
            role,
            Role::None,
            "s{} is declared drained, and is {role:?} of group {}",
            s + 1,
            World::index_of(*group_id) + 1
        );
    }
}
