//! The view of one server of Level-DRF: itself and the servers that it shares tenants with. Its own tenants are in it one
//! by one, others' as aggregates.

use std::collections::BTreeMap;

use quorate_policies::filling::Filling;
use quorate_types::limits::{SHARE_AGGREGATE_LEVELS_MAX, SHARE_AGGREGATES_MAX};

use crate::exact::per_s;
use crate::iterations::{Aggregate, Local};
use crate::problem::{RESOURCES, Vector, share};
use crate::uses::{amounts, uses_on};

/// One for each set of resources.
const MASKS: usize = 1 << RESOURCES;

pub struct View {
    /// Positions in `hosted`, and requests/s wanted.
    wanting: Vec<(usize, u64)>,
    /// Servers by their numbers here: this one, then the others whose free amounts are known.
    servers: Vec<usize>,
    /// Numbers of the known servers of the wanting tenant `f`: `hosts[starts[f]..starts[f + 1]]`.
    hosts: Vec<u32>,
    starts: Vec<u32>,
    /// Share of one request of each wanting tenant, of the free amounts of its known servers.
    shares: Vec<f64>,
    /// The wanting tenants, then others' aggregates.
    filling: Filling,
}

/// The rates and levels to which the wanting tenants rise.
#[derive(Debug)]
pub struct FilledView {
    /// Requests/s.
    pub taken: Vec<f64>,
    /// The level at which a tenant's other servers, or its own wish, stop it; infinite if it stops at this server.
    until_level: Vec<f64>,
}

impl View {
    pub fn new(local: &Local, wanting: Vec<(usize, u64)>, free_of: &BTreeMap<usize, Vector>) -> Self {
        let others = free_of.iter().filter(|(server, _)| **server != local.server);
        let known = std::iter::once((&local.server, &local.free)).chain(others);
        let (servers, free): (Vec<usize>, Vec<Vector>) = known.map(|(server, free)| (*server, *free)).unzip();
        // The others are sorted.
        let number_of = |server: usize| servers[1..].binary_search(&server).ok().map(|n| n + 1);
        let replicas = wanting.iter().map(|(h, _)| local.hosted[*h].replicas.len()).sum();
        let (mut hosts, mut starts, mut shares) = (
            Vec::with_capacity(replicas),
            vec![0],
            Vec::with_capacity(wanting.len()),
        );
        let mut filling = Filling::empty(amounts(&free), wanting.len(), replicas * RESOURCES);
        let mut own: Vec<(usize, Vector)> = Vec::new();
        for (h, _) in &wanting {
            let hosted = &local.hosted[*h];
            own.clear();
            own.push((0, hosted.cost));
            for replica in &hosted.replicas {
                if let Some(number) = number_of(replica.server) {
                    own.push((number, replica.cost));
                }
            }
            let mut most = 0.0f64;
            for (number, cost) in &own {
                hosts.push(*number as u32);
                most = most.max(share(cost, &free[*number]));
            }
            starts.push(hosts.len() as u32);
            shares.push(most);
            let uses = own.iter();
            filling.push(
                most,
                uses.flat_map(|(server, cost)| uses_on(*server, cost.map(|cost| cost as f64))),
            );
        }
        let filling = filling.sorted();
        Self {
            wanting,
            servers,
            hosts,
            starts,
            shares,
            filling,
        }
    }

    pub fn wanting(&self) -> &[(usize, u64)] {
        &self.wanting
    }

    /// The levels before anything is known of other servers' tenants.
    pub fn without_others(&self) -> FilledView {
        let wants = self.wanting.iter().zip(&self.shares);
        FilledView {
            taken: Vec::new(),
            until_level: wants.map(|((_, extra), share)| per_s(*extra) * share).collect(),
        }
    }

    /// C-DRF over the tenants and aggregates in the view.
    pub fn fill(&mut self, aggregates_of: &BTreeMap<usize, Vec<Aggregate>>) -> FilledView {
        let aggregates: Vec<(usize, &Aggregate)> = (1..self.servers.len())
            .filter_map(|n| Some((n, aggregates_of.get(&self.servers[n])?)))
            .flat_map(|(n, aggregates)| aggregates.iter().map(move |aggregate| (n, aggregate)))
            .collect();
        let others = aggregates.iter();
        self.filling
            .replace_late(others.map(|(number, aggregate)| (1.0, uses_on(*number, aggregate.per_level))));
        let caps = self.wanting.iter().map(|(_, extra)| per_s(*extra));
        let caps: Vec<f64> = caps
            .chain(aggregates.iter().map(|(_, aggregate)| aggregate.until_level))
            .collect();
        let filled = self.filling.fill(&caps);
        let stops_here = |f: usize| filled.full[f].is_some_and(|r| (r as usize) < RESOURCES);
        let until_level = |f: usize| match stops_here(f) {
            true => f64::INFINITY,
            false => filled.taken[f] * self.shares[f],
        };
        FilledView {
            until_level: (0..self.wanting.len()).map(until_level).collect(),
            taken: filled.taken[..self.wanting.len()].to_vec(),
        }
    }

    /// The tenant's use of this server's resources at level 1. They have the first numbers.
    fn uses_here(&self, f: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let uses = self
            .filling
            .uses_of(f)
            .iter()
            .map(|(r, amount)| (*r as usize, *amount));
        uses.take_while(|(r, _)| *r < RESOURCES)
    }

    /// Aggregates for each other server in the view, over this server's tenants that the other does not host.
    pub fn aggregates(&self, local: &Local, filled: &FilledView) -> Vec<(usize, Vec<Aggregate>)> {
        let mut classes = Classes::new(&filled.until_level);
        let counted: Vec<(usize, usize)> = (0..self.wanting.len())
            .filter(|f| self.shares[*f].is_finite() && self.uses_here(*f).next().is_some())
            .map(|f| (f, classes.of(f, self.uses_here(f))))
            .collect();
        let mut sums = vec![AggregateSum::default(); classes.used * self.servers.len()];
        let mut hosts = vec![false; self.servers.len()];
        for (f, class) in counted {
            let numbers = &self.hosts[self.starts[f] as usize..self.starts[f + 1] as usize];
            numbers.iter().for_each(|number| hosts[*number as usize] = true);
            let (mut per_level, mut weight) = ([0.0; RESOURCES], 0.0f64);
            for (i, amount) in self.uses_here(f) {
                per_level[i] = amount;
                weight = weight.max(amount / local.free[i] as f64);
            }
            for (sums, _) in sums
                .chunks_mut(classes.used)
                .zip(&hosts)
                .filter(|(_, hosts)| !**hosts)
            {
                sums[class].add(per_level, filled.until_level[f], weight);
            }
            numbers.iter().for_each(|number| hosts[*number as usize] = false);
        }
        let own = |n: usize| &sums[n * classes.used..(n + 1) * classes.used];
        let aggregates = |n: usize| own(n).iter().filter_map(AggregateSum::aggregate).collect();
        (1..self.servers.len())
            .map(|n| (self.servers[n], aggregates(n)))
            .collect()
    }
}

/// Classes of tenants that are one aggregate: they use the same resources and rise to about the same level.
const CLASSES: usize = MASKS * (SHARE_AGGREGATE_LEVELS_MAX + 1);
const _: () = assert!(CLASSES <= SHARE_AGGREGATES_MAX, "all aggregates fit a frame");

struct Classes {
    /// By tenant. The last rank is of tenants that rise without end.
    rank: Vec<usize>,
    /// Numbers of the classes in use, in the order in which they came.
    numbers: [Option<usize>; CLASSES],
    used: usize,
}

impl Classes {
    /// Ranks with equally many tenants each, by their levels.
    fn new(until_level: &[f64]) -> Self {
        let ends = until_level.iter().copied().enumerate();
        let mut ends: Vec<(f64, u32)> = ends
            .filter(|(_, level)| level.is_finite())
            .map(|(f, level)| (level, f as u32))
            .collect();
        let mut rank = vec![SHARE_AGGREGATE_LEVELS_MAX; until_level.len()];
        let several = ends.len().div_ceil(SHARE_AGGREGATE_LEVELS_MAX).max(1);
        let (mut rest, mut k) = (&mut ends[..], 0);
        while !rest.is_empty() {
            let size = several.min(rest.len());
            // Only the set of the lowest matters, not their order.
            if size < rest.len() {
                rest.select_nth_unstable_by(size, |a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
            }
            let (lowest, others) = rest.split_at_mut(size);
            lowest.iter().for_each(|(_, f)| rank[*f as usize] = k);
            (rest, k) = (others, k + 1);
        }
        Self {
            rank,
            numbers: [None; CLASSES],
            used: 0,
        }
    }

    /// The class of tenant `f`. `uses`: its resources of this server.
    fn of(&mut self, f: usize, uses: impl Iterator<Item = (usize, f64)>) -> usize {
        let mask: usize = uses.map(|(i, _)| 1 << i).sum();
        let number = &mut self.numbers[mask * (SHARE_AGGREGATE_LEVELS_MAX + 1) + self.rank[f]];
        *number.get_or_insert_with(|| {
            self.used += 1;
            self.used - 1
        })
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct AggregateSum {
    per_level: [f64; RESOURCES],
    /// Share of this server at level 1, and the same times the level that each tenant rises to.
    weight: f64,
    weighted_level: f64,
}

impl AggregateSum {
    fn add(&mut self, per_level: [f64; RESOURCES], until_level: f64, weight: f64) {
        for i in 0..RESOURCES {
            self.per_level[i] += per_level[i];
        }
        self.weight += weight;
        self.weighted_level += weight * until_level;
    }

    /// The level is the one at which the tenants together take as much as one by one.
    fn aggregate(&self) -> Option<Aggregate> {
        let aggregate = Aggregate {
            per_level: self.per_level,
            until_level: self.weighted_level / self.weight,
        };
        (self.weight > 0.0 && aggregate.is_sound()).then_some(aggregate)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::iterations::HostedTenant;
    use crate::problem::ReplicaCost;

    fn local(free: Vector, tenants: &[(Vector, u64)]) -> Local {
        let hosted = |(tenant, (cost, extra)): (usize, &(Vector, u64))| HostedTenant {
            tenant,
            replicas: vec![ReplicaCost {
                server: 0,
                cost: *cost,
            }],
            cost: *cost,
            extra_per_s: Some(*extra),
            committed_per_s: 0,
        };
        Local {
            server: 0,
            interval: 0,
            free,
            hosted: tenants.iter().enumerate().map(hosted).collect(),
        }
    }

    fn wanting(tenants: &[(Vector, u64)]) -> Vec<(usize, u64)> {
        tenants.iter().map(|(_, extra)| *extra).enumerate().collect()
    }

    /// Amounts that the aggregates take of a server at a level.
    fn taken(aggregates: &[Aggregate], level: f64) -> [f64; RESOURCES] {
        let at = |aggregate: &Aggregate| {
            aggregate
                .per_level
                .map(|amount| amount * level.min(aggregate.until_level))
        };
        let taken = aggregates.iter().map(at);
        taken.fold([0.0; RESOURCES], |sum, one| {
            std::array::from_fn(|i| sum[i] + one[i])
        })
    }

    fn tenant() -> impl Strategy<Value = (Vector, u64)> {
        let cost = || prop_oneof![1 => Just(0u64), 3 => 1u64..500];
        let extra = prop_oneof![1 => Just(u64::MAX), 2 => 1u64..5_000];
        ((cost(), cost(), 1u64..500), extra).prop_map(|((a, b, c), extra)| ([a, b, c], extra))
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(500) })]

        /// Aggregates take as much as their tenants one by one: at low levels always, and at all levels if there are few.
        #[test]
        fn aggregates_take_as_much_as_their_tenants(
            free in [1u64..2_000_000, 1u64..2_000_000, 1u64..2_000_000],
            tenants in proptest::collection::vec(tenant(), 1..60),
            level in 0.0..2.0f64,
        ) {
            let (local, wanting) = (local(free, &tenants), wanting(&tenants));
            let free_of = BTreeMap::from([(1, [5; RESOURCES])]);
            let view = View::new(&local, wanting.to_vec(), &free_of);
            let sent = view.aggregates(&local, &view.without_others());
            prop_assert_eq!(sent.len(), 1);
            let aggregates = &sent[0].1;
            prop_assert!(aggregates.len() <= SHARE_AGGREGATES_MAX);
            let level = if tenants.len() <= SHARE_AGGREGATE_LEVELS_MAX { level } else { 1e-12 };
            let mut one_by_one = [0.0; RESOURCES];
            for ((cost, extra), share) in tenants.iter().zip(&view.shares) {
                let per_s = per_s(*extra).min(level / share);
                (0..RESOURCES).for_each(|i| one_by_one[i] += cost[i] as f64 * per_s);
            }
            let together = taken(aggregates, level);
            for i in 0..RESOURCES {
                let differs = (together[i] - one_by_one[i]).abs();
                prop_assert!(differs <= 1e-9 * one_by_one[i], "{:?} and {:?}", together, one_by_one);
            }
        }
    }

    /// A tenant that another server stops is in an aggregate with an end; one that stops here is not.
    #[test]
    fn a_tenant_that_stops_elsewhere_rises_no_further() {
        let on = |servers: &[usize], tenant| HostedTenant {
            tenant,
            replicas: servers
                .iter()
                .map(|server| ReplicaCost {
                    server: *server,
                    cost: [1, 0, 0],
                })
                .collect(),
            cost: [1, 0, 0],
            extra_per_s: Some(u64::MAX),
            committed_per_s: 0,
        };
        // Server 2 hosts neither t0, which server 1 stops at a quarter of its level, nor t1; t2 makes it a neighbour.
        let local = Local {
            hosted: vec![on(&[0, 1], 0), on(&[0], 1), on(&[0, 2], 2)],
            ..local([10_000, 0, 0], &[])
        };
        let wanting = [(0, u64::MAX), (1, u64::MAX), (2, u64::MAX)];
        let free_of = BTreeMap::from([(1, [1_000, 0, 0]), (2, [10_000, 0, 0])]);
        let mut view = View::new(&local, wanting.to_vec(), &free_of);
        let one = Aggregate {
            per_level: [3_000.0, 0.0, 0.0],
            until_level: f64::INFINITY,
        };
        let filled = view.fill(&BTreeMap::from([(1, vec![one])]));
        // Server 1 is full at level 0.25, at which t0 has 250 of it; the other two share the rest of this server.
        assert_eq!(filled.taken, [250.0, 4_875.0, 4_875.0]);
        let sent: BTreeMap<usize, Vec<Aggregate>> = view.aggregates(&local, &filled).into_iter().collect();
        let aggregate = |per_level: f64, until_level: f64| Aggregate {
            per_level: [per_level, 0.0, 0.0],
            until_level,
        };
        assert_eq!(
            sent[&2],
            [aggregate(1_000.0, 0.25), aggregate(10_000.0, f64::INFINITY)]
        );
        assert_eq!(sent[&1], [aggregate(20_000.0, f64::INFINITY)]);
    }
}
