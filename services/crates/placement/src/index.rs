//! Servers in the order of their dominant share, searchable for the first with room for a replica.
//!
//! The index is a treap whose nodes know the largest free amount of each resource below them, and the failure domains
//! there. So a search skips subtrees in which no server can be elected, and does not scan all servers for one replica.
//! The priorities are a hash of the server's id: the same servers make the same tree, whatever their history.
//!
//! The largest amounts are kept apart by the resource that servers are shortest of. Together they would prune little in
//! a full fleet. One server short of CPU and one short of network would seem to have enough of both. The result of a
//! search does not depend on it; the number of visited nodes does.

use std::ops::ControlFlow;

use quorate_types::ServerId;

use crate::amounts::{Amounts, RESOURCES};

/// Dominant share (a fixed-point fraction), then id: the order of policy PO_c.
pub(crate) type Key = (u64, ServerId);

/// Sets of failure domains, a bit each: the first 63 that a fleet knows, and one bit for all else.
pub(crate) type Domains = u64;

/// Maxima of free amounts, one for each resource that servers are shortest of; zero where there is no such server.
type Most = [Amounts; RESOURCES];

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone)]
struct Node {
    key: Key,
    priority: u64,
    free: Amounts,
    domain: Domains,
    /// The resource that the server is shortest of.
    shortest_of: usize,
    /// The maxima of `free` in this subtree.
    free_max: Most,
    /// The union of `domain` in this subtree.
    domains: Domains,
    left: u32,
    right: u32,
}

#[derive(Debug, Clone)]
pub(crate) struct Index {
    nodes: Vec<Node>,
    vacant: Vec<u32>,
    root: u32,
}

impl Default for Index {
    fn default() -> Self {
        Self {
            nodes: Vec::new(),
            vacant: Vec::new(),
            root: NONE,
        }
    }
}

impl Index {
    pub(crate) fn len(&self) -> usize {
        self.nodes.len() - self.vacant.len()
    }

    /// Adds a server. `shortest_of`: the resource of which it has the least share left.
    pub(crate) fn insert(&mut self, key: Key, free: Amounts, domain: Domains, shortest_of: usize) {
        let priority = mix(u64::from(key.1.0));
        let mut free_max = [Amounts::ZERO; RESOURCES];
        free_max[shortest_of] = free;
        let node = Node {
            key,
            priority,
            free,
            domain,
            shortest_of,
            free_max,
            domains: domain,
            left: NONE,
            right: NONE,
        };
        let at = match self.vacant.pop() {
            Some(at) => {
                self.nodes[at as usize] = node;
                at
            }
            None => {
                self.nodes.push(node);
                u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 servers")
            }
        };
        let (low, high) = self.split(self.root, key);
        let low = self.merge(low, at);
        self.root = self.merge(low, high);
    }

    pub(crate) fn remove(&mut self, key: Key) {
        let (low, rest) = self.split(self.root, key);
        let (found, high) = self.split(rest, (key.0, ServerId(key.1.0 + 1)));
        assert!(
            found != NONE && self.nodes[found as usize].key == key,
            "{key:?} is not in the index"
        );
        self.vacant.push(found);
        self.root = self.merge(low, high);
    }

    /// Visits accepted servers with room for `demand` in one of `domains`, in order, until `visit` breaks.
    pub(crate) fn fits(
        &self,
        demand: Amounts,
        domains: Domains,
        accept: &dyn Fn(ServerId) -> bool,
        visit: &mut dyn FnMut(ServerId, Amounts) -> ControlFlow<()>,
    ) {
        let _enough = self.search(self.root, demand, domains, accept, visit);
    }

    fn search(
        &self,
        at: u32,
        demand: Amounts,
        domains: Domains,
        accept: &dyn Fn(ServerId) -> bool,
        visit: &mut dyn FnMut(ServerId, Amounts) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        if at == NONE {
            return ControlFlow::Continue(());
        }
        #[cfg(test)]
        tests::VISITED.with(|visited| visited.set(visited.get() + 1));
        let node = &self.nodes[at as usize];
        if node.domains & domains == 0 || !node.free_max.iter().any(|most| demand.fits(*most)) {
            return ControlFlow::Continue(());
        }
        self.search(node.left, demand, domains, accept, visit)?;
        if node.domain & domains != 0 && demand.fits(node.free) && accept(node.key.1) {
            visit(node.key.1, node.free)?;
        }
        self.search(node.right, demand, domains, accept, visit)
    }

    /// Splits a subtree into keys below `key`, and the rest.
    fn split(&mut self, at: u32, key: Key) -> (u32, u32) {
        if at == NONE {
            return (NONE, NONE);
        }
        let node = &self.nodes[at as usize];
        if node.key < key {
            let (low, high) = self.split(node.right, key);
            self.nodes[at as usize].right = low;
            self.refresh(at);
            (at, high)
        } else {
            let (low, high) = self.split(node.left, key);
            self.nodes[at as usize].left = high;
            self.refresh(at);
            (low, at)
        }
    }

    fn merge(&mut self, low: u32, high: u32) -> u32 {
        if low == NONE || high == NONE {
            return if low == NONE { high } else { low };
        }
        if self.nodes[low as usize].priority >= self.nodes[high as usize].priority {
            let right = self.merge(self.nodes[low as usize].right, high);
            self.nodes[low as usize].right = right;
            self.refresh(low);
            low
        } else {
            let left = self.merge(low, self.nodes[high as usize].left);
            self.nodes[high as usize].left = left;
            self.refresh(high);
            high
        }
    }

    fn refresh(&mut self, at: u32) {
        let node = &self.nodes[at as usize];
        let (mut most, mut domains) = ([Amounts::ZERO; RESOURCES], node.domain);
        most[node.shortest_of] = node.free;
        for child in [node.left, node.right] {
            if child != NONE {
                let below = &self.nodes[child as usize];
                domains |= below.domains;
                for (most, below) in most.iter_mut().zip(below.free_max) {
                    *most = most.at_least(below);
                }
            }
        }
        self.nodes[at as usize].free_max = most;
        self.nodes[at as usize].domains = domains;
    }
}

/// The finaliser of SplitMix64: every input bit reaches every output bit.
pub(crate) fn mix(id: u64) -> u64 {
    let mut x = id.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Choice, Fleet, Profile, place_one, quote};
    use quorate_types::space::Room;
    use quorate_types::{Durability, Sla};
    use std::cell::Cell;
    use std::collections::BTreeMap;

    thread_local! {
        /// Nodes visited by searches of this thread.
        pub(super) static VISITED: Cell<u64> = const { Cell::new(0) };
    }

    /// These rates, and as much memory and disk as anybody wants.
    fn unlimited(rates: [u64; 3]) -> Amounts {
        Amounts::of_capacity(Amounts::of_rates(rates).to_resources(), Room::default(), 1.0)
    }

    /// Nodes visited for one replica, on the average, while a fleet fills to half.
    fn visited_per_replica(servers: u32, domains: u32, choice: Choice) -> f64 {
        let mut fleet = Fleet::default().choosing(choice);
        for id in 1..=servers {
            let domain = Some(format!("zone-{}", id % domains));
            let free = unlimited([8_000_000_000, 1_250_000_000, 40_000_000]);
            fleet.set_server(ServerId(id), free, domain, false, true);
        }
        let (profile, groups) = (Profile::default_profile(), servers * 2);
        VISITED.set(0);
        for i in 0..groups {
            let sla = Sla {
                read_rate_per_s: 0,
                durability: if i % 2 == 0 {
                    Durability::Persistent
                } else {
                    Durability::InMemory
                },
                replication_degree: 3,
                request_size_bytes: 64 << (i % 9),
                rate_per_s: u64::from(100 + i % 977),
                region: "local".into(),
                min_replicas: None,
                retention_bytes: 1 << 20,
                retention_age_s: None,
                latency: Default::default(),
            };
            let _may_be_full = place_one(&mut fleet, profile.demands(&sla).all()).is_err();
        }
        VISITED.get() as f64 / f64::from(groups * 3)
    }

    /// Nodes are counted and not timed: a hundred times the servers have twice the logarithm, so about twice the nodes.
    #[test]
    fn a_search_looks_at_as_many_nodes_as_the_logarithm_of_the_fleet() {
        for choice in [Choice::LeastLoaded, Choice::Shape] {
            for domains in [2, 5, 200] {
                let visited = [100, 1_000, 10_000].map(|servers| {
                    let visited = visited_per_replica(servers, domains, choice);
                    let each = visited / f64::from(servers).log2();
                    println!(
                        "{choice:?}, {domains} domains, {servers} servers: {visited:.1}, {each:.2} each level"
                    );
                    assert!(
                        each < LEVELS_MAX,
                        "{choice:?}, {domains} domains, {servers} servers: {visited}"
                    );
                    visited
                });
                assert!(
                    visited[2] < 4.0 * visited[0],
                    "{choice:?}, {domains} domains: {visited:?}"
                );
            }
        }
    }

    const LEVELS_MAX: f64 = 16.0;

    /// A fleet that is full: half of the servers lack CPU, the other half network, by chance.
    fn nearly_full(servers: u32, choice: Choice) -> Fleet {
        let mut fleet = Fleet::default().choosing(choice);
        let rates = [8_000_000_000, 1_250_000_000, 40_000_000];
        let all = unlimited(rates);
        for id in 1..=servers {
            let domain = Some(format!("zone-{}", id % 5));
            fleet.set_server(ServerId(id), all, domain, false, true);
            let chance = mix(u64::from(id) << 32);
            let lacking = (chance % 2) as usize;
            let mut taken = rates.map(|all| all / 100 * (50 + chance / 2 % 40));
            taken[lacking] = rates[lacking] / 1_000 * (996 + chance / 128 % 5);
            fleet.charge(ServerId(id), Amounts::of_rates(taken));
        }
        fleet
    }

    /// A replica without room is refused, and an SLA that would fit is found, without a visit to each server. With common
    /// maxima for all servers it took 8 600 nodes of 10 000 for one replica, and 95 000 for a quote.
    #[test]
    fn a_full_fleet_refuses_without_a_scan() {
        let sla = Sla {
            read_rate_per_s: 0,
            durability: Durability::InMemory,
            replication_degree: 3,
            request_size_bytes: 1_024,
            rate_per_s: 100_000,
            region: "local".into(),
            min_replicas: None,
            retention_bytes: 1 << 20,
            retention_age_s: None,
            latency: Default::default(),
        };
        let profile = Profile::default_profile();
        for choice in [Choice::LeastLoaded, Choice::Shape] {
            for servers in [100, 1_000, 10_000] {
                let mut fleet = nearly_full(servers, choice);
                VISITED.set(0);
                assert!(place_one(&mut fleet, &profile.demands(&sla).all()[..1]).is_err());
                let replica = VISITED.replace(0);
                let refusal = quote(&mut fleet, &profile, &sla).refusal.expect("it is full");
                let refused = VISITED.get();
                println!("{choice:?}, {servers} servers: {replica} for one replica, {refused} for a quote");
                let levels = f64::from(servers).log2();
                assert!(
                    (replica as f64) < LEVELS_MAX * levels,
                    "{choice:?}, {servers}: {replica}"
                );
                // Halving tries 17 rates, of three replicas each.
                let tried = 17.0 * 3.0;
                assert!(
                    (refused as f64) < tried * LEVELS_MAX * levels,
                    "{choice:?}, {servers}: {refused}"
                );
                assert!(refusal.largest_sla_that_fits.is_some());
            }
        }
    }

    #[test]
    fn finds_the_same_servers_as_a_scan_in_order() {
        let mut index = Index::default();
        let mut plain: BTreeMap<Key, (Amounts, Domains)> = BTreeMap::new();
        let mut seed = 1;
        let mut random = |below: u64| {
            seed = mix(seed);
            seed % below
        };
        for round in 0..4_000u32 {
            let key = (random(50), ServerId(random(200) as u32));
            if plain.remove(&key).is_some() {
                index.remove(key);
            } else {
                let free = Amounts(std::array::from_fn(|_| random(100)));
                let domain = 1 << random(4);
                plain.insert(key, (free, domain));
                index.insert(key, free, domain, random(RESOURCES as u64) as usize);
            }
            assert_eq!(index.len(), plain.len());
            let demand = Amounts(std::array::from_fn(|_| random(100)));
            let parity = round % 2;
            let accept = |id: ServerId| id.0 % 2 == parity;
            let domains = random(16);
            let most = 1 + random(5) as usize;
            let scanned: Vec<(ServerId, Amounts)> = plain
                .iter()
                .filter(|(key, (free, domain))| demand.fits(*free) && domain & domains != 0 && accept(key.1))
                .map(|(key, (free, _))| (key.1, *free))
                .take(most)
                .collect();
            let mut found = Vec::new();
            index.fits(demand, domains, &accept, &mut |id, free| {
                found.push((id, free));
                if found.len() == most {
                    ControlFlow::Break(())
                } else {
                    ControlFlow::Continue(())
                }
            });
            assert_eq!(found, scanned);
        }
    }
}
