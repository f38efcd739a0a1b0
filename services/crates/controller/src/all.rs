//! All-DRF (Filo §4.2.3, §6.3): every server runs C-DRF over what it has and the tenants that it hosts, heads or
//! not; a tenant gets the least that its servers have for it.
//!
//! Round 0: heads tell what their tenants want. Round 1: every server runs C-DRF on its own and gives its word
//! to the heads. The paper's listing (its Algorithm 4) is not in the text at hand; this follows its description.

use crate::problem::Vector;
use crate::rounds::{
    Body, Central, Local, Message, Outbox, Positions, Promises, Server, costs_nothing, give_word, note_now,
    own_problem,
};

pub struct AllDrf {
    central: Central,
    local: Local,
    positions: Positions,
    wants: Vec<Option<u64>>,
    promises: Promises,
    given: Vec<(usize, u64)>,
}

impl AllDrf {
    pub fn new(local: Local, central: Central) -> Self {
        Self {
            central,
            positions: Positions::of(&local),
            wants: local.hosted.iter().map(|hosted| hosted.extra_per_s).collect(),
            promises: Promises::none(&local),
            given: Vec::new(),
            local,
        }
    }

    fn tell_wants(&self) -> Vec<Message> {
        let mut outbox = Outbox::default();
        for hosted in &self.local.hosted {
            if let Some(extra) = hosted.extra_per_s.filter(|extra| *extra > 0) {
                for peer in hosted.peers(self.local.server) {
                    outbox.tell(peer, (hosted.tenant, extra));
                }
            }
        }
        outbox.send(&self.local, Body::Wants)
    }

    fn give_word(&mut self) -> Vec<Message> {
        let wants = |h: usize| self.wants[h].filter(|extra| *extra > 0).map(|extra| (h, extra));
        let wanting: Vec<(usize, u64)> = (0..self.local.hosted.len()).filter_map(wants).collect();
        let (free, charged): (Vec<_>, Vec<_>) = wanting
            .iter()
            .partition(|(h, _)| costs_nothing(&self.local.hosted[*h]));
        let granted = (self.central)(&own_problem(&self.local, &charged));
        let charged = charged.iter().zip(granted).map(|((h, _), grant)| (*h, grant));
        let desired: Vec<(usize, u64)> = charged.chain(free).collect();
        let kept = give_word(&self.local, &desired, &mut self.given, &mut self.promises);
        kept.send(&self.local, Body::Promise)
    }
}

impl Server for AllDrf {
    fn rounds(&self) -> u32 {
        3
    }

    fn step(&mut self, round: u32, inbox: &[Message]) -> Vec<Message> {
        for message in inbox
            .iter()
            .filter(|message| message.interval == self.local.interval)
        {
            match &message.body {
                Body::Wants(wants) => {
                    for (tenant, extra) in wants {
                        self.wants[self.positions.common(*tenant)] = Some(*extra);
                    }
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
        match round {
            0 => self.tell_wants(),
            1 => self.give_word(),
            _ => Vec::new(),
        }
    }

    fn grants(&self) -> Vec<(usize, u64)> {
        self.promises.grants(&self.local)
    }

    fn note_now(&mut self, free: Vector, held_per_s: &dyn Fn(usize) -> u64) {
        note_now(&mut self.local, free, held_per_s);
    }

    fn given(&self) -> &[(usize, u64)] {
        &self.given
    }
}
