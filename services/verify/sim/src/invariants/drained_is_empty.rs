//! A server that is told that it is drained is a replica of nothing, from then on until it is told otherwise: it may
//! stop.

use quorate_types::Role;

use crate::world::World;

pub fn check(world: &World, s: usize) {
    for (group_id, hosted) in &world.servers[s].groups {
        let role = hosted.replica().role();
        assert_eq!(
            role,
            Role::None,
            "s{} is told that it is drained, and is {role:?} of group {}",
            s + 1,
            World::index_of(*group_id) + 1
        );
    }
}
