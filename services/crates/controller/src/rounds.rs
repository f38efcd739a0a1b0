//! Servers that agree in rounds of messages: (state, round, messages) → (state, messages).
//!
//! A message may be lost, or come in a later round than the next. What is *used* must be feasible all the same. Each
//! algorithm keeps to one rule: a server gives its word once an interval, for amounts that fit it all together, and
//! a head uses what every server of the tenant gave its word for. Silence is a no: the tenant keeps what it reserved.

use std::collections::BTreeMap;

use crate::problem::{NOTHING, Place, Problem, RESOURCES, Vector};

/// What one server knows when an interval begins: what it has free, and the tenants that it hosts.
#[derive(Debug, Clone)]
pub struct Local {
    pub server: usize,
    pub interval: u64,
    pub free: Vector,
    pub hosted: Vec<Hosted>,
}

#[derive(Debug, Clone)]
pub struct Hosted {
    pub tenant: usize,
    /// The tenant's whole chain with its costs, known since admission.
    pub places: Vec<Place>,
    /// What this server charges for one request.
    pub cost: Vector,
    /// Requests/s that are wanted above the reservation: measured at the head, known to it alone.
    pub extra_per_s: Option<u64>,
    /// Requests/s for which this server gave its word before, and which may still be in use.
    pub held_per_s: u64,
}

impl Hosted {
    pub fn head(&self) -> usize {
        self.places[0].server
    }

    /// The tenant's servers other than `server`.
    pub fn peers(&self, server: usize) -> impl Iterator<Item = usize> {
        let others = self.places.iter().map(|place| place.server);
        others.filter(move |other| *other != server)
    }
}

/// All that one server tells another in a round: one message, however many tenants it is about.
#[derive(Debug, Clone, PartialEq)]
pub struct Message {
    pub from: usize,
    pub to: usize,
    pub interval: u64,
    pub body: Body,
}

/// Tenants are named by their number.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// To heads: what the sender has free (Head-DRF).
    Free(Vector),
    /// From heads: requests/s that tenants want (All-DRF).
    Wants(Vec<(usize, u64)>),
    /// From a head: requests/s for tenants, to be taken whole or refused (Head-DRF).
    Proposals(Vec<(usize, u64)>),
    /// To a head: the proposals that are taken (Head-DRF).
    Accepted(Vec<usize>),
    /// What the sender has free; requests/s that the tenants want whose head it is (Level-DRF).
    Has { free: Vector, wants: Vec<(usize, u64)> },
    /// The sender's tenants that the receiver does not host (Level-DRF).
    Crowds(Vec<Crowd>),
    /// To a head: requests/s that the sender keeps for tenants, all together within what it has free.
    Promise(Vec<(usize, u64)>),
}

/// Tenants as one: what they take of a server while the level rises.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Crowd {
    /// Of each resource, at level 1.
    pub per_level: [f64; RESOURCES],
    /// They stop there; infinite: only where a resource is full.
    pub until_level: f64,
}

impl Crowd {
    /// Whether sums can be made with it.
    pub fn is_sound(&self) -> bool {
        self.per_level
            .iter()
            .all(|amount| amount.is_finite() && *amount >= 0.0)
            && self.until_level >= 0.0
    }
}

/// C-DRF where one server runs it on its own: Algorithm 2 as in the paper, or the exact version, whose time does not
/// depend on how much there is to share.
pub type Central = fn(&Problem) -> Vec<u64>;

/// One server's part in one interval.
pub trait Server: Send {
    /// How often [`Server::step`] is called, with `round` from 0. What the last call sends is nothing.
    fn rounds(&self) -> u32;

    /// Takes the messages that came since the last round; sends messages.
    fn step(&mut self, round: u32, inbox: &[Message]) -> Vec<Message>;

    /// After the last round: requests/s of the tenants whose heads are here; of whom nothing is said, not all
    /// servers gave their word.
    fn grants(&self) -> Vec<(usize, u64)>;

    /// What is free, and what of its earlier words may still be in use, by tenant: known better as heads tell what
    /// they use and assume.
    fn note_now(&mut self, free: Vector, held_per_s: &dyn Fn(usize) -> u64);

    /// What this server gave its word for in this interval, to heads here and elsewhere.
    fn given(&self) -> &[(usize, u64)];
}

/// What becomes of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Delivered,
    Lost,
    /// So many rounds after the next one; after the last round it is as good as lost.
    Late(u32),
}

/// How an interval went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Requests/s by tenant.
    pub grants: Vec<u64>,
    /// One for each pair of servers and round in which something was told.
    pub messages: u64,
    /// Rounds in which messages were sent.
    pub rounds: u32,
}

/// What each server of a problem knows.
pub fn locals(problem: &Problem, interval: u64) -> Vec<Local> {
    let local = |(server, free): (usize, &Vector)| Local {
        server,
        interval,
        free: *free,
        hosted: Vec::new(),
    };
    let mut locals: Vec<Local> = problem.free().iter().enumerate().map(local).collect();
    for (t, tenant) in problem.tenants().iter().enumerate() {
        for (position, place) in tenant.places.iter().enumerate() {
            locals[place.server].hosted.push(Hosted {
                tenant: t,
                places: tenant.places.clone(),
                cost: place.cost,
                extra_per_s: (position == 0).then_some(tenant.extra_per_s),
                held_per_s: 0,
            });
        }
    }
    locals
}

/// Runs one interval. `fate` decides about each message; `around` is called around each step of server `s`, so
/// that a shell can measure it.
pub fn run<S: Server + ?Sized>(
    servers: &mut [Box<S>],
    tenants: usize,
    mut fate: impl FnMut(&Message) -> Fate,
    mut around: impl FnMut(usize, &mut dyn FnMut()),
) -> Outcome {
    let rounds = servers.first().map_or(0, |server| server.rounds());
    let (mut messages, mut rounds_used) = (0, 0);
    let mut due: BTreeMap<u32, Vec<Vec<Message>>> = BTreeMap::new();
    for round in 0..rounds {
        let inboxes = due
            .remove(&round)
            .unwrap_or_else(|| vec![Vec::new(); servers.len()]);
        for (s, server) in servers.iter_mut().enumerate() {
            let mut sent = Vec::new();
            around(s, &mut || sent = server.step(round, &inboxes[s]));
            messages += sent.len() as u64;
            rounds_used = rounds_used.max(if sent.is_empty() { 0 } else { round + 1 });
            for message in sent {
                let arrival = match fate(&message) {
                    Fate::Delivered => round + 1,
                    Fate::Late(by) => round + 1 + by,
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
    Outcome {
        grants,
        messages,
        rounds: rounds_used,
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
    pub(crate) fn tell(&mut self, receiver: usize, what: T) {
        self.by_receiver.entry(receiver).or_default().push(what);
    }

    /// Something is sent to the receiver, if only an empty list.
    pub(crate) fn address(&mut self, receiver: usize) {
        self.by_receiver.entry(receiver).or_default();
    }

    pub(crate) fn send(self, local: &Local, body: impl Fn(Vec<T>) -> Body) -> Vec<Message> {
        let message = |(to, what)| Message {
            from: local.server,
            to,
            interval: local.interval,
            body: body(what),
        };
        self.by_receiver.into_iter().map(message).collect()
    }
}

/// Where the tenants of a server are in its list.
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

    /// Of a tenant that is also hosted where it was told.
    pub(crate) fn common(&self, tenant: usize) -> usize {
        self.get(tenant).expect("others tell of common tenants")
    }
}

/// The word of the tenants' servers, as it comes in at their heads.
pub(crate) struct Promises {
    /// Of the tenant at `h` in `hosted`, one for each of its places: `kept[starts[h]..starts[h + 1]]`.
    kept: Vec<Option<u64>>,
    starts: Vec<usize>,
}

impl Promises {
    pub(crate) fn none(local: &Local) -> Self {
        let mut starts = vec![0];
        starts.extend(local.hosted.iter().scan(0, |end, hosted| {
            *end += hosted.places.len();
            Some(*end)
        }));
        Self {
            kept: vec![None; starts[local.hosted.len()]],
            starts,
        }
    }

    /// `h`: in `hosted`. The word of a server that does not host the tenant is nobody's.
    pub(crate) fn add(&mut self, local: &Local, h: usize, server: usize, amount: u64) {
        let places = &local.hosted[h].places;
        if let Some(at) = places.iter().position(|place| place.server == server) {
            self.kept[self.starts[h] + at] = Some(amount);
        }
    }

    /// The least that the servers of each tenant keep for it, where all have answered: accepted in part.
    pub(crate) fn grants(&self, local: &Local) -> Vec<(usize, u64)> {
        let heads = local.hosted.iter().enumerate();
        let heads = heads.filter(|(_, hosted)| hosted.head() == local.server);
        let grant = |(h, hosted): (usize, &Hosted)| {
            let kept = &self.kept[self.starts[h]..self.starts[h + 1]];
            let wanted = hosted.extra_per_s.unwrap_or(0);
            let least = kept
                .iter()
                .try_fold(wanted, |least, kept| Some(least.min((*kept)?)))?;
            Some((hosted.tenant, least))
        };
        heads.filter_map(grant).collect()
    }
}

/// A problem of one server: its tenants with what they cost there. `among`: positions in `hosted`.
pub(crate) fn own_problem(local: &Local, among: &[(usize, u64)]) -> Problem {
    let tenant = |(h, extra_per_s): &(usize, u64)| crate::problem::Tenant {
        places: vec![Place {
            server: 0,
            cost: local.hosted[*h].cost,
        }],
        extra_per_s: *extra_per_s,
    };
    let tenants: Vec<_> = among.iter().map(tenant).collect();
    Problem::new(vec![local.free], tenants).expect("whoever costs nothing here is left out")
}

pub(crate) fn costs_nothing(hosted: &Hosted) -> bool {
    hosted.cost == NOTHING
}

/// What a server may give its word for, where it would like to give `desired` (positions in `hosted`, requests/s;
/// together within what is free). Whatever earlier words still keep cannot be given to others before it is known to
/// be unused: who gets less gets less at once, who gets more gets its part of what nobody holds.
fn word(local: &Local, desired: &[(usize, u64)]) -> Vec<(usize, u64)> {
    let left = unheld(local);
    let growth = |h: usize, amount: u64| amount.saturating_sub(local.hosted[h].held_per_s);
    let mut needed = [0u128; RESOURCES];
    for (h, amount) in desired {
        for i in 0..RESOURCES {
            let cost = u128::from(local.hosted[*h].cost[i]);
            needed[i] = needed[i].saturating_add(cost * u128::from(growth(*h, *amount)));
        }
    }
    let given = |(h, amount): &(usize, u64)| {
        let hosted = &local.hosted[*h];
        let mut more = u128::from(growth(*h, *amount));
        for i in (0..RESOURCES).filter(|i| hosted.cost[*i] > 0) {
            if needed[i] > u128::from(left[i]) {
                more = more.min(u128::from(growth(*h, *amount)) * u128::from(left[i]) / needed[i]);
            }
        }
        (*h, (*amount).min(hosted.held_per_s) + more as u64)
    };
    desired.iter().map(given).collect()
}

/// Gives the word for `desired`; what others' heads are to be told of it.
pub(crate) fn give_word(
    local: &Local,
    desired: &[(usize, u64)],
    given: &mut Vec<(usize, u64)>,
    promises: &mut Promises,
) -> Outbox<(usize, u64)> {
    let mut outbox = Outbox::default();
    for (h, amount) in word(local, desired) {
        let hosted = &local.hosted[h];
        given.push((hosted.tenant, amount));
        if hosted.head() == local.server {
            promises.add(local, h, local.server, amount);
        } else {
            outbox.tell(hosted.head(), (hosted.tenant, amount));
        }
    }
    outbox
}

pub(crate) fn note_now(local: &mut Local, free: Vector, held_per_s: &dyn Fn(usize) -> u64) {
    local.free = free;
    for hosted in &mut local.hosted {
        hosted.held_per_s = held_per_s(hosted.tenant);
    }
}

/// What is free and not held by earlier words.
pub(crate) fn unheld(local: &Local) -> Vector {
    let mut left = local.free;
    for hosted in &local.hosted {
        for i in 0..RESOURCES {
            left[i] = left[i].saturating_sub(hosted.cost[i].saturating_mul(hosted.held_per_s));
        }
    }
    left
}
