//! The queue between tenants, before bytes are taken from their sockets. It is deficit weighted round robin (Shreedhar
//! and Varghese) with DRF accounting of several resources, as in Pisces §3.4.
//!
//! Bytes wait in the sockets, not here. A connection that has something to be read asks ([`FairQueue::ask`]); its
//! tenant's credit decides whether it reads now or waits. In each cycle a tenant may spend a share of the cycle's time *of
//! each resource*: by its weight for that resource, as in DRF with weight vectors (Ghodsi et al., §4.3). A tenant that has
//! used up one of them, its dominant one, has no credit left. So tenants that reserve different resources each get what
//! they reserved, however much of it others want.
//!
//! The cycle ends once no tenant with something to read has credit left ([`FairQueue::pass`]). So others get the time
//! that a tenant does not use, and a tenant that is alone never waits. The cost of a read is known only after parsing,
//! and is charged then: a level may go below zero by one read, and is paid off in later cycles.
//!
//! State is per tenant and connection, never per request.

use std::collections::{BTreeSet, VecDeque};

use quorate_types::Micros;
use quorate_types::ids::IdMap;
use quorate_types::limits::{FAIR_BLOCKED_REST_US, FAIR_BLOCKED_WAIT_US, FAIR_CYCLE_US, FAIR_READ_BYTES_MIN};

/// The largest debt of a tenant: a day of a resource, whatever one read is said to cost. So debt can be counted, and
/// paid off, in cycles.
const DEBT_NS_MAX: i64 = 86_400_000_000_000;

/// The owner of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tenant(pub u128);

/// A connection's number.
pub type Connection = u64;

/// The answer to a connection that has something to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// It reads now, at most `bytes_max`.
    Read { bytes_max: usize },
    /// It leaves its bytes in the socket until [`FairQueue::pass`] names it.
    Wait,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    Idle,
    Waiting,
    /// Named by a pass: it reads when it asks next.
    Named,
}

#[derive(Debug)]
struct ConnectionSeat {
    tenant: Tenant,
    phase: Phase,
    is_blocked: bool,
}

/// Times are nanoseconds of the whole of a resource.
#[derive(Debug)]
struct Account {
    weights: [u64; 3],
    connections: usize,
    /// Credit left in this cycle, of each resource; below zero it is debt.
    levels: [i64; 3],
    /// The cycle in which levels were filled last.
    cycle: u64,
    /// Connections with something to read, first come first served.
    waiting: VecDeque<Connection>,
    blocked: usize,
    awaited_since: Option<Micros>,
    not_awaited_before: Micros,
    /// Moving averages of a turn.
    turn_ns: [u64; 3],
    turn_bytes: u64,
}

impl Account {
    fn new(cycle: u64) -> Self {
        Self {
            weights: [1; 3],
            connections: 0,
            levels: [0; 3],
            cycle: cycle.wrapping_sub(1),
            waiting: VecDeque::new(),
            blocked: 0,
            awaited_since: None,
            not_awaited_before: 0,
            turn_ns: [0; 3],
            turn_bytes: 0,
        }
    }

    fn least(&self) -> i64 {
        self.levels.into_iter().min().unwrap_or(0)
    }

    fn has_credit(&self) -> bool {
        self.least() > 0
    }

    /// Cycles until there is credit again.
    fn cycles_to_credit(&self, quantum: [i64; 3]) -> u64 {
        let cycles = |i: usize| {
            let missing = 1i64.saturating_sub(self.levels[i]).max(1) as u64;
            missing.div_ceil(quantum[i] as u64)
        };
        (0..3).map(cycles).max().unwrap_or(1)
    }

    /// The part of `amount` that the remaining credit is for, if a turn takes `amount`.
    fn credit_for(&self, amount: u64) -> usize {
        let fits = |i: usize| {
            let (left, turn_ns) = (self.levels[i].max(0), self.turn_ns[i].max(1));
            left as u128 * u128::from(amount) / u128::from(turn_ns)
        };
        let least = (0..3).map(fits).min().unwrap_or(0);
        usize::try_from(least).unwrap_or(usize::MAX)
    }

    /// The number of connections that spend about the remaining credit.
    fn turns(&self) -> usize {
        self.credit_for(1).max(1)
    }

    fn note_turn(&mut self, ns: [u64; 3], bytes: u64) {
        let mix = |average: u64, now: u64| average - average / 8 + now.min(u64::MAX / 16) / 8;
        self.turn_ns = std::array::from_fn(|i| mix(self.turn_ns[i], ns[i]));
        self.turn_bytes = mix(self.turn_bytes, bytes);
    }

    fn bytes_max(&self) -> usize {
        self.credit_for(self.turn_bytes).max(FAIR_READ_BYTES_MIN)
    }
}

/// One shard's queue.
#[derive(Debug)]
pub struct FairQueue {
    /// Price of a thousandth of a token, in 2^-32 ns of its resource.
    price: [u64; 3],
    cycle_ns: u64,
    cycle: u64,
    /// Sums of the weights that share this cycle's time.
    base: [u64; 3],
    /// Sums of the weights of tenants that have asked in this cycle.
    asked: [u64; 3],
    accounts: IdMap<u128, Account>,
    seats: IdMap<Connection, ConnectionSeat>,
    /// Tenants with connections that wait.
    backlog: BTreeSet<Tenant>,
    /// Tenants with connections that are not read because they do not take their answers.
    blocked: BTreeSet<Tenant>,
    named: usize,
}

impl FairQueue {
    /// `tokens_per_s_milli`: the whole of each resource, in thousandths of tokens each second.
    pub fn new(tokens_per_s_milli: [u64; 3]) -> Self {
        const SECOND: u128 = 1_000_000_000 << 32;
        let price = tokens_per_s_milli.map(|all| {
            let price = SECOND.div_ceil(u128::from(all.max(1)));
            u64::try_from(price).unwrap_or(u64::MAX)
        });
        Self {
            price,
            cycle_ns: FAIR_CYCLE_US * 1_000,
            cycle: 1,
            base: [1; 3],
            asked: [0; 3],
            accounts: IdMap::default(),
            seats: IdMap::default(),
            backlog: BTreeSet::new(),
            blocked: BTreeSet::new(),
            named: 0,
        }
    }

    /// The connection belongs to the tenant from now on.
    pub fn join(&mut self, connection: Connection, tenant: Tenant) {
        self.leave(connection);
        let cycle = self.cycle;
        let account = self
            .accounts
            .entry(tenant.0)
            .or_insert_with(|| Account::new(cycle));
        account.connections += 1;
        let seat = ConnectionSeat {
            tenant,
            phase: Phase::Idle,
            is_blocked: false,
        };
        self.seats.insert(connection, seat);
    }

    /// The connection is gone. Its tenant keeps its debt ([`FairQueue::forget_idle`]).
    pub fn leave(&mut self, connection: Connection) {
        self.unblock(connection);
        let Some(seat) = self.seats.remove(&connection) else {
            return;
        };
        let account = self
            .accounts
            .get_mut(&seat.tenant.0)
            .expect("a seat has an account");
        account.connections -= 1;
        match seat.phase {
            Phase::Idle => {}
            Phase::Named => self.named -= 1,
            Phase::Waiting => {
                account.waiting.retain(|waiting| *waiting != connection);
                if account.waiting.is_empty() {
                    self.backlog.remove(&seat.tenant);
                }
            }
        }
    }

    /// As [`FairQueue::set_weights`], but never lowers a weight.
    pub fn raise_weights(&mut self, tenant: Tenant, weights: [u64; 3]) {
        if let Some(account) = self.accounts.get_mut(&tenant.0) {
            account.weights = std::array::from_fn(|i| account.weights[i].max(weights[i]));
        }
    }

    /// A tenant's part of a cycle's time of a resource is its weight's part of the weights of all that want something.
    pub fn set_weights(&mut self, tenant: Tenant, weights: [u64; 3]) {
        if let Some(account) = self.accounts.get_mut(&tenant.0) {
            account.weights = weights.map(|weight| weight.max(1));
        }
    }

    /// Forgets tenants that have no connection and no debt. Call now and then.
    pub fn forget_idle(&mut self) {
        let tenants: Vec<u128> = (self.accounts.iter())
            .filter(|(_, account)| account.connections == 0)
            .map(|(tenant, _)| *tenant)
            .collect();
        for tenant in tenants {
            self.refresh(Tenant(tenant));
            if self.accounts[&tenant].has_credit() {
                self.accounts.remove(&tenant);
            }
        }
    }

    /// The number of known tenants.
    pub fn len(&self) -> usize {
        self.accounts.len()
    }

    pub fn is_empty(&self) -> bool {
        self.accounts.is_empty()
    }

    /// The connection has something to be read. After [`Turn::Wait`] it asks again once a pass has named it; asked
    /// earlier, the answer is the same.
    pub fn ask(&mut self, connection: Connection) -> Turn {
        let Some(seat) = self.seats.get_mut(&connection) else {
            return Turn::Read {
                bytes_max: usize::MAX,
            };
        };
        let (tenant, phase) = (seat.tenant, seat.phase);
        match phase {
            Phase::Waiting => return Turn::Wait,
            Phase::Named => {
                seat.phase = Phase::Idle;
                self.named -= 1;
            }
            Phase::Idle => {
                let account = self.refresh(tenant);
                if !account.has_credit() || !account.waiting.is_empty() {
                    account.waiting.push_back(connection);
                    self.backlog.insert(tenant);
                    self.seats.get_mut(&connection).expect("it asks").phase = Phase::Waiting;
                    return Turn::Wait;
                }
            }
        }
        let is_alone = self.backlog.is_empty();
        let bytes_max = if is_alone {
            usize::MAX
        } else {
            self.accounts[&tenant.0].bytes_max()
        };
        Turn::Read { bytes_max }
    }

    /// Charges the connection's tenant: bytes read, and their whole cost in thousandths of tokens.
    pub fn charge(&mut self, connection: Connection, bytes: u64, cost: [u64; 3]) {
        let Some(seat) = self.seats.get(&connection) else {
            return;
        };
        let account = self
            .accounts
            .get_mut(&seat.tenant.0)
            .expect("a seat has an account");
        let mut spent_ns = [0; 3];
        for i in 0..3 {
            let ns = (u128::from(cost[i]) * u128::from(self.price[i])) >> 32;
            let ns = i64::try_from(ns).unwrap_or(i64::MAX);
            account.levels[i] = account.levels[i].saturating_sub(ns).max(-DEBT_NS_MAX);
            spent_ns[i] = ns as u64;
        }
        if bytes > 0 {
            account.note_turn(spent_ns, bytes);
        }
    }

    /// The connection is not read, though its tenant may have credit: it does not take its answers.
    pub fn block(&mut self, connection: Connection) {
        if let Some(seat) = self.seats.get_mut(&connection)
            && !std::mem::replace(&mut seat.is_blocked, true)
        {
            let account = self
                .accounts
                .get_mut(&seat.tenant.0)
                .expect("a seat has an account");
            account.blocked += 1;
            self.blocked.insert(seat.tenant);
        }
    }

    pub fn unblock(&mut self, connection: Connection) {
        if let Some(seat) = self.seats.get_mut(&connection)
            && std::mem::take(&mut seat.is_blocked)
        {
            let account = self
                .accounts
                .get_mut(&seat.tenant.0)
                .expect("a seat has an account");
            account.blocked -= 1;
            if account.blocked == 0 {
                account.awaited_since = None;
                self.blocked.remove(&seat.tenant);
            }
        }
    }

    /// Whether a pass is due: connections wait, and none is named to read first.
    pub fn wants_pass(&self) -> bool {
        self.named == 0 && !self.backlog.is_empty()
    }

    /// Names the waiting connections that read next, once all ready ones have asked. If no tenant has credit, the cycle
    /// ends. `Some` is the time before which it does not end, because of a connection that does not take its answers.
    pub fn pass(&mut self, now: Micros, next: &mut Vec<Connection>) -> Option<Micros> {
        if self.named > 0 {
            return None;
        }
        if self.backlog.is_empty() {
            // No connection waits, so the next one finds a new cycle.
            self.begin_cycle(1);
            return None;
        }
        if self.name_next(next) {
            return None;
        }
        if let Some(until) = self.awaited(now) {
            return Some(until);
        }
        // The base is the new cycle's before any quantum is computed.
        self.begin_cycle(0);
        let cycles = (self.backlog.iter())
            .map(|tenant| {
                let account = &self.accounts[&tenant.0];
                account.cycles_to_credit(self.quantum(account.weights))
            })
            .min();
        self.cycle += cycles.unwrap_or(1);
        let backlog: Vec<Tenant> = self.backlog.iter().copied().collect();
        for tenant in backlog {
            self.refresh(tenant);
        }
        let is_named = self.name_next(next);
        assert!(is_named, "a cycle begins with credit for a waiting tenant");
        None
    }

    fn begin_cycle(&mut self, cycles: u64) {
        self.cycle += cycles;
        // Waiting tenants asked in this cycle, or wait since an earlier one.
        for i in 0..3 {
            let waiting = self.backlog.iter().map(|t| self.accounts[&t.0].weights[i]).sum();
            let wanting = self.asked[i].max(waiting);
            if wanting > 0 {
                self.base[i] = wanting;
            }
        }
        self.asked = [0; 3];
    }

    fn quantum(&self, weights: [u64; 3]) -> [i64; 3] {
        std::array::from_fn(|i| {
            let ns = u128::from(self.cycle_ns) * u128::from(weights[i]) / u128::from(self.base[i]);
            i64::try_from(ns)
                .unwrap_or(i64::MAX)
                .clamp(1, self.cycle_ns as i64)
        })
    }

    /// Gives the tenant its quantum of this cycle, and of cycles in which it did not ask.
    fn refresh(&mut self, tenant: Tenant) -> &mut Account {
        let weights = self.accounts[&tenant.0].weights;
        let quantum = self.quantum(weights);
        let account = self.accounts.get_mut(&tenant.0).expect("it was just there");
        let cycles = self.cycle.wrapping_sub(account.cycle);
        if cycles > 0 {
            account.cycle = self.cycle;
            let cycles = i64::try_from(cycles).unwrap_or(i64::MAX);
            for i in 0..3 {
                self.asked[i] = self.asked[i].saturating_add(weights[i]);
                // Unused credit of one cycle is not kept for another.
                let filled = quantum[i].saturating_mul(cycles);
                account.levels[i] = account.levels[i].saturating_add(filled).min(quantum[i]);
            }
        }
        account
    }

    /// Names connections of tenants that have credit: about as many as will spend it.
    fn name_next(&mut self, next: &mut Vec<Connection>) -> bool {
        let before = self.named;
        let (accounts, seats, named) = (&mut self.accounts, &mut self.seats, &mut self.named);
        self.backlog.retain(|tenant| {
            let account = accounts
                .get_mut(&tenant.0)
                .expect("a waiting tenant has an account");
            if account.has_credit() {
                let turns = account.turns().min(account.waiting.len());
                for connection in account.waiting.drain(..turns) {
                    seats
                        .get_mut(&connection)
                        .expect("a waiting connection has a seat")
                        .phase = Phase::Named;
                    *named += 1;
                    next.push(connection);
                }
            }
            !account.waiting.is_empty()
        });
        self.named > before
    }

    /// The time until which the cycle waits for tenants that have credit and blocked connections. It is short, and rare
    /// for each tenant: no tenant holds up others by not reading.
    fn awaited(&mut self, now: Micros) -> Option<Micros> {
        let mut latest = None;
        for tenant in &self.blocked {
            let account = self
                .accounts
                .get_mut(&tenant.0)
                .expect("a blocked tenant has an account");
            let is_in_cycle = account.cycle == self.cycle && account.has_credit();
            if !is_in_cycle || now < account.not_awaited_before {
                continue;
            }
            let until = *account.awaited_since.get_or_insert(now) + FAIR_BLOCKED_WAIT_US;
            if now < until {
                latest = latest.max(Some(until));
            } else {
                account.awaited_since = None;
                account.not_awaited_before = now + FAIR_BLOCKED_REST_US;
            }
        }
        latest
    }
}
