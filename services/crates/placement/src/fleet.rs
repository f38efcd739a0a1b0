//! The servers of one region with their free resources, and Filo's ElectServer (Algorithm 1, line 18).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use quorate_types::limits::GROUPS_PER_SERVER_MAX;
use quorate_types::{ProjectId, ServerId};
use serde::{Deserialize, Serialize};

use crate::amounts::{Amounts, RESOURCES, UNLIMITED};
use crate::demand::{Demand, SharedReservations};
use crate::index::{Domains, Index, Key};

/// The servers that may be elected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// For applicants: auxiliary servers stay free.
    Admission,
    /// For replacements of failed replicas: the room kept for recovery is open, too, and auxiliary servers are when no
    /// other fits (Filo §4.1 "Failures").
    Replacement,
}

/// The choice among servers with room for a replica (PO_c).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// Filo's Algorithm 1: the server with the lowest dominant share.
    #[default]
    LeastLoaded,
    /// The best of the first few in that order. Its free resources are most like the demand, and it keeps most of the
    /// resource that it will have least of ([why](../../../../docs/decisions/2026-11-22-placement-by-shape.md)).
    Shape,
}

/// The share of the replica by which a server may be worse than the best one, when groups are
/// [spread](Fleet::set_spread). With more, heavy replicas leave servers unevenly full, and less room for failed ones.
const SPREAD_REPLICAS: f64 = 0.5;

/// Servers that [`Choice::Shape`] compares: all of a small fleet. On a large one they bound the work for a replica.
const COMPARED_MAX: usize = 16;

#[derive(Debug, Clone)]
struct Slot {
    /// The nominal capacity times the safety factor (R^no).
    promisable: Amounts,
    allocated: Amounts,
    /// The part of `allocated` that replicas of one project have in common.
    shared: SharedReservations,
    /// Replicas that are charged to it.
    replicas: usize,
    /// Closed to applicants, open to replacements.
    headroom: Amounts,
    failure_domain: Option<String>,
    auxiliary: bool,
    /// Alive and taking replicas. Other servers keep their allocations, and none is elected.
    available: bool,
}

impl Slot {
    /// Hosts as many groups as a server may.
    fn is_full(&self) -> bool {
        self.replicas >= GROUPS_PER_SERVER_MAX
    }

    fn may_be_elected(&self) -> bool {
        self.available && !self.is_full()
    }

    fn free(&self) -> Amounts {
        self.promisable.left_after(self.allocated)
    }

    fn free_for_applicants(&self) -> Amounts {
        self.free().left_after(self.headroom)
    }

    /// The likeness of `demand` and the resources that are `free` here. It is the cosine between the two as shares of the
    /// server, plus the least share that is left. The cosine alone would fill a loaded server beside an idle one.
    fn likeness(&self, demand: Amounts, free: Amounts) -> f64 {
        let share = |amount: u64, i: usize| match self.promisable.0[i] {
            UNLIMITED => 0.0,
            all => amount as f64 / all.max(1) as f64,
        };
        let wanted: [f64; RESOURCES] = std::array::from_fn(|i| share(demand.0[i], i));
        let had: [f64; RESOURCES] = std::array::from_fn(|i| share(free.0[i], i));
        let dot =
            |a: &[f64; RESOURCES], b: &[f64; RESOURCES]| (0..RESOURCES).map(|i| a[i] * b[i]).sum::<f64>();
        let lengths = (dot(&wanted, &wanted) * dot(&had, &had)).sqrt();
        let cosine = if lengths > 0.0 {
            dot(&wanted, &had) / lengths
        } else {
            1.0
        };
        // A resource that a server lacks altogether is left out, and one of which it has no limit.
        let left = (0..RESOURCES)
            .filter(|i| !matches!(self.promisable.0[*i], 0 | UNLIMITED))
            .map(|i| had[i] - wanted[i]);
        cosine + left.fold(1.0, f64::min)
    }

    /// Equation 3 as a fixed-point fraction: the allocated share of the most consumed resource, and its index.
    fn key(&self, id: ServerId) -> (Key, usize) {
        let share = |i: usize| match (self.allocated.0[i], self.promisable.0[i]) {
            (0, _) | (_, UNLIMITED) => 0,
            (_, 0) => u64::MAX,
            (used, all) => u64::try_from((u128::from(used) << 40) / u128::from(all)).unwrap_or(u64::MAX),
        };
        let shares = (0..RESOURCES).map(|i| (share(i), i));
        let (most, shortest_of) = shares.max().expect("there are resources");
        ((most, id), shortest_of)
    }
}

/// The part of the fleet in which a server is searched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Room {
    Applicants,
    Recovery,
    Auxiliary,
}

impl Room {
    /// The resources of a server that are open to it; `None`: the server is no part of it.
    fn of(self, slot: &Slot) -> Option<Amounts> {
        let is_in = slot.may_be_elected() && slot.auxiliary == (self == Room::Auxiliary);
        is_in.then(|| match self {
            Room::Applicants => slot.free_for_applicants(),
            Room::Recovery | Room::Auxiliary => slot.free(),
        })
    }
}

fn headroom_of(promisable: Amounts, permille: u64) -> Amounts {
    let kept = |all: u64| match all {
        UNLIMITED => 0,
        _ => u64::try_from(u128::from(all) * u128::from(permille) / 1_000).expect("less than all"),
    };
    Amounts(promisable.0.map(kept))
}

/// Servers with their allocations, ordered by dominant share. One fleet per region.
#[derive(Debug, Clone, Default)]
pub struct Fleet {
    slots: BTreeMap<ServerId, Slot>,
    /// Servers that are not auxiliary, with the resources open to applicants.
    general: Index,
    /// The same servers with all their free resources, when some are kept for recovery.
    recovery: Index,
    auxiliary: Index,
    /// R^g: free for applicants on available servers that are not auxiliary. Wide enough for servers without limit.
    free_total: [u128; RESOURCES],
    /// The share of each server that is kept for recovery, in thousandths.
    headroom_permille: u64,
    choice: Choice,
    is_spread: bool,
    /// The number of groups that two servers share, the lesser id first ([`Fleet::add_shared`]).
    shared: BTreeMap<(ServerId, ServerId), u32>,
    /// Servers that reserve something for a project's shared guarantee.
    hosts: BTreeMap<ProjectId, BTreeSet<ServerId>>,
    /// Bits of the failure domains, in the order of their first servers.
    domains: BTreeMap<String, Domains>,
}

/// The bit of servers in no domain, or in one beyond the first 63. Two such servers may be in one domain or in two.
const ELSEWHERE: Domains = 1 << 63;

impl Fleet {
    /// A fleet that keeps a share of each server for recovery: applicants are placed on the rest.
    pub fn with_headroom(permille: u64) -> Self {
        assert!(permille < 1_000, "something is left for applicants");
        Self {
            headroom_permille: permille,
            ..Self::default()
        }
    }

    pub fn choosing(self, choice: Choice) -> Self {
        Self { choice, ..self }
    }

    pub fn set_choice(&mut self, choice: Choice) {
        self.choice = choice;
    }

    /// Spreads groups over many sets of servers, for [`Choice::Shape`]. Among servers about as good for a replica, the one
    /// that shares the fewest groups with the other members is taken. Without it equal groups form cliques. When a server
    /// of a clique fails, all its replicas have to go outside of it, and the room kept inside is of no use.
    pub fn set_spread(&mut self, is_spread: bool) {
        self.is_spread = is_spread;
    }

    /// Counts a group that has a replica on `one`, and on these others.
    pub fn add_shared(&mut self, one: ServerId, others: &[ServerId]) {
        for other in others {
            *self.shared.entry((one.min(*other), one.max(*other))).or_default() += 1;
        }
    }

    /// Undoes [`Fleet::add_shared`].
    pub fn remove_shared(&mut self, one: ServerId, others: &[ServerId]) {
        for other in others {
            let pair = (one.min(*other), one.max(*other));
            let groups = self
                .shared
                .get_mut(&pair)
                .expect("only counted groups are removed");
            *groups -= 1;
            if *groups == 0 {
                self.shared.remove(&pair);
            }
        }
    }

    /// The number of groups that two servers share.
    pub fn shared(&self, one: ServerId, other: ServerId) -> u32 {
        let pair = (one.min(other), one.max(other));
        self.shared.get(&pair).copied().unwrap_or(0)
    }

    /// Pairs of servers that share groups, the lesser id first.
    pub fn all_shared(&self) -> impl Iterator<Item = (&(ServerId, ServerId), &u32)> {
        self.shared.iter()
    }

    /// Reserved for shared guarantees, on each server that reserves something for one.
    pub fn shared_reservations(&self) -> BTreeMap<ServerId, Amounts> {
        let mut reserved: BTreeMap<ServerId, Amounts> = BTreeMap::new();
        for (project, hosts) in &self.hosts {
            for id in hosts {
                let sum = reserved.entry(*id).or_default();
                *sum = sum.plus(self.slots[id].shared.reserved(*project));
            }
        }
        reserved
    }

    pub fn headroom_permille(&self) -> u64 {
        self.headroom_permille
    }

    /// Keeps another share of each server for recovery. Applicants that already use more than the rest keep it.
    pub fn set_headroom(&mut self, permille: u64) {
        assert!(permille < 1_000, "something is left for applicants");
        if permille == self.headroom_permille {
            return;
        }
        let ids: Vec<ServerId> = self.slots.keys().copied().collect();
        for id in &ids {
            self.unlist(*id);
        }
        self.headroom_permille = permille;
        for id in ids {
            let slot = self.slot_mut(id);
            slot.headroom = headroom_of(slot.promisable, permille);
            self.list(id);
        }
    }

    /// Adds a server, or changes one: its allocations stay.
    pub fn set_server(
        &mut self,
        id: ServerId,
        promisable: Amounts,
        failure_domain: Option<String>,
        auxiliary: bool,
        available: bool,
    ) {
        self.unlist(id);
        let known = self.slots.remove(&id);
        let (allocated, shared, replicas) = known.map_or_else(Default::default, |slot| {
            (slot.allocated, slot.shared, slot.replicas)
        });
        let headroom = headroom_of(promisable, self.headroom_permille);
        if let Some(name) = &failure_domain
            && self.domains.len() < 63
        {
            let bit = 1 << self.domains.len();
            self.domains.entry(name.clone()).or_insert(bit);
        }
        self.slots.insert(
            id,
            Slot {
                promisable,
                headroom,
                allocated,
                shared,
                replicas,
                failure_domain,
                auxiliary,
                available,
            },
        );
        self.list(id);
    }

    /// The number of different named failure domains among these servers. Servers in no named domain count for none.
    pub fn failure_domains(&self, servers: &[ServerId]) -> usize {
        let named = servers
            .iter()
            .filter_map(|id| self.slots.get(id)?.failure_domain.as_deref());
        named.collect::<BTreeSet<_>>().len()
    }

    pub fn set_available(&mut self, id: ServerId, available: bool) {
        self.unlist(id);
        self.slot_mut(id).available = available;
        self.list(id);
    }

    /// Charges `demand` to a server whether it fits or not: for a replica that is there already, as when a follower
    /// becomes head. The safety margin is there for it; no server is *elected* beyond its room.
    pub fn charge(&mut self, id: ServerId, demand: impl Into<Demand>) {
        let demand = demand.into();
        self.unlist(id);
        let slot = self.slot_mut(id);
        let (needed, is_first) = slot.shared.add(&demand);
        slot.allocated = slot.allocated.plus(needed);
        slot.replicas += 1;
        if let Some(shared) = demand.shared.filter(|_| is_first) {
            self.hosts.entry(shared.project).or_default().insert(id);
        }
        self.list(id);
    }

    /// Undoes a charge of `demand`.
    pub fn release(&mut self, id: ServerId, demand: impl Into<Demand>) {
        let demand = demand.into();
        self.unlist(id);
        let slot = self.slot_mut(id);
        let (freed, is_last) = slot.shared.remove(&demand);
        slot.allocated = slot.allocated.minus(freed);
        slot.replicas -= 1;
        if let Some(shared) = demand.shared.filter(|_| is_last) {
            let hosts = self.hosts.get_mut(&shared.project).expect("it was a host");
            hosts.remove(&id);
            if hosts.is_empty() {
                self.hosts.remove(&shared.project);
            }
        }
        self.list(id);
    }

    /// ElectServer: the fleet's choice (PO_c) among servers that have room for `demand` (Cons1) and are not `members`
    /// (Cons3). It is in a failure domain of its own when such a one has room. The server is charged.
    pub fn elect(&mut self, demand: impl Into<Demand>, members: &[ServerId], pool: Pool) -> Option<ServerId> {
        self.elect_among(demand, members, pool, &|_| true)
    }

    /// The same, among accepted servers.
    pub fn elect_among(
        &mut self,
        demand: impl Into<Demand>,
        members: &[ServerId],
        pool: Pool,
        accept: &dyn Fn(ServerId) -> bool,
    ) -> Option<ServerId> {
        let demand = demand.into();
        let elected = match pool {
            Pool::Admission => self.search(Room::Applicants, &demand, members, accept),
            Pool::Replacement => self
                .search(Room::Recovery, &demand, members, accept)
                .or_else(|| self.search(Room::Auxiliary, &demand, members, accept)),
        }?;
        self.charge(elected, demand);
        Some(elected)
    }

    /// Whether this very server has room for `demand`: it holds the group's data from before.
    pub fn fits_on(&self, id: ServerId, demand: impl Into<Demand>) -> bool {
        let demand = demand.into();
        let fits = |slot: &Slot| slot.may_be_elected() && slot.shared.needed(&demand).fits(slot.free());
        self.slots.get(&id).is_some_and(fits)
    }

    /// The amounts that a replica would add to this server: less than its whole demand where it hosts the project.
    pub fn needed_on(&self, id: ServerId, demand: &Demand) -> Amounts {
        let slot = self.slots.get(&id);
        slot.map_or(demand.whole(), |slot| slot.shared.needed(demand))
    }

    /// The resources of this server that are open to an applicant. It need not be available: the replica is there already.
    pub fn free_for_applicants(&self, id: ServerId) -> Amounts {
        self.slots
            .get(&id)
            .map_or(Amounts::ZERO, Slot::free_for_applicants)
    }

    fn search(
        &self,
        room: Room,
        demand: &Demand,
        members: &[ServerId],
        accept: &dyn Fn(ServerId) -> bool,
    ) -> Option<ServerId> {
        let domain = |id: ServerId| {
            self.slots
                .get(&id)
                .and_then(|slot| slot.failure_domain.as_deref())
        };
        let taken: Vec<&str> = members.iter().filter_map(|id| domain(*id)).collect();
        let taken_bits = taken.iter().filter_map(|name| self.domains.get(*name));
        let untaken = !taken_bits.fold(0, |bits, bit| bits | bit);
        let other = |id: ServerId| !members.contains(&id) && accept(id);
        let apart = |id: ServerId| other(id) && domain(id).is_none_or(|own| !taken.contains(&own));
        let choose = |domains, accept: &dyn Fn(ServerId) -> bool| {
            self.choose_host(room, demand, members, accept)
                .or_else(|| self.choose(room, demand.whole(), domains, members, accept))
        };
        choose(untaken, &apart).or_else(|| {
            if taken.is_empty() {
                None
            } else {
                choose(Domains::MAX, &other)
            }
        })
    }

    /// A server that reserves for the replica's project already, and so needs less for it than others do.
    fn choose_host(
        &self,
        room: Room,
        demand: &Demand,
        members: &[ServerId],
        accept: &dyn Fn(ServerId) -> bool,
    ) -> Option<ServerId> {
        let hosts = self.hosts.get(&demand.shared?.project)?.iter();
        let accepted = hosts.filter(|id| accept(**id));
        let fitting = accepted.filter_map(|id| {
            let slot = &self.slots[id];
            let (needed, free) = (slot.shared.needed(demand), room.of(slot)?);
            needed.fits(free).then(|| (slot.key(*id).0, needed, free))
        });
        let mut fitting: Vec<(Key, Amounts, Amounts)> = fitting.collect();
        fitting.sort_unstable_by_key(|(key, ..)| *key);
        let compared = fitting.into_iter().take(self.compared_max());
        let compared = compared.map(|((_, id), needed, free)| (self.slots[&id].likeness(needed, free), id));
        self.best_of(compared.collect(), demand.whole(), members)
    }

    fn compared_max(&self) -> usize {
        match self.choice {
            Choice::LeastLoaded => 1,
            Choice::Shape => COMPARED_MAX,
        }
    }

    fn choose(
        &self,
        room: Room,
        demand: Amounts,
        domains: Domains,
        members: &[ServerId],
        accept: &dyn Fn(ServerId) -> bool,
    ) -> Option<ServerId> {
        let compared_max = self.compared_max();
        let mut compared: Vec<(f64, ServerId)> = Vec::with_capacity(compared_max);
        self.index(room).fits(demand, domains, accept, &mut |id, free| {
            let likeness = match compared_max {
                1 => 0.0,
                _ => self.slots[&id].likeness(demand, free),
            };
            compared.push((likeness, id));
            if compared.len() == compared_max {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        });
        self.best_of(compared, demand, members)
    }

    /// The best of servers with their likeness, the least loaded first.
    fn best_of(
        &self,
        compared: Vec<(f64, ServerId)>,
        demand: Amounts,
        members: &[ServerId],
    ) -> Option<ServerId> {
        // The first of equals is the least loaded.
        let likest = |best: (f64, ServerId), one: (f64, ServerId)| if one.0 > best.0 { one } else { best };
        let best = compared.iter().copied().reduce(likest)?;
        if !self.is_spread || members.is_empty() {
            return Some(best.1);
        }
        let replica = demand.dominant_share(self.slots[&best.1].promisable).0;
        let least = best.0 - SPREAD_REPLICAS * replica;
        let near = compared.into_iter().filter(|(likeness, _)| *likeness >= least);
        let groups = |id: ServerId| members.iter().map(|member| self.shared(id, *member)).sum::<u32>();
        let fewest = near.map(|(likeness, id)| (groups(id), likeness, id));
        let better = |a: (u32, f64, ServerId), b: (u32, f64, ServerId)| {
            if b.0 < a.0 || (b.0 == a.0 && b.1 > a.1) {
                b
            } else {
                a
            }
        };
        fewest.reduce(better).map(|(_, _, id)| id)
    }

    fn index(&self, room: Room) -> &Index {
        match room {
            Room::Recovery if self.headroom_permille > 0 => &self.recovery,
            Room::Applicants | Room::Recovery => &self.general,
            Room::Auxiliary => &self.auxiliary,
        }
    }

    /// R^g: the free resources of all servers that admission may use.
    pub fn free_total(&self) -> Amounts {
        Amounts(self.free_total.map(|all| u64::try_from(all).unwrap_or(UNLIMITED)))
    }

    /// Promisable resources of all servers that take replicas, free or not.
    pub fn promisable_total(&self) -> Amounts {
        let available = self.slots.values().filter(|slot| slot.available);
        Amounts::sum(available.map(|slot| slot.promisable))
    }

    /// The number of servers that admission could use if they did not host as many groups as they may.
    pub fn full_servers(&self) -> usize {
        let slots = self.slots.values();
        slots
            .filter(|slot| slot.available && !slot.auxiliary && slot.is_full())
            .count()
    }

    /// The number of servers that admission may use.
    pub fn admission_servers(&self) -> usize {
        self.general.len()
    }

    pub fn allocated(&self, id: ServerId) -> Amounts {
        self.slots.get(&id).map_or(Amounts::ZERO, |slot| slot.allocated)
    }

    pub fn promisable(&self, id: ServerId) -> Amounts {
        self.slots.get(&id).map_or(Amounts::ZERO, |slot| slot.promisable)
    }

    pub fn free(&self, id: ServerId) -> Amounts {
        self.slots.get(&id).map_or(Amounts::ZERO, Slot::free)
    }

    /// The free resources of each server that admission may use and that is not among `members`.
    pub(crate) fn free_of_others(&self, members: &[ServerId]) -> impl Iterator<Item = Amounts> {
        self.slots
            .iter()
            .filter(|(id, slot)| slot.may_be_elected() && !slot.auxiliary && !members.contains(id))
            .map(|(_, slot)| slot.free_for_applicants())
    }

    fn slot_mut(&mut self, id: ServerId) -> &mut Slot {
        self.slots
            .get_mut(&id)
            .unwrap_or_else(|| panic!("server {id} is not in this fleet"))
    }

    fn unlist(&mut self, id: ServerId) {
        let Some(slot) = self.slots.get(&id).filter(|slot| slot.may_be_elected()) else {
            return;
        };
        let (key, _) = slot.key(id);
        if slot.auxiliary {
            self.auxiliary.remove(key);
            return;
        }
        let free = slot.free_for_applicants();
        for (total, own) in self.free_total.iter_mut().zip(free.0) {
            *total -= u128::from(own);
        }
        self.general.remove(key);
        if self.headroom_permille > 0 {
            self.recovery.remove(key);
        }
    }

    fn list(&mut self, id: ServerId) {
        let Some(slot) = self.slots.get(&id).filter(|slot| slot.may_be_elected()) else {
            return;
        };
        let bit = slot
            .failure_domain
            .as_ref()
            .and_then(|name| self.domains.get(name));
        let ((key, shortest_of), domain) = (slot.key(id), bit.copied().unwrap_or(ELSEWHERE));
        if slot.auxiliary {
            self.auxiliary.insert(key, slot.free(), domain, shortest_of);
            return;
        }
        let free = slot.free_for_applicants();
        for (total, own) in self.free_total.iter_mut().zip(free.0) {
            *total += u128::from(own);
        }
        self.general.insert(key, free, domain, shortest_of);
        if self.headroom_permille > 0 {
            self.recovery.insert(key, slot.free(), domain, shortest_of);
        }
    }
}
