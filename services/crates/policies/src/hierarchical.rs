//! Hierarchical dominant resource fairness (Bhattacharya et al., SOCC 2013) over projects and their flows: equal dominant
//! shares among projects by weight, and among the flows of each.
//!
//! - A flow is *blocked* when a resource that it needs is full, or its demand is met. A project is when all of its flows are.
//! - The flows of a project that are not blocked have one *level*: their dominant shares by weight. The project's dominant
//!   share is that of their sum. Blocked flows do not count: else a project would pay for what its flows cannot use.
//! - The project with the smallest share by weight gets the next tokens. So projects rise together, at the *root's level*. A
//!   project whose flow was blocked is behind, and rises alone until it has caught up.
//!
//! Amounts are infinitely divisible here, where the paper gives task after task. Each flow is blocked once, so there are as many
//! steps as flows; the cost of a step is that of the project's resources, and one look at all.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::problem::{Allocation, Problem};

pub fn share(problem: &Problem) -> Allocation {
    let mut run = Run::new(problem);
    run.begin();
    while run.catch_up() || run.rise() {}
    Allocation { parts: run.parts }
}

/// Levels that differ by less are equal.
const SAME: f64 = 1e-12;

/// A project, with what its flows use that are not blocked.
struct Node {
    weight: f64,
    /// The level of its flows that are not blocked.
    level: f64,
    /// Resources that its flows use, the part of each that they use at level 1, and how many flows that is.
    resources: Vec<u32>,
    uses: Vec<f64>,
    users: Vec<u32>,
    /// The largest of `uses`.
    dominant: f64,
    /// Flows by the level at which their demand is met, the next one last. Some may be blocked already.
    by_demand: Vec<(f64, u32)>,
    /// Flows that are not blocked.
    rising: usize,
    is_joined: bool,
    is_behind: bool,
    /// Entries of [`Run::demands`] with other numbers are old.
    version: u32,
}

impl Node {
    /// Its flows' level at a level of the root.
    fn level_at(&self, root: f64) -> f64 {
        root * self.weight / self.dominant
    }

    fn root_level(&self) -> f64 {
        self.level * self.dominant / self.weight
    }

    /// Its next flow whose demand is met, if nothing is full before.
    fn next_met(&mut self, blocked: &[bool]) -> Option<(f64, u32)> {
        while self.by_demand.last().is_some_and(|(_, f)| blocked[*f as usize]) {
            self.by_demand.pop();
        }
        self.by_demand.last().copied()
    }

    fn measure(&mut self) {
        self.dominant = self.uses.iter().copied().fold(0.0, f64::max);
    }

    /// A flow that uses its resource `at` rises no more.
    fn take_out(&mut self, at: usize, part: f64) {
        self.users[at] -= 1;
        // Nothing but rounding is left where nobody uses it.
        let left = self.uses[at] - part;
        self.uses[at] = if self.users[at] > 0 { left.max(0.0) } else { 0.0 };
    }

    /// Its use of its resource `at` for each level of the root.
    fn rate(&self, at: usize) -> f64 {
        self.uses[at] * self.weight / self.dominant
    }
}

/// A resource that gets full at `full_at`, if all projects that have joined rise on.
struct Resources {
    /// Parts that are free at the root's level `seen_at`.
    free: Vec<f64>,
    seen_at: Vec<f64>,
    rate: Vec<f64>,
    /// Projects that have joined and use it.
    users: Vec<u32>,
    full_at: Vec<f64>,
}

impl Resources {
    fn settle(&mut self, r: usize, root: f64) {
        self.free[r] = (self.free[r] - self.rate[r] * (root - self.seen_at[r])).max(0.0);
        self.seen_at[r] = root;
    }

    fn join(&mut self, r: usize, root: f64, rate: f64) {
        self.settle(r, root);
        self.rate[r] += rate;
        self.users[r] += 1;
        self.foresee(r);
    }

    fn part(&mut self, r: usize, root: f64, rate: f64) {
        self.settle(r, root);
        self.users[r] -= 1;
        let left = self.rate[r] - rate;
        self.rate[r] = if self.users[r] > 0 { left.max(0.0) } else { 0.0 };
        self.foresee(r);
    }

    /// Projects that catch up have taken some of it.
    fn take(&mut self, r: usize, amount: f64) {
        self.free[r] = (self.free[r] - amount).max(0.0);
        self.foresee(r);
    }

    /// Nothing of it is left.
    fn fill(&mut self, r: usize) {
        self.take(r, f64::INFINITY);
    }

    fn foresee(&mut self, r: usize) {
        self.full_at[r] = if self.rate[r] > 0.0 {
            self.seen_at[r] + self.free[r] / self.rate[r]
        } else {
            f64::INFINITY
        };
    }

    /// The next to be full.
    fn next(&self) -> (usize, f64) {
        let soonest = self.full_at.iter().copied().fold(f64::INFINITY, f64::min);
        let at = self.full_at.iter().position(|full_at| *full_at == soonest);
        (at.unwrap_or(0), soonest)
    }
}

struct Run<'a> {
    problem: &'a Problem,
    parts: Vec<f64>,
    blocked: Vec<bool>,
    shares: Vec<f64>,
    nodes: Vec<Node>,
    /// Flows of each resource.
    users: Vec<Vec<u32>>,
    /// Uses of flows at level 1 of their project, by the project's resources; those of `f` are
    /// `uses[starts[f]..starts[f + 1]]`.
    uses: Vec<(u32, f64)>,
    starts: Vec<u32>,
    resources: Resources,
    /// The level of the projects that have joined.
    root: f64,
    /// Projects that are behind.
    behind: Vec<u32>,
    /// The next demands of projects that have joined to be met: the root's level, project and version.
    demands: BinaryHeap<Reverse<(u64, u32, u32)>>,
    /// Rates of the projects that catch up.
    rate_behind: Vec<f64>,
}

impl<'a> Run<'a> {
    fn new(problem: &'a Problem) -> Self {
        let (flows, resources) = (problem.flows(), problem.capacity().len());
        let shares: Vec<f64> = (0..flows.len()).map(|f| problem.dominant_share(f)).collect();
        let mut users = vec![Vec::new(); resources];
        for (f, flow) in flows.iter().enumerate() {
            let wanted = flow.demand.iter().filter(|(_, tokens)| *tokens > 0);
            wanted.for_each(|(resource, _)| users[*resource].push(f as u32));
        }
        let nodes = problem.projects().iter().map(|project| Node {
            weight: project.weight,
            level: 0.0,
            resources: Vec::new(),
            uses: Vec::new(),
            users: Vec::new(),
            dominant: 0.0,
            by_demand: Vec::new(),
            rising: 0,
            is_joined: false,
            is_behind: false,
            version: 0,
        });
        Self {
            problem,
            parts: shares
                .iter()
                .map(|share| f64::from(u8::from(*share == 0.0)))
                .collect(),
            blocked: shares
                .iter()
                .map(|share| !share.is_finite() || *share == 0.0)
                .collect(),
            shares,
            nodes: nodes.collect(),
            users,
            uses: Vec::new(),
            starts: vec![0],
            resources: Resources {
                free: vec![1.0; resources],
                seen_at: vec![0.0; resources],
                rate: vec![0.0; resources],
                users: vec![0; resources],
                full_at: vec![f64::INFINITY; resources],
            },
            root: 0.0,
            behind: Vec::new(),
            demands: BinaryHeap::new(),
            rate_behind: vec![0.0; resources],
        }
    }

    /// All projects whose flows can rise join at level 0.
    fn begin(&mut self) {
        let problem = self.problem;
        for (f, flow) in problem
            .flows()
            .iter()
            .enumerate()
            .filter(|(f, _)| !self.blocked[*f])
        {
            let node = &mut self.nodes[flow.project];
            node.by_demand.push((self.shares[f] / flow.weight, f as u32));
            node.resources.extend(
                flow.demand
                    .iter()
                    .filter(|(_, tokens)| *tokens > 0)
                    .map(|(r, _)| *r as u32),
            );
            node.rising += 1;
        }
        for node in &mut self.nodes {
            node.by_demand.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
            node.resources.sort_unstable();
            node.resources.dedup();
            node.uses = vec![0.0; node.resources.len()];
            node.users = vec![0; node.resources.len()];
        }
        self.add_up();
        for p in 0..self.nodes.len() {
            if self.nodes[p].rising > 0 {
                self.nodes[p].measure();
                self.join(p);
            }
        }
    }

    /// Sums up what the flows of each project use.
    fn add_up(&mut self) {
        let problem = self.problem;
        for (f, flow) in problem.flows().iter().enumerate() {
            if !self.blocked[f] {
                let node = &mut self.nodes[flow.project];
                for (r, tokens) in flow.demand.iter().filter(|(_, tokens)| *tokens > 0) {
                    let part = *tokens as f64 / problem.capacity()[*r] as f64;
                    let part = flow.weight * part / self.shares[f];
                    let at = node
                        .resources
                        .binary_search(&(*r as u32))
                        .expect("resources of all its flows");
                    node.uses[at] += part;
                    node.users[at] += 1;
                    self.uses.push((at as u32, part));
                }
            }
            self.starts.push(self.uses.len() as u32);
        }
    }

    fn join(&mut self, p: usize) {
        let root = self.root;
        let node = &mut self.nodes[p];
        (node.is_joined, node.level) = (true, node.level_at(root));
        node.version += 1;
        for (at, r) in node.resources.iter().enumerate() {
            if node.uses[at] > 0.0 {
                self.resources.join(*r as usize, root, node.rate(at));
            }
        }
        if let Some((level, _)) = node.next_met(&self.blocked) {
            let met_at = (level * node.dominant / node.weight).max(root);
            self.demands
                .push(Reverse((met_at.to_bits(), p as u32, node.version)));
        }
    }

    /// The project rises with the others no more.
    fn part(&mut self, p: usize) {
        let root = self.root;
        let node = &mut self.nodes[p];
        if !std::mem::take(&mut node.is_joined) {
            return;
        }
        node.level = node.level_at(root);
        node.version += 1;
        for (at, r) in node.resources.iter().enumerate() {
            if node.uses[at] > 0.0 {
                self.resources.part(*r as usize, root, node.rate(at));
            }
        }
    }

    /// Blocks flows of any projects; those that can still rise are behind from here on. `is_met`: their demand is.
    fn block(&mut self, flows: &[u32], is_met: bool) {
        let mut projects: Vec<usize> = flows
            .iter()
            .map(|f| self.problem.flows()[*f as usize].project)
            .collect();
        projects.sort_unstable();
        projects.dedup();
        projects.iter().for_each(|p| self.part(*p));
        for f in flows.iter().map(|f| *f as usize) {
            let flow = &self.problem.flows()[f];
            let range = self.starts[f] as usize..self.starts[f + 1] as usize;
            let node = &mut self.nodes[flow.project];
            for (at, part) in &self.uses[range] {
                node.take_out(*at as usize, *part);
            }
            self.blocked[f] = true;
            node.rising -= 1;
            let part = node.level * flow.weight / self.shares[f];
            self.parts[f] = if is_met { 1.0 } else { part.min(1.0) };
        }
        for p in projects {
            let node = &mut self.nodes[p];
            node.measure();
            if !std::mem::replace(&mut node.is_behind, true) {
                self.behind.push(p as u32);
            }
        }
        let nodes = &mut self.nodes;
        self.behind.retain(|p| {
            let node = &mut nodes[*p as usize];
            node.is_behind = node.rising > 0;
            node.is_behind
        });
    }

    fn block_users(&mut self, r: usize) {
        let rising = self.users[r].iter().copied();
        let flows: Vec<u32> = rising.filter(|f| !self.blocked[*f as usize]).collect();
        self.block(&flows, false);
    }

    /// One step of all projects that have joined. False: none can rise.
    fn rise(&mut self) -> bool {
        while let Some(Reverse((_, p, version))) = self.demands.peek() {
            if self.nodes[*p as usize].version == *version {
                break;
            }
            self.demands.pop();
        }
        let met = self
            .demands
            .peek()
            .map(|Reverse((at, p, _))| (f64::from_bits(*at), *p as usize));
        let (r, full_at) = self.resources.next();
        match met {
            Some((met_at, p)) if met_at <= full_at => {
                self.root = self.root.max(met_at);
                let (_, f) = self.nodes[p].next_met(&self.blocked).expect("its demand is due");
                self.block(&[f], true);
                true
            }
            _ if full_at.is_finite() => {
                self.root = self.root.max(full_at);
                self.resources.settle(r, self.root);
                self.resources.fill(r);
                self.block_users(r);
                true
            }
            _ => false,
        }
    }

    /// One step of the projects that are furthest behind. False: none is behind.
    fn catch_up(&mut self) -> bool {
        let levels = |run: &Self| -> Vec<f64> {
            let of = |p: &u32| run.nodes[*p as usize].root_level();
            run.behind.iter().map(of).collect()
        };
        let of_behind = levels(self);
        let Some(lowest) = of_behind.iter().copied().min_by(f64::total_cmp) else {
            return false;
        };
        let is_lowest = |level: f64| level <= lowest + lowest * SAME;
        let others = of_behind.iter().copied().filter(|level| !is_lowest(*level));
        let next = others.fold(self.root, f64::min);
        let group: Vec<usize> = (self.behind.iter().zip(&of_behind))
            .filter(|(_, level)| is_lowest(**level))
            .map(|(p, _)| *p as usize)
            .collect();
        if lowest >= self.root * (1.0 - SAME) {
            group.iter().for_each(|p| self.nodes[*p].is_behind = false);
            self.behind.retain(|p| self.nodes[*p as usize].is_behind);
            group.into_iter().for_each(|p| self.join(p));
            return true;
        }
        self.rise_behind(&group, lowest, next);
        true
    }

    /// The group rises from a level to the next event, at most to `until`.
    fn rise_behind(&mut self, group: &[usize], from: f64, until: f64) {
        let mut touched: Vec<usize> = Vec::new();
        for p in group {
            let node = &self.nodes[*p];
            for (at, r) in node
                .resources
                .iter()
                .enumerate()
                .filter(|(at, _)| node.uses[*at] > 0.0)
            {
                let r = *r as usize;
                if self.rate_behind[r] == 0.0 {
                    touched.push(r);
                }
                self.rate_behind[r] += node.rate(at);
            }
        }
        let (mut event, mut to) = (Event::Reached, until);
        for r in &touched {
            self.resources.settle(*r, self.root);
            let full_at = from + self.resources.free[*r] / self.rate_behind[*r];
            if full_at < to {
                (event, to) = (Event::Full(*r), full_at);
            }
        }
        for p in group {
            let node = &mut self.nodes[*p];
            if let Some((level, f)) = node.next_met(&self.blocked) {
                let met_at = (level * node.dominant / node.weight).max(from);
                if met_at < to {
                    (event, to) = (Event::Met(f), met_at);
                }
            }
        }
        for r in touched {
            let rate = std::mem::take(&mut self.rate_behind[r]);
            self.resources.take(r, rate * (to - from));
        }
        for p in group {
            self.nodes[*p].level = self.nodes[*p].level_at(to);
        }
        match event {
            Event::Reached => {}
            Event::Met(f) => self.block(&[f], true),
            Event::Full(r) => {
                self.resources.fill(r);
                self.block_users(r);
            }
        }
    }
}

/// The end of one step.
enum Event {
    Reached,
    Met(u32),
    Full(usize),
}
