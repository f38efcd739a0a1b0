//! No batch is trimmed for its age before it has it, whatever clocks say. One of the two clocks, the head's and the
//! coordinator's, is always right.

use crate::fleet::World;

/// Looks at what this head found too old since it was last looked at.
pub fn check(world: &mut World, s: usize, g: usize) {
    let now = world.now;
    let server = &mut world.servers[s];
    let drift_permille = server.drift_permille;
    let hosted = server
        .groups
        .get_mut(&World::group_id(g))
        .expect("it took a step");
    let old = hosted.replica().old_index();
    if std::mem::replace(&mut hosted.old_seen, old) == old || old == 0 {
        return;
    }
    let config = hosted.replica().config().expect("a head is configured");
    let retained_us = config.retention_age_s.expect("it trims by age") * 1_000_000;
    let Some(made_at) = world.ledgers[g].made_at(old) else {
        return;
    };
    // Its own clock may run faster than time.
    let age_us = (now - made_at) as i64 * (1_000 + drift_permille.max(0)) / 1_000;
    assert!(
        age_us >= retained_us as i64,
        "s{} trims batch {old} for its age of {age_us} µs, and {retained_us} µs are retained",
        s + 1
    );
    world.counts.trims_by_age += 1;
}
