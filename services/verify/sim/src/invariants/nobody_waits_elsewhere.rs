//! Nobody waits where nothing comes. A server that is not the head, or is isolated, owes no answer to a batch or an
//! ATTACH. It gave them all by the end of the step that made it so.

use crate::fleet::World;

pub fn after_step(world: &World, s: usize, g: usize) {
    let hosted = &world.servers[s].groups[&World::group_id(g)];
    let replica = hosted.replica();
    if replica.is_head() && !replica.is_isolated() {
        return;
    }
    if let Some(((session, seq), connection)) = hosted.transcript.appends.iter().next() {
        panic!(
            "batch {seq} of session {session:x} on connection {connection} waits at s{}, which is {:?}, isolated: {}",
            s + 1,
            replica.role(),
            replica.is_isolated()
        );
    }
}

/// The group leaves the server.
pub fn after_leave(world: &World, s: usize, g: usize) {
    let transcript = &world.servers[s].groups[&World::group_id(g)].transcript;
    let waiting = transcript.waiting().or_else(|| transcript.unanswered());
    assert_eq!(waiting, None, "the group has left s{}", s + 1);
}
