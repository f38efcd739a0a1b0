//! The coordinators' part: (state, report, now) → rates for every server. Nothing of it is in a log, since the next reports
//! replace it.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use quorate_policies::Policy;
use quorate_types::control::{SharedRate, SharingReport};
use quorate_types::limits::{
    GROUPS_PER_SERVER_MAX, SHARE_INTERVAL_MS_MAX, SHARE_INTERVAL_MS_MIN, SHARE_LAPSE_INTERVALS,
    SHARE_STEPS_PER_INTERVAL,
};
use quorate_types::{Micros, ProjectId, ServerId};

use super::fleet_policy;
use crate::problem::{GroupEpoch, ReplicaCost, SharingProblem, SharingTenant, Vector};

/// Servers that are late hold the others up no longer than this part of the interval.
const WAIT_PART: u64 = SHARE_STEPS_PER_INTERVAL / 2;

#[derive(Debug, Default)]
pub struct FleetShares {
    policy: Policy,
    servers: BTreeMap<usize, Reported>,
    groups: HashMap<GroupEpoch, Noted>,
    /// Groups that reports named and that were not looked up.
    unknown: BTreeSet<GroupEpoch>,
    /// The end of the wait for servers that have not reported again; `None`: none has since the last round.
    waits_until: Option<Micros>,
    round: u64,
    /// The latest interval that a server has begun. Servers that hear of it begin it at once, so that all keep step.
    interval: u64,
}

#[derive(Debug, Default)]
struct Reported {
    at: Micros,
    interval: u64,
    interval_us: Micros,
    free: Vector,
    /// Requests/s wanted above the reservation, and the interval of the grant in use.
    wants: Vec<(GroupEpoch, u64, Option<u64>)>,
    /// It came since the last round.
    is_new: bool,
}

/// A group as it is in an epoch.
#[derive(Debug, Clone)]
pub struct SharingGroup {
    pub project: ProjectId,
    /// The cost of a request at each replica, the head first.
    pub replicas: Vec<ReplicaCost>,
}

#[derive(Debug)]
struct Noted {
    known: Known,
    /// The last rounds in which a server wanted something for it, and in which its head did.
    wanted_in: u64,
    shared_in: u64,
}

#[derive(Debug)]
enum Known {
    Asked,
    /// The group is not in this epoch, or its requests cost nothing.
    Nothing,
    Group(SharingGroup),
}

/// The outcome of a round.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Round {
    pub number: u64,
    pub interval: u64,
    /// Rates of the groups with a replica on each server, for every server that reported.
    pub rates: BTreeMap<usize, Vec<SharedRate>>,
    /// Groups that want more than they reserved, and those that get it all.
    pub wanting: usize,
    pub satisfied: usize,
}

impl FleetShares {
    pub fn new(policy: Policy) -> Self {
        Self {
            policy,
            ..Self::default()
        }
    }

    /// A server's report; several of one interval belong together. Returns the servers that are to begin the present
    /// interval: all others if this one is the first, itself if it is behind.
    pub fn report(&mut self, now: Micros, server: ServerId, report: SharingReport) -> Vec<ServerId> {
        let interval = report.interval;
        self.keep(now, server, report);
        if interval < self.interval {
            return vec![server];
        }
        if interval == std::mem::replace(&mut self.interval, interval) {
            return Vec::new();
        }
        let behind = self
            .servers
            .iter()
            .filter(|(_, reported)| reported.interval < interval);
        behind.map(|(server, _)| ServerId(*server as u32)).collect()
    }

    /// A server may send any numbers.
    fn keep(&mut self, now: Micros, server: ServerId, report: SharingReport) {
        let interval_us = report
            .interval_us
            .clamp(SHARE_INTERVAL_MS_MIN * 1_000, SHARE_INTERVAL_MS_MAX * 1_000);
        for one in &report.wants {
            let key = (one.group_id, one.epoch);
            // The next report names those again that are too many for one lookup.
            if self.unknown.len() < GROUPS_PER_SERVER_MAX && !self.groups.contains_key(&key) {
                self.unknown.insert(key);
            }
        }
        let reported = self.servers.entry(server.0 as usize).or_default();
        let belongs = reported.interval == report.interval && reported.at + reported.interval_us > now;
        if !belongs {
            *reported = Reported {
                at: now,
                interval: report.interval,
                interval_us,
                free: report.free,
                ..Reported::default()
            };
        }
        let wants = report.wants.iter();
        let wants = wants.map(|one| ((one.group_id, one.epoch), one.extra_per_s, one.using));
        reported.wants.extend(wants);
        reported.wants.truncate(GROUPS_PER_SERVER_MAX);
        reported.is_new = true;
        let until = reported.at + reported.interval_us / WAIT_PART;
        self.waits_until = Some(self.waits_until.map_or(until, |before| before.min(until)));
    }

    /// The present round and interval.
    pub fn now_at(&self) -> (u64, u64) {
        (self.round, self.interval)
    }

    /// Groups that are to be looked up. Each is named once.
    pub fn take_unknown(&mut self) -> Vec<GroupEpoch> {
        let unknown: Vec<GroupEpoch> = std::mem::take(&mut self.unknown).into_iter().collect();
        for key in &unknown {
            self.note(*key, Known::Asked);
        }
        unknown
    }

    /// The answer to [`FleetShares::take_unknown`]; `None`: the group is not in this epoch.
    pub fn know(&mut self, key: GroupEpoch, group: Option<SharingGroup>) {
        self.note(key, group.map_or(Known::Nothing, Known::Group));
    }

    /// The lookup failed: the groups are unknown again.
    pub fn forget_asked(&mut self) {
        let is_asked = |_: &GroupEpoch, noted: &mut Noted| matches!(noted.known, Known::Asked);
        let asked = self.groups.extract_if(is_asked).map(|(key, _)| key);
        self.unknown.extend(asked);
    }

    fn note(&mut self, key: GroupEpoch, known: Known) {
        let noted = Noted {
            known,
            wanted_in: self.round,
            shared_in: 0,
        };
        self.groups.insert(key, noted);
    }

    /// The time of the next round: once every server has reported again, or the first one has waited long enough.
    pub fn wake_at(&self, now: Micros) -> Option<Micros> {
        let latest = self.waits_until?;
        let mut live = self.servers.values().filter(|reported| !reported.has_lapsed(now));
        Some(if live.all(|reported| reported.is_new) {
            now
        } else {
            latest
        })
    }

    /// Shares out the free amounts of the servers that have reported lately.
    pub fn decide(&mut self, now: Micros) -> Round {
        self.servers.retain(|_, reported| !reported.has_lapsed(now));
        let intervals = self.servers.values().map(|reported| reported.interval);
        self.interval = intervals.max().unwrap_or(0);
        self.round += 1;
        self.waits_until = None;
        let numbers: HashMap<usize, usize> = self.servers.keys().copied().zip(0..).collect();
        let (mut tenants, mut heads) = (Vec::new(), Vec::new());
        let mut projects = Projects::default();
        for (server, reported) in &mut self.servers {
            reported.is_new = false;
            for (key, extra_per_s, using) in &reported.wants {
                let Some(noted) = self.groups.get_mut(key) else {
                    continue;
                };
                noted.wanted_in = self.round;
                if let Known::Group(group) = &noted.known
                    && group.replicas[0].server == *server
                    && let Some(replicas) = renumbered(&group.replicas, &numbers)
                    && std::mem::replace(&mut noted.shared_in, self.round) != self.round
                {
                    projects.note(group.project);
                    tenants.push(SharingTenant {
                        replicas,
                        extra_per_s: *extra_per_s,
                    });
                    heads.push((*key, reported.interval, *using));
                }
            }
        }
        // All others are of groups that want nothing any more.
        let round = self.round;
        self.groups
            .retain(|_, noted| noted.wanted_in == round || matches!(noted.known, Known::Asked));
        let free = self.servers.values().map(|reported| reported.free).collect();
        let problem = SharingProblem::new(free, tenants).expect("chains are sound");
        let per_s = fleet_policy::rates(self.policy, &problem, &projects.of_tenants);
        self.round_of(&problem, &per_s, &heads)
    }

    /// `heads`: the groups, and what their heads reported of grants in use.
    fn round_of(
        &self,
        problem: &SharingProblem,
        per_s: &[u64],
        heads: &[(GroupEpoch, u64, Option<u64>)],
    ) -> Round {
        let servers: Vec<usize> = self.servers.keys().copied().collect();
        let mut rates: Vec<Vec<SharedRate>> = vec![Vec::new(); servers.len()];
        let (mut wanting, mut satisfied) = (0, 0);
        for ((tenant, per_s), (key, interval, using)) in problem.tenants().iter().zip(per_s).zip(heads) {
            wanting += usize::from(tenant.extra_per_s > 0);
            satisfied += usize::from(tenant.extra_per_s > 0 && *per_s >= tenant.extra_per_s);
            let rate = SharedRate {
                group_id: key.0,
                epoch: key.1,
                per_s: *per_s,
                interval: *interval,
                using: *using,
            };
            (tenant.replicas.iter()).for_each(|replica| rates[replica.server].push(rate));
        }
        Round {
            number: self.round,
            interval: self.interval,
            rates: servers.into_iter().zip(rates).collect(),
            wanting,
            satisfied,
        }
    }
}

impl Reported {
    fn has_lapsed(&self, now: Micros) -> bool {
        now >= self.at + self.interval_us * SHARE_LAPSE_INTERVALS
    }
}

/// Numbers of projects, in the order of the first tenant of each.
#[derive(Debug, Default)]
struct Projects {
    numbers: HashMap<ProjectId, usize>,
    of_tenants: Vec<usize>,
}

impl Projects {
    fn note(&mut self, project: ProjectId) {
        let next = self.numbers.len();
        let number = *self.numbers.entry(project).or_insert(next);
        self.of_tenants.push(number);
    }
}

/// `None` while a server of the chain has not reported: what is free there is not known.
fn renumbered(replicas: &[ReplicaCost], numbers: &HashMap<usize, usize>) -> Option<Vec<ReplicaCost>> {
    let replica = |replica: &ReplicaCost| {
        Some(ReplicaCost {
            server: *numbers.get(&replica.server)?,
            cost: replica.cost,
        })
    };
    replicas.iter().map(replica).collect()
}
