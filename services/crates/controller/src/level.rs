//! Level-DRF, the default: servers tell one another how their load rises with the level.
//!
//! C-DRF is a max-min fairness whose weights a tenant's servers can know, since its dominant share counts its own
//! servers only: all *levels* rise together, and a tenant stops where one of its resources is full. A server knows its
//! tenants, all their costs, and what their servers have free. What it does not know are those servers' other tenants;
//! and it need not, but for how much of each resource they take at a level. That is a [`Crowd`], whatever their number.
//!
//! So each server paints a [`Picture`] of itself and the servers that it shares tenants with, fills it as C-DRF would, and
//! sees at which level each of its tenants stops, and where. Whoever stops *here* rises in what others are told without
//! end; whoever stops elsewhere rises to that level. In the first pictures nobody stops elsewhere, and already so the
//! tenants of the resource that is full first are right on all their servers. Each further round makes those right
//! whose resources are full next, if others were right; C-DRF is where nothing changes any more. Mostly two do.
//!
//! Round 0: what is free and what tenants want. Then rounds of crowds. Then each server *promises* what its picture
//! says, which fits it, whatever it was told: it is in its picture itself, with all its tenants. A tenant gets the
//! least promise.

use std::collections::{BTreeMap, BTreeSet};

use crate::picture::{Picture, Seen};
use crate::problem::{NOTHING, Place, Vector, whole};
use crate::rounds::{Body, Crowd, Local, Message, Outbox, Positions, Promises, Server, give_word, note_now};

/// Rounds of crowds in an interval. With what is free before and the promises after: four rounds of messages.
pub const CROWD_ROUNDS: u32 = 2;

pub struct LevelDrf {
    local: Local,
    crowd_rounds: u32,
    positions: Positions,
    /// By position in `hosted`.
    wants: Vec<Option<u64>>,
    /// What other servers told, by server.
    free_of: BTreeMap<usize, Vector>,
    crowds_of: BTreeMap<usize, Vec<Crowd>>,
    /// To whom this server told some of its own.
    told: BTreeSet<usize>,
    /// Of what was told so far; none where something of it has changed.
    picture: Option<Picture>,
    promises: Promises,
    given: Vec<(usize, u64)>,
}

impl LevelDrf {
    pub fn new(local: Local, crowd_rounds: u32) -> Self {
        Self {
            crowd_rounds,
            positions: Positions::of(&local),
            wants: local.hosted.iter().map(|hosted| hosted.extra_per_s).collect(),
            free_of: BTreeMap::new(),
            crowds_of: BTreeMap::new(),
            told: BTreeSet::new(),
            picture: None,
            promises: Promises::none(&local),
            given: Vec::new(),
            local,
        }
    }

    fn tell_free(&self) -> Vec<Message> {
        let mut outbox = Outbox::default();
        for hosted in &self.local.hosted {
            if hosted.extra_per_s == Some(0) {
                continue; // followers that hear nothing from the head leave the tenant out
            }
            for peer in hosted.peers(self.local.server) {
                match hosted.extra_per_s {
                    Some(extra) => outbox.tell(peer, (hosted.tenant, extra)),
                    None => outbox.address(peer),
                }
            }
        }
        let free = self.local.free;
        outbox.send(&self.local, |wants| Body::Has { free, wants })
    }

    /// Positions and wants of the tenants that are known to want something.
    fn wanting(&self) -> Vec<(usize, u64)> {
        let wants = |h: usize| self.wants[h].filter(|extra| *extra > 0).map(|extra| (h, extra));
        (0..self.local.hosted.len()).filter_map(wants).collect()
    }

    /// Mostly that of the round before: it is free amounts and wants that take time to paint, and they come at first.
    fn take_picture(&mut self) -> Picture {
        let painted = self.picture.take();
        painted.unwrap_or_else(|| Picture::new(&self.local, self.wanting(), &self.free_of))
    }

    fn tell_crowds(&mut self, is_first: bool) -> Vec<Message> {
        let mut picture = self.take_picture();
        let seen = if is_first {
            picture.nobody_elsewhere()
        } else {
            picture.fill(&self.crowds_of)
        };
        let crowds = picture.crowds(&self.local, &seen);
        self.picture = Some(picture);
        let mut outbox = Outbox::default();
        for (peer, crowds) in crowds {
            // Nothing is what is assumed of whoever says nothing, but not of whoever said something before.
            if !crowds.is_empty() {
                self.told.insert(peer);
            }
            if self.told.contains(&peer) {
                outbox.tell(peer, crowds);
            }
        }
        outbox.send(&self.local, |crowds| {
            Body::Crowds(crowds.into_iter().flatten().collect())
        })
    }

    fn promise(&mut self) -> Vec<Message> {
        let mut picture = self.take_picture();
        let seen = picture.fill(&self.crowds_of);
        let wanting = picture.wanting();
        let whole = self.whole(wanting, &seen);
        let desired: Vec<(usize, u64)> = wanting.iter().map(|(h, _)| *h).zip(whole).collect();
        let kept = give_word(&self.local, &desired, &mut self.given, &mut self.promises);
        kept.send(&self.local, Body::Promise)
    }

    /// Whole requests that fit this server together.
    fn whole(&self, wanting: &[(usize, u64)], seen: &Seen) -> Vec<u64> {
        let place = |(h, _): &(usize, u64)| Place {
            server: 0,
            cost: self.local.hosted[*h].cost,
        };
        let places: Vec<Place> = wanting.iter().map(place).collect();
        let grant = |f: usize| match places[f].cost == NOTHING {
            true => f64::INFINITY,
            false => seen.taken[f],
        };
        let grants = wanting
            .iter()
            .enumerate()
            .map(|(f, (_, wanted))| (grant(f), *wanted));
        whole(&[self.local.free], grants, |f| std::slice::from_ref(&places[f]))
    }

    fn hear(&mut self, message: &Message) {
        match &message.body {
            Body::Has { free, wants } => {
                self.picture = None;
                self.free_of.insert(message.from, *free);
                for (tenant, extra) in wants {
                    let h = self.positions.common(*tenant);
                    if self.local.hosted[h].head() == message.from {
                        self.wants[h] = Some(*extra);
                    }
                }
            }
            Body::Crowds(crowds) => {
                self.crowds_of.insert(message.from, crowds.clone());
            }
            Body::Promise(promise) => {
                for (tenant, amount) in promise {
                    if let Some(h) = self.positions.get(*tenant) {
                        self.promises.add(&self.local, h, message.from, *amount);
                    }
                }
            }
            _ => {}
        }
    }
}

impl Server for LevelDrf {
    fn rounds(&self) -> u32 {
        self.crowd_rounds + 3
    }

    fn step(&mut self, round: u32, inbox: &[Message]) -> Vec<Message> {
        let interval = self.local.interval;
        for message in inbox.iter().filter(|message| message.interval == interval) {
            self.hear(message);
        }
        if round == 0 {
            self.tell_free()
        } else if round <= self.crowd_rounds {
            self.tell_crowds(round == 1)
        } else if round == self.crowd_rounds + 1 {
            self.promise()
        } else {
            Vec::new()
        }
    }

    fn grants(&self) -> Vec<(usize, u64)> {
        self.promises.grants(&self.local)
    }

    fn note_now(&mut self, free: Vector, held_per_s: &dyn Fn(usize) -> u64) {
        if free != self.local.free {
            self.picture = None;
        }
        note_now(&mut self.local, free, held_per_s);
    }

    fn given(&self) -> &[(usize, u64)] {
        &self.given
    }
}
