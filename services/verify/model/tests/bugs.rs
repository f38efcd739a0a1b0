//! The properties can fail: each rule, broken alone, is found by a counterexample.

use std::time::Duration;

use quorate_model::bounds::{Bounds, Bug, Durability};
use quorate_model::explore::{Violation, explore};
use quorate_model::worlds::{faults, world};

use Durability::{InMemory, Persistent};

/// Explores up to the first violation, and returns it.
fn broken(bug: Bug, bounds: Bounds) -> Vec<Violation> {
    // One thread: the counterexample is a shortest one.
    let outcome = explore(bounds.with(bug), 1, Duration::from_secs(240));
    let found = outcome.violations.first().unwrap_or_else(|| {
        panic!("{bug:?} was not found in {} states", outcome.states);
    });
    println!(
        "{bug:?}: {} after {} steps, {} states",
        found.property,
        found.steps.len(),
        outcome.states
    );
    outcome.violations
}

macro_rules! found {
    ($($name:ident: $bug:ident in $durability:ident $servers:tt $appends:tt $faults:tt, $property:literal;)*) => { $(
        #[test]
        fn $name() {
            let found = broken(Bug::$bug, world("bug", $durability, $servers, $appends, faults $faults));
            let names: Vec<_> = found.iter().map(|violation| violation.property).collect();
            assert!(names.contains(&$property), "{names:?}");
        }
    )* };
}

found! {
    commit_before_tail: CommitBeforeTail in InMemory (3, 2) (2, 2) (1, 0, 0),
        "committed entries are on every member of the latest chain";
    epoch_unchecked: EpochUnchecked in InMemory (3, 2) (2, 3) (1, 0, 0),
        "when nothing is under way, everything is committed everywhere";
    suffix_kept: SuffixKept in Persistent (3, 2) (1, 3) (1, 0, 0), "neighbours have the prefix property";
    durable_before_sync: DurableBeforeSync in Persistent (3, 2) (1, 3) (1, 0, 0),
        "committed entries are on every member of the latest chain";
    own_disk_ignored: OwnDiskIgnored in Persistent (3, 2) (1, 3) (1, 0, 0),
        "committed entries are on every member of the latest chain";
    followers_ignored: FollowersIgnored in Persistent (3, 3) (1, 3) (1, 0, 0),
        "committed entries are on every member of the latest chain";
    table_not_rebuilt: TableNotRebuilt in Persistent (2, 2) (2, 3) (2, 0, 0), "every ack of a retry is true";
    table_forgotten: TableForgotten in Persistent (3, 2) (1, 3) (1, 0, 0), "a denied append is never committed";
    unsettled_answers: UnsettledAnswers in Persistent (3, 3) (1, 2) (1, 0, 0),
        "neighbours have the prefix property";
    join_not_waited_for: JoinNotWaitedFor in InMemory (3, 2) (2, 3) (1, 0, 0),
        "committed entries are on every member of the latest chain";
    caught_up_one_short: CaughtUpOneShort in InMemory (3, 2) (2, 3) (1, 0, 0),
        "committed entries are on every member of the latest chain";
    truncation_not_written: TruncationNotWritten in Persistent (2, 2) (1, 4) (2, 0, 1), "a denied append is never committed";
    truncation_not_waited_for: TruncationNotWaitedFor in Persistent (2, 2) (1, 4) (2, 0, 1),
        "a denied append is never committed";
    min_replicas_ignored: MinReplicasIgnored in InMemory (3, 3) (2, 2) (0, 0, 1),
        "nothing is committed below min_replicas";
    attached_before_ring_pass: AttachedBeforeRingPass in Persistent (2, 2) (1, 3) (2, 0, 0),
        "a denied append is never committed";
    no_agreement_after_break: NoAgreementAfterBreak in InMemory (2, 2) (1, 1) (0, 1, 0),
        "when nothing is under way, everything is committed everywhere";
    stale_report_taken: StaleReportTaken in InMemory (3, 2) (1, 4) (2, 0, 0),
        "committed entries are on every member of the latest chain";
    epoch_given_twice: EpochGivenTwice in Persistent (2, 2) (2, 2) (1, 0, 0),
        "neighbours have the prefix property";
    empty_replica_keeps_place: EmptyReplicaKeepsPlace in InMemory (2, 2) (1, 2) (1, 0, 0),
        "committed entries are on every member of the latest chain";
    promoted_unasked: PromotedUnasked in InMemory (3, 2) (1, 3) (1, 0, 0),
        "committed entries are on every member of the latest chain";
    last_replica_replaced: LastReplicaReplaced in InMemory (3, 2) (1, 2) (0, 0, 1),
        "committed entries are on every member of the latest chain";
}
