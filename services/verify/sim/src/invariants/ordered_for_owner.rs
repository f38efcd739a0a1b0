//! A head orders a batch only for the connection on which its session was attached last, and only while that is
//! attached. A client that attached again knows from ATTACHED what the log holds, and builds on that.

use crate::fleet::World;

/// Looks at the batches that this head has ordered since it was last looked at.
pub fn check(world: &mut World, s: usize, g: usize) {
    let hosted = world.servers[s]
        .groups
        .get_mut(&World::group_id(g))
        .expect("it took a step");
    let (replica, transcript) = (hosted.group.replica(), &mut hosted.transcript);
    let log = replica.log();
    let seen = std::mem::replace(&mut hosted.last_seen, log.last_index());
    if !replica.is_head() {
        return;
    }
    for index in (seen + 1).max(log.first_index())..=log.last_index() {
        let header = log.header(index).expect("held");
        if header.epoch != replica.epoch() {
            continue;
        }
        let (session, seq) = (header.session, header.seq);
        let owner = transcript.owners.get(&session).copied();
        let is_owners = |owner| {
            transcript
                .sent
                .contains(&(session, seq, header.payload_crc, owner))
        };
        assert!(
            owner.is_some_and(is_owners),
            "s{} orders batch {seq} of session {session:x}, which did not come on connection {owner:?}, where the session is attached",
            s + 1
        );
    }
}
