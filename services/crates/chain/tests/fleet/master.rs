//! The coordinator, as far as one group needs it: it learns the truth late, and issues epochs.
//!
//! It keeps what `docs/internals/chain.md` asks of a coordinator: an epoch is issued once, a restarted server is
//! never given an epoch that it lived in before, a learner is promoted only on a report of the present epoch, and
//! the last member that has lost nothing is never spliced out.

use quorate_types::config::Member;
use quorate_types::cost::{AppendCost, Budget};
use quorate_types::{Durability, Epoch, GroupConfig, GroupId, Micros};
use rand::Rng;

use crate::server::Instruction;
use crate::world::{What, World};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Life {
    pub incarnation: u64,
    pub lineage: u64,
}

#[derive(Debug, Clone, Copy)]
struct Known {
    alive: bool,
    life: Life,
}

/// A configuration as it was issued: the chain with the lives that its members had, as far as was known.
#[derive(Debug, Clone)]
pub struct Issued {
    pub chain: Vec<(usize, Life)>,
    pub learner: Option<(usize, Life)>,
}

#[derive(Debug)]
pub struct Master {
    pub epoch: Epoch,
    pub issued: Vec<(Epoch, Issued)>,
    known: Vec<Known>,
    /// Per server: the connection is in order.
    last_at: Vec<Micros>,
    config: Option<GroupConfig>,
    pub promotions: u64,
}

impl Master {
    pub fn new(servers: usize) -> Self {
        let known = Known {
            alive: true,
            life: Life {
                incarnation: 1,
                lineage: 0,
            },
        };
        Self {
            epoch: 0,
            issued: Vec::new(),
            known: vec![known; servers],
            last_at: vec![0; servers],
            config: None,
            promotions: 0,
        }
    }

    pub fn latest(&self) -> &Issued {
        &self.issued.last().expect("the first chain was issued").1
    }

    pub fn of_epoch(&self, epoch: Epoch) -> &Issued {
        &self
            .issued
            .iter()
            .rev()
            .find(|(e, _)| *e == epoch)
            .expect("an issued epoch")
            .1
    }
}

impl World {
    pub fn first_chain(&mut self) {
        let chain = (0..self.plan.degree)
            .map(|s| (s, self.master.known[s].life))
            .collect();
        self.issue(Issued { chain, learner: None });
    }

    fn life(&self, s: usize) -> Life {
        Life {
            incarnation: self.servers[s].incarnation,
            lineage: self.servers[s].disk.lineage,
        }
    }

    /// Whether a member has all that it had when it became one.
    pub fn is_intact(&self, (s, life): (usize, Life)) -> bool {
        match self.plan.durability {
            Durability::Persistent => self.life(s).lineage == life.lineage,
            Durability::InMemory => self.servers[s].alive && self.life(s) == life,
        }
    }

    pub fn others_are_intact(&self, s: usize) -> bool {
        self.master
            .latest()
            .chain
            .iter()
            .any(|m| m.0 != s && self.is_intact(*m))
    }

    pub fn master_hears(&mut self, at: Micros, s: usize) {
        let (alive, life) = (self.servers[s].alive, self.life(s));
        self.at(
            at,
            What::MasterHears {
                server: s,
                alive,
                life,
            },
        );
    }

    pub fn heard(&mut self, s: usize, alive: bool, life: Life) {
        let known = &mut self.master.known[s];
        let is_old = (life.incarnation, alive) < (known.life.incarnation, known.alive);
        if is_old || life.lineage < known.life.lineage {
            return;
        }
        *known = Known { alive, life };
        self.decide();
        if alive {
            self.tell_config(s);
        }
    }

    /// The server says that it forgot the group.
    pub fn dropped(&mut self, s: usize) {
        self.master.known[s] = Known {
            alive: true,
            life: self.life(s),
        };
    }

    /// Splices out what failed, and sees to a learner when the chain is short.
    pub fn decide(&mut self) {
        let before = self.master.latest().clone();
        let mut next = before.clone();
        for member in before.chain.iter().copied() {
            self.judge_member(member, &mut next);
        }
        if let Some((s, life)) = next.learner {
            let known = self.master.known[s];
            if !known.alive || known.life != life {
                let stays = known.alive && known.life.lineage == life.lineage && self.rng.random_bool(0.5);
                next.learner = stays.then_some((s, known.life));
            }
        }
        if next.chain.len() < self.plan.degree && next.learner.is_none() && self.rng.random_bool(0.5) {
            let s = self.rng.random_range(0..self.servers.len());
            let known = self.master.known[s];
            if known.alive && next.chain.iter().all(|m| m.0 != s) {
                next.learner = Some((s, known.life));
            }
        }
        if next.chain != before.chain || next.learner != before.learner {
            self.issue(next);
        }
    }

    fn judge_member(&mut self, member: (usize, Life), next: &mut Issued) {
        let (s, life) = member;
        let known = self.master.known[s];
        if known.alive && known.life == life {
            return;
        }
        let has_kept = self.plan.durability == Durability::Persistent && known.life.lineage == life.lineage;
        if has_kept && known.alive {
            // Its disk is intact: it keeps its place, in a new epoch.
            next.chain
                .iter_mut()
                .filter(|m| m.0 == s)
                .for_each(|m| m.1 = known.life);
        } else if !has_kept || self.rng.random_bool(0.3) {
            self.splice(s, next);
        }
    }

    fn splice(&mut self, s: usize, next: &mut Issued) {
        if next.chain.iter().any(|m| m.0 != s && self.is_intact(*m)) {
            next.chain.retain(|m| m.0 != s);
        }
    }

    /// A member that is alive is taken for failed.
    pub fn suspect(&mut self, s: usize) {
        let mut next = self.master.latest().clone();
        let before = next.chain.len();
        self.splice(s, &mut next);
        if next.chain.len() < before {
            self.issue(next);
        }
    }

    pub fn caught_up(&mut self, epoch: Epoch, learner: usize) {
        let mut next = self.master.latest().clone();
        if epoch != self.master.epoch || next.learner.map(|l| l.0) != Some(learner) {
            return;
        }
        next.chain.extend(next.learner.take());
        self.master.promotions += 1;
        self.issue(next);
    }

    fn issue(&mut self, issued: Issued) {
        assert!(!issued.chain.is_empty(), "the chain is never empty");
        let removed: Vec<usize> = match self.master.issued.last() {
            Some((_, before)) => before.chain.iter().chain(&before.learner).map(|m| m.0).collect(),
            None => Vec::new(),
        };
        self.master.epoch += if self.rng.random_bool(0.1) { 2 } else { 1 };
        let epoch = self.master.epoch;
        self.trace
            .line(|| format!("{:>8} epoch {epoch}: {issued:?}", self.now));
        let member = |m: &(usize, Life)| Member {
            server_id: self.servers[m.0].id,
            address: String::new(),
        };
        let config = GroupConfig {
            group_id: GroupId(uuid::Uuid::from_u128(7)),
            epoch,
            durability: self.plan.durability,
            replication_degree: self.plan.degree as u8,
            min_replicas: self.plan.min_replicas as u8,
            replicas: issued.chain.iter().map(member).collect(),
            learners: issued.learner.iter().map(member).collect(),
            budget: Budget::for_rate(
                1,
                1,
                AppendCost {
                    fixed_milli: [0; 3],
                    per_byte_milli: [0; 3],
                },
            ),
            retention_bytes: self.plan.retention_bytes,
            retention_age_s: self.plan.retention_age_s,
            beginning: None,
        };
        let members: Vec<usize> = issued.chain.iter().chain(&issued.learner).map(|m| m.0).collect();
        self.master.config = Some(config);
        self.master.issued.push((epoch, issued));
        for s in members.iter().copied() {
            self.tell_config(s);
        }
        for s in removed.into_iter().filter(|s| !members.contains(s)) {
            if self.rng.random_bool(0.5) {
                self.tell(s, Instruction::Drop);
            } else {
                self.tell_config(s);
            }
        }
        crate::invariants::after_issue(self);
    }

    pub fn tell_config(&mut self, s: usize) {
        if let Some(config) = self.master.config.clone() {
            self.tell(s, Instruction::Configure(config));
        }
    }

    fn tell(&mut self, s: usize, instruction: Instruction) {
        // A server that restarted since is told when it has registered, and not before.
        let life = self.master.known[s].life;
        let delay = if self.rng.random_bool(0.2) { 50_000 } else { 3_000 };
        let at = (self.now + self.rng.random_range(50..delay)).max(self.master.last_at[s]);
        self.master.last_at[s] = at;
        self.at(
            at,
            What::Instruct {
                server: s,
                incarnation: life.incarnation,
                instruction,
            },
        );
    }
}
