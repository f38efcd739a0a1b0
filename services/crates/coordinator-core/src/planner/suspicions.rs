//! Suspicions: servers that slow others though they have their leases, by what servers report of one another over time.
//!
//! - *Unreachable pair*: one of the two has reported the other unreachable for `unreachable_ms`, and both were heard in
//!   the second half of that time. A server that is silent may be dead, and its lease decides. The suspicion ends when
//!   neither has reported it for a part of `well_ms`, which doubles each time ([`super::trust`]): a pair without a common
//!   group has no link that could be seen to work again. If one of the two hangs, it is the one to leave; else the one with
//!   more such peers, by all reports of the moment: pairs become known one by one.
//! - *Slow server*: something has waited for it for `slow_ms`, by reports of others or its own, and it was heard in the second
//!   half of that time. It ends likewise.
//!   A server that reports several others which nobody else reports is slow itself: all its observations pass through
//!   its own link and its own thread. When two report one another, the one that more servers report is slow. With equal
//!   numbers neither is, until one reports itself: either could be at fault, and taking both away would be worse.
//!   A server that hangs is no witness, and a report about one counts, whoever it is from.
//! - At most a quarter of the fleet, and always one, counts as slow at once. When more than half are accused, nobody becomes
//!   slow for it ([`super::shared_cause`]): the cause is not theirs, and replacing them would add to it.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use quorate_types::ServerId;
use quorate_types::control::{SlowCause, SlowReport};

use super::shared_cause;
use super::trust::Trust;
use crate::command::Command;
use crate::state::CoordinatorState;

#[derive(Debug, Clone, Copy)]
pub struct SuspicionTimes {
    pub unreachable_ms: u64,
    pub slow_ms: u64,
    pub well_ms: u64,
    /// Reports come with heartbeats: one that was not repeated for so long has ended.
    pub stale_ms: u64,
    /// A server whose thread or sync has hung for so long has failed ([`super::Hangs`]).
    pub hung_ms: u64,
}

/// The reporter, and the server that it reports.
type Claim = (ServerId, ServerId);

#[derive(Debug, Clone, Copy)]
struct Claimed {
    /// The beginning of the wait, by its first report.
    since_ms: u64,
    last_ms: u64,
    behind_ms: u64,
    cause: Option<SlowCause>,
}

impl Claimed {
    fn lasted_ms(&self) -> u64 {
        self.last_ms - self.since_ms
    }
}

/// Heartbeats of one server.
#[derive(Debug, Clone, Copy)]
struct Heard {
    /// None was missing since.
    since_ms: u64,
    last_ms: u64,
}

/// Times are milliseconds of a clock that never goes back.
#[derive(Debug)]
pub struct Suspicions {
    times: SuspicionTimes,
    unreachable: BTreeMap<Claim, Claimed>,
    slow: BTreeMap<Claim, Claimed>,
    /// Each live server's heartbeats.
    heard: BTreeMap<ServerId, Heard>,
    /// In pairs that are known, and in servers that are slow.
    pair_trust: Trust<(ServerId, ServerId)>,
    server_trust: Trust<ServerId>,
}

/// One part of the fleet, rounded down, may count as slow; and always one.
const SLOW_SHARE: usize = 4;
/// A single server that misses another may be at fault itself.
const MISSED_BY_MIN: usize = 2;
/// So many servers that nobody else reports make their reporter the slow one.
const ACCUSES_TOO_MANY: usize = 2;

impl Suspicions {
    pub fn new(times: SuspicionTimes) -> Self {
        Self {
            times,
            unreachable: BTreeMap::new(),
            slow: BTreeMap::new(),
            heard: BTreeMap::new(),
            pair_trust: Trust::new(times.well_ms),
            server_trust: Trust::new(times.well_ms),
        }
    }

    /// Takes in a heartbeat's reports. A wait that began while the reporter was silent itself speaks against nobody: it counts
    /// from when the reporter was heard again.
    pub fn heartbeat(&mut self, from: ServerId, unreachable: &[ServerId], slow: &[SlowReport], now_ms: u64) {
        let stale_ms = self.times.stale_ms;
        let in_touch_ms = now_ms - self.hear(from, now_ms).since_ms;
        for peer in unreachable.iter().filter(|peer| **peer != from) {
            let claimed = (0, None);
            note(&mut self.unreachable, (from, *peer), claimed, now_ms, stale_ms);
        }
        for report in slow {
            let is_own = report.server == from;
            let behind_ms = report.behind_ms.min(if is_own { u64::MAX } else { in_touch_ms });
            let claimed = (behind_ms, Some(report.cause));
            note(&mut self.slow, (from, report.server), claimed, now_ms, stale_ms);
        }
        self.unreachable
            .retain(|(by, peer), _| *by != from || unreachable.contains(peer));
        let named: BTreeSet<ServerId> = slow.iter().map(|report| report.server).collect();
        // One heartbeat without the report is no recovery: slowness comes and goes.
        self.slow.retain(|(by, of), claimed| {
            *by != from || named.contains(of) || now_ms - claimed.last_ms <= stale_ms
        });
    }

    fn hear(&mut self, from: ServerId, now_ms: u64) -> Heard {
        let begins = Heard {
            since_ms: now_ms,
            last_ms: now_ms,
        };
        let heard = self.heard.entry(from).or_insert(begins);
        if now_ms - heard.last_ms > self.times.stale_ms {
            *heard = begins;
        }
        heard.last_ms = now_ms;
        *heard
    }

    /// The commands that are due by now. To be called every few ten milliseconds; an applied command is not repeated.
    /// `is_hanging`: whether a server makes no progress by its own words.
    pub fn due(
        &mut self,
        state: &CoordinatorState,
        is_hanging: impl Fn(ServerId) -> bool,
        now_ms: u64,
    ) -> Vec<Command> {
        let stale_ms = self.times.stale_ms;
        let is_current = |(by, of): &Claim, claimed: &Claimed| {
            state.is_alive(*by) && state.is_alive(*of) && now_ms.saturating_sub(claimed.last_ms) <= stale_ms
        };
        self.unreachable
            .retain(|claim, claimed| is_current(claim, claimed));
        self.slow.retain(|claim, claimed| is_current(claim, claimed));
        self.heard.retain(|id, _| state.is_alive(*id));
        let mut commands = self.pairs_due(state, &is_hanging, now_ms);
        commands.extend(self.slow_due(state, &is_hanging, now_ms));
        commands
    }

    /// Servers that several others have not reached for `unreachable_ms`.
    pub fn missed(&self, is_hanging: impl Fn(ServerId) -> bool) -> BTreeSet<ServerId> {
        let lasting = self.unreachable.iter().filter(|((by, _), claimed)| {
            claimed.lasted_ms() >= self.times.unreachable_ms && !is_hanging(*by)
        });
        let mut claimants: BTreeMap<ServerId, usize> = BTreeMap::new();
        for ((_, of), _) in lasting {
            *claimants.entry(*of).or_default() += 1;
        }
        let is_missed = |(_, count): &(ServerId, usize)| *count >= MISSED_BY_MIN;
        claimants
            .into_iter()
            .filter(is_missed)
            .map(|(of, _)| of)
            .collect()
    }

    fn pairs_due(
        &mut self,
        state: &CoordinatorState,
        is_hanging: &impl Fn(ServerId) -> bool,
        now_ms: u64,
    ) -> Vec<Command> {
        let known = &state.unreachable_pairs;
        let pair = |(a, b): &Claim| (*a.min(b), *a.max(b));
        let reported: BTreeSet<(ServerId, ServerId)> = self.unreachable.keys().map(pair).collect();
        let all: BTreeSet<(ServerId, ServerId)> = reported.iter().copied().chain(known.iter()).collect();
        let peers_of = |server| all.iter().filter(|(a, b)| [a, b].contains(&&server)).count();
        let mut commands = Vec::new();
        for (claim, claimed) in &self.unreachable {
            let (a, b) = pair(claim);
            let is_due = claimed.lasted_ms() >= self.times.unreachable_ms && !known.contains(a, b);
            let half_ms = self.times.unreachable_ms / 2;
            let was_heard = |server| self.was_heard_during(server, claimed, half_ms);
            if is_due && was_heard(a) && was_heard(b) {
                let at_fault = match (is_hanging(a), is_hanging(b)) {
                    (true, false) => Some(a),
                    (false, true) => Some(b),
                    _ => the_greater((a, peers_of(a)), (b, peers_of(b))),
                };
                commands.push(pair_command((a, b), true, at_fault));
            }
        }
        commands.dedup();
        let is_quiet =
            |pair: &(ServerId, ServerId)| known.contains(pair.0, pair.1) && !reported.contains(pair);
        self.pair_trust.keep(is_quiet, now_ms);
        for pair in known.iter().filter(|pair| !reported.contains(pair)) {
            if self.pair_trust.returns(pair, now_ms) {
                commands.push(pair_command(pair, false, None));
            }
        }
        commands
    }

    /// Whether the server was heard when the claim was `after_ms` old. A silent server may be dead, and its lease decides.
    fn was_heard_during(&self, server: ServerId, claimed: &Claimed, after_ms: u64) -> bool {
        let heard = self.heard.get(&server);
        heard.is_some_and(|heard| heard.last_ms >= claimed.since_ms + after_ms)
    }

    fn slow_due(
        &mut self,
        state: &CoordinatorState,
        is_hanging: &impl Fn(ServerId) -> bool,
        now_ms: u64,
    ) -> Vec<Command> {
        let accused = self.accused(is_hanging);
        let mut commands = self.newly_slow(state, &accused);
        let is_slow = |id: &ServerId| is_slow(state, *id);
        // Any report keeps a server under suspicion, also one that would not be enough to begin it.
        let reported = self.slow.keys().map(|(_, of)| *of);
        let named: BTreeSet<ServerId> = reported.chain(accused.into_keys()).collect();
        self.server_trust
            .keep(|id| is_slow(id) && !named.contains(id), now_ms);
        for id in state.servers.keys() {
            if !is_slow(id) || named.contains(id) {
                continue;
            }
            if self.server_trust.returns(*id, now_ms) {
                let (server, cause) = (*id, None);
                commands.push(Command::ServerSlow { server, cause });
            }
        }
        commands
    }

    fn newly_slow(&self, state: &CoordinatorState, accused: &BTreeMap<ServerId, Claimed>) -> Vec<Command> {
        let half_ms = self.times.slow_ms / 2;
        let lasting = accused
            .iter()
            .filter(|(_, claimed)| claimed.lasted_ms() >= half_ms);
        if shared_cause::is_shared(state, lasting.map(|(server, _)| *server)) {
            return Vec::new();
        }
        let due = accused.iter().filter(|(server, claimed)| {
            let is_due = claimed.lasted_ms() >= self.times.slow_ms && !is_slow(state, **server);
            is_due && self.was_heard_during(**server, claimed, half_ms)
        });
        due.take(may_become_slow(state))
            .map(|(server, claimed)| Command::ServerSlow {
                server: *server,
                cause: Some(cause_of(claimed)),
            })
            .collect()
    }

    /// Servers to be taken for slow, each with its longest report. A report about one that hangs speaks against nobody else.
    fn accused(&self, is_hanging: &impl Fn(ServerId) -> bool) -> BTreeMap<ServerId, Claimed> {
        let of = |id: ServerId| self.slow.iter().filter(move |((_, of), _)| *of == id);
        let by = |id: ServerId| {
            self.slow
                .iter()
                .filter(move |((by, of), _)| *by == id && *of != id)
        };
        let is_alone = |peer: ServerId| of(peer).count() == 1 && !is_hanging(peer);
        let alone = |id: ServerId| by(id).filter(|((_, peer), _)| is_alone(*peer)).count();
        let is_suspect = |id: ServerId| alone(id) >= ACCUSES_TOO_MANY;
        let mut accused: BTreeMap<ServerId, Claimed> = BTreeMap::new();
        for ((from, about), claimed) in &self.slow {
            let is_mutual = from != about && self.slow.contains_key(&(*about, *from));
            let guilty = if from == about {
                *about
            } else if is_suspect(*from) && !is_hanging(*about) {
                *from
            } else if is_mutual && !is_hanging(*about) && of(*from).count() >= of(*about).count() {
                continue;
            } else {
                *about
            };
            let longest = accused.entry(guilty).or_insert(*claimed);
            if claimed.since_ms < longest.since_ms {
                *longest = *claimed;
            }
        }
        accused
    }
}

/// How many more servers may count as slow.
pub(super) fn may_become_slow(state: &CoordinatorState) -> usize {
    let slow = state.servers.keys().filter(|id| is_slow(state, **id)).count();
    let most = (state.servers_alive() / SLOW_SHARE).max(1);
    most.saturating_sub(slow)
}

fn is_slow(state: &CoordinatorState, id: ServerId) -> bool {
    state.servers.get(&id).is_some_and(|server| server.slow.is_some())
}

fn cause_of(claimed: &Claimed) -> String {
    let cause = match claimed.cause {
        Some(SlowCause::Link) => "messages to it wait",
        Some(SlowCause::Journal) => "its disk does not keep up",
        Some(SlowCause::Chain) | None => "its replicas make no progress",
    };
    format!("{cause}, {} ms behind in the last report", claimed.behind_ms)
}

/// Begins a claim, or goes on with one that is not stale.
fn note(
    claims: &mut BTreeMap<Claim, Claimed>,
    claim: Claim,
    (behind_ms, cause): (u64, Option<SlowCause>),
    now_ms: u64,
    stale_ms: u64,
) {
    let first = Claimed {
        since_ms: now_ms.saturating_sub(behind_ms),
        last_ms: now_ms,
        behind_ms,
        cause,
    };
    let claimed = claims.entry(claim).or_insert(first);
    if now_ms - claimed.last_ms > stale_ms {
        *claimed = first;
    }
    (claimed.last_ms, claimed.behind_ms, claimed.cause) = (now_ms, behind_ms, cause);
}

/// The server with the greater number, if they differ.
fn the_greater((a, of_a): (ServerId, usize), (b, of_b): (ServerId, usize)) -> Option<ServerId> {
    match of_a.cmp(&of_b) {
        Ordering::Greater => Some(a),
        Ordering::Less => Some(b),
        Ordering::Equal => None,
    }
}

fn pair_command(
    (server, peer): (ServerId, ServerId),
    unreachable: bool,
    at_fault: Option<ServerId>,
) -> Command {
    Command::PairUnreachable {
        server,
        peer,
        unreachable,
        at_fault,
    }
}
