//! Level-DRF, the default: servers send one another the rise of their load with the level.
//!
//! C-DRF is a max-min fairness whose weights a tenant's servers can know, since its dominant share counts its own
//! servers only. All *levels* rise together, and a tenant stops when one of its resources is full. A server knows its
//! tenants, their costs everywhere, and the free amounts of their servers. It does not know those servers' other tenants.
//! Their use of each resource at a level is enough: one [`Aggregate`] holds it for any number of tenants.
//!
//! Each server fills a [`View`] of itself and of the servers that it shares tenants with, as C-DRF would. The view shows
//! at which level each of its tenants stops, and at which server. In the aggregates for others, a tenant that stops *here*
//! rises without end, and one that stops elsewhere rises to its level. At first no tenant is known to stop elsewhere, and
//! the tenants of the resource that is full first are right on all their servers. Each further iteration settles the
//! tenants of the resources that are full next. The result is C-DRF's once nothing changes; mostly two iterations do.
//!
//! Iteration 0: free amounts and wanted rates. Then iterations of aggregates. Then each server *commits* to the rates of its
//! view. They fit the server whatever it was sent, since the view has all its own tenants. A tenant gets the lowest
//! commitment.

use std::collections::{BTreeMap, BTreeSet};

use crate::iterations::{
    Aggregate, CollectedCommitments, IterationBody, IterationMessage, Local, Outbox, Participant, Positions,
    make_commitments, note_now,
};
use crate::problem::{NOTHING, ReplicaCost, Vector, whole};
use crate::view::{FilledView, View};

/// Iterations of aggregates in an interval. With free amounts before and commitments after, messages are sent in four.
pub const AGGREGATE_ITERATIONS: u32 = 2;

pub struct LevelDrf {
    local: Local,
    aggregate_iterations: u32,
    positions: Positions,
    /// By position in `hosted`.
    wants: Vec<Option<u64>>,
    /// Sent by other servers, by server.
    free_of: BTreeMap<usize, Vector>,
    aggregates_of: BTreeMap<usize, Vec<Aggregate>>,
    /// Servers that were sent aggregates.
    sent_to: BTreeSet<usize>,
    /// The view of the amounts and wishes sent so far; none if they changed.
    view: Option<View>,
    collected: CollectedCommitments,
    commitments: Vec<(usize, u64)>,
}

impl LevelDrf {
    pub fn new(local: Local, aggregate_iterations: u32) -> Self {
        Self {
            aggregate_iterations,
            positions: Positions::of(&local),
            wants: local.hosted.iter().map(|hosted| hosted.extra_per_s).collect(),
            free_of: BTreeMap::new(),
            aggregates_of: BTreeMap::new(),
            sent_to: BTreeSet::new(),
            view: None,
            collected: CollectedCommitments::none(&local),
            commitments: Vec::new(),
            local,
        }
    }

    fn send_free(&self) -> Vec<IterationMessage> {
        let mut outbox = Outbox::default();
        for hosted in &self.local.hosted {
            if hosted.extra_per_s == Some(0) {
                continue; // followers leave a tenant out if its head sends no wish
            }
            for peer in hosted.peers(self.local.server) {
                match hosted.extra_per_s {
                    Some(extra) => outbox.add(peer, (hosted.tenant, extra)),
                    None => outbox.address(peer),
                }
            }
        }
        let free = self.local.free;
        outbox.send(&self.local, |wants| IterationBody::Has { free, wants })
    }

    /// Positions and wishes of the tenants that are known to want something.
    fn wanting(&self) -> Vec<(usize, u64)> {
        let wants = |h: usize| self.wants[h].filter(|extra| *extra > 0).map(|extra| (h, extra));
        (0..self.local.hosted.len()).filter_map(wants).collect()
    }

    /// Mostly the view of the iteration before: free amounts and wishes take most of the time to build, and come first.
    fn take_view(&mut self) -> View {
        let built = self.view.take();
        built.unwrap_or_else(|| View::new(&self.local, self.wanting(), &self.free_of))
    }

    fn send_aggregates(&mut self, is_first: bool) -> Vec<IterationMessage> {
        let mut view = self.take_view();
        let filled = if is_first {
            view.without_others()
        } else {
            view.fill(&self.aggregates_of)
        };
        let aggregates = view.aggregates(&self.local, &filled);
        self.view = Some(view);
        let mut outbox = Outbox::default();
        for (peer, aggregates) in aggregates {
            // A server that was sent none before assumes none; one that was sent some must hear that they are gone.
            if !aggregates.is_empty() {
                self.sent_to.insert(peer);
            }
            if self.sent_to.contains(&peer) {
                outbox.add(peer, aggregates);
            }
        }
        outbox.send(&self.local, |aggregates| {
            IterationBody::Aggregates(aggregates.into_iter().flatten().collect())
        })
    }

    fn commit(&mut self) -> Vec<IterationMessage> {
        let mut view = self.take_view();
        let filled = view.fill(&self.aggregates_of);
        let wanting = view.wanting();
        let whole = self.whole(wanting, &filled);
        let desired: Vec<(usize, u64)> = wanting.iter().map(|(h, _)| *h).zip(whole).collect();
        let to_heads = make_commitments(&self.local, &desired, &mut self.commitments, &mut self.collected);
        to_heads.send(&self.local, IterationBody::Commitments)
    }

    /// Whole requests that fit this server together.
    fn whole(&self, wanting: &[(usize, u64)], filled: &FilledView) -> Vec<u64> {
        let replica = |(h, _): &(usize, u64)| ReplicaCost {
            server: 0,
            cost: self.local.hosted[*h].cost,
        };
        let replicas: Vec<ReplicaCost> = wanting.iter().map(replica).collect();
        let grant = |f: usize| match replicas[f].cost == NOTHING {
            true => f64::INFINITY,
            false => filled.taken[f],
        };
        let grants = wanting
            .iter()
            .enumerate()
            .map(|(f, (_, wanted))| (grant(f), *wanted));
        whole(&[self.local.free], grants, |f| std::slice::from_ref(&replicas[f]))
    }

    fn hear(&mut self, message: &IterationMessage) {
        match &message.body {
            IterationBody::Has { free, wants } => {
                self.view = None;
                self.free_of.insert(message.from, *free);
                for (tenant, extra) in wants {
                    let h = self.positions.common(*tenant);
                    if self.local.hosted[h].head() == message.from {
                        self.wants[h] = Some(*extra);
                    }
                }
            }
            IterationBody::Aggregates(aggregates) => {
                self.aggregates_of.insert(message.from, aggregates.clone());
            }
            IterationBody::Commitments(amounts) => {
                self.collected
                    .hear(&self.local, &self.positions, message.from, amounts);
            }
            _ => {}
        }
    }
}

impl Participant for LevelDrf {
    fn iterations(&self) -> u32 {
        self.aggregate_iterations + 3
    }

    fn step(&mut self, iteration: u32, inbox: &[IterationMessage]) -> Vec<IterationMessage> {
        let interval = self.local.interval;
        for message in inbox.iter().filter(|message| message.interval == interval) {
            self.hear(message);
        }
        if iteration == 0 {
            self.send_free()
        } else if iteration <= self.aggregate_iterations {
            self.send_aggregates(iteration == 1)
        } else if iteration == self.aggregate_iterations + 1 {
            self.commit()
        } else {
            Vec::new()
        }
    }

    fn grants(&self) -> Vec<(usize, u64)> {
        self.collected.grants(&self.local)
    }

    fn note_now(&mut self, free: Vector, committed_per_s: &dyn Fn(usize) -> u64) {
        if free != self.local.free {
            self.view = None;
        }
        note_now(&mut self.local, free, committed_per_s);
    }

    fn commitments(&self) -> &[(usize, u64)] {
        &self.commitments
    }
}
