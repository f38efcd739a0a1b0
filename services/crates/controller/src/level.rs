//! Level-DRF, the default: servers tell one another at which level they are full.
//!
//! C-DRF is a max-min fairness whose weights a tenant's servers can know, since its dominant share counts its own
//! servers only. Let `x` be the outcome of C-DRF, and `F` what servers could offer: each tenant in turn as if only
//! the *others* were limited by what their other servers tell (Charny's consistent marking), so that no offer is
//! held down by itself. `F` falls when what it is told rises. So
//!
//! - told nothing, servers offer at most `x`: lower bounds, `F(∞)`;
//! - told lower bounds, they offer at least `x`: upper bounds;
//! - told upper bounds, they offer lower bounds again, nearer to `x`; and so on.
//!
//! Iterating and using whatever came last would overshoot after every second round, and may swing for ever. Here lower
//! and upper bounds are kept apart, a bound that is missing is replaced by 0 or ∞, and what is used is neither: in the last
//! round each server fills itself up to the upper bounds, and *promises* the result, which fits it whatever it was
//! told. A tenant gets the least promise.
//!
//! Round 0: shares of one request and what tenants want. Then rounds of bounds, lower and upper in turn. Then promises.

use std::collections::BTreeMap;
use std::ops::Range;

use crate::exact::per_s;
use crate::filling::Filling;
use crate::marked::{Marked, Wanting};
use crate::problem::{Place, Vector, share};
use crate::rounds::{
    Body, Local, Message, Outbox, Promises, Server, costs_nothing, give_word, is_lower, note_now,
    own_problem, positions,
};

/// Rounds of bounds in an interval, even: the promise is made knowing upper bounds. With the shares before and the
/// promises after, six rounds of messages.
pub const BOUND_ROUNDS: u32 = 4;

pub struct LevelDrf {
    local: Local,
    bounds: Range<u32>,
    positions: BTreeMap<usize, usize>,
    /// By position in `hosted`: the largest share that any of its servers told.
    shares: Vec<f64>,
    wants: Vec<Option<u64>>,
    /// Of the tenant's other servers, by server: what they have for it at least and at most.
    told: Vec<BTreeMap<usize, (f64, f64)>>,
    promises: Promises,
    given: Vec<(usize, u64)>,
}

impl LevelDrf {
    /// `bound_rounds`: even; 0 is the least of what each server would give on its own.
    pub fn new(local: Local, bound_rounds: u32) -> Self {
        assert!(
            bound_rounds.is_multiple_of(2),
            "a promise is made after upper bounds"
        );
        Self {
            bounds: 1..1 + bound_rounds,
            positions: positions(&local),
            shares: local
                .hosted
                .iter()
                .map(|hosted| share(&hosted.cost, &local.free))
                .collect(),
            wants: local.hosted.iter().map(|hosted| hosted.extra_per_s).collect(),
            told: vec![BTreeMap::new(); local.hosted.len()],
            promises: Promises::default(),
            given: Vec::new(),
            local,
        }
    }

    fn tell_shares(&self) -> Vec<Message> {
        let mut outbox = Outbox::default();
        for (h, hosted) in self.local.hosted.iter().enumerate() {
            if hosted.extra_per_s == Some(0) {
                continue; // followers that hear nothing from the head leave the tenant out
            }
            for peer in hosted.peers(self.local.server) {
                outbox.tell(peer, (hosted.tenant, self.shares[h], hosted.extra_per_s));
            }
        }
        outbox.send(&self.local, Body::Shares)
    }

    /// Positions and wants of the tenants that are known to want something.
    fn wanting(&self) -> Vec<(usize, u64)> {
        let wants = |h: usize| self.wants[h].filter(|extra| *extra > 0).map(|extra| (h, extra));
        (0..self.local.hosted.len()).filter_map(wants).collect()
    }

    fn tell_bounds(&self, lower: bool) -> Vec<Message> {
        let wanting = self.wanting();
        let (filling, wants) = self.filling(&wanting);
        // Lower bounds come of what others have at most, upper ones of what they have at least.
        let caps: Vec<f64> = wanting
            .iter()
            .zip(&wants)
            .map(|((h, _), wants)| self.others_limit(*h, lower).min(*wants))
            .collect();
        let filled = filling.fill(&caps);
        let tenants = self.marked(&wanting, &caps, &wants);
        let marked = Marked::new(&self.local.free, &tenants);
        let mut outbox = Outbox::default();
        for (f, (h, _)) in wanting.iter().enumerate() {
            let is_held_down = filled[f] >= caps[f] && caps[f] < wants[f];
            let offer = if is_held_down { marked.offer(f) } else { filled[f] };
            let hosted = &self.local.hosted[*h];
            for peer in hosted.peers(self.local.server) {
                outbox.tell(peer, (hosted.tenant, offer));
            }
        }
        outbox.send(&self.local, if lower { Body::AtLeast } else { Body::AtMost })
    }

    fn promise(&mut self) -> Vec<Message> {
        let wanting = self.wanting();
        let (filling, wants) = self.filling(&wanting);
        let caps: Vec<f64> = wanting
            .iter()
            .zip(&wants)
            .map(|((h, _), wants)| self.others_limit(*h, true).min(*wants))
            .collect();
        let filled = filling.fill(&caps);
        let whole = self.whole(&wanting, &filled);
        let desired: Vec<(usize, u64)> = wanting.iter().map(|(h, _)| *h).zip(whole).collect();
        let kept = give_word(&self.local, &desired, &mut self.given, &mut self.promises);
        kept.send(&self.local, Body::Promise)
    }

    /// The least that the tenant's other servers have for it, at most or at least.
    fn others_limit(&self, h: usize, at_most: bool) -> f64 {
        let unknown = if at_most { f64::INFINITY } else { 0.0 };
        let hosted = &self.local.hosted[h];
        let limit = |peer: usize| match self.told[h].get(&peer) {
            Some((least, most)) => {
                if at_most {
                    *most
                } else {
                    *least
                }
            }
            None => unknown,
        };
        hosted
            .peers(self.local.server)
            .map(limit)
            .fold(f64::INFINITY, f64::min)
    }

    /// This server's resources and the wanting tenants; what they want, in requests/s.
    fn filling(&self, wanting: &[(usize, u64)]) -> (Filling, Vec<f64>) {
        let places: Vec<Place> = wanting
            .iter()
            .map(|(h, _)| Place {
                server: 0,
                cost: self.local.hosted[*h].cost,
            })
            .collect();
        let flows = wanting
            .iter()
            .zip(places.chunks(1))
            .map(|((h, _), places)| (self.shares[*h], places));
        (
            Filling::new(&[self.local.free], flows),
            wanting.iter().map(|(_, extra)| per_s(*extra)).collect(),
        )
    }

    fn marked(&self, wanting: &[(usize, u64)], caps: &[f64], wants: &[f64]) -> Vec<Wanting> {
        let tenant = |(f, (h, _)): (usize, &(usize, u64))| Wanting {
            share: self.shares[*h],
            cost: self.local.hosted[*h].cost,
            cap: caps[f],
            wants: wants[f],
        };
        wanting.iter().enumerate().map(tenant).collect()
    }

    /// Whole requests that fit this server together.
    fn whole(&self, wanting: &[(usize, u64)], filled: &[f64]) -> Vec<u64> {
        let charged = |f: &usize| !costs_nothing(&self.local.hosted[wanting[*f].0]);
        let (charged, free): (Vec<usize>, Vec<usize>) = (0..wanting.len()).partition(charged);
        let among: Vec<(usize, u64)> = charged.iter().map(|f| wanting[*f]).collect();
        let amounts: Vec<f64> = charged.iter().map(|f| filled[*f]).collect();
        let mut whole = vec![0; wanting.len()];
        for (f, amount) in charged
            .iter()
            .zip(own_problem(&self.local, &among).whole(&amounts))
        {
            whole[*f] = amount;
        }
        for f in free {
            whole[f] = wanting[f].1;
        }
        whole
    }

    fn hear(&mut self, message: &Message) {
        match &message.body {
            Body::Shares(shares) => {
                for (tenant, share, extra) in shares {
                    let h = self.positions[tenant];
                    self.shares[h] = self.shares[h].max(*share);
                    self.wants[h] = self.wants[h].or(*extra);
                }
            }
            Body::AtLeast(bounds) | Body::AtMost(bounds) => {
                let lower = matches!(message.body, Body::AtLeast(_));
                for (tenant, bound) in bounds {
                    let told = self.told[self.positions[tenant]]
                        .entry(message.from)
                        .or_insert((0.0, f64::INFINITY));
                    if lower {
                        told.0 = told.0.max(*bound);
                    } else {
                        told.1 = told.1.min(*bound);
                    }
                }
            }
            Body::Promise(promise) => {
                for (tenant, amount) in promise {
                    self.promises.add(*tenant, message.from, *amount);
                }
            }
            _ => {}
        }
    }
}

impl Server for LevelDrf {
    fn rounds(&self) -> u32 {
        self.bounds.end + 2
    }

    fn step(&mut self, round: u32, inbox: &[Message]) -> Vec<Message> {
        let interval = self.local.interval;
        for message in inbox.iter().filter(|message| message.interval == interval) {
            self.hear(message);
        }
        if round == 0 {
            self.tell_shares()
        } else if self.bounds.contains(&round) {
            self.tell_bounds(is_lower(round, &self.bounds))
        } else if round == self.bounds.end {
            self.promise()
        } else {
            Vec::new()
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
