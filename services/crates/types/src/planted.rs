//! Bugs planted on purpose: the simulator must catch each of them, or it proves nothing
//! (`docs/internals/simulator.md`). They exist where debug assertions do: in tests. In a server that people run [`on`]
//! is the constant `false` and costs nothing.

/// One is on at a time, on the thread that asked for it, or two: a second line of defence shows only where the first is
/// off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The head commits its own log.
    AckBeforeTail,
    /// Messages of other epochs count.
    EpochUnchecked,
    /// A divergent suffix stays when a replica rejoins.
    SuffixKept,
    /// A truncation leaves the session table as it was.
    SessionsNotRebuilt,
    /// The base forgets the session table.
    SessionsLostAtTrim,
    /// A retry is ordered again.
    RetryOrderedAgain,
    /// A session that may have been forgotten is taken for new. Harms a client whose first batch of a session was ordered
    /// without its knowledge. Later 1 024 other sessions push its own out of the table. Its retry is then ordered again.
    FloorIgnored,
    /// Records given to the journal count as durable.
    DurableAheadOfSync,
    /// The head counts the others' acknowledgements, and not its own disk.
    OwnDiskIgnored,
    /// The tail acknowledges for the whole chain in persistent groups, too.
    FollowersIgnored,
    /// The head commits below `min_replicas`.
    MinReplicasIgnored,
    /// A replica answers its successor before it agrees with its predecessor.
    UnsettledAnswers,
    /// After a broken link the stream goes on where it was.
    NoNewAgreement,
    /// A learner joins though the ring has not waited for it.
    LearnerNotWaitedFor,
    /// A learner that lacks one batch counts as caught up.
    CatchUpOneShort,
    /// A truncation is not written to the journal: a restart brings the truncated batches back.
    TruncationNotWritten,
    /// A replica is settled before its truncation is on the disk. Harms when a head comes back without its unsynced end.
    /// Its follower truncates that end, and the head tells a client that the chain agrees without its batch. Both are
    /// killed before the follower's next sync. If the follower is back first, it brings the batch back and commits it.
    TruncationNotWaitedFor,
    /// A group that was dropped and comes again is settled before the note of the drop is on the disk. Harms when it joins
    /// a chain that has nothing yet, is killed before its next sync, and leads with the log from before the drop.
    DropNotWaitedFor,
    /// Completions from before a truncation count. Harms while the journal holds a batch, its truncation and the very same
    /// batch again. A replica comes back without its unsynced end, and its successor, whose sync still runs, truncates
    /// that end. The replica gets the batch again from its predecessor and hands it on. The end of the sync then counts
    /// for a batch that the truncation, which is durable next, takes away.
    OldCompletionsTaken,
    /// Clients are attached before the chain agrees. Harms when a head comes back without its unsynced end, and tells a
    /// client that its batch is not ordered. The followers hold the batch. The head is killed again before they have
    /// agreed with it, and the next head is one of them.
    AttachedBeforeRing,
    /// A head says where the log ends without a ring pass.
    StaleTail,
    /// Uncommitted batches are trimmed.
    TrimBeyondCommit,
    /// A trim is answered before the ring has it.
    TrimAnsweredEarly,
    /// A server's wall clock is believed though the coordinator's says another time.
    ClockNotCompared,
    /// A time stamp counts though the clock that made it was in doubt. Harms when a head whose clock is behind orders
    /// batches, and a later head, whose clock is right, finds them old.
    DoubtedStampTaken,
    /// Readers are served uncommitted batches.
    UncommittedRead,
    /// An older fencing token is let through.
    FencingIgnored,
    /// A condition on the offset is ignored.
    ExpectedOffsetIgnored,
    /// A record whose checksum is wrong is taken.
    TornRecordTaken,
    /// Damage is taken for a torn end of the journal.
    DamageTruncated,
    /// A report of an earlier epoch promotes a learner. Commitment waits for a reported learner only to the end of the
    /// epoch. So it harms when the report is on its way while a member is restarted. The next epoch has the same tail and
    /// learner, and commits without the learner. The late report then puts the learner into the chain.
    StalePromotion,
    /// A learner joins the chain and stays a learner.
    DoubleJoin,
    /// A member that was restarted goes on in its epoch.
    RestartKeepsEpoch,
    /// A member that lost its memory keeps its place.
    EmptyMemberKept,
    /// A head that was restarted leads by its own log though others lived on. Harms when its disk lost a write that it had
    /// called durable.
    ReturnedLeads,
    /// A channel whose session was attached elsewhere since may still append.
    FormerOwnerAppends,
    /// A batch that waited is ordered though its session was attached elsewhere since. Harms a client that learned from
    /// ATTACHED that the batch is not in the log, and gave its seq to another batch.
    FormerOwnerOrders,
    /// A channel that goes takes its session along, though that was attached on another channel since. The client is then
    /// refused for ever on its present channel.
    DetachEndsSession,
    /// A client that may only read appends.
    PermissionIgnored,
    /// A batch that may have been ordered before is taken for a new one by all checks before the replica. Its refusal says
    /// that it did not happen.
    RetryRefusedOutright,
    /// A deposed head says that batches under way did not happen.
    UnknownRefusedOutright,
    /// A batch behind a refused one takes budget and room, though it cannot be ordered.
    RefusedOvertaken,
    /// The queue of a deposed head stays. Harms when it leads again: it orders batches that their clients have abandoned.
    QueueOutlivesHead,
    /// An isolated head attaches clients.
    IsolatedHeadAttaches,
    /// A page of a log is sent though the log was reset meanwhile.
    FormerLogServed,
    /// A peer's batch is taken for a repair though its header is another.
    RepairUnchecked,
    /// A subscription is fed without credit.
    CreditIgnored,
    /// Effects of a command leave before the command is on the disk.
    ActsBeforeLog,
    /// The coordinator takes no notice of hangs: heartbeats keep the lease of a server that does nothing.
    HangUnnoticed,
    /// A process that stood still as a whole counts as hung when it goes on. Harms a server that was stopped for less than
    /// a lease.
    PauseCountsAsHang,
    /// A server that hangs is let in again.
    HungLetIn,
    /// Servers count as hung even where most of the fleet hangs.
    SharedHangEvicts,
    /// A replica that moves leaves before the one in its place has caught up.
    MovedAtOnce,
    /// The one further from the head leaves an unreachable pair, also when the other one hangs. Harms where a hung server
    /// may not be taken out for its hang: its healthy neighbour is.
    HungOneStays,
    /// A server's place is not compared with the coordinator's log. Harms after a restore of an older copy: epochs are
    /// issued twice.
    PlaceIgnored,
    /// A server does not keep its place over a restart. Harms when all that know better are restarted before a restore.
    PlaceForgotten,
    /// The coordinator issues epochs before it has heard from its servers.
    RollCallSkipped,
    /// A replica confirms its own epoch for any configuration of it, and the coordinator believes that.
    DigestIgnored,
    /// Retention counts payloads alone: the heads of short batches fill a server's memory.
    ShortBatchesFree,
    /// A group holds more than it was admitted with, though its server has no memory left for that.
    PoolIgnored,
    /// Replacements are elected whatever memory and disk they take.
    SpaceIgnored,
    /// A vote is not written: after a restart it is given once more.
    QuorumVoteNotWritten,
    /// A member votes for everybody who asks.
    QuorumVotesTwice,
    /// Answers leave before the disk has what they say.
    QuorumAnswersBeforeSync,
    /// A member is elected though its log lacks entries.
    QuorumShorterLogElected,
    /// A snapshot comes without the term of its last entry.
    QuorumSnapshotTermLost,
    /// A snapshot takes entries away that the member has acknowledged.
    QuorumSnapshotCutsLog,
    /// Entries of earlier terms are committed by counting who has them.
    QuorumOldTermCommitted,
    /// Members change while another change is under way.
    QuorumChangesAtOnce,
    /// A leader answers reads without asking whether it still leads.
    QuorumStaleRead,
    /// A leader answers reads before it knows what earlier leaders have committed.
    QuorumReadsBeforeOwnEntry,
    /// The leader counts its own entries before they are on its disk.
    QuorumOwnDiskIgnored,
    /// Members without a vote count.
    QuorumLearnersCounted,
    /// Entries are taken though the one before them is another.
    QuorumPreviousUnchecked,
    /// A message with fewer entries takes later ones away.
    QuorumLaterEntriesCut,
    /// A leader of an earlier term is followed.
    QuorumFormerTermTaken,
    /// A staged record is overwritten while its write is still under way.
    RingSlotReused,
    /// A record is taken before it has arrived.
    RingOrderIgnored,
    /// The other side is not told what was consumed, unless there is something else to send.
    RingCreditForgotten,
    /// A side sleeps though the other one may not have its bytes. Harms when both fall asleep at once.
    RingSleeperMissed,
    /// Checksums, numbers and incarnations of records are not looked at.
    RingChecksSkipped,
}

impl Bug {
    pub const ALL: &[Bug] = &[
        Bug::AckBeforeTail,
        Bug::EpochUnchecked,
        Bug::SuffixKept,
        Bug::SessionsNotRebuilt,
        Bug::SessionsLostAtTrim,
        Bug::RetryOrderedAgain,
        Bug::FloorIgnored,
        Bug::DurableAheadOfSync,
        Bug::OwnDiskIgnored,
        Bug::FollowersIgnored,
        Bug::MinReplicasIgnored,
        Bug::UnsettledAnswers,
        Bug::NoNewAgreement,
        Bug::LearnerNotWaitedFor,
        Bug::CatchUpOneShort,
        Bug::TruncationNotWritten,
        Bug::TruncationNotWaitedFor,
        Bug::DropNotWaitedFor,
        Bug::OldCompletionsTaken,
        Bug::AttachedBeforeRing,
        Bug::StaleTail,
        Bug::TrimBeyondCommit,
        Bug::TrimAnsweredEarly,
        Bug::ClockNotCompared,
        Bug::DoubtedStampTaken,
        Bug::UncommittedRead,
        Bug::FencingIgnored,
        Bug::ExpectedOffsetIgnored,
        Bug::TornRecordTaken,
        Bug::DamageTruncated,
        Bug::StalePromotion,
        Bug::DoubleJoin,
        Bug::RestartKeepsEpoch,
        Bug::EmptyMemberKept,
        Bug::ReturnedLeads,
        Bug::FormerOwnerAppends,
        Bug::FormerOwnerOrders,
        Bug::DetachEndsSession,
        Bug::PermissionIgnored,
        Bug::RetryRefusedOutright,
        Bug::UnknownRefusedOutright,
        Bug::RefusedOvertaken,
        Bug::QueueOutlivesHead,
        Bug::IsolatedHeadAttaches,
        Bug::FormerLogServed,
        Bug::RepairUnchecked,
        Bug::CreditIgnored,
        Bug::ActsBeforeLog,
        Bug::HangUnnoticed,
        Bug::PauseCountsAsHang,
        Bug::HungLetIn,
        Bug::SharedHangEvicts,
        Bug::MovedAtOnce,
        Bug::HungOneStays,
        Bug::PlaceIgnored,
        Bug::PlaceForgotten,
        Bug::RollCallSkipped,
        Bug::DigestIgnored,
        Bug::ShortBatchesFree,
        Bug::PoolIgnored,
        Bug::SpaceIgnored,
    ];

    /// Bugs of the protocol among coordinators: its own worlds look for them.
    pub const QUORUM: &[Bug] = &[
        Bug::QuorumVoteNotWritten,
        Bug::QuorumVotesTwice,
        Bug::QuorumAnswersBeforeSync,
        Bug::QuorumShorterLogElected,
        Bug::QuorumSnapshotTermLost,
        Bug::QuorumSnapshotCutsLog,
        Bug::QuorumOldTermCommitted,
        Bug::QuorumChangesAtOnce,
        Bug::QuorumStaleRead,
        Bug::QuorumReadsBeforeOwnEntry,
        Bug::QuorumOwnDiskIgnored,
        Bug::QuorumLearnersCounted,
        Bug::QuorumPreviousUnchecked,
        Bug::QuorumLaterEntriesCut,
        Bug::QuorumFormerTermTaken,
    ];

    /// Bugs of the rings between servers: worlds of their own look for them.
    pub const RINGS: &[Bug] = &[
        Bug::RingSlotReused,
        Bug::RingOrderIgnored,
        Bug::RingCreditForgotten,
        Bug::RingSleeperMissed,
        Bug::RingChecksSkipped,
    ];
}

thread_local! {
    static ON: std::cell::Cell<[Option<Bug>; 2]> = const { std::cell::Cell::new([None; 2]) };
}

/// Whether this bug is on in this thread.
#[inline(always)]
pub fn on(bug: Bug) -> bool {
    cfg!(debug_assertions) && ON.get().contains(&Some(bug))
}

/// The planted assertion's text.
pub const POISON: &str = "a planted assertion does not hold";

thread_local! {
    static POISONED: std::cell::Cell<Option<(u128, u64)>> = const { std::cell::Cell::new(None) };
}

/// Whether an assertion is planted at a batch of this group with an index in `(before, to]`: the batch is poison to each
/// replica that takes it.
#[inline(always)]
pub fn is_poison(group: u128, before: u64, to: u64) -> bool {
    cfg!(debug_assertions)
        && POISONED
            .get()
            .is_some_and(|(of, index)| of == group && before < index && index <= to)
}

/// Plants such an assertion in this thread: in which group, at which index; or takes it away.
pub fn poison(at: Option<(u128, u64)>) {
    POISONED.set(at);
}

/// Turns these bugs on in this thread, and all others off.
#[cfg(debug_assertions)]
pub fn plant(bugs: [Option<Bug>; 2]) {
    ON.set(bugs);
}
