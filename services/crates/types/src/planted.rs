//! Bugs planted on purpose: the simulator must catch each of them, or it proves nothing
//! (`docs/internals/simulator.md`). Without the feature `planted`, which no server is built with, [`on`] is the
//! constant `false` and costs nothing.

/// One at a time is on, on the thread that asked for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Bug {
    /// The head commits what it has itself.
    AckBeforeTail,
    /// Messages of other epochs are believed.
    EpochUnchecked,
    /// A divergent suffix stays when a replica rejoins.
    SuffixKept,
    /// After a cut the session table is as before.
    SessionsNotRebuilt,
    /// The base forgets the session table.
    SessionsLostAtTrim,
    /// A retry is ordered again.
    RetryOrderedAgain,
    /// A session that may have been forgotten is taken for new. Harms a client whose first batch of a session was
    /// ordered, and who learns that only after 1 024 other sessions have pushed its own out of the table: it sends the
    /// batch again, and it is ordered twice.
    FloorIgnored,
    /// What was given to the journal counts as durable.
    DurableAheadOfSync,
    /// The head counts what others say that they have, and not whether its own disk has it.
    OwnDiskIgnored,
    /// Of a persistent chain, too, the tail is taken to speak for all before it.
    FollowersIgnored,
    /// The head commits below `min_replicas`.
    MinReplicasIgnored,
    /// A replica answers its successor before it agrees with its predecessor.
    UnsettledAnswers,
    /// After a broken link the stream goes on where it was.
    NoNewAgreement,
    /// A learner joins though the ring has not waited for it.
    LearnerNotWaitedFor,
    /// A learner that lacks one batch counts as level.
    CatchUpOneShort,
    /// A cut is not written to the journal: after a restart the replica holds again what it had cut.
    CutNotWritten,
    /// A replica stands before its cut is on the disk. Harms when a head that came back without its unsynced end has a
    /// follower cut that, tells a client that the ring has closed without its batch, and both are killed before the
    /// follower's next sync: if the follower is back first, it brings the batch back and commits it.
    CutNotWaitedFor,
    /// A group that was dropped and comes again stands before the note of the drop is on the disk. Harms when it joins a
    /// chain that has nothing yet, is killed before its next sync, and leads with what it held before it was dropped.
    DropNotWaitedFor,
    /// Completions from before a cut count. Harms while the journal holds a batch, a cut of it and the very same batch
    /// again: so when a replica that came back without its unsynced end has its successor, whose sync still runs, cut what
    /// it gets itself once more from its own predecessor, and hands on. The end of that sync then vouches for a batch
    /// that the cut, which is durable next, takes away.
    OldCompletionsTaken,
    /// Clients are attached before the ring has closed. Harms when a head came back without its unsynced end: it tells a
    /// client that its batch is not ordered, and is killed again before the followers, who hold the batch, have agreed
    /// with it. The next head is one of them.
    AttachedBeforeRing,
    /// A head answers where the log ends without asking the ring.
    StaleTail,
    /// Trims what is not committed.
    TrimBeyondCommit,
    /// A trim is answered before the ring has it.
    TrimToldEarly,
    /// Readers are served what is not committed.
    UncommittedRead,
    /// An older fencing token is let through.
    FencingIgnored,
    /// A condition on the offset is ignored.
    ExpectedOffsetIgnored,
    /// A record whose checksum is wrong is taken.
    TornRecordTaken,
    /// Damage is taken for a torn end.
    DamageCut,
    /// A report of an earlier epoch promotes a learner. Commitment waits for a learner that was reported only to the end
    /// of the epoch. So it harms when the report is on its way while a member is restarted: the next epoch has the same
    /// tail and learner and commits without the learner, which the report then puts into the chain.
    StalePromotion,
    /// A learner joins the chain and stays a learner.
    DoubleJoin,
    /// A member that was restarted goes on in its epoch.
    RestartKeepsEpoch,
    /// A member that lost its memory keeps its place.
    EmptyMemberKept,
    /// What follows from a command leaves before the command is on the disk.
    ActsBeforeLog,
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
        Bug::CutNotWritten,
        Bug::CutNotWaitedFor,
        Bug::DropNotWaitedFor,
        Bug::OldCompletionsTaken,
        Bug::AttachedBeforeRing,
        Bug::StaleTail,
        Bug::TrimBeyondCommit,
        Bug::TrimToldEarly,
        Bug::UncommittedRead,
        Bug::FencingIgnored,
        Bug::ExpectedOffsetIgnored,
        Bug::TornRecordTaken,
        Bug::DamageCut,
        Bug::StalePromotion,
        Bug::DoubleJoin,
        Bug::RestartKeepsEpoch,
        Bug::EmptyMemberKept,
        Bug::ActsBeforeLog,
    ];
}

#[cfg(feature = "planted")]
thread_local! {
    static ON: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Whether this bug is on here.
#[cfg(feature = "planted")]
pub fn on(bug: Bug) -> bool {
    ON.get() == Some(bug)
}

#[cfg(not(feature = "planted"))]
#[inline(always)]
pub const fn on(_: Bug) -> bool {
    false
}

/// From here on this bug, or none, is on in this thread.
#[cfg(feature = "planted")]
pub fn plant(bug: Option<Bug>) {
    ON.set(bug);
}
