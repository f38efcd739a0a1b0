//! How large the explored world is, and the bug planted in it, if any.

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
    /// Each has one append, which it may send to every head any number of times.
    pub sessions: u8,
    /// Configurations that the coordinator may issue, the first included.
    pub epochs: u8,
    pub crashes: u8,
    /// Links that break with something on them.
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

/// A rule left out or broken: the properties must notice.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Bug {
    /// The head commits what it has itself.
    CommitBeforeTail,
    /// Messages of other epochs are believed.
    EpochUnchecked,
    /// What is behind the common index is kept.
    SuffixKept,
    /// A batch counts as durable when it is handed to the disk.
    DurableBeforeSync,
    /// The head counts what others say that they have, and not whether its own disk has it.
    OwnDiskIgnored,
    /// Of a persistent chain, too, the tail is taken to speak for all before it.
    FollowersIgnored,
    /// The session table still holds what was cut.
    TableNotRebuilt,
    /// A replica that restarts reads its log and begins with an empty session table.
    TableForgotten,
    /// A replica answers its successor before it agrees with its own predecessor.
    UnsettledAnswers,
    /// The ring does not wait for a learner about to join.
    JoinNotWaitedFor,
    /// A learner is reported one batch early.
    CaughtUpOneShort,
    /// A cut is made in memory alone.
    CutNotWritten,
    /// A replica counts as settled before its cut is on disk.
    CutNotWaitedFor,
    /// The head commits below `min_replicas`.
    MinReplicasIgnored,
    /// Clients are told what was not ordered before the ring has closed.
    AttachedBeforeRing,
    /// A link that came back is taken for the old one.
    NoAgreementAfterBreak,
    /// The coordinator promotes on a report of an earlier epoch.
    StaleReportTaken,
    /// A member that restarts is sent the epoch in which it lived before.
    EpochGivenTwice,
    /// An in-memory replica that restarts keeps its place.
    EmptyReplicaKeepsPlace,
    /// The coordinator appends a learner without waiting for its report.
    PromotedUnasked,
    /// A chain whose servers all failed goes on with whoever is back, stale or not.
    LastReplicaReplaced,
}
