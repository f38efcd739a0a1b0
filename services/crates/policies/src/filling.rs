//! Progressive filling: all dominant shares rise together, and some stop at each saturation. It is max-min fairness
//! weighted by one request's share (Bertsekas and Gallagher §6.5.2), with several resources.
//!
//! A flow has a share per request `d`. At *level* `l` it takes `l / d` requests/s, or its cap. A resource is full at the
//! level at which rising and stopped flows together need all of it; the flows that use it stop there. Each flow stops
//! once, so the cost is (uses) × log(resources), whatever the amounts.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Resource and cost of one request, not 0.
pub type Use = (u32, f64);

/// The rates at which flows stopped, and the reasons.
#[derive(Debug)]
pub struct Filled {
    /// Requests/s of each flow.
    pub taken: Vec<f64>,
    /// The resource that was full; none if the cap was reached, or the flow never rose.
    pub full: Vec<Option<u32>>,
}

/// `n` flows over `free.len()` resources.
#[derive(Debug)]
pub struct Filling {
    free: Vec<f64>,
    /// Share of one request, for each flow. A flow whose share is infinite gets nothing.
    shares: Vec<f64>,
    /// Resources and amounts at level 1; those of flow `f` are `uses[starts[f]..starts[f + 1]]`.
    uses: Vec<Use>,
    starts: Vec<u32>,
    /// The flows of each resource, in the same form. Only the `first` flows, which [`Filling::sorted`] found, are here.
    users: Vec<u32>,
    user_starts: Vec<u32>,
    first: usize,
    /// Resources and flows that came later, in order.
    late_users: Vec<(u32, u32)>,
}

impl Filling {
    /// `free`: the amount of each resource. `flows`: share of one request, and its uses.
    pub fn new<U: IntoIterator<Item = Use>>(
        free: Vec<f64>,
        flows: impl IntoIterator<Item = (f64, U)>,
    ) -> Self {
        let mut filling = Self::empty(free, 0, 0);
        for (share, own) in flows {
            filling.push(share, own);
        }
        filling.sorted()
    }

    /// With room for this number of flows and uses; more may come.
    pub fn empty(free: Vec<f64>, flows: usize, uses: usize) -> Self {
        Self {
            free,
            shares: Vec::with_capacity(flows),
            uses: Vec::with_capacity(uses),
            starts: vec![0],
            users: Vec::new(),
            user_starts: Vec::new(),
            first: 0,
            late_users: Vec::new(),
        }
    }

    /// After the first flows were pushed, before anything is filled.
    pub fn sorted(mut self) -> Self {
        (self.users, self.user_starts) = turn(self.free.len(), &self.uses, &self.starts);
        self.first = self.shares.len();
        self
    }

    /// Adds a few late flows and drops the previous late ones. The uses of the first flows are not sorted again.
    pub fn replace_late<U: IntoIterator<Item = Use>>(&mut self, flows: impl IntoIterator<Item = (f64, U)>) {
        self.shares.truncate(self.first);
        self.starts.truncate(self.first + 1);
        self.uses.truncate(self.starts[self.first] as usize);
        for (share, own) in flows {
            self.push(share, own);
        }
        let late = self.first..self.shares.len();
        let used_by = |f: usize| self.uses_of(f).iter().map(move |(r, _)| (*r, f as u32));
        self.late_users = late.flat_map(used_by).collect();
        self.late_users.sort_unstable();
    }

    /// `uses`: costs of one request. They are divided by the share here, once for all levels.
    pub fn push(&mut self, share: f64, uses: impl IntoIterator<Item = Use>) {
        self.shares.push(share);
        self.uses
            .extend(uses.into_iter().map(|(r, cost)| (r, cost / share)));
        self.starts.push(self.uses.len() as u32);
    }

    /// `caps`: the largest requests/s of each flow, infinite for none.
    pub fn fill(&self, caps: &[f64]) -> Filled {
        let mut run = Run::new(self, caps);
        while run.stop_next() {}
        run.filled
    }

    pub fn uses_of(&self, f: usize) -> &[Use] {
        &self.uses[self.starts[f] as usize..self.starts[f + 1] as usize]
    }

    fn users_of(&self, r: u32) -> impl Iterator<Item = usize> + '_ {
        let (from, to) = (self.user_starts[r as usize], self.user_starts[r as usize + 1]);
        let from_late = self.late_users.partition_point(|(other, _)| *other < r);
        let late = self.late_users[from_late..]
            .iter()
            .take_while(move |(other, _)| *other == r);
        let first = self.users[from as usize..to as usize].iter();
        first.chain(late.map(|(_, f)| f)).map(|f| *f as usize)
    }
}

/// Lists of flows by resource, from lists of resources by flow.
fn turn(resources: usize, uses: &[Use], starts: &[u32]) -> (Vec<u32>, Vec<u32>) {
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

/// The lowest level at which a resource can be full, as bits of a double. Flows that stop meanwhile only raise it.
type Saturation = Reverse<(u64, u32)>;

struct Run<'a> {
    filling: &'a Filling,
    caps: &'a [f64],
    level: f64,
    rises: Vec<bool>,
    filled: Filled,
    /// For each resource: the use of stopped flows, the use of rising flows at level 1, and the number of rising flows.
    stopped_use: Vec<f64>,
    use_a_level: Vec<f64>,
    rising: Vec<u32>,
    saturations: BinaryHeap<Saturation>,
    /// Flows with a cap. The one that reaches its cap next is last.
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
            filled: Filled {
                taken: vec![0.0; flows],
                full: vec![None; flows],
            },
            stopped_use: vec![0.0; resources],
            use_a_level: vec![0.0; resources],
            rising: vec![0; resources],
            saturations: BinaryHeap::new(),
            capped: Vec::new(),
        };
        for f in (0..flows).filter(|f| filling.shares[*f].is_finite()) {
            if filling.uses_of(f).is_empty() {
                run.rises[f] = false;
                run.filled.taken[f] = caps[f];
                continue;
            }
            for (r, per_level) in filling.uses_of(f) {
                run.use_a_level[*r as usize] += per_level;
                run.rising[*r as usize] += 1;
            }
            if caps[f].is_finite() {
                // Peers may send any finite numbers.
                let level = (caps[f] * filling.shares[f]).min(f64::MAX);
                run.capped.push((level, f as u32));
            }
        }
        run.capped.sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
        let used = (0..resources).filter(|r| run.rising[*r] > 0);
        run.saturations = used
            .map(|r| Reverse((run.full_at(r).to_bits(), r as u32)))
            .collect();
        run
    }

    /// Goes to the next saturation or cap; false if no flow rises any more.
    fn stop_next(&mut self) -> bool {
        while self.capped.last().is_some_and(|(_, f)| !self.rises[*f as usize]) {
            self.capped.pop();
        }
        let cap = self.capped.last().map(|next| next.0);
        let full = self.next_full(cap);
        match (full, cap) {
            (None, None) => false,
            (full, Some(cap)) if full.is_none_or(|(full, _)| cap <= full) => {
                let (_, f) = self.capped.pop().expect("it was there");
                self.level = self.level.max(cap);
                self.stop(f as usize, cap, self.caps[f as usize], None);
                true
            }
            (Some((full, r)), _) => {
                self.saturations.pop();
                self.level = self.level.max(full);
                self.saturate(r);
                true
            }
            (None, Some(_)) => unreachable!("without a saturation the cap is next"),
        }
    }

    /// The next resource to be full, and its level. The level may be too low if `cap` is not above it either.
    fn next_full(&mut self, cap: Option<f64>) -> Option<(f64, u32)> {
        while let Some(Reverse((soonest, r))) = self.saturations.peek().copied() {
            let soonest_at = f64::from_bits(soonest);
            if cap.is_some_and(|cap| cap <= soonest_at) {
                return Some((soonest_at, r));
            }
            if self.rising[r as usize] == 0 {
                self.saturations.pop();
                continue;
            }
            let full_at = self.full_at(r as usize);
            if full_at.to_bits() <= soonest {
                return Some((full_at, r));
            }
            self.saturations.pop();
            self.saturations.push(Reverse((full_at.to_bits(), r)));
        }
        None
    }

    fn saturate(&mut self, r: u32) {
        let filling = self.filling;
        for f in filling.users_of(r) {
            if self.rises[f] {
                self.stop(f, self.level, self.level / filling.shares[f], Some(r));
            }
        }
    }

    fn stop(&mut self, f: usize, level: f64, taken: f64, full: Option<u32>) {
        self.rises[f] = false;
        self.filled.taken[f] = taken;
        self.filled.full[f] = full;
        for (r, per_level) in self.filling.uses_of(f) {
            let r = *r as usize;
            self.stopped_use[r] += per_level * level;
            self.use_a_level[r] -= per_level;
            self.rising[r] -= 1;
        }
    }

    fn full_at(&self, r: usize) -> f64 {
        let left = (self.filling.free[r] - self.stopped_use[r]).max(0.0);
        // Differences of sums of reals: never below the level that was reached.
        (left / self.use_a_level[r].max(f64::MIN_POSITIVE)).clamp(self.level, f64::MAX)
    }
}
