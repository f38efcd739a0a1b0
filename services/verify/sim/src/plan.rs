//! A seed's decisions before anything happens: the fleet, its groups, how fast things are, and which faults are on.
//! Not every seed has every fault: a few at a time go deeper than all at once.

use quorate_coordinator::planner::SuspicionTimes;
use quorate_types::{Durability, Micros};
use rand::Rng;
use rand::rngs::SmallRng;

use crate::faults::Fault;

#[derive(Debug, Clone)]
pub struct Plan {
    pub servers: usize,
    pub groups: Vec<GroupPlan>,
    pub link_delay_us_max: Micros,
    /// From a client to a server.
    pub client_delay_us_max: Micros,
    /// The longest read that a group asks of the disk while it runs.
    pub disk_read_us_max: Micros,
    /// Committed payload that a persistent group keeps in memory; `None`: as much as in a server.
    pub recent_bytes: Option<u64>,
    /// Servers share burst capacity.
    pub shares_burst: bool,
    /// How often the journal's copier looks for what it cannot read.
    pub copy_every_us: Option<Micros>,
    pub control_delay_us_max: Micros,
    pub sync_us_max: Micros,
    pub segment_bytes: usize,
    /// The bytes that a learner may be sent at each tick; `None`: all that its window takes.
    pub catchup_bytes: Option<u64>,
    pub coordinator_sync_us_max: Micros,
    /// The coordinator rewrites its log as a snapshot beyond this.
    pub snapshot_bytes: usize,
    pub lease_ms: u64,
    pub heartbeat_ms: u64,
    pub reconnect_grace_ms: u64,
    /// The times after which the coordinator takes servers for slow, or for cut off from one another.
    pub suspicions: SuspicionTimes,
    /// Faults that are on, each with its weight.
    pub faults: Vec<(Fault, u32)>,
    pub fault_every_us: Micros,
    /// A process that was killed is started again within this.
    pub restart_us_max: Micros,
    pub horizon_us: Micros,
    /// The journal's port tells only the last record of each run of one kind.
    pub completions_are_merged: bool,
    /// How often the shell ends a round at once, instead of taking in more events first.
    pub flush_at_once: f64,
    /// Whether faults may take the last replica that has everything: the group is then lost, and must say so.
    pub may_lose_groups: bool,
    /// Whether owners have groups begin anew that are lost, and operators give up machines that are gone.
    pub owners_reset: bool,
    /// Each server's clock runs faster or slower by so many thousandths, at most.
    pub drift_permille_max: u64,
}

#[derive(Debug, Clone)]
pub struct GroupPlan {
    pub durability: Durability,
    pub degree: u8,
    pub min_replicas: Option<u8>,
    /// Age of a batch that is trimmed.
    pub retention_age_s: Option<u64>,
    /// In the servers' configuration; smaller than an SLA may ask for, so that trims are many.
    pub retention_bytes: u64,
    pub payload_bytes_max: u32,
    pub clients: usize,
    pub batches_per_client: u32,
    pub window: usize,
    /// How readily a client gives up what a head says not to hold.
    pub gives_up: f64,
    /// How often a client asks for the status, or has entries trimmed.
    pub asks: f64,
    /// How readily a client forgets its session, and all that is not answered.
    pub abandons: f64,
    /// A crowd of clients has a session for each batch, and fills the session table; others come back after it.
    pub churns: bool,
    pub rate_per_s: u64,
    /// The deadline that an append names; 0: none.
    pub timeout_ms: u32,
    /// How long tokens are good.
    pub token_life_s: Option<u64>,
    /// One of several writers, and one of several readers, has no permission.
    pub has_stranger: bool,
    pub readers: usize,
    /// The first of two readers subscribes, and the second does not; or the other way round.
    pub first_subscribes: bool,
}

impl Plan {
    pub fn draw(rng: &mut SmallRng, profile: Profile) -> Self {
        let groups: Vec<GroupPlan> = (0..*pick(rng, &[1, 1, 1, 2, 2, 3]))
            .map(|_| GroupPlan::draw(rng, profile))
            .collect();
        let degree_max = groups
            .iter()
            .map(|g| usize::from(g.degree))
            .max()
            .expect("a group");
        let longest_of = |g: &GroupPlan| match g.churns {
            true => 1 << 20,
            false => g.payload_bytes_max as usize,
        };
        let longest = groups.iter().map(longest_of).max().expect("a group");
        let lease_ms = *pick(rng, &[150, 400, 1_500]);
        let mut plan = Self {
            servers: (degree_max + rng.random_range(1..=2)).max(3),
            groups,
            link_delay_us_max: *pick(rng, &[50, 500, 5_000]),
            client_delay_us_max: *pick(rng, &[1_000, 1_000, 1_000, 50_000]),
            disk_read_us_max: *pick(rng, &[3_000, 3_000, 200_000]),
            recent_bytes: *pick(rng, &[None, None, Some(0), Some(3 * longest as u64)]),
            shares_burst: rng.random_bool(0.3),
            copy_every_us: *pick(rng, &[None, Some(100_000), Some(1_000_000)]),
            control_delay_us_max: *pick(rng, &[300, 3_000, 30_000]),
            sync_us_max: *pick(rng, &[100, 2_000, 20_000, 60_000]),
            segment_bytes: (8 * longest).max(96 << 10),
            catchup_bytes: *pick(rng, &[None, None, Some(longest as u64)]),
            coordinator_sync_us_max: *pick(rng, &[100, 3_000, 20_000]),
            snapshot_bytes: *pick(rng, &[8 << 10, 64 << 10, 16 << 20]),
            lease_ms,
            heartbeat_ms: lease_ms / 6,
            reconnect_grace_ms: lease_ms / 5,
            faults: draw_faults(rng, profile),
            fault_every_us: *pick(rng, &[10_000, 40_000, 120_000, 400_000]),
            restart_us_max: 600_000,
            horizon_us: *pick(rng, &[1_500_000, 3_000_000, 6_000_000]),
            completions_are_merged: rng.random_bool(0.5),
            flush_at_once: *pick(rng, &[1.0, 0.5]),
            may_lose_groups: rng.random_bool(0.1),
            drift_permille_max: *pick(rng, &[0, 0, 1, 50]),
            owners_reset: rng.random_bool(0.5),
            suspicions: draw_suspicions(rng, lease_ms),
        };
        plan.narrow(rng, profile);
        plan
    }

    /// Times under which what the profile is about is frequent.
    fn narrow(&mut self, rng: &mut SmallRng, profile: Profile) {
        match profile {
            // Reports come late, and yet nobody is taken for failed by that.
            Profile::Learners if rng.random_bool(0.5) => {
                self.control_delay_us_max = 300_000;
                self.restart_us_max = 60_000;
                self.set_lease(1_500);
                self.keep_busy();
            }
            // A server is back before it is taken for failed, its neighbours' disks being slower than that.
            Profile::Cuts => {
                self.sync_us_max = *pick(rng, &[20_000, 60_000]);
                self.control_delay_us_max = *pick(rng, &[300, 3_000, 30_000]);
                self.fault_every_us = *pick(rng, &[40_000, 120_000]);
                self.restart_us_max = 60_000;
                self.set_lease(1_500);
                self.keep_busy();
            }
            Profile::Heads => self.set_lease(150),
            Profile::Queues => {
                self.set_lease(150);
                self.client_delay_us_max = *pick(rng, &[1_000, 50_000, 300_000]);
            }
            // A server is back before it is taken for failed, with nothing in memory; an isolated one is not.
            Profile::Readers | Profile::Repairs => {
                self.set_lease(*pick(rng, &[150, 400]));
                self.restart_us_max = 60_000;
                self.fault_every_us = *pick(rng, &[40_000, 120_000]);
                self.control_delay_us_max = *pick(rng, &[3_000, 30_000]);
                self.servers = self.servers.min(5);
                self.recent_bytes = Some(0);
                self.may_lose_groups = profile == Profile::Readers || rng.random_bool(0.5);
                self.owners_reset = true;
                self.copy_every_us = Some(100_000);
                self.disk_read_us_max = *pick(rng, &[3_000, 200_000]);
            }
            Profile::Sessions => {
                self.groups.truncate(1);
                self.sync_us_max = *pick(rng, &[100, 2_000]);
                self.link_delay_us_max = *pick(rng, &[50, 500]);
            }
            _ => {}
        }
    }

    /// Small batches, and always some that are under way.
    fn keep_busy(&mut self) {
        for group in &mut self.groups {
            let retained = group.retention_bytes / u64::from(group.payload_bytes_max);
            group.payload_bytes_max = 200;
            group.retention_bytes = 200 * retained;
            (group.clients, group.batches_per_client) = (3, 300);
        }
    }

    fn set_lease(&mut self, lease_ms: u64) {
        self.lease_ms = lease_ms;
        self.heartbeat_ms = lease_ms / 6;
        self.reconnect_grace_ms = lease_ms / 5;
        self.suspicions.stale_ms = lease_ms / 2;
    }
}

/// Clients that fill the session table together, and those beside them that stay away meanwhile.
pub const CROWD: usize = 6;
const STRAYS: usize = 2;

/// Narrows what a seed may draw: planted bugs that need rare circumstances are looked for there.
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
    /// Replicas that lose what they had not synced and are back at once, beside slow disks.
    Cuts,
    /// Heads that are deposed and do not know it.
    Heads,
    /// More is asked for than groups may use, on connections that are slow; heads change.
    Queues,
    /// Readers of what lies on slow disks only, while groups are lost and their logs reset.
    Readers,
    /// Records that go bad while servers run, and are asked for at peers.
    Repairs,
}

impl GroupPlan {
    fn draw(rng: &mut SmallRng, profile: Profile) -> Self {
        let durability = draw_durability(rng, profile);
        let degree = draw_degree(rng, profile);
        let min_replicas = *pick(rng, &[None, Some(1), Some(degree)]);
        let churns = profile == Profile::Sessions || rng.random_bool(0.01);
        let payload_bytes_max = if churns {
            40
        } else {
            draw_payload_bytes(rng, profile)
        };
        let batches_per_client = draw_batches_per_client(rng, payload_bytes_max);
        // Some may use so little that most of what is sent is refused.
        let is_narrow =
            !churns && payload_bytes_max <= 4_000 && (profile == Profile::Queues || rng.random_bool(0.15));
        let keeps_all = matches!(profile, Profile::Readers | Profile::Repairs);
        let retention_batches = *pick(
            rng,
            if keeps_all {
                &[100_000]
            } else {
                &[3, 10, 30, 100_000]
            },
        );
        Self {
            durability,
            degree,
            min_replicas,
            retention_age_s: pick(rng, &[None, None, None, Some(0), Some(1)]).filter(|_| !keeps_all),
            retention_bytes: u64::from(payload_bytes_max) * retention_batches,
            payload_bytes_max,
            clients: if churns {
                CROWD + STRAYS
            } else {
                rng.random_range(1..=3)
            },
            batches_per_client: if is_narrow {
                batches_per_client.min(40)
            } else {
                batches_per_client
            },
            window: *pick(rng, &[1, 4, 16]),
            gives_up: *pick(rng, &[0.1, 0.5, 1.0]),
            asks: draw_asks(rng, profile),
            abandons: *pick(rng, &[0.0, 0.0, 0.05, 0.3]),
            churns,
            // A rate that one shard of a server can promise.
            rate_per_s: if is_narrow {
                20
            } else {
                (*pick(rng, &[300, 3_000, 20_000])).min(40_000_000 / u64::from(payload_bytes_max))
            },
            timeout_ms: *pick(
                rng,
                if profile == Profile::Queues {
                    &[0, 500]
                } else {
                    &[0, 0, 20, 200]
                },
            ),
            token_life_s: *pick(rng, &[None, None, None, Some(1)]),
            has_stranger: rng.random_bool(0.2),
            readers: match profile {
                _ if churns => 0,
                Profile::Readers => 3,
                Profile::Repairs => 2,
                _ => *pick(rng, &[0, 1, 2]),
            },
            first_subscribes: rng.random_bool(0.5),
        }
    }
}

fn draw_durability(rng: &mut SmallRng, profile: Profile) -> Durability {
    let drawn = match rng.random_range(0..5) {
        0 | 1 => Durability::InMemory,
        _ => Durability::Persistent,
    };
    match profile {
        Profile::Disks | Profile::Cuts | Profile::Readers | Profile::Repairs => Durability::Persistent,
        _ => drawn,
    }
}

fn draw_degree(rng: &mut SmallRng, profile: Profile) -> u8 {
    let degrees: &[u8] = match profile {
        Profile::Sessions => &[1, 2, 3],
        Profile::Cuts | Profile::Heads | Profile::Queues => &[2, 3, 3, 4],
        Profile::Readers | Profile::Repairs => &[2, 2, 3],
        _ => &[1, 2, 2, 3, 3, 3, 3, 4, 5, 7],
    };
    *pick(rng, degrees)
}

fn draw_batches_per_client(rng: &mut SmallRng, payload_bytes_max: u32) -> u32 {
    match payload_bytes_max {
        0..100 => 220,
        100..=4_000 => rng.random_range(20..120),
        4_001..=100_000 => rng.random_range(20..60),
        _ => rng.random_range(10..30),
    }
}

fn draw_asks(rng: &mut SmallRng, profile: Profile) -> f64 {
    let asks: &[f64] = match profile {
        Profile::Heads => &[0.5],
        Profile::Readers | Profile::Repairs => &[0.0, 0.0, 0.0, 0.01],
        _ => &[0.0, 0.1, 0.5],
    };
    *pick(rng, asks)
}

fn draw_payload_bytes(rng: &mut SmallRng, profile: Profile) -> u32 {
    let weights: &[u32] = if profile == Profile::Trims {
        &[64 << 10, 1 << 20]
    } else {
        &[
            200,
            200,
            200,
            200,
            200,
            200,
            200,
            4_000,
            4_000,
            64 << 10,
            64 << 10,
            1 << 20,
        ]
    };
    *pick(rng, weights)
}

fn draw_suspicions(rng: &mut SmallRng, lease_ms: u64) -> SuspicionTimes {
    SuspicionTimes {
        unreachable_ms: *pick(rng, &[100, 600, 3_000]),
        slow_ms: *pick(rng, &[300, 1_000, 5_000]),
        well_ms: *pick(rng, &[1_000, 10_000]),
        stale_ms: lease_ms / 2,
    }
}

fn draw_faults(rng: &mut SmallRng, profile: Profile) -> Vec<(Fault, u32)> {
    let share = *pick(rng, &[0.15, 0.4, 0.8]);
    let mut faults: Vec<(Fault, u32)> = Fault::ALL
        .iter()
        .filter(|_| rng.random_bool(share))
        .map(|fault| (*fault, 0))
        .collect();
    faults.extend(profile.faults().iter().map(|fault| (*fault, 0)));
    if faults.is_empty() {
        faults.push((Fault::Crash, 0));
    }
    for (_, weight) in &mut faults {
        *weight = rng.random_range(1..=10);
    }
    faults
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

    fn faults(self) -> &'static [Fault] {
        match self {
            Profile::Any | Profile::Sessions => &[],
            Profile::Disks => &[Fault::Crash, Fault::CrashAll],
            Profile::Trims => &[Fault::LinkBreak, Fault::Crash],
            Profile::Learners => &[Fault::Crash, Fault::Pause, Fault::Wipe],
            Profile::Coordinator => &[Fault::CoordinatorCrash, Fault::Crash],
            Profile::Cuts => &[Fault::Crash, Fault::DiskSlow],
            Profile::Queues => &[Fault::ClientBreak, Fault::Isolate],
            Profile::Readers => &[Fault::Crash, Fault::Isolate, Fault::Wipe, Fault::BitFlip],
            Profile::Repairs => &[Fault::Crash, Fault::Isolate, Fault::Rot],
            Profile::Heads => &[
                Fault::Pause,
                Fault::ControlOneWay,
                Fault::Partition,
                Fault::Isolate,
            ],
        }
    }
}

pub fn pick<'a, T>(rng: &mut SmallRng, choices: &'a [T]) -> &'a T {
    &choices[rng.random_range(0..choices.len())]
}
