//! What one server of Level-DRF sees: itself and the servers that it shares tenants with; its own tenants one by one,
//! others' as crowds.

use std::collections::BTreeMap;

use quorate_types::limits::{SHARE_CROWD_LEVELS_MAX, SHARE_CROWDS_MAX};

use crate::exact::per_s;
use crate::filling::{Filling, uses_on};
use crate::problem::{RESOURCES, Vector, share};
use crate::rounds::{Crowd, Local};

/// One for each set of resources.
const MASKS: usize = 1 << RESOURCES;

pub struct Picture {
    /// Positions in `hosted`, and requests/s wanted.
    wanting: Vec<(usize, u64)>,
    /// Servers by their numbers here: this one, then others of which it is known what they have free.
    servers: Vec<usize>,
    /// Numbers of the servers of the wanting tenant `f` that are known: `hosts[starts[f]..starts[f + 1]]`.
    hosts: Vec<u32>,
    starts: Vec<u32>,
    /// Share of one request of each wanting tenant, of what its servers have that are known.
    shares: Vec<f64>,
    /// The wanting tenants; then others' crowds.
    filling: Filling,
}

/// How far the wanting tenants rise.
#[derive(Debug)]
pub struct Seen {
    /// Requests/s.
    pub taken: Vec<f64>,
    /// The level that a tenant's other servers, or what it wants, hold it at; infinite: it stops here.
    until_level: Vec<f64>,
}

impl Picture {
    pub fn new(local: &Local, wanting: Vec<(usize, u64)>, free_of: &BTreeMap<usize, Vector>) -> Self {
        let others = free_of.iter().filter(|(server, _)| **server != local.server);
        let known = std::iter::once((&local.server, &local.free)).chain(others);
        let (servers, free): (Vec<usize>, Vec<Vector>) = known.map(|(server, free)| (*server, *free)).unzip();
        // The others are sorted.
        let number_of = |server: usize| servers[1..].binary_search(&server).ok().map(|n| n + 1);
        let places = wanting.iter().map(|(h, _)| local.hosted[*h].places.len()).sum();
        let (mut hosts, mut starts, mut shares) = (
            Vec::with_capacity(places),
            vec![0],
            Vec::with_capacity(wanting.len()),
        );
        let mut filling = Filling::empty(&free, wanting.len(), places * RESOURCES);
        let mut own: Vec<(usize, Vector)> = Vec::new();
        for (h, _) in &wanting {
            let hosted = &local.hosted[*h];
            own.clear();
            own.push((0, hosted.cost));
            for place in &hosted.places {
                if let Some(number) = number_of(place.server) {
                    own.push((number, place.cost));
                }
            }
            let mut most = 0.0f64;
            for (number, cost) in &own {
                hosts.push(*number as u32);
                most = most.max(share(cost, &free[*number]));
            }
            starts.push(hosts.len() as u32);
            shares.push(most);
            filling.push_places(most, &own);
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

    /// As long as nothing is known of other servers' tenants.
    pub fn nobody_elsewhere(&self) -> Seen {
        let wants = self.wanting.iter().zip(&self.shares);
        Seen {
            taken: Vec::new(),
            until_level: wants.map(|((_, extra), share)| per_s(*extra) * share).collect(),
        }
    }

    /// C-DRF of what is in the picture.
    pub fn fill(&mut self, crowds_of: &BTreeMap<usize, Vec<Crowd>>) -> Seen {
        let crowds: Vec<(usize, &Crowd)> = (1..self.servers.len())
            .filter_map(|n| Some((n, crowds_of.get(&self.servers[n])?)))
            .flat_map(|(n, crowds)| crowds.iter().map(move |crowd| (n, crowd)))
            .collect();
        let others = crowds.iter();
        self.filling
            .replace_late(others.map(|(number, crowd)| (1.0, uses_on(*number, crowd.per_level))));
        let caps = self.wanting.iter().map(|(_, extra)| per_s(*extra));
        let caps: Vec<f64> = caps
            .chain(crowds.iter().map(|(_, crowd)| crowd.until_level))
            .collect();
        let filled = self.filling.fill(&caps);
        let stops_here = |f: usize| filled.full[f].is_some_and(|r| (r as usize) < RESOURCES);
        let until_level = |f: usize| match stops_here(f) {
            true => f64::INFINITY,
            false => filled.taken[f] * self.shares[f],
        };
        Seen {
            until_level: (0..self.wanting.len()).map(until_level).collect(),
            taken: filled.taken[..self.wanting.len()].to_vec(),
        }
    }

    /// What the tenant uses of this server's resources at level 1: they have the first numbers.
    fn uses_here(&self, f: usize) -> impl Iterator<Item = (usize, f64)> + '_ {
        let uses = self
            .filling
            .uses_of(f)
            .iter()
            .map(|(r, amount)| (*r as usize, *amount));
        uses.take_while(|(r, _)| *r < RESOURCES)
    }

    /// For each other server in the picture: this server's tenants that it does not host.
    pub fn crowds(&self, local: &Local, seen: &Seen) -> Vec<(usize, Vec<Crowd>)> {
        let mut classes = Classes::new(&seen.until_level);
        let counted: Vec<(usize, usize)> = (0..self.wanting.len())
            .filter(|f| self.shares[*f].is_finite() && self.uses_here(*f).next().is_some())
            .map(|f| (f, classes.of(f, self.uses_here(f))))
            .collect();
        let mut sums = vec![Sum::default(); classes.used * self.servers.len()];
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
                sums[class].add(per_level, seen.until_level[f], weight);
            }
            numbers.iter().for_each(|number| hosts[*number as usize] = false);
        }
        let own = |n: usize| &sums[n * classes.used..(n + 1) * classes.used];
        let crowds = |n: usize| own(n).iter().filter_map(Sum::crowd).collect();
        (1..self.servers.len())
            .map(|n| (self.servers[n], crowds(n)))
            .collect()
    }
}

/// Tenants of a crowd use the same resources and rise to about the same level: those of one stop together.
const CLASSES: usize = MASKS * (SHARE_CROWD_LEVELS_MAX + 1);
const _: () = assert!(CLASSES <= SHARE_CROWDS_MAX, "all crowds fit a frame");

struct Classes {
    /// By tenant; the last one: without end.
    rank: Vec<usize>,
    /// Numbers of the classes that there are, in the order in which they came.
    numbers: [Option<usize>; CLASSES],
    used: usize,
}

impl Classes {
    /// As many tenants in each, by their levels.
    fn new(until_level: &[f64]) -> Self {
        let ends = until_level.iter().copied().enumerate();
        let mut ends: Vec<(f64, u32)> = ends
            .filter(|(_, level)| level.is_finite())
            .map(|(f, level)| (level, f as u32))
            .collect();
        let mut rank = vec![SHARE_CROWD_LEVELS_MAX; until_level.len()];
        let several = ends.len().div_ceil(SHARE_CROWD_LEVELS_MAX).max(1);
        let (mut rest, mut k) = (&mut ends[..], 0);
        while !rest.is_empty() {
            let size = several.min(rest.len());
            // Which are the lowest; in what order does not matter.
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

    /// `uses`: resources of this server.
    fn of(&mut self, f: usize, uses: impl Iterator<Item = (usize, f64)>) -> usize {
        let mask: usize = uses.map(|(i, _)| 1 << i).sum();
        let number = &mut self.numbers[mask * (SHARE_CROWD_LEVELS_MAX + 1) + self.rank[f]];
        *number.get_or_insert_with(|| {
            self.used += 1;
            self.used - 1
        })
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    per_level: [f64; RESOURCES],
    /// Of this server, at level 1; and the same times the level that each rises to.
    weight: f64,
    weighted_level: f64,
}

impl Sum {
    fn add(&mut self, per_level: [f64; RESOURCES], until_level: f64, weight: f64) {
        for i in 0..RESOURCES {
            self.per_level[i] += per_level[i];
        }
        self.weight += weight;
        self.weighted_level += weight * until_level;
    }

    /// The level is such that together they take what they take one by one.
    fn crowd(&self) -> Option<Crowd> {
        let crowd = Crowd {
            per_level: self.per_level,
            until_level: self.weighted_level / self.weight,
        };
        (self.weight > 0.0 && crowd.is_sound()).then_some(crowd)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::problem::Place;
    use crate::rounds::Hosted;

    fn local(free: Vector, tenants: &[(Vector, u64)]) -> Local {
        let hosted = |(tenant, (cost, extra)): (usize, &(Vector, u64))| Hosted {
            tenant,
            places: vec![Place {
                server: 0,
                cost: *cost,
            }],
            cost: *cost,
            extra_per_s: Some(*extra),
            held_per_s: 0,
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

    /// What crowds take of a server at a level.
    fn taken(crowds: &[Crowd], level: f64) -> [f64; RESOURCES] {
        let at = |crowd: &Crowd| {
            crowd
                .per_level
                .map(|amount| amount * level.min(crowd.until_level))
        };
        let taken = crowds.iter().map(at);
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

        /// Told as crowds, tenants take what they take one by one: at low levels always, at all levels where they are few.
        #[test]
        fn crowds_take_what_their_tenants_take(
            free in [1u64..2_000_000, 1u64..2_000_000, 1u64..2_000_000],
            tenants in proptest::collection::vec(tenant(), 1..60),
            level in 0.0..2.0f64,
        ) {
            let (local, wanting) = (local(free, &tenants), wanting(&tenants));
            let free_of = BTreeMap::from([(1, [5; RESOURCES])]);
            let picture = Picture::new(&local, wanting.to_vec(), &free_of);
            let told = picture.crowds(&local, &picture.nobody_elsewhere());
            prop_assert_eq!(told.len(), 1);
            let crowds = &told[0].1;
            prop_assert!(crowds.len() <= SHARE_CROWDS_MAX);
            let level = if tenants.len() <= SHARE_CROWD_LEVELS_MAX { level } else { 1e-12 };
            let mut one_by_one = [0.0; RESOURCES];
            for ((cost, extra), share) in tenants.iter().zip(&picture.shares) {
                let per_s = per_s(*extra).min(level / share);
                (0..RESOURCES).for_each(|i| one_by_one[i] += cost[i] as f64 * per_s);
            }
            let together = taken(crowds, level);
            for i in 0..RESOURCES {
                let differs = (together[i] - one_by_one[i]).abs();
                prop_assert!(differs <= 1e-9 * one_by_one[i], "{:?} and {:?}", together, one_by_one);
            }
        }
    }

    /// A tenant that another server holds is a crowd with an end; what stops here is not.
    #[test]
    fn whoever_stops_elsewhere_rises_no_further() {
        let on = |servers: &[usize], tenant| Hosted {
            tenant,
            places: servers
                .iter()
                .map(|server| Place {
                    server: *server,
                    cost: [1, 0, 0],
                })
                .collect(),
            cost: [1, 0, 0],
            extra_per_s: Some(u64::MAX),
            held_per_s: 0,
        };
        // Of t0, which server 1 holds at a quarter of its level, and t1, server 2 hosts nothing; t2 makes it a neighbour.
        let local = Local {
            hosted: vec![on(&[0, 1], 0), on(&[0], 1), on(&[0, 2], 2)],
            ..local([10_000, 0, 0], &[])
        };
        let wanting = [(0, u64::MAX), (1, u64::MAX), (2, u64::MAX)];
        let free_of = BTreeMap::from([(1, [1_000, 0, 0]), (2, [10_000, 0, 0])]);
        let mut picture = Picture::new(&local, wanting.to_vec(), &free_of);
        let one = Crowd {
            per_level: [3_000.0, 0.0, 0.0],
            until_level: f64::INFINITY,
        };
        let seen = picture.fill(&BTreeMap::from([(1, vec![one])]));
        // Server 1 is full at level 0.25, where t0 has 250 of it; the other two share what that leaves here.
        assert_eq!(seen.taken, [250.0, 4_875.0, 4_875.0]);
        let told: BTreeMap<usize, Vec<Crowd>> = picture.crowds(&local, &seen).into_iter().collect();
        let crowd = |per_level: f64, until_level: f64| Crowd {
            per_level: [per_level, 0.0, 0.0],
            until_level,
        };
        assert_eq!(told[&2], [crowd(1_000.0, 0.25), crowd(10_000.0, f64::INFINITY)]);
        assert_eq!(told[&1], [crowd(20_000.0, f64::INFINITY)]);
    }
}
