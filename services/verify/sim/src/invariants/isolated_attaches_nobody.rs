//! A head that reaches neither its chain nor the coordinator attaches no client that appends: another may be the head.

use quorate_chain::ClientRef;

use crate::fleet::World;

pub fn before_attached(world: &World, s: usize, g: usize, client: ClientRef) {
    let group = &world.servers[s].groups[&World::group_id(g)].group;
    let has_session = group.session_of(client).is_some_and(|session| session != 0);
    assert!(
        !has_session || !group.replica().is_isolated(),
        "s{} is isolated and attaches a session",
        s + 1
    );
}
