//! Profiles narrow what a seed may draw.

use rand::Rng;
use rand::rngs::SmallRng;

use super::Fault;
use super::pick::pick;

/// How often a seed of the general profile is drawn from another one. States that need circumstances to meet are
/// reached in these.
const STEERED: f64 = 0.4;

/// A range of draws. Planted bugs that need rare circumstances are looked for in a narrow one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Profile {
    #[default]
    Any,
    /// Persistent groups on disks that crash a lot.
    Disks,
    /// Trims and bases: large batches, little retention.
    Trims,
    /// Lost replicas and learners.
    Learners,
    /// The coordinator crashes and lags.
    Coordinator,
    /// Sessions by the thousand.
    Sessions,
    /// Replicas that lose unsynced batches and are back at once, beside slow disks.
    Cuts,
    /// Heads that were replaced and do not know it.
    Heads,
    /// Requests beyond the budgets of groups, on slow connections; heads change.
    Queues,
    /// Readers of batches that are on slow disks only, while groups are lost and reset.
    Readers,
    /// Records that are damaged while servers run, and are fetched from peers.
    Repairs,
    /// Batches that stop each replica that takes them.
    Poison,
    /// Disks that are slow for seconds: servers are found slow, and leave their groups.
    Slow,
    /// Operators that drain servers, call drains off, stop what is drained and move single replicas, while servers fail.
    Operators,
    /// Dozens of groups on a dozen servers.
    Fleets,
    /// Retention by age, while clocks are wrong.
    Clocks,
    /// Disks that lose what they had called durable, under heads that are back at once.
    Lies,
    /// Threads and syncs that hang; in half of the seeds nothing else happens.
    Hangs,
    /// Three or five coordinators, which crash, lag and lose one another.
    Quorum,
    /// The coordinator is started on older copies of its log.
    Restores,
    /// Some groups that are empty for a long time, and lose the first batch of all with the head that ordered it.
    Beginnings,
}

impl Profile {
    pub const ALL: &[(&str, Profile)] = &[
        ("any", Profile::Any),
        ("disks", Profile::Disks),
        ("trims", Profile::Trims),
        ("learners", Profile::Learners),
        ("coordinator", Profile::Coordinator),
        ("sessions", Profile::Sessions),
        ("cuts", Profile::Cuts),
        ("heads", Profile::Heads),
        ("queues", Profile::Queues),
        ("readers", Profile::Readers),
        ("repairs", Profile::Repairs),
        ("poison", Profile::Poison),
        ("slow", Profile::Slow),
        ("operators", Profile::Operators),
        ("fleets", Profile::Fleets),
        ("clocks", Profile::Clocks),
        ("lies", Profile::Lies),
        ("hangs", Profile::Hangs),
        ("quorum", Profile::Quorum),
        ("restores", Profile::Restores),
        ("beginnings", Profile::Beginnings),
    ];

    pub fn named(name: &str) -> Option<Profile> {
        Self::ALL
            .iter()
            .find(|(n, _)| *n == name)
            .map(|(_, profile)| *profile)
    }

    pub fn name(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(_, p)| *p == self)
            .expect("every profile has a name")
            .0
    }

    /// The profile that a seed is drawn from.
    pub(super) fn drawn(self, rng: &mut SmallRng) -> Profile {
        let is_steered = self == Profile::Any && rng.random_bool(STEERED);
        if is_steered { pick(rng, Self::ALL).1 } else { self }
    }

    pub fn faults(self) -> &'static [Fault] {
        match self {
            Profile::Any | Profile::Sessions | Profile::Fleets => &[],
            Profile::Slow => &[Fault::DiskSlow, Fault::DiskSlow, Fault::Pause],
            Profile::Operators => &[
                Fault::Drain,
                Fault::CallOffDrain,
                Fault::StopDrained,
                Fault::Crash,
            ],
            Profile::Disks => &[Fault::Crash, Fault::CrashAll],
            Profile::Trims => &[Fault::LinkBreak, Fault::Crash],
            Profile::Learners => &[Fault::Crash, Fault::Pause, Fault::Wipe],
            Profile::Coordinator => &[Fault::CoordinatorCrash, Fault::Crash],
            Profile::Quorum => &[
                Fault::CoordinatorCrash,
                Fault::CoordinatorPause,
                Fault::CoordinatorsApart,
                Fault::CoordinatorDiskSlow,
                Fault::CoordinatorLost,
                Fault::CoordinatorDamaged,
                Fault::CoordinatorReplaced,
                Fault::Crash,
            ],
            Profile::Restores => &[Fault::CoordinatorRestore, Fault::Crash, Fault::Wipe],
            Profile::Cuts => &[Fault::Crash, Fault::DiskSlow],
            Profile::Beginnings => &[Fault::Crash, Fault::Isolate, Fault::DiskSlow],
            Profile::Queues => &[Fault::ClientBreak, Fault::Isolate],
            Profile::Readers => &[Fault::Crash, Fault::Isolate, Fault::Wipe, Fault::BitFlip],
            Profile::Repairs => &[Fault::Crash, Fault::Isolate, Fault::Rot],
            Profile::Poison => &[Fault::Poison, Fault::Crash],
            Profile::Clocks => &[Fault::ClockAtStart, Fault::ClockJump, Fault::Crash],
            Profile::Lies => &[Fault::DiskLies, Fault::LinkBreak],
            Profile::Hangs => Fault::HANGS,
            Profile::Heads => &[
                Fault::Pause,
                Fault::ControlOneWay,
                Fault::Partition,
                Fault::Isolate,
            ],
        }
    }
}
