//! Progressive filling: all dominant shares rise together; at each saturation some stop (max-min fairness weighted
//! by what one request is of a tenant's share; Bertsekas and Gallagher §6.5.2, with several resources).
//!
//! A flow has a share per request `d`. At *level* `l` it takes `l / d` requests/s, or its cap. A resource is full at
//! the level at which the flows that still rise, and what the stopped ones took, need all of it; the flows that
//! use it stop there. Each flow stops once, so the cost is (uses) × log(resources), whatever the amounts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::problem::{Place, RESOURCES, Vector};

/// `n` flows over `free.len()` resources.
#[derive(Debug)]
pub struct Filling {
    free: Vec<f64>,
    /// Share of one request, for each flow. Infinite: the flow gets nothing.
    shares: Vec<f64>,
    /// Resource and cost of one request; flow `f`'s are `uses[starts[f]..starts[f + 1]]`.
    uses: Vec<(u32, f64)>,
    starts: Vec<u32>,
    /// The flows of each resource, in the same form.
    users: Vec<u32>,
    user_starts: Vec<u32>,
}

impl Filling {
    /// `free`: `m` servers. `flows`: share of one request, and the places where it costs.
    pub fn new<'a>(free: &[Vector], flows: impl IntoIterator<Item = (f64, &'a [Place])>) -> Self {
        let (mut shares, mut uses, mut starts) = (Vec::new(), Vec::new(), vec![0]);
        for (share, places) in flows {
            shares.push(share);
            for place in places {
                for i in 0..RESOURCES {
                    if place.cost[i] > 0 {
                        uses.push(((place.server * RESOURCES + i) as u32, place.cost[i] as f64));
                    }
                }
            }
            starts.push(uses.len() as u32);
        }
        let free: Vec<f64> = free.iter().flatten().map(|amount| *amount as f64).collect();
        let (users, user_starts) = turn(free.len(), &uses, &starts);
        Self {
            free,
            shares,
            uses,
            starts,
            users,
            user_starts,
        }
    }

    /// Requests/s of each flow. `caps`: requests/s that a flow does not go beyond, infinite for none.
    pub fn fill(&self, caps: &[f64]) -> Vec<f64> {
        let mut run = Run::new(self, caps);
        while run.stop_next() {}
        run.taken
    }

    fn uses_of(&self, f: usize) -> &[(u32, f64)] {
        &self.uses[self.starts[f] as usize..self.starts[f + 1] as usize]
    }

    fn users_of(&self, r: usize) -> &[u32] {
        &self.users[self.user_starts[r] as usize..self.user_starts[r + 1] as usize]
    }
}

/// Lists of flows by resource, from lists of resources by flow.
fn turn(resources: usize, uses: &[(u32, f64)], starts: &[u32]) -> (Vec<u32>, Vec<u32>) {
    let mut user_starts = vec![0u32; resources + 1];
    for (r, _) in uses {
        user_starts[*r as usize + 1] += 1;
    }
    for r in 0..resources {
        user_starts[r + 1] += user_starts[r];
    }
    let mut next = user_starts.clone();
    let mut users = vec![0u32; uses.len()];
    for f in 0..starts.len() - 1 {
        for (r, _) in &uses[starts[f] as usize..starts[f + 1] as usize] {
            users[next[*r as usize] as usize] = f as u32;
            next[*r as usize] += 1;
        }
    }
    (users, user_starts)
}

/// When a resource will be full, unless its `version` has changed since.
type Saturation = Reverse<(u64, u32, u32)>;

struct Run<'a> {
    filling: &'a Filling,
    caps: &'a [f64],
    level: f64,
    rises: Vec<bool>,
    taken: Vec<f64>,
    /// Of each resource: used by flows that stopped; what the rising ones use at level 1, and how many they are.
    stopped_use: Vec<f64>,
    use_a_level: Vec<f64>,
    rising: Vec<u32>,
    version: Vec<u32>,
    saturations: BinaryHeap<Saturation>,
    /// Flows with a cap, the one whose cap is reached last first.
    capped: Vec<(f64, u32)>,
}

impl<'a> Run<'a> {
    fn new(filling: &'a Filling, caps: &'a [f64]) -> Self {
        let (flows, resources) = (filling.shares.len(), filling.free.len());
        assert_eq!(caps.len(), flows, "one cap for each flow");
        let mut run = Self {
            filling,
            caps,
            level: 0.0,
            rises: filling.shares.iter().map(|share| share.is_finite()).collect(),
            taken: vec![0.0; flows],
            stopped_use: vec![0.0; resources],
            use_a_level: vec![0.0; resources],
            rising: vec![0; resources],
            version: vec![0; resources],
            saturations: BinaryHeap::new(),
            capped: Vec::new(),
        };
        for f in (0..flows).filter(|f| filling.shares[*f].is_finite()) {
            if filling.uses_of(f).is_empty() {
                run.rises[f] = false;
                run.taken[f] = caps[f];
                continue;
            }
            for (r, cost) in filling.uses_of(f) {
                run.use_a_level[*r as usize] += cost / filling.shares[f];
                run.rising[*r as usize] += 1;
            }
            if caps[f].is_finite() {
                // Peers tell shares and bounds: any finite ones.
                let level = (caps[f] * filling.shares[f]).min(f64::MAX);
                run.capped.push((level, f as u32));
            }
        }
        run.capped.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        for r in 0..resources {
            run.foresee(r);
        }
        run
    }

    /// The next saturation or cap; false when nothing rises any more.
    fn stop_next(&mut self) -> bool {
        while self.capped.last().is_some_and(|(_, f)| !self.rises[*f as usize]) {
            self.capped.pop();
        }
        while let Some(Reverse((_, version, r))) = self.saturations.peek()
            && self.version[*r as usize] != *version
        {
            self.saturations.pop();
        }
        let full = self.saturations.peek().map(|next| f64::from_bits(next.0.0));
        let cap = self.capped.last().map(|next| next.0);
        match (full, cap) {
            (None, None) => false,
            (full, Some(cap)) if full.is_none_or(|full| cap <= full) => {
                let (_, f) = self.capped.pop().expect("it was there");
                self.level = self.level.max(cap);
                self.stop(f as usize, self.caps[f as usize]);
                true
            }
            _ => {
                let Reverse((bits, _, r)) = self.saturations.pop().expect("it was there");
                self.level = self.level.max(f64::from_bits(bits));
                self.saturate(r as usize);
                true
            }
        }
    }

    fn saturate(&mut self, r: usize) {
        let filling = self.filling;
        for f in filling.users_of(r) {
            if self.rises[*f as usize] {
                self.stop(*f as usize, self.level / filling.shares[*f as usize]);
            }
        }
    }

    fn stop(&mut self, f: usize, taken: f64) {
        self.rises[f] = false;
        self.taken[f] = taken;
        for (r, cost) in self.filling.uses_of(f) {
            let r = *r as usize;
            self.stopped_use[r] += cost * taken;
            self.use_a_level[r] -= cost / self.filling.shares[f];
            self.rising[r] -= 1;
            self.foresee(r);
        }
    }

    fn foresee(&mut self, r: usize) {
        self.version[r] += 1;
        if self.rising[r] == 0 {
            return;
        }
        let left = (self.filling.free[r] - self.stopped_use[r]).max(0.0);
        // Differences of sums of reals: never below the level that was reached.
        let level = (left / self.use_a_level[r].max(f64::MIN_POSITIVE)).clamp(self.level, f64::MAX);
        self.saturations
            .push(Reverse((level.to_bits(), self.version[r], r as u32)));
    }
}
