//! Head-DRF (Filo §4.2.2): heads propose, followers vote, a proposal passes whole or not at all.
//!
//! Iteration 0: every server sends its free amounts to the heads of its tenants. Iteration 1: every server with heads runs
//! C-DRF over their tenants against the free amounts that it knows, and proposes. Iteration 2: every server accepts the
//! proposals that fit, the largest first (PO_d), and answers. Heads use the proposals that all servers accepted.
//!
//! The paper's listing (its Algorithm 3) is not in the text at hand; this follows its description.

use std::collections::{BTreeMap, BTreeSet};

use crate::iterations::{
    Central, IterationBody, IterationMessage, Local, Outbox, Participant, Positions, note_now, uncommitted,
};
use crate::problem::{NOTHING, ReplicaCost, SharingProblem, SharingTenant, Vector, share};

pub struct HeadDrf {
    central: Central,
    local: Local,
    positions: Positions,
    /// Free amounts by server; nothing of a server that did not send its own.
    free_of: BTreeMap<usize, Vector>,
    proposed: BTreeMap<usize, u64>,
    /// Proposals to vote on: tenant, requests/s.
    ballot: Vec<(usize, u64)>,
    /// Servers that accepted each of our proposals.
    accepted_by: BTreeMap<usize, BTreeSet<usize>>,
    commitments: Vec<(usize, u64)>,
}

impl HeadDrf {
    pub fn new(local: Local, central: impl Fn(&SharingProblem) -> Vec<u64> + Send + 'static) -> Self {
        Self {
            central: Box::new(central),
            positions: Positions::of(&local),
            free_of: BTreeMap::from([(local.server, local.free)]),
            proposed: BTreeMap::new(),
            ballot: Vec::new(),
            accepted_by: BTreeMap::new(),
            commitments: Vec::new(),
            local,
        }
    }

    fn send_free(&self) -> Vec<IterationMessage> {
        let mut heads: Vec<usize> = self.local.hosted.iter().map(|hosted| hosted.head()).collect();
        heads.sort_unstable();
        heads.dedup();
        let mut outbox = Outbox::default();
        for head in heads.into_iter().filter(|head| *head != self.local.server) {
            outbox.add(head, self.local.free);
        }
        outbox.send(&self.local, |free| IterationBody::Free(free[0]))
    }

    /// The allocation phase: C-DRF over the tenants whose heads are here (Equation 6).
    fn propose(&mut self) -> Vec<IterationMessage> {
        let own =
            |hosted: &&crate::iterations::HostedTenant| hosted.extra_per_s.is_some_and(|extra| extra > 0);
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
            let replica = |replica: &ReplicaCost| ReplicaCost {
                server: number(replica.server),
                cost: replica.cost,
            };
            tenants.push(SharingTenant {
                replicas: hosted.replicas.iter().map(replica).collect(),
                extra_per_s: hosted.extra_per_s.unwrap_or(0),
            });
        }
        let problem = SharingProblem::new(free, tenants).expect("tenants were valid in the whole problem");
        let utility = (self.central)(&problem);
        let mut outbox = Outbox::default();
        for (hosted, amount) in wanting.into_iter().zip(utility).filter(|(_, amount)| *amount > 0) {
            self.proposed.insert(hosted.tenant, amount);
            self.ballot.push((hosted.tenant, amount));
            for peer in hosted.peers(self.local.server) {
                outbox.add(peer, (hosted.tenant, amount));
            }
        }
        outbox.send(&self.local, IterationBody::Proposals)
    }

    /// The voting phase. An accepted proposal is committed to for the interval, also when other servers refuse it.
    fn vote(&mut self) -> Vec<IterationMessage> {
        let whole = |(tenant, amount): &(usize, u64)| {
            let cost = self.local.hosted[self.positions.common(*tenant)].cost;
            let total = cost.map(|cost| cost.saturating_mul(*amount));
            (*tenant, *amount, share(&total, &self.local.free))
        };
        let mut ballot: Vec<(usize, u64, f64)> = self.ballot.iter().map(whole).collect();
        ballot.sort_by(|a, b| b.2.total_cmp(&a.2).then(a.0.cmp(&b.0))); // PO_d
        let mut left = uncommitted(&self.local);
        let mut outbox = Outbox::default();
        for (tenant, amount, _) in ballot {
            let hosted = &self.local.hosted[self.positions.common(tenant)];
            let more = amount.saturating_sub(hosted.committed_per_s);
            let total = hosted.cost.map(|cost| cost.saturating_mul(more));
            if !crate::problem::fits(&total, &left) {
                continue;
            }
            crate::problem::take(&mut left, &total);
            self.commitments.push((tenant, amount));
            let head = hosted.head();
            if head == self.local.server {
                self.accepted_by.entry(tenant).or_default().insert(head);
            } else {
                outbox.add(head, tenant);
            }
        }
        outbox.send(&self.local, IterationBody::Accepted)
    }
}

impl Participant for HeadDrf {
    fn iterations(&self) -> u32 {
        4
    }

    fn step(&mut self, iteration: u32, inbox: &[IterationMessage]) -> Vec<IterationMessage> {
        for message in inbox
            .iter()
            .filter(|message| message.interval == self.local.interval)
        {
            match &message.body {
                IterationBody::Free(free) => {
                    self.free_of.insert(message.from, *free);
                }
                IterationBody::Proposals(proposals) => self.ballot.extend(proposals),
                IterationBody::Accepted(tenants) => {
                    for tenant in tenants {
                        self.accepted_by.entry(*tenant).or_default().insert(message.from);
                    }
                }
                _ => {}
            }
        }
        match iteration {
            0 => self.send_free(),
            1 => self.propose(),
            2 => self.vote(),
            _ => Vec::new(),
        }
    }

    fn grants(&self) -> Vec<(usize, u64)> {
        let degree = |tenant: &usize| self.local.hosted[self.positions.common(*tenant)].replicas.len();
        let passed = self.proposed.iter();
        passed
            .filter(|(tenant, _)| {
                self.accepted_by
                    .get(tenant)
                    .is_some_and(|servers| servers.len() == degree(tenant))
            })
            .map(|(tenant, amount)| (*tenant, *amount))
            .collect()
    }

    fn note_now(&mut self, free: Vector, committed_per_s: &dyn Fn(usize) -> u64) {
        note_now(&mut self.local, free, committed_per_s);
    }

    fn commitments(&self) -> &[(usize, u64)] {
        &self.commitments
    }
}
