//! The input of every algorithm of this crate, and the test of whether its output is feasible.

use quorate_types::{Epoch, GroupConfig, GroupId};

/// A group in one epoch: with another chain it is another tenant.
pub type GroupEpoch = (GroupId, Epoch);

/// CPU, network and storage IO, in thousandths of tokens each second. The cost of one request is in thousandths of
/// tokens.
pub type Vector = [u64; RESOURCES];

pub const RESOURCES: usize = 3;
pub(crate) const NOTHING: Vector = [0; RESOURCES];

/// One replica of a tenant: its server, and the cost of one request there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplicaCost {
    /// Position in [`SharingProblem::free`].
    pub server: usize,
    pub cost: Vector,
}

impl ReplicaCost {
    /// A group's chain, and the servers that will join it. `None`: its requests cost nothing.
    pub fn of(config: &GroupConfig) -> Option<Vec<Self>> {
        let replicas = config.line().enumerate().map(|(position, member)| Self {
            server: member.server_id.0 as usize,
            cost: config.budget.burst_milli_at(position),
        });
        let replicas: Vec<Self> = replicas.collect();
        let costs_something = replicas.iter().any(|replica| replica.cost != NOTHING);
        costs_something.then_some(replicas)
    }
}

/// A tenant that wants more than it reserved: its demand profile for one request (P_t of Equation 4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharingTenant {
    /// In chain order, the head first, each on a server of its own (Cons3).
    pub replicas: Vec<ReplicaCost>,
    /// Requests/s that it wants above its reservation; `u64::MAX` for as many as fit.
    pub extra_per_s: u64,
}

/// Free resources of `m` servers (R of Equation 5, `m` × [`RESOURCES`]) and the tenants that want them (T).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharingProblem {
    free: Vec<Vector>,
    tenants: Vec<SharingTenant>,
}

/// The first fault that [`SharingProblem::new`] found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InvalidProblem {
    NoReplica { tenant: usize },
    UnknownServer { tenant: usize, replica: usize },
    TwiceOnOneServer { tenant: usize, replica: usize },
    CostsNothing { tenant: usize },
}

impl SharingProblem {
    pub fn new(free: Vec<Vector>, tenants: Vec<SharingTenant>) -> Result<Self, InvalidProblem> {
        for (t, tenant) in tenants.iter().enumerate() {
            tenant.check(t, free.len())?;
        }
        Ok(Self { free, tenants })
    }

    pub fn free(&self) -> &[Vector] {
        &self.free
    }

    pub fn tenants(&self) -> &[SharingTenant] {
        &self.tenants
    }

    /// Equation 5 for one request of tenant `t`; infinite when a resource that it needs has nothing free.
    pub fn share_of_request(&self, t: usize) -> f64 {
        let replicas = self.tenants[t].replicas.iter();
        replicas
            .map(|replica| share(&replica.cost, &self.free[replica.server]))
            .fold(0.0, f64::max)
    }

    /// SharingTenant `t`'s dominant share when `utility` requests/s are granted (Equation 5).
    pub fn dominant_share(&self, t: usize, utility: u64) -> f64 {
        if utility == 0 {
            0.0
        } else {
            self.share_of_request(t) * utility as f64
        }
    }

    /// The rest of each server's free amounts under these grants, one a tenant; `None` if they over-allocate (Cons4).
    pub fn left(&self, grants: &[u64]) -> Option<Vec<Vector>> {
        let used = self.used(grants);
        let left = |(free, used): (&Vector, &[u128; RESOURCES])| {
            let mut left = NOTHING;
            for i in 0..RESOURCES {
                left[i] = u64::try_from(u128::from(free[i]).checked_sub(used[i])?).ok()?;
            }
            Some(left)
        };
        self.free.iter().zip(&used).map(left).collect()
    }

    fn used(&self, grants: &[u64]) -> Vec<[u128; RESOURCES]> {
        assert_eq!(grants.len(), self.tenants.len(), "one grant for each tenant");
        let mut used = vec![[0u128; RESOURCES]; self.free.len()];
        for (tenant, grant) in self.tenants.iter().zip(grants) {
            add(&mut used, &tenant.replicas, *grant);
        }
        used
    }

    pub(crate) fn whole(&self, grants: &[f64]) -> Vec<u64> {
        let wants = self.tenants.iter().map(|tenant| tenant.extra_per_s);
        whole(&self.free, grants.iter().copied().zip(wants), |t| {
            &self.tenants[t].replicas
        })
    }
}

/// Whole requests of real-valued grants, each paired with its wanted rate. Grants are rounded down, and lose one more
/// where a sum of rounded reals exceeds the free amount. The result is feasible.
pub(crate) fn whole<'a>(
    free: &[Vector],
    grants: impl Iterator<Item = (f64, u64)>,
    replicas: impl Fn(usize) -> &'a [ReplicaCost],
) -> Vec<u64> {
    let mut whole: Vec<u64> = grants
        .map(|(grant, wanted)| (grant.floor() as u64).min(wanted))
        .collect();
    let mut used = vec![[0u128; RESOURCES]; free.len()];
    for (t, grant) in whole.iter().enumerate() {
        add(&mut used, replicas(t), *grant);
    }
    let over = |used: &[[u128; RESOURCES]], replica: &ReplicaCost| {
        (0..RESOURCES)
            .any(|i| replica.cost[i] > 0 && used[replica.server][i] > u128::from(free[replica.server][i]))
    };
    loop {
        let mut mended = false;
        for (t, grant) in whole.iter_mut().enumerate() {
            if *grant > 0 && replicas(t).iter().any(|replica| over(&used, replica)) {
                *grant -= 1;
                for replica in replicas(t) {
                    for i in 0..RESOURCES {
                        used[replica.server][i] -= u128::from(replica.cost[i]);
                    }
                }
                mended = true;
            }
        }
        if !mended {
            return whole;
        }
    }
}

fn add(used: &mut [[u128; RESOURCES]], replicas: &[ReplicaCost], grant: u64) {
    for replica in replicas {
        for i in 0..RESOURCES {
            used[replica.server][i] += u128::from(replica.cost[i]) * u128::from(grant);
        }
    }
}

impl SharingTenant {
    fn check(&self, tenant: usize, servers: usize) -> Result<(), InvalidProblem> {
        if self.replicas.is_empty() {
            return Err(InvalidProblem::NoReplica { tenant });
        }
        for (p, replica) in self.replicas.iter().enumerate() {
            if replica.server >= servers {
                return Err(InvalidProblem::UnknownServer { tenant, replica: p });
            }
            if self.replicas[..p]
                .iter()
                .any(|other| other.server == replica.server)
            {
                return Err(InvalidProblem::TwiceOnOneServer { tenant, replica: p });
            }
        }
        if self.replicas.iter().all(|replica| replica.cost == NOTHING) {
            return Err(InvalidProblem::CostsNothing { tenant });
        }
        Ok(())
    }
}

/// The largest component of `cost` as a share of `free`.
pub(crate) fn share(cost: &Vector, free: &Vector) -> f64 {
    let component = |i: usize| match (cost[i], free[i]) {
        (0, _) => 0.0,
        (_, 0) => f64::INFINITY,
        (cost, free) => cost as f64 / free as f64,
    };
    (0..RESOURCES).map(component).fold(0.0, f64::max)
}

pub(crate) fn fits(cost: &Vector, free: &Vector) -> bool {
    (0..RESOURCES).all(|i| cost[i] <= free[i])
}

pub(crate) fn take(free: &mut Vector, cost: &Vector) {
    for i in 0..RESOURCES {
        free[i] -= cost[i];
    }
}
