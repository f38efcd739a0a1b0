//! A server's part in an interval for which it was told rates: it commits to them as far as they fit, and tells the heads.

use std::collections::BTreeMap;

use crate::iterations::{
    CollectedCommitments, IterationBody, IterationMessage, Local, Participant, Positions, make_commitments,
    note_now,
};
use crate::level::AGGREGATE_ITERATIONS;
use crate::problem::Vector;

/// Commitments are made in the same iteration as Level-DRF's: the rates computed from this interval's reports are there by
/// then, and servers that had none make theirs at the same time.
const COMMITS_IN: u32 = AGGREGATE_ITERATIONS + 1;

pub struct FleetDrf {
    local: Local,
    positions: Positions,
    /// Requests/s by tenant.
    told: BTreeMap<usize, u64>,
    collected: CollectedCommitments,
    commitments: Vec<(usize, u64)>,
}

impl FleetDrf {
    pub fn new(local: Local, told: BTreeMap<usize, u64>) -> Self {
        Self {
            positions: Positions::of(&local),
            told,
            collected: CollectedCommitments::none(&local),
            commitments: Vec::new(),
            local,
        }
    }

    fn commit(&mut self) -> Vec<IterationMessage> {
        let rate = |(h, tenant): (usize, usize)| {
            let told = self.told.get(&tenant).filter(|per_s| **per_s > 0)?;
            let wanted = self.local.hosted[h].extra_per_s.unwrap_or(u64::MAX);
            Some((h, (*told).min(wanted)))
        };
        let hosted = self.local.hosted.iter().map(|hosted| hosted.tenant).enumerate();
        let desired: Vec<(usize, u64)> = hosted.filter_map(rate).collect();
        let to_heads = make_commitments(&self.local, &desired, &mut self.commitments, &mut self.collected);
        to_heads.send(&self.local, IterationBody::Commitments)
    }
}

impl Participant for FleetDrf {
    fn iterations(&self) -> u32 {
        COMMITS_IN + 2
    }

    fn step(&mut self, iteration: u32, inbox: &[IterationMessage]) -> Vec<IterationMessage> {
        let interval = self.local.interval;
        for message in inbox.iter().filter(|message| message.interval == interval) {
            if let IterationBody::Commitments(amounts) = &message.body {
                self.collected
                    .hear(&self.local, &self.positions, message.from, amounts);
            }
        }
        if iteration == COMMITS_IN {
            self.commit()
        } else {
            Vec::new()
        }
    }

    fn grants(&self) -> Vec<(usize, u64)> {
        self.collected.grants(&self.local)
    }

    fn note_now(&mut self, free: Vector, committed_per_s: &dyn Fn(usize) -> u64) {
        note_now(&mut self.local, free, committed_per_s);
    }

    fn commitments(&self) -> &[(usize, u64)] {
        &self.commitments
    }

    fn tell(&mut self, told: BTreeMap<usize, u64>) {
        self.told = told;
    }
}
