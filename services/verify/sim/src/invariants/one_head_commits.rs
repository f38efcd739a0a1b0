//! In one epoch one head commits.

use quorate_types::Index;

use crate::fleet::World;

pub fn check(world: &mut World, s: usize, g: usize, from: Index, to: Index) {
    let epoch = world.servers[s].groups[&World::group_id(g)].replica().epoch();
    let head = *world.ledgers[g].heads.entry(epoch).or_insert(s);
    assert_eq!(
        head,
        s,
        "two heads commit in epoch {epoch}: s{} did, s{} commits {} to {to}",
        head + 1,
        s + 1,
        from + 1
    );
}
