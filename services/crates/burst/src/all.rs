//! All-DRF (Filo §4.2.3, §6.3): every server runs C-DRF over its own free amounts and the tenants that it hosts. A
//! tenant gets the lowest commitment of its servers.
//!
//! Iteration 0: heads send the rates that their tenants want. Iteration 1: every server runs C-DRF on its own and sends
//! its commitments to the heads. The paper's listing (its Algorithm 4) is not in the text at hand; this follows its
//! description.

use crate::iterations::{
    Central, CollectedCommitments, IterationBody, IterationMessage, Local, Outbox, Participant, Positions,
    costs_nothing, make_commitments, note_now, own_problem,
};
use crate::problem::{SharingProblem, Vector};

pub struct AllDrf {
    central: Central,
    local: Local,
    positions: Positions,
    wants: Vec<Option<u64>>,
    collected: CollectedCommitments,
    commitments: Vec<(usize, u64)>,
}

impl AllDrf {
    pub fn new(local: Local, central: impl Fn(&SharingProblem) -> Vec<u64> + Send + 'static) -> Self {
        Self {
            central: Box::new(central),
            positions: Positions::of(&local),
            wants: local.hosted.iter().map(|hosted| hosted.extra_per_s).collect(),
            collected: CollectedCommitments::none(&local),
            commitments: Vec::new(),
            local,
        }
    }

    fn send_wants(&self) -> Vec<IterationMessage> {
        let mut outbox = Outbox::default();
        for hosted in &self.local.hosted {
            if let Some(extra) = hosted.extra_per_s.filter(|extra| *extra > 0) {
                for peer in hosted.peers(self.local.server) {
                    outbox.add(peer, (hosted.tenant, extra));
                }
            }
        }
        outbox.send(&self.local, IterationBody::Wants)
    }

    fn commit(&mut self) -> Vec<IterationMessage> {
        let wants = |h: usize| self.wants[h].filter(|extra| *extra > 0).map(|extra| (h, extra));
        let wanting: Vec<(usize, u64)> = (0..self.local.hosted.len()).filter_map(wants).collect();
        let (free, charged): (Vec<_>, Vec<_>) = wanting
            .iter()
            .partition(|(h, _)| costs_nothing(&self.local.hosted[*h]));
        let granted = (self.central)(&own_problem(&self.local, &charged));
        let charged = charged.iter().zip(granted).map(|((h, _), grant)| (*h, grant));
        let desired: Vec<(usize, u64)> = charged.chain(free).collect();
        let to_heads = make_commitments(&self.local, &desired, &mut self.commitments, &mut self.collected);
        to_heads.send(&self.local, IterationBody::Commitments)
    }
}

impl Participant for AllDrf {
    fn iterations(&self) -> u32 {
        3
    }

    fn step(&mut self, iteration: u32, inbox: &[IterationMessage]) -> Vec<IterationMessage> {
        for message in inbox
            .iter()
            .filter(|message| message.interval == self.local.interval)
        {
            match &message.body {
                IterationBody::Wants(wants) => {
                    for (tenant, extra) in wants {
                        self.wants[self.positions.common(*tenant)] = Some(*extra);
                    }
                }
                IterationBody::Commitments(amounts) => {
                    self.collected
                        .hear(&self.local, &self.positions, message.from, amounts);
                }
                _ => {}
            }
        }
        match iteration {
            0 => self.send_wants(),
            1 => self.commit(),
            _ => Vec::new(),
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
}
