//! Replicas that should move, since their server lacks room (Pisces, OSDI'12 §3.1, "partition placement").
//!
//! A move copies a log, so as little as possible moves: one replica that frees enough, and the shortest log of those.

use std::collections::{BTreeMap, BTreeSet};

use quorate_types::{GroupId, ServerId};

use crate::room::{Amounts, Room};

/// A server on which more is wanted than it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pressure {
    pub server: ServerId,
    /// Amounts that must become free there.
    pub lacking: Amounts,
    /// The partition that wants more, and what it wants on any of its servers. `None`: the server can do less than it has
    /// promised.
    pub wanting: Option<(GroupId, Amounts)>,
}

/// Pressures as they last: one that comes and goes moves nothing.
#[derive(Debug, Default)]
pub struct Patience {
    rounds: BTreeMap<ServerId, u32>,
}

/// Rounds that a pressure lasts before a replica moves for it.
const ROUNDS: u32 = 3;

impl Patience {
    /// The pressures of this round that have lasted.
    pub fn lasting(&mut self, pressures: Vec<Pressure>) -> Vec<Pressure> {
        let now: BTreeSet<ServerId> = pressures.iter().map(|one| one.server).collect();
        self.rounds.retain(|server, _| now.contains(server));
        for server in now {
            *self.rounds.entry(server).or_default() += 1;
        }
        let lasts = |one: &Pressure| self.rounds[&one.server] >= ROUNDS;
        pressures.into_iter().filter(lasts).collect()
    }

    /// Something is done about it: it has to last again.
    pub fn begin_again(&mut self, server: ServerId) {
        self.rounds.remove(&server);
    }
}

/// A replica on a server under pressure. Others of its group stay.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    pub group: GroupId,
    pub server: ServerId,
    /// Amounts that it is charged there.
    pub charge: Amounts,
    /// Amounts that it needs elsewhere: a replica that moves becomes the tail.
    pub elsewhere: Amounts,
    /// The most that its log is long.
    pub log_bytes: u64,
    /// Servers that have a replica of the group.
    pub members: Vec<ServerId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Migration {
    pub group: GroupId,
    pub from: ServerId,
    pub to: ServerId,
    pub is_wanted_there: bool,
}

/// One move for each pressure that one can relieve, in order, at most `limit`. `hosts`: servers that take replicas. A server gives or
/// takes one replica at a time, and a group moves once.
pub fn relieve(
    pressures: &[Pressure],
    replicas: &[Replica],
    hosts: &[ServerId],
    room: &Room,
    limit: usize,
) -> Vec<Migration> {
    let (mut room, mut moving, mut busy) = (room.clone(), BTreeSet::new(), BTreeSet::new());
    let mut migrations = Vec::new();
    for pressure in pressures {
        if migrations.len() == limit {
            break;
        }
        if busy.contains(&pressure.server) {
            continue;
        }
        let free: Vec<ServerId> = hosts
            .iter()
            .copied()
            .filter(|host| !busy.contains(host))
            .collect();
        let here = replicas
            .iter()
            .filter(|one| one.server == pressure.server && !moving.contains(&one.group));
        let mut candidates: Vec<(&Replica, Amounts)> =
            here.map(|one| (one, needed_elsewhere(one, pressure))).collect();
        candidates.sort_by_key(|(one, _)| (rank(one, pressure), one.group));
        let found = candidates
            .into_iter()
            .find_map(|(one, needed)| Some((one, needed, roomiest(one, needed, &free, &room)?)));
        if let Some((one, needed, to)) = found {
            room.take(&[(to, needed)], 1);
            room.give(&[(one.server, one.charge)], 1);
            moving.insert(one.group);
            busy.extend([one.server, to]);
            migrations.push(Migration {
                group: one.group,
                from: one.server,
                to,
                is_wanted_there: pressure.wanting.is_some(),
            });
        }
    }
    migrations
}

/// A partition that wants more moves to where it can have it.
fn needed_elsewhere(one: &Replica, pressure: &Pressure) -> Amounts {
    match &pressure.wanting {
        Some((group, wants)) if *group == one.group => {
            std::array::from_fn(|i| one.elsewhere[i].saturating_add(wants[i]))
        }
        _ => one.elsewhere,
    }
}

/// Replicas that free enough come first, by the length of their logs. The others follow, the one that frees most before the rest.
fn rank(one: &Replica, pressure: &Pressure) -> (bool, u64) {
    let is_itself = pressure
        .wanting
        .as_ref()
        .is_some_and(|(group, _)| *group == one.group);
    let lacking = (0..3).filter(|i| pressure.lacking[*i] > 0);
    let freed = lacking.map(|i| u128::from(one.charge[i]) * 1_000 / u128::from(pressure.lacking[i]));
    let permille = freed.min().unwrap_or(1_000);
    match is_itself || permille >= 1_000 {
        true => (false, one.log_bytes),
        false => (true, 1_000 - permille as u64),
    }
}

/// The host that keeps most free for its size.
fn roomiest(one: &Replica, needed: Amounts, hosts: &[ServerId], room: &Room) -> Option<ServerId> {
    let others = hosts.iter().copied().filter(|host| !one.members.contains(host));
    let fitting = others.filter_map(|host| Some((room.times(host, needed)?, host)));
    fitting
        .max_by_key(|(times, host)| (*times, std::cmp::Reverse(*host)))
        .map(|(_, host)| host)
}
