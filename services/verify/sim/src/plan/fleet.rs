//! A seed's decisions about the whole fleet.

use quorate_coordinator_core::planner::SuspicionTimes;
use quorate_types::Micros;
use rand::Rng;
use rand::rngs::SmallRng;

use super::group::counted_bytes;
use super::pick::pick;
use super::{Fault, GroupPlan, Profile};

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
    /// Clients come within this.
    pub clients_come_us: Micros,
    /// How often the journal's copier looks for what it cannot read.
    pub copy_every_us: Option<Micros>,
    pub control_delay_us_max: Micros,
    pub sync_us_max: Micros,
    /// How long a disk is slow at most, once it is.
    pub disk_slow_us_max: Micros,
    pub segment_bytes: usize,
    /// The bytes that a learner may be sent at each tick; `None`: all that its window takes.
    pub catchup_bytes: Option<u64>,
    pub coordinators: usize,
    pub coordinator_sync_us_max: Micros,
    /// Between coordinators.
    pub member_delay_us_max: Micros,
    /// Entries in one message between coordinators.
    pub append_bytes: usize,
    /// Entries that coordinators keep behind a snapshot.
    pub kept_bytes: usize,
    /// The coordinator rewrites its log as a snapshot beyond this.
    pub snapshot_bytes: usize,
    pub lease_ms: u64,
    pub heartbeat_ms: u64,
    pub reconnect_grace_ms: u64,
    /// The times after which the coordinator finds servers slow, or unreachable from one another.
    pub suspicions: SuspicionTimes,
    /// Faults that are on, each with its weight.
    pub faults: Vec<(Fault, u32)>,
    pub fault_every_us: Micros,
    /// A process that was killed is started again within this.
    pub restart_us_max: Micros,
    pub horizon_us: Micros,
    /// The journal's port reports only the last record of each run of one kind.
    pub completions_are_merged: bool,
    /// How often the shell flushes a group right after a step, instead of taking in more events first.
    pub flush_at_once: f64,
    /// Whether faults may take the last replica that has everything. The group is lost then, and must be found lost.
    pub may_lose_groups: bool,
    /// Whether owners reset lost groups, and operators give up machines that are gone.
    pub owners_reset: bool,
    /// Operators have single replicas move.
    pub operators_move: bool,
    /// Memory of each server for what its groups hold beyond their own.
    pub pool_bytes: u64,
    /// One more server has too little memory for any replica.
    pub has_tight_server: bool,
    /// One more server than is needed: a disk may be full for good.
    pub has_full_disk: bool,
    /// Each server's clock runs faster or slower by so many thousandths, at most.
    pub drift_permille_max: u64,
}

impl Plan {
    pub fn draw(rng: &mut SmallRng, profile: Profile) -> Self {
        let profile = profile.drawn(rng);
        let groups: Vec<GroupPlan> = (0..draw_groups(rng, profile))
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
            servers: draw_servers(rng, profile, degree_max),
            groups,
            link_delay_us_max: *pick(rng, &[50, 500, 5_000]),
            client_delay_us_max: *pick(rng, &[1_000, 1_000, 1_000, 50_000]),
            disk_read_us_max: *pick(rng, &[3_000, 3_000, 200_000]),
            clients_come_us: 0,
            recent_bytes: *pick(rng, &[None, None, Some(0), Some(3 * longest as u64)]),
            shares_burst: rng.random_bool(0.3),
            copy_every_us: *pick(rng, &[None, Some(100_000), Some(1_000_000)]),
            control_delay_us_max: *pick(rng, &[300, 3_000, 30_000]),
            sync_us_max: *pick(rng, &[100, 2_000, 20_000, 60_000]),
            disk_slow_us_max: 500_000,
            segment_bytes: (8 * longest).max(96 << 10),
            catchup_bytes: *pick(rng, &[None, None, Some(longest as u64)]),
            coordinators: draw_coordinators(rng, profile),
            coordinator_sync_us_max: *pick(rng, &[100, 3_000, 20_000]),
            member_delay_us_max: *pick(rng, &[100, 1_000, 20_000]),
            append_bytes: *pick(rng, &[1, 4 << 10, 1 << 20]),
            kept_bytes: *pick(rng, &[0, 4 << 10]),
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
            operators_move: false,
            pool_bytes: *pick(rng, &[u64::MAX, u64::MAX, 0, 256 << 10]),
            has_tight_server: rng.random_bool(0.2),
            has_full_disk: rng.random_bool(0.1),
            suspicions: draw_suspicions(rng, lease_ms),
        };
        plan.narrow(rng, profile);
        if profile == Profile::Hangs || plan.only_hangs() {
            // The time in which a coordinator that is alone finds a hang is known to the millisecond.
            plan.coordinators = 1;
        }
        plan.servers += plan.reserved_servers();
        if plan.has_full_disk {
            plan.faults.push((Fault::DiskStaysFull, 10));
        }
        plan
    }

    /// Whether other coordinators may come.
    pub fn replaces_coordinators(&self) -> bool {
        self.faults
            .iter()
            .any(|(fault, _)| Fault::REPLACES.contains(fault))
    }

    /// Whether nothing happens but hangs.
    pub fn only_hangs(&self) -> bool {
        self.faults.iter().all(|(fault, _)| Fault::HANGS.contains(fault))
    }

    /// Servers that groups may have to do without.
    pub fn reserved_servers(&self) -> usize {
        usize::from(self.has_tight_server) + usize::from(self.has_full_disk)
    }

    /// Sets times under which the profile's circumstances are frequent.
    fn narrow(&mut self, rng: &mut SmallRng, profile: Profile) {
        match profile {
            // Reports come late, and yet no server is suspected for that.
            Profile::Learners if rng.random_bool(0.5) => {
                self.control_delay_us_max = 300_000;
                self.restart_us_max = 60_000;
                self.set_lease(1_500);
                self.keep_busy();
            }
            // A server is back before it is suspected, and its neighbours' disks are slower than that.
            Profile::Cuts => {
                self.sync_us_max = *pick(rng, &[20_000, 60_000]);
                self.control_delay_us_max = *pick(rng, &[300, 3_000, 30_000]);
                self.fault_every_us = *pick(rng, &[40_000, 120_000]);
                self.restart_us_max = 60_000;
                self.set_lease(1_500);
                self.keep_busy();
                // One sync may last from a truncation until the truncated batches are here again.
                if rng.random_bool(0.5) {
                    (self.link_delay_us_max, self.control_delay_us_max) = (500, 300);
                    self.sync_us_max = 60_000;
                    self.restart_us_max = 20_000;
                }
            }
            Profile::Lies => self.narrow_to_lies(rng),
            Profile::Heads => self.set_lease(150),
            Profile::Queues => {
                self.set_lease(150);
                self.client_delay_us_max = *pick(rng, &[1_000, 50_000, 300_000]);
            }
            // A killed server is back before it is suspected, with nothing in memory. An isolated one is not.
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
            // So slow that servers say so, for longer than it takes to find them slow.
            Profile::Slow => {
                self.set_lease(*pick(rng, &[400, 1_500]));
                self.sync_us_max = 60_000;
                self.disk_slow_us_max = 6_000_000;
                self.fault_every_us = *pick(rng, &[120_000, 400_000]);
                self.suspicions.slow_ms = *pick(rng, &[300, 1_000]);
                self.horizon_us = 6_000_000;
                self.keep_busy();
            }
            Profile::Operators => {
                self.operators_move = true;
                self.fault_every_us = *pick(rng, &[120_000, 400_000]);
                self.horizon_us = 6_000_000;
            }
            Profile::Hangs => self.narrow_to_hangs(rng),
            Profile::Beginnings => self.narrow_to_beginnings(rng),
            Profile::Sessions => {
                self.groups.truncate(1);
                self.sync_us_max = *pick(rng, &[100, 2_000]);
                self.link_delay_us_max = *pick(rng, &[50, 500]);
            }
            _ => {}
        }
    }

    fn narrow_to_hangs(&mut self, rng: &mut SmallRng) {
        self.set_lease(*pick(rng, &[400, 1_500]));
        self.suspicions.hung_ms = *pick(rng, &[1_000, 2_000]);
        self.sync_us_max = *pick(rng, &[2_000, 20_000]);
        self.fault_every_us = *pick(rng, &[400_000, 1_000_000, 2_000_000]);
        self.horizon_us = 10_000_000;
        self.servers += 2;
        self.keep_busy();
        if rng.random_bool(0.5) {
            self.faults.retain(|(fault, _)| Fault::HANGS.contains(fault));
        } else {
            // Longer than a hang may last, and shorter than the lease.
            self.set_lease(1_500);
            self.suspicions.hung_ms = *pick(rng, &[400, 1_000]);
            match rng.random_range(0..4) {
                0 | 1 => {}
                2 => self.faults.retain(|(fault, _)| !Fault::HANGS.contains(fault)),
                _ => {
                    // Pauses begin while disks sync, and end before the lease.
                    self.faults.clear();
                    self.set_lease(5_000);
                    self.suspicions.hung_ms = 400;
                    self.sync_us_max = 60_000;
                    self.fault_every_us = 400_000;
                }
            }
            self.faults.push((Fault::Pause, 10));
        }
    }

    /// Clients have one batch each before the faults end. Few servers take the replicas of those that are away.
    fn narrow_to_beginnings(&mut self, rng: &mut SmallRng) {
        self.faults
            .retain(|(fault, _)| Profile::Beginnings.faults().contains(fault));
        self.servers = *pick(rng, &[2, 3]);
        self.has_tight_server = false;
        self.has_full_disk = false;
        self.set_lease(*pick(rng, &[150, 400]));
        self.restart_us_max = 300_000;
        self.sync_us_max = 60_000;
        self.fault_every_us = *pick(rng, &[40_000, 120_000]);
        self.horizon_us = 6_000_000;
        self.clients_come_us = 5_000_000;
    }

    /// A lie is told only where nothing else is wrong.
    fn narrow_to_lies(&mut self, rng: &mut SmallRng) {
        let few = [
            Fault::DiskLies,
            Fault::LinkBreak,
            Fault::Crash,
            Fault::CoordinatorCrash,
        ];
        self.faults.retain(|(fault, _)| few.contains(fault));
        self.restart_us_max = 60_000;
        self.fault_every_us = *pick(rng, &[40_000, 120_000]);
        self.suspicions.unreachable_ms = 3_000;
        self.set_lease(1_500);
        self.keep_busy();
    }

    /// Small batches, and always some that are under way.
    fn keep_busy(&mut self) {
        for group in &mut self.groups {
            let retained = group.retention_bytes / counted_bytes(group.payload_bytes_max);
            group.payload_bytes_max = 200;
            group.retention_bytes = counted_bytes(200) * retained;
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

fn draw_groups(rng: &mut SmallRng, profile: Profile) -> usize {
    match profile {
        Profile::Fleets => rng.random_range(12..=50),
        Profile::Beginnings => rng.random_range(6..=16),
        // Another group must go on meanwhile.
        Profile::Poison => *pick(rng, &[2, 2, 3]),
        _ => *pick(rng, &[1, 1, 1, 2, 2, 3]),
    }
}

/// Copies of logs are for one that is alone.
fn draw_coordinators(rng: &mut SmallRng, profile: Profile) -> usize {
    match profile {
        Profile::Quorum => *pick(rng, &[3, 3, 5]),
        Profile::Restores => 1,
        _ => *pick(rng, &[1, 1, 3]),
    }
}

fn draw_servers(rng: &mut SmallRng, profile: Profile, degree_max: usize) -> usize {
    match profile {
        Profile::Fleets => rng.random_range(6..=12),
        _ => (degree_max + rng.random_range(1..=2)).max(3),
    }
}

fn draw_suspicions(rng: &mut SmallRng, lease_ms: u64) -> SuspicionTimes {
    SuspicionTimes {
        unreachable_ms: *pick(rng, &[100, 600, 3_000]),
        slow_ms: *pick(rng, &[300, 1_000, 5_000]),
        well_ms: *pick(rng, &[1_000, 10_000]),
        stale_ms: lease_ms / 2,
        hung_ms: *pick(rng, &[400, 1_000, 2_000]),
    }
}

fn draw_faults(rng: &mut SmallRng, profile: Profile) -> Vec<(Fault, u32)> {
    let share = *pick(rng, &[0.15, 0.4, 0.8]);
    let mut faults: Vec<(Fault, u32)> = Fault::ALL
        .iter()
        .filter(|fault| rng.random_bool(share) && **fault != Fault::DiskStaysFull)
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
