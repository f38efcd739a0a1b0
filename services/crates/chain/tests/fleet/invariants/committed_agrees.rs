//! One batch for each index: whatever any replica holds as committed is what was committed there first, and
//! nothing is committed by anyone before a head committed it. Committed stays committed.

use quorate_types::Index;

use crate::world::World;

/// The range that this server, as a head, added to what is committed: after `from`, up to `to`.
pub fn check(world: &mut World, s: usize) -> Option<(Index, Index)> {
    let server = &mut world.servers[s];
    let replica = server.replica.as_ref()?;
    let (seen, commit) = (server.commit_seen, replica.commit_index());
    assert!(
        commit >= seen,
        "s{} went back from commit {seen} to {commit}",
        s + 1
    );
    server.commit_seen = commit;
    let log = replica.log();
    let known = world.ledger.last_index();
    assert!(log.base().index <= known, "trimmed what was never committed");
    for index in (seen + 1).max(log.first_index())..=commit {
        let header = log.header(index).expect("committed and not trimmed");
        match world.ledger.at(index) {
            Some(first) => assert_eq!(header, first, "s{} committed another batch at {index}", s + 1),
            None => {
                assert!(replica.is_head(), "s{}, not a head, commits {index} first", s + 1);
                world.ledger.commit(header);
            }
        }
    }
    if let Some(last) = world.ledger.at(log.base().index) {
        assert_eq!(
            last.end_offset(),
            log.base().end_offset,
            "the base of s{} is another",
            s + 1
        );
        assert_eq!(last.cumulative_bytes, log.base().cumulative_bytes);
    }
    let now_known = world.ledger.last_index();
    (now_known > known).then_some((known, now_known))
}
