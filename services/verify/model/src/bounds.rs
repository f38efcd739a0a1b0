//! The bounds of the explored world, and the bug planted in it, if any.

/// Sessions that a table has room for.
pub const SESSIONS_MAX: usize = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    InMemory,
    Persistent,
}

/// Everything within these bounds is explored.
#[derive(Debug, Clone)]
pub struct Bounds {
    pub name: &'static str,
    pub servers: u8,
    /// Replicas of a whole chain; servers beyond it are spares.
    pub degree: usize,
    pub min_replicas: usize,
    pub durability: Durability,
    /// Each session has one append, which it may send to every head any number of times.
    pub sessions: u8,
    /// Configurations that the coordinator may issue, the first included.
    pub epochs: u8,
    pub crashes: u8,
    /// Links that break with messages on them.
    pub breaks: u8,
    /// Times that the coordinator takes a living server for dead.
    pub wrong_suspicions: u8,
    pub bug: Option<Bug>,
}

impl std::fmt::Display for Bounds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let durability = match self.durability {
            Durability::InMemory => "in memory",
            Durability::Persistent => "persistent",
        };
        write!(
            f,
            "{}: {durability}, {} servers, degree {}, min_replicas {}, {} appends, {} epochs; at most {} crashes, \
             {} broken links, {} wrong suspicions",
            self.name,
            self.servers,
            self.degree,
            self.min_replicas,
            self.sessions,
            self.epochs,
            self.crashes,
            self.breaks,
            self.wrong_suspicions
        )?;
        self.bug.map_or(Ok(()), |bug| write!(f, "; broken: {bug:?}"))
    }
}

impl Bounds {
    pub fn has(&self, bug: Bug) -> bool {
        self.bug == Some(bug)
    }

    pub fn is_persistent(&self) -> bool {
        self.durability == Durability::Persistent
    }

    pub fn with(mut self, bug: Bug) -> Self {
        self.bug = Some(bug);
        self
    }
}

/// A rule that is left out or broken: a property must be violated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Bug {
    /// The head commits its own entries without waiting for the tail.
    CommitBeforeTail,
    /// Messages of other epochs are accepted.
    EpochUnchecked,
    /// Entries behind the common index are kept.
    SuffixKept,
    /// A batch counts as durable when it is handed to the disk.
    DurableBeforeSync,
    /// The head counts the acknowledgements of others, and not its own disk.
    OwnDiskIgnored,
    /// The tail's acknowledgement counts for all replicas before it, in a persistent chain too.
    FollowersIgnored,
    /// The session table still holds truncated entries.
    TableNotRebuilt,
    /// A replica that restarts reads its log, but starts with an empty session table.
    TableForgotten,
    /// A replica answers its successor before it agrees with its own predecessor.
    UnsettledAnswers,
    /// The acknowledged index does not wait for a learner about to join.
    JoinNotWaitedFor,
    /// A learner is reported one batch early.
    CaughtUpOneShort,
    /// A truncation is made in memory alone.
    TruncationNotWritten,
    /// A replica counts as settled before its truncation is on disk.
    TruncationNotWaitedFor,
    /// The head commits below `min_replicas`.
    MinReplicasIgnored,
    /// Clients hear that an append was not ordered before the first ring pass is complete.
    AttachedBeforeRingPass,
    /// A new connection is taken for the old one.
    NoAgreementAfterBreak,
    /// The coordinator promotes on a report of an earlier epoch.
    StaleReportTaken,
    /// A member that restarts is sent an epoch of its previous process.
    EpochGivenTwice,
    /// An in-memory replica that restarts keeps its place.
    EmptyReplicaKeepsPlace,
    /// The coordinator appends a learner without waiting for its report.
    PromotedUnasked,
    /// A chain whose servers all failed goes on with any server that is back, stale or not.
    LastReplicaReplaced,
}
