//! The coordinators' part: (state, report, now) → shares of projects' guarantees. Nothing of it is in a log. A new leader knows
//! the shares in use once all heads have reported.
//!
//! A share is good until the head is told another one, so heads go on while no coordinator answers. A head gets more only after
//! the heads that are to have less have said that they do. So the shares in use never exceed the guarantee, whatever messages
//! were lost or late. A head that is not heard counts with all that it may be using; once it may not any more, with nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use quorate_types::control::{FlowReport, GroupFlow, GroupShare};
use quorate_types::limits::{GUARANTEE_KEPT_MARGIN_S, GUARANTEE_KEPT_S};
use quorate_types::{GroupId, Micros, ProjectId, ServerId};
use uuid::Uuid;

use crate::division::{Want, divide};
use crate::guarantee::LocalPolicy;
use crate::purse::Purse;

/// So long after it was last told anything, a head uses nothing of a guarantee.
const KEPT_US: Micros = (GUARANTEE_KEPT_S + GUARANTEE_KEPT_MARGIN_S) * 1_000_000;

/// A project with a guarantee, as the coordinators' state has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GuaranteedProject {
    pub project: ProjectId,
    pub shared_tokens_per_s: u64,
    /// Tokens that its groups may use of others' idle capacity, beside their own rates and the shared tokens; `None`: any.
    pub idle_tokens_per_s: Option<u64>,
    pub policy: LocalPolicy,
    pub groups: Vec<GuaranteedGroup>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GuaranteedGroup {
    pub group_id: GroupId,
    pub head: ServerId,
    /// The price of a request of the declared size, in thousandths of tokens; above 0.
    pub request_milli: u64,
}

/// A group at the moment, for people.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FlowNow {
    pub group_id: GroupId,
    /// Requests/s that it wants beside its own rate, and those of its share; `None`: its head has not reported.
    pub wanted_per_s: Option<u64>,
    pub share_per_s: Option<u64>,
}

/// Messages for servers, each with its decision.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    pub server: ServerId,
    pub stream: u64,
    pub decision: u64,
    pub reserved_milli: [u64; 3],
    pub shares: Vec<GroupShare>,
}

#[derive(Debug, Default)]
pub struct ProjectShares {
    projects: BTreeMap<ProjectId, GuaranteedProject>,
    /// The project of each group, and the price of its requests.
    owners: HashMap<GroupId, (ProjectId, u64)>,
    alive: BTreeSet<ServerId>,
    /// Reserved for shared guarantees on each server that reserves something, in thousandths of tokens each second.
    reserved: BTreeMap<ServerId, [u64; 3]>,
    flows: Flows,
    servers: BTreeMap<ServerId, Stream>,
    decision: u64,
}

type Flows = BTreeMap<Key, Flow>;
type Key = (ServerId, GroupId);

/// A group on a server that is its head, or was.
#[derive(Debug)]
struct Flow {
    /// `None`: its project has no guarantee, or it is deleted.
    project: Option<ProjectId>,
    request_milli: u64,
    wanted_per_s: u64,
    share: Purse,
    idle: Purse,
    /// From then on it uses nothing of the guarantee, unless it is told anything before.
    kept_until: Micros,
    is_current: bool,
}

#[derive(Debug)]
struct Stream {
    told_at: Micros,
    /// `None`: it was told nothing yet.
    told_reserved: Option<[u64; 3]>,
    /// The last report: it may be older than what is known of a group that it names, or does not name.
    report: FlowReport,
}

impl ProjectShares {
    /// The projects with guarantees as they are now, what servers reserve for them, and the servers that are alive.
    pub fn know(
        &mut self,
        now: Micros,
        projects: Vec<GuaranteedProject>,
        reserved: BTreeMap<ServerId, [u64; 3]>,
        alive: BTreeSet<ServerId>,
    ) {
        self.reserved = reserved;
        self.flows.values_mut().for_each(|flow| flow.is_current = false);
        self.owners.clear();
        for project in &projects {
            for group in &project.groups {
                let owner = (project.project, group.request_milli.max(1));
                self.owners.insert(group.group_id, owner);
                let stream = self.servers.get(&group.head);
                let flow = self.flows.entry((group.head, group.group_id));
                let flow = flow.or_insert_with(|| {
                    let mut flow = Flow::new(owner.1, now);
                    if let Some(stream) = stream {
                        flow.hear_report(group.group_id, &stream.report);
                    }
                    flow
                });
                (flow.is_current, flow.request_milli) = (true, owner.1);
            }
        }
        self.alive = alive;
        // A server that is given up for dead orders nothing any more.
        let alive = &self.alive;
        (self.flows).retain(|(server, _), flow| flow.is_current || alive.contains(server));
        self.servers.retain(|server, _| alive.contains(server));
        for ((_, group_id), flow) in &mut self.flows {
            flow.project = self.owners.get(group_id).map(|(project, _)| *project);
        }
        let projects = projects.into_iter().map(|project| (project.project, project));
        self.projects = projects.collect();
    }

    /// A server's report. It has all groups that use a share there, so groups that it lacks use none. Returns whether others may
    /// have more now.
    pub fn report(&mut self, now: Micros, server: ServerId, report: &FlowReport) -> bool {
        let known = self.servers.get_mut(&server);
        let is_new = known
            .as_ref()
            .is_none_or(|stream| stream.report.stream != report.stream);
        let reported = report.clone();
        match known {
            Some(stream) if !is_new => stream.report = reported,
            _ => {
                let stream = Stream {
                    told_at: now,
                    told_reserved: None,
                    report: reported,
                };
                self.servers.insert(server, stream);
            }
        }
        for reported in &report.flows {
            // It may have a share here, though the state has another head by now, or the project no guarantee any more.
            let owner = self.owners.get(&reported.group_id).copied();
            let flow = self.flows.entry((server, reported.group_id));
            flow.or_insert_with(|| Flow {
                project: owner.map(|(project, _)| project),
                is_current: false,
                ..Flow::new(owner.map_or(1, |(_, request_milli)| request_milli), now)
            });
        }
        let reported = report.flows.iter().map(|flow| (flow.group_id, flow));
        let reported: HashMap<GroupId, &GroupFlow> = reported.collect();
        let (mut gone, mut is_freed) = (Vec::new(), false);
        for (key, flow) in of_server(&mut self.flows, server) {
            let before = flow.share.possible();
            if is_new {
                flow.begin_stream();
            }
            match reported.get(&key.1) {
                Some(reported) => flow.hear(report.decision, reported),
                None => {
                    flow.hear_nothing(report.decision);
                    // A share may be under way, and the group may have its head here again when it arrives.
                    if !flow.is_current && flow.share.is_confirmed() {
                        gone.push(*key);
                    }
                }
            }
            let now = flow.share.possible();
            is_freed |= before.is_none() || now < before;
        }
        is_freed |= !gone.is_empty();
        gone.iter().for_each(|key| drop(self.flows.remove(key)));
        is_freed
    }

    /// Shares that changed. Servers that are told nothing for `renew_after` get a message all the same, so that they keep
    /// theirs.
    pub fn decide(&mut self, now: Micros, renew_after: Micros) -> Vec<Told> {
        self.decision += 1;
        let mut of_project: BTreeMap<ProjectId, Vec<Key>> = BTreeMap::new();
        let mut shares: BTreeMap<ServerId, Vec<GroupShare>> = BTreeMap::new();
        for (key, flow) in &self.flows {
            match flow.project {
                Some(project) => of_project.entry(project).or_default().push(*key),
                None => shares.entry(key.0).or_default().push(GroupShare {
                    group_id: key.1,
                    per_s: None,
                    idle_max_per_s: None,
                }),
            }
        }
        for (project, keys) in of_project {
            if let Some(project) = self.projects.get(&project) {
                let round = Round {
                    project,
                    decision: self.decision,
                    now,
                };
                for (server, share) in round.decide(&mut self.flows, &keys) {
                    shares.entry(server).or_default().push(share);
                }
            }
        }
        let mut told = Vec::new();
        for (server, stream) in &mut self.servers {
            let mut flows = of_server(&mut self.flows, *server).peekable();
            let shares = shares.remove(server).unwrap_or_default();
            let reserved = self.reserved.get(server).copied();
            let is_due =
                (flows.peek().is_some() || reserved.is_some()) && now >= stream.told_at + renew_after;
            let reserved_milli = reserved.unwrap_or_default();
            let is_due = is_due || stream.told_reserved.unwrap_or_default() != reserved_milli;
            if shares.is_empty() && !is_due {
                continue;
            }
            flows.for_each(|(_, flow)| flow.kept_until = now + KEPT_US);
            (stream.told_at, stream.told_reserved) = (now, Some(reserved_milli));
            told.push(Told {
                server: *server,
                stream: stream.report.stream,
                decision: self.decision,
                reserved_milli,
                shares,
            });
        }
        told
    }

    /// The groups of a project as they are now.
    pub fn view(&self, project: ProjectId) -> Vec<FlowNow> {
        let groups = self
            .projects
            .get(&project)
            .into_iter()
            .flat_map(|one| &one.groups);
        groups
            .map(|group| {
                let flow = self.flows.get(&(group.head, group.group_id));
                let flow = flow.filter(|flow| flow.share.possible().is_some());
                FlowNow {
                    group_id: group.group_id,
                    wanted_per_s: flow.map(|flow| flow.wanted_per_s),
                    share_per_s: flow.and_then(|flow| flow.share.latest()),
                }
            })
            .collect()
    }

    /// All of them, by project.
    pub fn views(&self) -> HashMap<ProjectId, Vec<FlowNow>> {
        self.projects
            .keys()
            .map(|project| (*project, self.view(*project)))
            .collect()
    }
}

/// A project's decision.
struct Round<'a> {
    project: &'a GuaranteedProject,
    decision: u64,
    now: Micros,
}

/// One of the two purses of a flow.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Share,
    Idle,
}

fn of_server(flows: &mut Flows, server: ServerId) -> impl Iterator<Item = (&Key, &mut Flow)> {
    let first = (server, GroupId(Uuid::nil()));
    flows
        .range_mut(first..)
        .take_while(move |((on, _), _)| *on == server)
}

impl Flow {
    fn new(request_milli: u64, now: Micros) -> Self {
        Self {
            project: None,
            request_milli,
            wanted_per_s: 0,
            share: Purse::default(),
            idle: Purse::default(),
            kept_until: now + KEPT_US,
            is_current: true,
        }
    }

    fn begin_stream(&mut self) {
        self.share.begin_stream();
        self.idle.begin_stream();
    }

    fn hear(&mut self, decision: u64, reported: &GroupFlow) {
        self.wanted_per_s = reported.wanted_per_s;
        self.share.hear(decision, reported.share_per_s);
        self.idle
            .hear(decision, reported.idle_max_per_s.unwrap_or(u64::MAX));
    }

    fn hear_report(&mut self, group_id: GroupId, report: &FlowReport) {
        match report.flows.iter().find(|flow| flow.group_id == group_id) {
            Some(reported) => self.hear(report.decision, reported),
            None => self.hear_nothing(report.decision),
        }
    }

    /// Its server reports no share of it: it uses none, and takes all of the idle capacity that it gets.
    fn hear_nothing(&mut self, decision: u64) {
        self.wanted_per_s = 0;
        self.share.hear(decision, 0);
        self.idle.hear(decision, u64::MAX);
    }

    /// The most of a purse that it may be using, in tokens/s.
    fn possible(&self, kind: Kind, now: Micros) -> u64 {
        match self.purse(kind).possible() {
            _ if now >= self.kept_until => 0,
            Some(per_s) => self.tokens(per_s),
            None => u64::MAX,
        }
    }

    fn purse(&self, kind: Kind) -> &Purse {
        match kind {
            Kind::Share => &self.share,
            Kind::Idle => &self.idle,
        }
    }

    fn tokens(&self, per_s: u64) -> u64 {
        let milli = u128::from(per_s) * u128::from(self.request_milli);
        u64::try_from(milli.div_ceil(1_000)).unwrap_or(u64::MAX)
    }

    fn requests(&self, tokens: u64) -> u64 {
        let requests = u128::from(tokens) * 1_000 / u128::from(self.request_milli);
        u64::try_from(requests).unwrap_or(u64::MAX)
    }
}

impl Round<'_> {
    fn decide(&self, flows: &mut Flows, keys: &[Key]) -> Vec<(ServerId, GroupShare)> {
        let shared = self.divide(flows, keys, Kind::Share, self.project.shared_tokens_per_s);
        let idle = (self.project.idle_tokens_per_s)
            .map(|tokens_per_s| self.divide(flows, keys, Kind::Idle, tokens_per_s));
        let mut told = Vec::new();
        for key in keys {
            let flow = flows.get_mut(key).expect("it is one of them");
            if !flow.is_current && flow.share.is_confirmed() {
                continue;
            }
            let Some(per_s) = shared.get(key).copied() else {
                continue;
            };
            let idle = idle
                .as_ref()
                .map_or(u64::MAX, |idle| idle.get(key).copied().unwrap_or(0));
            if flow.share.latest() == Some(per_s) && flow.idle.latest() == Some(idle) {
                continue;
            }
            flow.share.tell(self.decision, per_s);
            flow.idle.tell(self.decision, idle);
            let share = GroupShare {
                group_id: key.1,
                per_s: Some(per_s),
                idle_max_per_s: (idle != u64::MAX).then_some(idle),
            };
            told.push((key.0, share));
        }
        told
    }

    /// Requests/s of each head that has reported.
    fn divide(&self, flows: &Flows, keys: &[Key], kind: Kind, tokens_per_s: u64) -> BTreeMap<Key, u64> {
        let mut heard = Vec::new();
        let (mut beside, mut possible) = (0u64, 0u64);
        for key in keys {
            let flow = &flows[key];
            let may_use = flow.possible(kind, self.now).min(tokens_per_s);
            possible = possible.saturating_add(may_use);
            if flow.is_current && flow.purse(kind).possible().is_some() {
                heard.push((*key, may_use));
            } else {
                beside = beside.saturating_add(may_use);
            }
        }
        let want = |(key, _): &(Key, u64)| {
            let flow = &flows[key];
            let wanted_per_s = match kind {
                Kind::Share => flow.wanted_per_s,
                Kind::Idle => flow.wanted_per_s.saturating_sub(flow.share.latest().unwrap_or(0)),
            };
            Want {
                group_id: key.1,
                tokens_per_s: flow.tokens(wanted_per_s).min(tokens_per_s),
            }
        };
        let wants: Vec<Want> = heard.iter().map(want).collect();
        let targets = divide(&self.project.policy, tokens_per_s.saturating_sub(beside), &wants);
        let mut available = tokens_per_s.saturating_sub(possible);
        let mut given = BTreeMap::new();
        for ((key, may_use), target) in heard.into_iter().zip(targets) {
            let more = target.saturating_sub(may_use).min(available);
            available -= more;
            given.insert(
                key,
                flows[&key].requests(target.min(may_use).saturating_add(more)),
            );
        }
        given
    }
}
