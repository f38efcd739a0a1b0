//! Servers that agree in iterations of messages: (state, iteration, messages) → (state, messages).
//!
//! A message may be lost, or come in a later iteration than the next. The rates in use must be feasible all the same.
//! So each server commits once an interval, to amounts that fit it together. A head uses only the rate that every
//! server of the tenant committed to. Silence is a no: the tenant keeps its reservation.

use std::collections::BTreeMap;

use crate::problem::{NOTHING, RESOURCES, ReplicaCost, SharingProblem, SharingTenant, Vector};

/// A server's own state when an interval begins: its free amounts, and the tenants that it hosts.
#[derive(Debug, Clone)]
pub struct Local {
    pub server: usize,
    pub interval: u64,
    pub free: Vector,
    pub hosted: Vec<HostedTenant>,
}

#[derive(Debug, Clone)]
pub struct HostedTenant {
    pub tenant: usize,
    /// The tenant's whole chain with its costs, known since admission.
    pub replicas: Vec<ReplicaCost>,
    /// Cost of one request on this server.
    pub cost: Vector,
    /// Requests/s that are wanted above the reservation: measured at the head, known to it alone.
    pub extra_per_s: Option<u64>,
    /// Requests/s that this server committed to before, and that may still be in use.
    pub committed_per_s: u64,
}

impl HostedTenant {
    pub fn head(&self) -> usize {
        self.replicas[0].server
    }

    /// The tenant's servers other than `server`.
    pub fn peers(&self, server: usize) -> impl Iterator<Item = usize> {
        let others = self.replicas.iter().map(|replica| replica.server);
        others.filter(move |other| *other != server)
    }
}

/// Everything that one server sends another in an iteration: one message, however many tenants it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct IterationMessage {
    pub from: usize,
    pub to: usize,
    pub interval: u64,
    pub body: IterationBody,
}

/// Tenants are named by their number.
#[derive(Debug, Clone, PartialEq)]
pub enum IterationBody {
    /// To heads: the sender's free amounts (Head-DRF).
    Free(Vector),
    /// From heads: requests/s that tenants want (All-DRF).
    Wants(Vec<(usize, u64)>),
    /// From a head: requests/s for tenants, to be accepted whole or refused (Head-DRF).
    Proposals(Vec<(usize, u64)>),
    /// To a head: the tenants whose proposals are accepted (Head-DRF).
    Accepted(Vec<usize>),
    /// The sender's free amounts, and the requests/s that the tenants want whose head it is (Level-DRF).
    Has { free: Vector, wants: Vec<(usize, u64)> },
    /// The sender's tenants that the receiver does not host (Level-DRF).
    Aggregates(Vec<Aggregate>),
    /// To a head: requests/s that the sender commits to for tenants, together within its free amounts.
    Commitments(Vec<(usize, u64)>),
}

/// Several tenants as one: their use of a server while the level rises.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Aggregate {
    /// Amount of each resource at level 1.
    pub per_level: [f64; RESOURCES],
    /// The level at which they stop; infinite if only a full resource stops them.
    pub until_level: f64,
}

impl Aggregate {
    /// Whether its numbers can be summed.
    pub fn is_sound(&self) -> bool {
        self.per_level
            .iter()
            .all(|amount| amount.is_finite() && *amount >= 0.0)
            && self.until_level >= 0.0
    }
}

/// C-DRF as one server runs it on its own: Algorithm 2 of the paper, or the exact version, whose time does not depend on
/// the free amounts.
pub type Central = Box<dyn Fn(&SharingProblem) -> Vec<u64> + Send>;

/// One server's part in one interval.
pub trait Participant: Send {
    /// The number of calls of [`Participant::step`], with `iteration` from 0. The last call sends nothing.
    fn iterations(&self) -> u32;

    /// Takes the messages that came since the last iteration; returns messages to send.
    fn step(&mut self, iteration: u32, inbox: &[IterationMessage]) -> Vec<IterationMessage>;

    /// After the last iteration: requests/s of the tenants whose heads are here. A tenant is missing unless all its servers
    /// committed.
    fn grants(&self) -> Vec<(usize, u64)>;

    /// Updates the free amounts, and the earlier commitments that may still be in use. Reports from heads make both more
    /// exact while an interval runs.
    fn note_now(&mut self, free: Vector, committed_per_s: &dyn Fn(usize) -> u64);

    /// The commitments of this server in this interval, to heads here and elsewhere.
    fn commitments(&self) -> &[(usize, u64)];

    /// Newer rates by tenant, in requests/s. Only those that go by told rates take them.
    fn tell(&mut self, _told: BTreeMap<usize, u64>) {}
}

/// The delivery of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Delivered,
    Lost,
    /// This many iterations after the next one. Beyond the last iteration it is lost.
    Late(u32),
}

/// The outcome of an interval.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IntervalOutcome {
    /// Requests/s by tenant.
    pub grants: Vec<u64>,
    /// One for each pair of servers and iteration in which one sent the other something.
    pub messages: u64,
    /// Iterations in which messages were sent.
    pub iterations: u32,
}

/// The state of each server of a problem.
pub fn locals(problem: &SharingProblem, interval: u64) -> Vec<Local> {
    let local = |(server, free): (usize, &Vector)| Local {
        server,
        interval,
        free: *free,
        hosted: Vec::new(),
    };
    let mut locals: Vec<Local> = problem.free().iter().enumerate().map(local).collect();
    for (t, tenant) in problem.tenants().iter().enumerate() {
        for (position, replica) in tenant.replicas.iter().enumerate() {
            locals[replica.server].hosted.push(HostedTenant {
                tenant: t,
                replicas: tenant.replicas.clone(),
                cost: replica.cost,
                extra_per_s: (position == 0).then_some(tenant.extra_per_s),
                committed_per_s: 0,
            });
        }
    }
    locals
}

/// Runs one interval. `fate` decides about each message. `around` is called around each step of server `s`, so that a
/// shell can measure it.
pub fn run<P: Participant + ?Sized>(
    servers: &mut [Box<P>],
    tenants: usize,
    mut fate: impl FnMut(&IterationMessage) -> Fate,
    mut around: impl FnMut(usize, &mut dyn FnMut()),
) -> IntervalOutcome {
    let iterations = servers.first().map_or(0, |server| server.iterations());
    let (mut messages, mut iterations_used) = (0, 0);
    let mut due: BTreeMap<u32, Vec<Vec<IterationMessage>>> = BTreeMap::new();
    for iteration in 0..iterations {
        let inboxes = due
            .remove(&iteration)
            .unwrap_or_else(|| vec![Vec::new(); servers.len()]);
        for (s, server) in servers.iter_mut().enumerate() {
            let mut sent = Vec::new();
            around(s, &mut || sent = server.step(iteration, &inboxes[s]));
            messages += sent.len() as u64;
            iterations_used = iterations_used.max(if sent.is_empty() { 0 } else { iteration + 1 });
            for message in sent {
                let arrival = match fate(&message) {
                    Fate::Delivered => iteration + 1,
                    Fate::Late(by) => iteration + 1 + by,
                    Fate::Lost => continue,
                };
                let inboxes = due
                    .entry(arrival)
                    .or_insert_with(|| vec![Vec::new(); inboxes.len()]);
                inboxes[message.to].push(message);
            }
        }
    }
    let mut grants = vec![0; tenants];
    for server in servers.iter() {
        for (tenant, grant) in server.grants() {
            grants[tenant] = grant;
        }
    }
    IntervalOutcome {
        grants,
        messages,
        iterations: iterations_used,
    }
}

/// Messages by receiver, in the order of the receivers.
pub(crate) struct Outbox<T> {
    by_receiver: BTreeMap<usize, Vec<T>>,
}

impl<T> Default for Outbox<T> {
    fn default() -> Self {
        Self {
            by_receiver: BTreeMap::new(),
        }
    }
}

impl<T> Outbox<T> {
    pub(crate) fn add(&mut self, receiver: usize, item: T) {
        self.by_receiver.entry(receiver).or_default().push(item);
    }

    /// The receiver gets a message, if only an empty list.
    pub(crate) fn address(&mut self, receiver: usize) {
        self.by_receiver.entry(receiver).or_default();
    }

    pub(crate) fn send(self, local: &Local, body: impl Fn(Vec<T>) -> IterationBody) -> Vec<IterationMessage> {
        let message = |(to, items)| IterationMessage {
            from: local.server,
            to,
            interval: local.interval,
            body: body(items),
        };
        self.by_receiver.into_iter().map(message).collect()
    }
}

/// Positions of tenants in a server's list.
pub(crate) struct Positions {
    /// Tenants and positions, in order.
    sorted: Vec<(usize, usize)>,
}

impl Positions {
    pub(crate) fn of(local: &Local) -> Self {
        let hosted = local.hosted.iter().enumerate();
        let mut sorted: Vec<(usize, usize)> = hosted.map(|(h, hosted)| (hosted.tenant, h)).collect();
        sorted.sort_unstable();
        Self { sorted }
    }

    pub(crate) fn get(&self, tenant: usize) -> Option<usize> {
        let found = self.sorted.binary_search_by_key(&tenant, |(tenant, _)| *tenant);
        found.ok().map(|at| self.sorted[at].1)
    }

    /// The position of a tenant that the sender of a message hosts too.
    pub(crate) fn common(&self, tenant: usize) -> usize {
        self.get(tenant).expect("messages are about common tenants")
    }
}

/// The commitments of the tenants' servers, as they come in at the heads.
pub(crate) struct CollectedCommitments {
    /// One for each replica of the tenant at `h` in `hosted`: `per_s[starts[h]..starts[h + 1]]`.
    per_s: Vec<Option<u64>>,
    starts: Vec<usize>,
}

impl CollectedCommitments {
    pub(crate) fn none(local: &Local) -> Self {
        let mut starts = vec![0];
        starts.extend(local.hosted.iter().scan(0, |end, hosted| {
            *end += hosted.replicas.len();
            Some(*end)
        }));
        Self {
            per_s: vec![None; starts[local.hosted.len()]],
            starts,
        }
    }

    /// `h`: position in `hosted`. A server that does not host the tenant commits to nothing.
    pub(crate) fn add(&mut self, local: &Local, h: usize, server: usize, amount: u64) {
        let replicas = &local.hosted[h].replicas;
        if let Some(at) = replicas.iter().position(|replica| replica.server == server) {
            self.per_s[self.starts[h] + at] = Some(amount);
        }
    }

    /// Commitments of another server, to tenants headed here.
    pub(crate) fn hear(
        &mut self,
        local: &Local,
        positions: &Positions,
        server: usize,
        amounts: &[(usize, u64)],
    ) {
        for (tenant, amount) in amounts {
            if let Some(h) = positions.get(*tenant) {
                self.add(local, h, server, *amount);
            }
        }
    }

    /// The lowest commitment of each tenant's servers, if all of them answered: a wish is accepted in part.
    pub(crate) fn grants(&self, local: &Local) -> Vec<(usize, u64)> {
        let heads = local.hosted.iter().enumerate();
        let heads = heads.filter(|(_, hosted)| hosted.head() == local.server);
        let grant = |(h, hosted): (usize, &HostedTenant)| {
            let answers = &self.per_s[self.starts[h]..self.starts[h + 1]];
            let wanted = hosted.extra_per_s.unwrap_or(0);
            let least = answers
                .iter()
                .try_fold(wanted, |least, answer| Some(least.min((*answer)?)))?;
            Some((hosted.tenant, least))
        };
        heads.filter_map(grant).collect()
    }
}

/// The problem of one server: its tenants with their costs there. `among`: positions in `hosted`.
pub(crate) fn own_problem(local: &Local, among: &[(usize, u64)]) -> SharingProblem {
    let tenant = |(h, extra_per_s): &(usize, u64)| SharingTenant {
        replicas: vec![ReplicaCost {
            server: 0,
            cost: local.hosted[*h].cost,
        }],
        extra_per_s: *extra_per_s,
    };
    let tenants: Vec<_> = among.iter().map(tenant).collect();
    SharingProblem::new(vec![local.free], tenants).expect("tenants that cost nothing here are left out")
}

pub(crate) fn costs_nothing(hosted: &HostedTenant) -> bool {
    hosted.cost == NOTHING
}

/// The commitments that a server may make, where it would like to make `desired` (positions in `hosted`, requests/s;
/// together within its free amounts). Amounts under earlier commitments are not given to others before they are known to
/// be unused. So a tenant that gets less gets less at once; one that gets more gets its part of the uncommitted amounts.
fn possible(local: &Local, desired: &[(usize, u64)]) -> Vec<(usize, u64)> {
    let left = uncommitted(local);
    let growth = |h: usize, amount: u64| amount.saturating_sub(local.hosted[h].committed_per_s);
    let mut needed = [0u128; RESOURCES];
    for (h, amount) in desired {
        for i in 0..RESOURCES {
            let cost = u128::from(local.hosted[*h].cost[i]);
            needed[i] = needed[i].saturating_add(cost * u128::from(growth(*h, *amount)));
        }
    }
    let commitment = |(h, amount): &(usize, u64)| {
        let hosted = &local.hosted[*h];
        let mut more = u128::from(growth(*h, *amount));
        for i in (0..RESOURCES).filter(|i| hosted.cost[*i] > 0) {
            if needed[i] > u128::from(left[i]) {
                more = more.min(u128::from(growth(*h, *amount)) * u128::from(left[i]) / needed[i]);
            }
        }
        (*h, (*amount).min(hosted.committed_per_s) + more as u64)
    };
    desired.iter().map(commitment).collect()
}

/// Commits to `desired` as far as possible. Returns the part that heads elsewhere have to hear of.
pub(crate) fn make_commitments(
    local: &Local,
    desired: &[(usize, u64)],
    commitments: &mut Vec<(usize, u64)>,
    collected: &mut CollectedCommitments,
) -> Outbox<(usize, u64)> {
    let mut outbox = Outbox::default();
    for (h, amount) in possible(local, desired) {
        let hosted = &local.hosted[h];
        commitments.push((hosted.tenant, amount));
        if hosted.head() == local.server {
            collected.add(local, h, local.server, amount);
        } else {
            outbox.add(hosted.head(), (hosted.tenant, amount));
        }
    }
    outbox
}

pub(crate) fn note_now(local: &mut Local, free: Vector, committed_per_s: &dyn Fn(usize) -> u64) {
    local.free = free;
    for hosted in &mut local.hosted {
        hosted.committed_per_s = committed_per_s(hosted.tenant);
    }
}

/// The free amounts that no earlier commitment covers.
pub(crate) fn uncommitted(local: &Local) -> Vector {
    let mut left = local.free;
    for hosted in &local.hosted {
        for i in 0..RESOURCES {
            left[i] = left[i].saturating_sub(hosted.cost[i].saturating_mul(hosted.committed_per_s));
        }
    }
    left
}
