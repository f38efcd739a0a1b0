//! Who holds others up though it has its lease, pure: what servers say of one another, over time.
//!
//! Beside the durable state, as [`crate::leases`] is: what follows from it are commands. After a restart of the
//! coordinator it is gathered anew.
//!
//! - *Severed*: one of a pair has said for `unreachable_ms` that it cannot reach the other. Mended when neither has
//!   said so for `well_ms`: long, since a pair that has been parted has no link that could be seen to work again.
//! - *Slow*: a server that others, or it itself, have called slow for `slow_ms`. A server that calls several slow,
//!   whom nobody else calls so, is the one that is slow: all that it sees goes through its own link and its own
//!   thread. Of two that call one another slow, the one that more call so; of equals, none, until one calls itself so:
//!   either could be at fault, and taking both away would be worse. Well again when nobody has said so for `well_ms`.
//! - No more than a quarter of the fleet (and always one) counts as slow at once: when more do, the cause is not
//!   theirs, and replacing them would add to it.

use std::collections::{BTreeMap, BTreeSet};

use quorate_types::ServerId;
use quorate_types::control::{SlowCause, SlowReport};

use crate::state::State;
use crate::state::command::Command;

#[derive(Debug, Clone, Copy)]
pub struct SuspicionTimes {
    pub unreachable_ms: u64,
    pub slow_ms: u64,
    pub well_ms: u64,
    /// Reports come with heartbeats: one that was not repeated for so long is over.
    pub stale_ms: u64,
}

/// Who says it, and of whom.
type Claim = (ServerId, ServerId);

#[derive(Debug, Clone, Copy)]
struct Said {
    since_ms: u64,
    last_ms: u64,
    behind_ms: u64,
    cause: Option<SlowCause>,
}

/// Times are milliseconds of a clock that never goes back.
#[derive(Debug)]
pub struct Suspicions {
    times: SuspicionTimes,
    unreachable: BTreeMap<Claim, Said>,
    slow: BTreeMap<Claim, Said>,
    /// Since when nothing has been said of a severed pair, or of a slow server.
    quiet_pairs: BTreeMap<(ServerId, ServerId), u64>,
    quiet_servers: BTreeMap<ServerId, u64>,
}

/// One part of the fleet, rounded down, may count as slow; and always one.
const SLOW_SHARE: usize = 4;
/// Of so many whom nobody else calls slow, the reporter is the one that is.
const ACCUSES_TOO_MANY: usize = 2;

impl Suspicions {
    pub fn new(times: SuspicionTimes) -> Self {
        Self {
            times,
            unreachable: BTreeMap::new(),
            slow: BTreeMap::new(),
            quiet_pairs: BTreeMap::new(),
            quiet_servers: BTreeMap::new(),
        }
    }

    /// What a heartbeat said.
    pub fn heartbeat(&mut self, from: ServerId, unreachable: &[ServerId], slow: &[SlowReport], now_ms: u64) {
        let stale_ms = self.times.stale_ms;
        for peer in unreachable.iter().filter(|peer| **peer != from) {
            say(&mut self.unreachable, (from, *peer), 0, None, now_ms, stale_ms);
        }
        for report in slow {
            let claim = (from, report.server);
            say(
                &mut self.slow,
                claim,
                report.behind_ms,
                Some(report.cause),
                now_ms,
                stale_ms,
            );
        }
        let still = |peer: &ServerId| unreachable.contains(peer);
        self.unreachable
            .retain(|(by, peer), _| *by != from || still(peer));
        let named: BTreeSet<ServerId> = slow.iter().map(|report| report.server).collect();
        // One heartbeat without the report is no recovery: what is slow comes and goes.
        self.slow
            .retain(|(by, of), said| *by != from || named.contains(of) || now_ms - said.last_ms <= stale_ms);
    }

    /// What follows by now. To be called every few ten milliseconds; each thing is told once, if it is applied.
    pub fn due(&mut self, state: &State, now_ms: u64) -> Vec<Command> {
        let stale_ms = self.times.stale_ms;
        let current = |(by, of): &Claim, said: &Said| {
            state.is_alive(*by) && state.is_alive(*of) && now_ms.saturating_sub(said.last_ms) <= stale_ms
        };
        self.unreachable.retain(|claim, said| current(claim, said));
        self.slow.retain(|claim, said| current(claim, said));
        let mut commands = self.pairs_due(state, now_ms);
        commands.extend(self.slow_due(state, now_ms));
        commands
    }

    fn pairs_due(&mut self, state: &State, now_ms: u64) -> Vec<Command> {
        let pair = |(a, b): &Claim| (*a.min(b), *a.max(b));
        let said: BTreeSet<(ServerId, ServerId)> = self.unreachable.keys().map(pair).collect();
        let mut commands = Vec::new();
        for (claim, told) in &self.unreachable {
            let pair = pair(claim);
            let long = told.last_ms - told.since_ms >= self.times.unreachable_ms;
            if long && !state.severed.contains(&pair) {
                commands.push(severed(pair, true));
            }
        }
        commands.dedup();
        self.quiet_pairs
            .retain(|pair, _| state.severed.contains(pair) && !said.contains(pair));
        for pair in state.severed.iter().filter(|pair| !said.contains(pair)) {
            let since_ms = *self.quiet_pairs.entry(*pair).or_insert(now_ms);
            if now_ms - since_ms >= self.times.well_ms {
                commands.push(severed(*pair, false));
            }
        }
        commands
    }

    fn slow_due(&mut self, state: &State, now_ms: u64) -> Vec<Command> {
        let accused = self.accused();
        let is_slow = |id: &ServerId| state.servers.get(id).is_some_and(|server| server.slow.is_some());
        let alive = state.servers_alive();
        let mut room = (alive / SLOW_SHARE)
            .max(1)
            .saturating_sub(state.servers.keys().filter(|id| is_slow(id)).count());
        let mut commands = Vec::new();
        for (server, said) in &accused {
            let long = said.last_ms - said.since_ms >= self.times.slow_ms;
            if long && !is_slow(server) && room > 0 {
                room -= 1;
                let cause = match said.cause {
                    Some(SlowCause::Link) => "what is sent to it waits",
                    Some(SlowCause::Journal) => "its disk does not keep up",
                    Some(SlowCause::Chain) | None => "its replicas do not get on",
                };
                let cause = format!("{cause}, by {} ms at last", said.behind_ms);
                commands.push(Command::ServerSlow {
                    server: *server,
                    cause: Some(cause),
                });
            }
        }
        // Any word keeps a server under suspicion, also one that would not be enough to begin it.
        let named: BTreeSet<ServerId> = self
            .slow
            .keys()
            .map(|(_, of)| *of)
            .chain(accused.into_keys())
            .collect();
        self.quiet_servers
            .retain(|id, _| is_slow(id) && !named.contains(id));
        for id in state
            .servers
            .keys()
            .filter(|id| is_slow(id) && !named.contains(id))
        {
            let since_ms = *self.quiet_servers.entry(*id).or_insert(now_ms);
            if now_ms - since_ms >= self.times.well_ms {
                commands.push(Command::ServerSlow {
                    server: *id,
                    cause: None,
                });
            }
        }
        commands
    }

    /// Who is to be taken for slow, with the longest that was said of each.
    fn accused(&self) -> BTreeMap<ServerId, Said> {
        let of = |id: ServerId| self.slow.iter().filter(move |((_, of), _)| *of == id);
        let by = |id: ServerId| {
            self.slow
                .iter()
                .filter(move |((by, of), _)| *by == id && *of != id)
        };
        let alone = |id: ServerId| by(id).filter(|((_, peer), _)| of(*peer).count() == 1).count();
        let suspect = |id: ServerId| alone(id) >= ACCUSES_TOO_MANY;
        let mut accused: BTreeMap<ServerId, Said> = BTreeMap::new();
        for ((from, about), said) in &self.slow {
            let mutual = from != about && self.slow.contains_key(&(*about, *from));
            let guilty = if from == about {
                *about
            } else if suspect(*from) {
                *from
            } else if mutual && of(*from).count() >= of(*about).count() {
                continue;
            } else {
                *about
            };
            let longest = accused.entry(guilty).or_insert(*said);
            if said.since_ms < longest.since_ms {
                *longest = *said;
            }
        }
        accused
    }
}

fn say(
    claims: &mut BTreeMap<Claim, Said>,
    claim: Claim,
    behind_ms: u64,
    cause: Option<SlowCause>,
    now_ms: u64,
    stale_ms: u64,
) {
    let first = Said {
        since_ms: now_ms,
        last_ms: now_ms,
        behind_ms,
        cause,
    };
    let said = claims.entry(claim).or_insert(first);
    if now_ms - said.last_ms > stale_ms {
        *said = first;
    }
    (said.last_ms, said.behind_ms, said.cause) = (now_ms, behind_ms, cause);
}

fn severed((server, peer): (ServerId, ServerId), severed: bool) -> Command {
    Command::Severed {
        server,
        peer,
        severed,
    }
}
