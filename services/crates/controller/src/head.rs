//! Head-DRF (Filo §4.2.2): heads propose, followers vote, a proposal passes whole or not at all.
//!
//! Round 0: every server tells the heads of its tenants what it has free. Round 1: every server with heads runs
//! C-DRF over its own heads' tenants against what it was told, and proposes. Round 2: every server takes what
//! fits, preferring what fills it best (PO_d), and says so. Heads use what all servers took. The paper's listing
//! (its Algorithm 3) is not in the text at hand; this follows its description.

use std::collections::{BTreeMap, BTreeSet};

use crate::problem::{NOTHING, Place, Problem, Tenant, Vector, share};
use crate::rounds::{Body, Central, Local, Message, Outbox, Positions, Server, note_now, unheld};

pub struct HeadDrf {
    central: Central,
    local: Local,
    positions: Positions,
    /// What others have free. Nothing, as long as they did not say.
    free_of: BTreeMap<usize, Vector>,
    proposed: BTreeMap<usize, u64>,
    /// Proposals to vote on: tenant, requests/s.
    ballot: Vec<(usize, u64)>,
    /// Servers that took each of our proposals.
    taken_by: BTreeMap<usize, BTreeSet<usize>>,
    given: Vec<(usize, u64)>,
}

impl HeadDrf {
    pub fn new(local: Local, central: Central) -> Self {
        Self {
            central,
            positions: Positions::of(&local),
            free_of: BTreeMap::from([(local.server, local.free)]),
            proposed: BTreeMap::new(),
            ballot: Vec::new(),
            taken_by: BTreeMap::new(),
            given: Vec::new(),
            local,
        }
    }

    fn tell_free(&self) -> Vec<Message> {
        let mut heads: Vec<usize> = self.local.hosted.iter().map(|hosted| hosted.head()).collect();
        heads.sort_unstable();
        heads.dedup();
        let mut outbox = Outbox::default();
        for head in heads.into_iter().filter(|head| *head != self.local.server) {
            outbox.tell(head, self.local.free);
        }
        outbox.send(&self.local, |free| Body::Free(free[0]))
    }

    /// The allocation phase: C-DRF over the tenants whose heads are here (Equation 6).
    fn propose(&mut self) -> Vec<Message> {
        let own = |hosted: &&crate::rounds::Hosted| hosted.extra_per_s.is_some_and(|extra| extra > 0);
        let wanting: Vec<_> = self.local.hosted.iter().filter(own).collect();
        let mut numbers: BTreeMap<usize, usize> = BTreeMap::new();
        let mut free: Vec<Vector> = Vec::new();
        let mut number = |server: usize| {
            *numbers.entry(server).or_insert_with(|| {
                free.push(self.free_of.get(&server).copied().unwrap_or(NOTHING));
                free.len() - 1
            })
        };
        let mut tenants = Vec::new();
        for hosted in &wanting {
            let place = |place: &Place| Place {
                server: number(place.server),
                cost: place.cost,
            };
            tenants.push(Tenant {
                places: hosted.places.iter().map(place).collect(),
                extra_per_s: hosted.extra_per_s.unwrap_or(0),
            });
        }
        let problem = Problem::new(free, tenants).expect("tenants were valid in the whole problem");
        let utility = (self.central)(&problem);
        let mut outbox = Outbox::default();
        for (hosted, amount) in wanting.into_iter().zip(utility).filter(|(_, amount)| *amount > 0) {
            self.proposed.insert(hosted.tenant, amount);
            self.ballot.push((hosted.tenant, amount));
            for peer in hosted.peers(self.local.server) {
                outbox.tell(peer, (hosted.tenant, amount));
            }
        }
        outbox.send(&self.local, Body::Proposals)
    }

    /// The voting phase. What is taken is kept for the interval, also when others refuse it.
    fn vote(&mut self) -> Vec<Message> {
        let whole = |(tenant, amount): &(usize, u64)| {
            let cost = self.local.hosted[self.positions.common(*tenant)].cost;
            let total = cost.map(|cost| cost.saturating_mul(*amount));
            (*tenant, *amount, share(&total, &self.local.free))
        };
        let mut ballot: Vec<(usize, u64, f64)> = self.ballot.iter().map(whole).collect();
        ballot.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(&b.0))); // PO_d
        let mut left = unheld(&self.local);
        let mut outbox = Outbox::default();
        for (tenant, amount, _) in ballot {
            let hosted = &self.local.hosted[self.positions.common(tenant)];
            let more = amount.saturating_sub(hosted.held_per_s);
            let total = hosted.cost.map(|cost| cost.saturating_mul(more));
            if !crate::problem::fits(&total, &left) {
                continue;
            }
            crate::problem::take(&mut left, &total);
            self.given.push((tenant, amount));
            let head = hosted.head();
            if head == self.local.server {
                self.taken_by.entry(tenant).or_default().insert(head);
            } else {
                outbox.tell(head, tenant);
            }
        }
        outbox.send(&self.local, Body::Accepted)
    }
}

impl Server for HeadDrf {
    fn rounds(&self) -> u32 {
        4
    }

    fn step(&mut self, round: u32, inbox: &[Message]) -> Vec<Message> {
        for message in inbox
            .iter()
            .filter(|message| message.interval == self.local.interval)
        {
            match &message.body {
                Body::Free(free) => {
                    self.free_of.insert(message.from, *free);
                }
                Body::Proposals(proposals) => self.ballot.extend(proposals),
                Body::Accepted(tenants) => {
                    for tenant in tenants {
                        self.taken_by.entry(*tenant).or_default().insert(message.from);
                    }
                }
                _ => {}
            }
        }
        match round {
            0 => self.tell_free(),
            1 => self.propose(),
            2 => self.vote(),
            _ => Vec::new(),
        }
    }

    fn grants(&self) -> Vec<(usize, u64)> {
        let degree = |tenant: &usize| self.local.hosted[self.positions.common(*tenant)].places.len();
        let passed = self.proposed.iter();
        passed
            .filter(|(tenant, _)| {
                self.taken_by
                    .get(tenant)
                    .is_some_and(|servers| servers.len() == degree(tenant))
            })
            .map(|(tenant, amount)| (*tenant, *amount))
            .collect()
    }

    fn note_now(&mut self, free: Vector, held_per_s: &dyn Fn(usize) -> u64) {
        note_now(&mut self.local, free, held_per_s);
    }

    fn given(&self) -> &[(usize, u64)] {
        &self.given
    }
}
