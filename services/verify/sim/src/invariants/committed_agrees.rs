//! One batch for each index: any replica holds as committed the batch that was committed there first. No replica commits
//! it before a head did. Committed stays committed.

use quorate_types::Index;

use crate::fleet::World;

/// The range that this replica, as a head, added to what is committed: after `from`, up to `to`.
pub fn check(world: &mut World, s: usize, g: usize) -> Option<(Index, Index)> {
    let hosted = world.servers[s].groups.get_mut(&World::group_id(g))?;
    let replica = hosted.replica();
    let (seen, commit) = (hosted.commit_seen, replica.commit_index());
    assert!(
        commit >= seen,
        "s{} went back from commit {seen} to {commit}",
        s + 1
    );
    hosted.commit_seen = commit;
    let replica = hosted.replica();
    let log = replica.log();
    let ledger = &mut world.ledgers[g];
    let known = ledger.last_index();
    assert!(
        log.base().index <= known,
        "s{} trimmed what was never committed",
        s + 1
    );
    for index in (seen + 1).max(log.first_index())..=commit {
        let header = log.header(index).expect("committed and not trimmed");
        match ledger.at(index) {
            Some(first) => assert_eq!(header, first, "s{} committed another batch at {index}", s + 1),
            None => {
                assert!(replica.is_head(), "s{}, not a head, commits {index} first", s + 1);
                ledger.commit(header, replica.epoch());
            }
        }
    }
    if let Some(last) = ledger.at(log.base().index) {
        assert_eq!(
            last.end_offset(),
            log.base().end_offset,
            "the base of s{} is another",
            s + 1
        );
        assert_eq!(last.cumulative_bytes, log.base().cumulative_bytes);
    }
    let now_known = ledger.last_index();
    (now_known > known).then_some((known, now_known))
}
