//! A group's way to other servers (`docs/internals/relocations.md`).
//!
//! The group's replicas move one after the other. Until the last has moved, each server is charged the most that the group
//! needs of it in any of the chains on the way. So no other group can take the room of a move that is still to come.

use quorate_placement::Demand;
use quorate_types::ServerId;
use quorate_types::sla::ScarceResource;
use serde::{Deserialize, Serialize};

use super::terms::Terms;
use crate::command::Cause;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Relocation {
    pub cause: Cause,
    pub since_ms: u64,
    /// Moves that are still to be done, in order. None are left when the group is where it should be. None are there
    /// either while a resize waits for room.
    pub moves: Vec<Move>,
    /// The SLA that begins once all replicas have moved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Box<Terms>>,
    /// The resource that a resize waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scarce: Option<ScarceResource>,
}

/// A replica leaves a server when its replacement on another has caught up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Move<S = ServerId> {
    pub from: S,
    pub to: S,
}

impl Relocation {
    /// A resize for which no move is planned: other groups have the room.
    pub fn waits_for_room(&self) -> bool {
        self.next.is_some() && self.moves.is_empty()
    }

    /// Leaves out the moves that were done. Drops all of them where the group has gone another way: a replica failed, or another
    /// server came or went.
    pub fn follow(&mut self, chain: &[ServerId], learner: Option<ServerId>, degree: usize) {
        let is_done = |one: &Move| !chain.contains(&one.from) && chain.contains(&one.to);
        let done = self.moves.iter().take_while(|one| is_done(one)).count();
        self.moves.drain(..done);
        let is_ahead = |one: &Move| chain.contains(&one.from) && !chain.contains(&one.to);
        let first = self.moves.first().map(|one| one.to);
        let is_on_its_way = chain.len() == degree
            && self.moves.iter().all(is_ahead)
            && learner.is_none_or(|learner| Some(learner) == first);
        if !is_on_its_way {
            self.moves.clear();
        }
    }
}

/// The most that each server is needed for on the way: those of the chain, then those that are moved to. `now` and `next` are
/// the demands of a whole chain's positions, before and after the last move. A replica that catches up needs as much as the tail.
pub fn most_on_the_way<S: Copy + PartialEq>(
    chain: &[S],
    moves: &[Move<S>],
    now: &[Demand],
    next: Option<&[Demand]>,
) -> Vec<(S, Demand)> {
    let mut most: Vec<(S, Demand)> = Vec::with_capacity(chain.len() + moves.len());
    let mut needs = |server: S, demand: Demand| match most.iter_mut().find(|(known, _)| *known == server) {
        Some((_, known)) => *known = known.at_least(demand),
        None => most.push((server, demand)),
    };
    let tail = *now.last().expect("a degree is at least 1");
    let mut chain = chain.to_vec();
    chain
        .iter()
        .zip(now)
        .for_each(|(server, demand)| needs(*server, *demand));
    for one in moves {
        needs(one.to, tail);
        chain.retain(|server| *server != one.from);
        chain.push(one.to);
        chain
            .iter()
            .zip(now)
            .for_each(|(server, demand)| needs(*server, *demand));
    }
    let last = chain.iter().zip(next.unwrap_or_default());
    last.for_each(|(server, demand)| needs(*server, *demand));
    most
}
