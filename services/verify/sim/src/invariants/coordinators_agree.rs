//! Coordinators that have as much of the log have the same state.

use quorate_coordinator_core::log::encode_state;

use crate::fleet::World;

pub fn check(world: &World) {
    let members = world.coordinators.members.iter();
    let agreed = members.filter_map(|member| {
        let state = member.decisions.agreed_state()?;
        Some((member.decisions.agreed_position(), member.id, state))
    });
    let mut agreed: Vec<_> = agreed.collect();
    agreed.sort_by_key(|(position, id, _)| (*position, *id));
    for two in agreed.windows(2) {
        let ((position, id, state), (other_position, other_id, other)) = (&two[0], &two[1]);
        if position == other_position {
            assert!(
                encode_state(state) == encode_state(other),
                "coordinators {id} and {other_id} have other states at entry {}",
                position.0
            );
        }
    }
}

/// Whether all that run have all of it.
pub fn is_complete(world: &World) -> bool {
    let running = world.coordinators.members.iter().filter(|member| !member.is_gone);
    let mut ends = running.map(|member| (member.up, member.decisions.agreed_position()));
    let first = ends.next().expect("there is one");
    first.0 && ends.all(|end| end == first)
}
