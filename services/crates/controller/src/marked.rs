//! What each tenant of one server could take if it alone had no cap, all others keeping theirs (Charny's consistent
//! marking), for all tenants in O(n log n).
//!
//! Filling anew for each tenant would take quadratic time on the thread that has other things to do. But what a resource
//! is used at a level is a sum over tenants of `weight × min(level, cap)`, and few resources are ever full: with the caps
//! sorted and summed up once for each set of resources that tenants use, a binary search finds the level at which a
//! resource is full, whichever tenant's cap is left out.

use crate::problem::{RESOURCES, Vector};

/// One for each set of resources.
const MASKS: usize = 1 << RESOURCES;

/// A tenant that wants something.
#[derive(Debug, Clone, Copy)]
pub struct Wanting {
    /// Of one request, on all its servers.
    pub share: f64,
    /// Of one request, here.
    pub cost: Vector,
    /// Requests/s: what its other servers leave it, and what it wants in all.
    pub cap: f64,
    pub wants: f64,
}

impl Wanting {
    fn mask(&self) -> usize {
        let uses = (0..RESOURCES).filter(|i| self.cost[*i] > 0);
        uses.map(|i| 1 << i).sum()
    }

    /// What it takes of a resource at level 1.
    fn weight(&self, i: usize) -> f64 {
        self.cost[i] as f64 / self.share
    }

    fn level_of(&self, requests: f64) -> f64 {
        // Infinite only where there is no bound.
        if requests.is_finite() {
            (requests * self.share).min(f64::MAX)
        } else {
            f64::INFINITY
        }
    }
}

/// Use of a resource by the tenants of one mask, by how many of all caps are below a level.
#[derive(Debug)]
struct Sums {
    /// What those with a cap below take.
    below: Vec<f64>,
    /// What the others take at level 1.
    above: Vec<f64>,
}

impl Sums {
    fn at(&self, level: f64, k: usize) -> f64 {
        self.below[k] + self.above[k] * level
    }
}

pub struct Marked<'a> {
    free: [f64; RESOURCES],
    tenants: &'a [Wanting],
    /// As levels, sorted; without those that are infinite.
    caps: Vec<f64>,
    sums: Vec<[Option<Sums>; RESOURCES]>,
}

/// The level at which the tenants of a mask stopped, and how many caps are below.
type Stopped = [Option<(f64, usize)>; MASKS];

impl<'a> Marked<'a> {
    pub fn new(free: &Vector, tenants: &'a [Wanting]) -> Self {
        let rises = |tenant: &&Wanting| tenant.share.is_finite() && tenant.mask() != 0;
        let mut sorted: Vec<(f64, &Wanting)> = (tenants.iter().filter(rises))
            .map(|tenant| (tenant.level_of(tenant.cap), tenant))
            .collect();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let finite = sorted.partition_point(|(cap, _)| cap.is_finite());
        let sums = (0..MASKS).map(|mask| {
            std::array::from_fn(|i| {
                let is_used = mask & (1 << i) != 0 && sorted.iter().any(|(_, tenant)| tenant.mask() == mask);
                is_used.then(|| sums_of(&sorted, finite, mask, i))
            })
        });
        Self {
            free: free.map(|free| free as f64),
            tenants,
            sums: sums.collect(),
            caps: sorted[..finite].iter().map(|(cap, _)| *cap).collect(),
        }
    }

    /// Requests/s of tenant `t` if it had no cap but what it wants.
    pub fn offer(&self, t: usize) -> f64 {
        let tenant = &self.tenants[t];
        if !tenant.share.is_finite() {
            return 0.0;
        }
        let mask = tenant.mask();
        let (mut level, mut stopped): (f64, Stopped) = (0.0, [None; MASKS]);
        let mut is_full = [false; RESOURCES];
        while mask != 0 && level < tenant.level_of(tenant.wants) {
            let next = (0..RESOURCES).filter(|i| !is_full[*i]);
            let next = next.map(|i| (self.full_at(tenant, i, level, &stopped), i));
            let Some((full_at, i)) = next.min_by(|a, b| a.0.total_cmp(&b.0)) else {
                break;
            };
            level = full_at;
            if mask & (1 << i) != 0 {
                return (level / tenant.share).min(tenant.wants);
            }
            is_full[i] = true;
            let below = self.caps.partition_point(|cap| *cap < level);
            for other in (0..MASKS).filter(|other| other & (1 << i) != 0) {
                stopped[other].get_or_insert((level, below));
            }
        }
        tenant.wants
    }

    /// The level, from `from` on, at which resource `i` is full.
    fn full_at(&self, tenant: &Wanting, i: usize, from: f64, stopped: &Stopped) -> f64 {
        let (cap, wants) = (tenant.level_of(tenant.cap), tenant.level_of(tenant.wants));
        let weight = tenant.weight(i);
        let sums = || (0..MASKS).filter_map(|mask| Some((mask, self.sums[mask][i].as_ref()?)));
        let used = |level: f64, k: usize| -> f64 {
            let masks = sums().map(|(mask, sums)| match stopped[mask] {
                Some((level, k)) => sums.at(level, k),
                None => sums.at(level, k),
            });
            masks.sum::<f64>() + weight * (level.min(wants) - level.min(cap))
        };
        let free = self.free[i];
        let first = self.caps.partition_point(|cap| *cap < from);
        // By hand, as the number of caps below is needed with the cap.
        let (mut k, mut end) = (first, self.caps.len());
        while k < end {
            let middle = k.midpoint(end);
            if used(self.caps[middle], middle) < free {
                k = middle + 1;
            } else {
                end = middle;
            }
        }
        let mut begin = if k > first { self.caps[k - 1] } else { from };
        let mut last = self.caps.get(k).copied().unwrap_or(f64::INFINITY);
        if begin < wants && wants < last {
            if used(wants, k) < free {
                begin = wants;
            } else {
                last = wants;
            }
        }
        let left = free - used(begin, k);
        if left <= 0.0 {
            return begin;
        }
        let rising = sums().filter(|(mask, _)| stopped[*mask].is_none());
        let own = weight * (f64::from(u8::from(begin < wants)) - f64::from(u8::from(begin < cap)));
        let slope = rising.map(|(_, sums)| sums.above[k]).sum::<f64>() + own;
        if slope > 0.0 {
            (begin + left / slope).min(last)
        } else {
            f64::INFINITY
        }
    }
}

fn sums_of(sorted: &[(f64, &Wanting)], finite: usize, mask: usize, i: usize) -> Sums {
    let weight = |k: usize| {
        let tenant = sorted[k].1;
        if tenant.mask() == mask {
            tenant.weight(i)
        } else {
            0.0
        }
    };
    let mut below = vec![0.0; finite + 1];
    for k in 0..finite {
        let more = weight(k);
        below[k + 1] = below[k] + if more > 0.0 { more * sorted[k].0 } else { 0.0 };
    }
    // From the end: nothing rises is exactly nothing.
    let mut above = vec![(finite..sorted.len()).map(weight).sum::<f64>(); finite + 1];
    for k in (0..finite).rev() {
        above[k] = above[k + 1] + weight(k);
    }
    Sums { below, above }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::filling::Filling;
    use crate::problem::Place;

    /// The offer found by filling anew.
    fn anew(free: Vector, tenants: &[Wanting], t: usize) -> f64 {
        let places: Vec<[Place; 1]> = tenants
            .iter()
            .map(|tenant| {
                [Place {
                    server: 0,
                    cost: tenant.cost,
                }]
            })
            .collect();
        let flows = tenants
            .iter()
            .zip(&places)
            .map(|(tenant, place)| (tenant.share, &place[..]));
        let mut caps: Vec<f64> = tenants.iter().map(|tenant| tenant.cap).collect();
        caps[t] = tenants[t].wants;
        Filling::new(&[free], flows).fill(&caps)[t]
    }

    fn tenant() -> impl Strategy<Value = Wanting> {
        let cost = || prop_oneof![1 => Just(0u64), 2 => 1u64..5_000];
        let share = prop_oneof![8 => 1e-4..1.0f64, 1 => Just(f64::INFINITY), 1 => Just(1e3)];
        let amount =
            || prop_oneof![6 => 0.0..2_000.0f64, 1 => Just(f64::INFINITY), 1 => Just(0.0), 1 => Just(1e300)];
        ([cost(), cost(), cost()], share, amount(), amount()).prop_map(|(cost, share, cap, wants)| Wanting {
            share,
            cost,
            cap: f64::min(cap, wants),
            wants,
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(3_000) })]

        #[test]
        fn offers_are_those_of_filling_anew(
            free in [0u64..2_000_000, 1u64..3_000_000, 1u64..1_000_000],
            mut tenants in proptest::collection::vec(tenant(), 1..14),
            same in any::<bool>(),
        ) {
            if same {
                let first = tenants[0];
                tenants.iter_mut().for_each(|tenant| (tenant.cap, tenant.share) = (first.cap.min(tenant.wants), first.share));
            }
            let marked = Marked::new(&free, &tenants);
            for t in 0..tenants.len() {
                let (offer, anew) = (marked.offer(t), anew(free, &tenants, t));
                prop_assert!(
                    offer == anew || (offer - anew).abs() <= 1e-6 * anew.abs() + 1e-9,
                    "{t}: {offer} and not {anew}"
                );
            }
        }
    }
}
