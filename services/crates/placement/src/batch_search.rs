//! Off-line placement beyond Algorithm 1: rounds allocate resources that the greedy order left free.
//!
//! A round removes one to three admitted applicants and tries refused ones in a random order that prefers large ones. It
//! is kept when no less of the scarce resource is allocated, and undone otherwise. The method is "ruin and recreate"
//! (Schrimpf et al., J. Comput. Phys. 159, 2000). Rounds bound the time without a clock, so the same batch has the same
//! outcome.

use quorate_types::ServerId;

use crate::admission::{Applicant, NotPlaced, place, place_batch};
use crate::amounts::{Amounts, RESOURCES, UNLIMITED};
use crate::fleet::Fleet;
use crate::index::mix;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Search {
    pub rounds: u32,
    pub seed: u64,
}

impl Default for Search {
    /// Tens of milliseconds for ten servers and 150 applicants, which allocate 0.996 to 0.999 of the possible.
    fn default() -> Self {
        Self {
            rounds: 1_000,
            seed: 1,
        }
    }
}

/// Applicants that one round removes at most.
const REMOVED_MAX: u64 = 3;
/// Refused applicants that one round tries at most, so that its cost does not grow with the batch.
const TRIED_MAX: usize = 200;
/// The weight of other resources beside the scarce one.
const OTHERS: f64 = 0.01;

/// Places a batch as [`place_batch`] does, then improves it in `search.rounds` rounds, none of which makes it worse.
pub fn place_batch_searching<K>(
    fleet: &mut Fleet,
    applicants: Vec<Applicant<K>>,
    search: Search,
) -> Vec<(K, Result<Vec<ServerId>, NotPlaced>)> {
    let total = fleet.free_total();
    let mut batch = Batch::new(fleet, applicants, total);
    let mut random = Random(mix(search.seed));
    let mut best = batch.worth(fleet);
    for _ in 0..search.rounds {
        if batch.admitted.is_empty() || batch.refused.is_empty() {
            break;
        }
        let round = batch.round(fleet, &mut random);
        let worth = batch.worth(fleet);
        if worth >= best {
            best = worth;
        } else {
            batch.undo(fleet, round);
        }
    }
    batch.finish(fleet)
}

struct Member<K> {
    key: K,
    replicas: Vec<Amounts>,
    sum: Amounts,
    share: f64,
    chain: Option<Vec<ServerId>>,
}

struct Batch<K> {
    members: Vec<Member<K>>,
    admitted: Vec<usize>,
    refused: Vec<usize>,
    total: Amounts,
}

/// The changes of one round.
struct Round {
    removed: Vec<(usize, Vec<ServerId>)>,
    placed: Vec<usize>,
}

impl<K> Batch<K> {
    fn new(fleet: &mut Fleet, applicants: Vec<Applicant<K>>, total: Amounts) -> Self {
        let member = |applicant: Applicant<K>| {
            let sum = Amounts::sum(applicant.replicas.iter().copied());
            Member {
                key: applicant.key,
                replicas: applicant.replicas,
                sum,
                share: sum.dominant_share(total).0,
                chain: None,
            }
        };
        let mut members: Vec<Member<K>> = applicants.into_iter().map(member).collect();
        let numbered = members.iter().enumerate().map(|(key, one)| Applicant {
            key,
            replicas: one.replicas.clone(),
        });
        let numbered = numbered.collect();
        let (mut admitted, mut refused) = (Vec::new(), Vec::new());
        for (number, outcome) in place_batch(fleet, numbered) {
            members[number].chain = outcome.ok();
            match members[number].chain {
                Some(_) => admitted.push(number),
                None => refused.push(number),
            }
        }
        Self {
            members,
            admitted,
            refused,
            total,
        }
    }

    /// The allocated share of the resource of which most is allocated, and a little for the others.
    fn worth(&self, fleet: &Fleet) -> f64 {
        let given = self.total.left_after(fleet.free_total());
        let share = |i: usize| match self.total.0[i] {
            UNLIMITED => 0.0,
            all => given.0[i] as f64 / all.max(1) as f64,
        };
        (0..RESOURCES).map(share).fold(0.0, f64::max) + OTHERS * (0..RESOURCES).map(share).sum::<f64>()
    }

    fn round(&mut self, fleet: &mut Fleet, random: &mut Random) -> Round {
        let mut removed = Vec::new();
        for _ in 0..(1 + random.below(REMOVED_MAX)).min(self.admitted.len() as u64) {
            let at = random.below(self.admitted.len() as u64) as usize;
            let number = self.admitted.swap_remove(at);
            let chain = self.members[number].chain.take().expect("it is admitted");
            self.release(fleet, number, &chain);
            removed.push((number, chain));
        }
        self.refused.extend(removed.iter().map(|(number, _)| *number));
        let free = fleet.free_total();
        let could = |number: &&usize| self.members[**number].sum.fits(free);
        let mut tried: Vec<(f64, usize)> = self
            .refused
            .iter()
            .filter(could)
            .map(|number| (self.members[*number].share * (0.5 + random.fraction()), *number))
            .collect();
        tried.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut placed = Vec::new();
        for (_, number) in tried.into_iter().take(TRIED_MAX) {
            let member = &mut self.members[number];
            if !member.sum.fits(fleet.free_total()) {
                continue;
            }
            if let Ok(chain) = place(fleet, &member.replicas, self.total) {
                member.chain = Some(chain);
                placed.push(number);
            }
        }
        self.settle(&placed);
        Round { removed, placed }
    }

    fn undo(&mut self, fleet: &mut Fleet, round: Round) {
        for number in &round.placed {
            let chain = self.members[*number].chain.take().expect("it was placed");
            self.release(fleet, *number, &chain);
        }
        self.admitted.retain(|number| !round.placed.contains(number));
        self.refused.extend(&round.placed);
        for (number, chain) in &round.removed {
            let member = &mut self.members[*number];
            for (server, demand) in chain.iter().zip(&member.replicas) {
                fleet.charge(*server, *demand);
            }
            member.chain = Some(chain.clone());
        }
        let removed: Vec<usize> = round.removed.into_iter().map(|(number, _)| number).collect();
        self.settle(&removed);
    }

    /// Moves applicants from the refused to the admitted.
    fn settle(&mut self, placed: &[usize]) {
        self.refused.retain(|number| !placed.contains(number));
        self.admitted.extend(placed);
    }

    fn release(&self, fleet: &mut Fleet, number: usize, chain: &[ServerId]) {
        for (server, demand) in chain.iter().zip(&self.members[number].replicas) {
            fleet.release(*server, *demand);
        }
    }

    /// The outcomes in the order of PO_a. A refusal names the present reason: the applicant fits nowhere.
    fn finish(mut self, fleet: &mut Fleet) -> Vec<(K, Result<Vec<ServerId>, NotPlaced>)> {
        self.members.sort_by(|a, b| b.share.total_cmp(&a.share));
        let total = self.total;
        let outcome = |member: Member<K>| {
            let outcome = match member.chain {
                Some(chain) => Ok(chain),
                None => place(fleet, &member.replicas, total),
            };
            (member.key, outcome)
        };
        self.members.into_iter().map(outcome).collect()
    }
}

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(1);
        mix(self.0)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// 0 to 1.
    fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }
}
