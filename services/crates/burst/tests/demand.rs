//! Demands as heads estimate them, against those that flows have (Pulsar §4.2): one resource, shared by max-min fairness of what
//! is asked for. Flows with a fixed number of outstanding requests, and flows that come at a fixed rate.

use quorate_burst::demand::{DemandHistory, MeasuredRates};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const RESERVED_PER_S: u64 = 1_000;
/// Time that a request takes once it passes.
const LATENCY_US: u64 = 1_000;
/// Intervals of a case, of one second each.
const INTERVALS: usize = 20;
const FLOWS: usize = 8;

#[derive(Clone, Copy)]
enum Flow {
    Closed { outstanding: u64 },
    Open { per_s: u64 },
}

impl Flow {
    fn any(random: &mut StdRng) -> Self {
        let per_s = random.random_range(500..6_000);
        match random.random() {
            true => Self::Open { per_s },
            false => Self::Closed {
                outstanding: per_s * LATENCY_US / 1_000_000 + 1,
            },
        }
    }

    /// The rate that it would have if nothing held it back.
    fn demand_per_s(self) -> u64 {
        match self {
            Self::Closed { outstanding } => outstanding * 1_000_000 / LATENCY_US,
            Self::Open { per_s } => per_s,
        }
    }

    /// One interval in which so much passes.
    fn run(self, may_per_s: u64) -> MeasuredRates {
        let accepted_per_s = self.demand_per_s().min(may_per_s);
        let was_held_back = self.demand_per_s() > may_per_s;
        let (queued, offered_per_s) = match self {
            Self::Closed { outstanding } => {
                let under_way = accepted_per_s * LATENCY_US / 1_000_000;
                (outstanding - under_way.min(outstanding), accepted_per_s)
            }
            // A head's queue holds a quarter of a second.
            Self::Open { per_s } => ((per_s - accepted_per_s).min(accepted_per_s / 4), per_s),
        };
        let queued = if was_held_back { queued } else { 0 };
        MeasuredRates {
            accepted_per_s,
            offered_per_s,
            beyond_per_s: offered_per_s.saturating_sub(RESERVED_PER_S) + u64::from(was_held_back),
            waiting_per_s: queued * 1_000_000 / LATENCY_US,
            was_held_back,
            extra_max_per_s: None,
        }
    }
}

/// The shares of `free_per_s`, by max-min fairness.
fn shared(wanted: &[u64], mut free_per_s: u64) -> Vec<u64> {
    let mut shares = vec![0; wanted.len()];
    let mut left: Vec<usize> = (0..wanted.len()).collect();
    left.sort_by_key(|at| wanted[*at]);
    for (number, at) in left.iter().enumerate() {
        shares[*at] = wanted[*at].min(free_per_s / (left.len() - number) as u64);
        free_per_s -= shares[*at];
    }
    shares
}

/// Parts of what could be used that flows did use: the mean and the least from the eighth interval on, and the interval from
/// which on it is 95 %.
struct Outcome {
    mean: f64,
    least: f64,
    settled: usize,
}

/// `unsteady`: open flows come at 0.6 to 1.4 of their rates, another in each interval.
fn run(seed: u64, unsteady: bool, estimate: impl Fn(&[MeasuredRates]) -> u64) -> Outcome {
    let mut random = StdRng::seed_from_u64(seed);
    let flows: Vec<Flow> = (0..FLOWS).map(|_| Flow::any(&mut random)).collect();
    let extra = |flow: &Flow| flow.demand_per_s().saturating_sub(RESERVED_PER_S);
    let steady = flows.iter().map(extra).sum::<u64>();
    let free_per_s = steady * random.random_range(3..12) / 10;
    let mut grants = vec![0; FLOWS];
    let mut histories: Vec<Vec<MeasuredRates>> = vec![Vec::new(); FLOWS];
    let mut parts = Vec::new();
    for _ in 0..INTERVALS {
        let now = flows.iter().map(|flow| match flow {
            Flow::Open { per_s } if unsteady => Flow::Open {
                per_s: per_s * random.random_range(60..140) / 100,
            },
            flow => *flow,
        });
        let now: Vec<Flow> = now.collect();
        let demands: Vec<u64> = now.iter().map(extra).collect();
        let usable: u64 = shared(&demands, free_per_s).iter().sum();
        let used = grants
            .iter()
            .zip(&demands)
            .map(|(grant, demand)| grant.min(demand));
        parts.push(used.sum::<u64>() as f64 / usable.max(1) as f64);
        for ((flow, grant), history) in now.iter().zip(&grants).zip(&mut histories) {
            history.push(flow.run(RESERVED_PER_S + grant));
        }
        let wanted: Vec<u64> = histories.iter().map(|history| estimate(history)).collect();
        grants = shared(&wanted, free_per_s);
    }
    let late = &parts[8..];
    Outcome {
        mean: late.iter().sum::<f64>() / late.len() as f64,
        least: late.iter().copied().fold(1.0, f64::min),
        settled: parts.iter().rposition(|part| *part < 0.95).map_or(0, |at| at + 1),
    }
}

fn ours(history: &[MeasuredRates]) -> u64 {
    let mut demand = DemandHistory::default();
    history.iter().for_each(|one| demand.observe(*one));
    demand.extra_per_s(RESERVED_PER_S)
}

/// Equation 6 as it stands, without an average.
fn equation_6(history: &[MeasuredRates]) -> u64 {
    let last = history.last().expect("there was an interval");
    (last.accepted_per_s + last.waiting_per_s).saturating_sub(RESERVED_PER_S)
}

/// Room to double: the estimate of releases before this one.
fn doubled(history: &[MeasuredRates]) -> u64 {
    let wanted = |one: &MeasuredRates| match one.was_held_back {
        _ if one.beyond_per_s == 0 => 0,
        true => one.offered_per_s.max(2 * one.accepted_per_s) - RESERVED_PER_S,
        false => 2 * one.beyond_per_s,
    };
    history.iter().rev().take(2).map(wanted).max().unwrap_or(0)
}

type Estimate = fn(&[MeasuredRates]) -> u64;

fn all(unsteady: bool, name: &str, estimate: Estimate) -> Outcome {
    let outcomes: Vec<Outcome> = (0..300).map(|seed| run(seed, unsteady, estimate)).collect();
    let all = Outcome {
        mean: outcomes.iter().map(|one| one.mean).sum::<f64>() / outcomes.len() as f64,
        least: outcomes.iter().map(|one| one.least).fold(1.0, f64::min),
        settled: outcomes.iter().map(|one| one.settled).max().unwrap_or(0),
    };
    let (mean, least, settled) = (all.mean, all.least, all.settled);
    println!("unsteady {unsteady}, {name}: mean {mean:.3}, least {least:.3}, settled after {settled}");
    all
}

#[test]
fn flows_ask_for_little_more_than_they_use() {
    let [steady, unsteady] = [false, true].map(|unsteady| {
        let _for_comparison = all(unsteady, "equation 6", equation_6);
        (all(unsteady, "ours", ours), all(unsteady, "doubled", doubled))
    });
    let (ours, before) = steady;
    assert!(
        ours.mean > 0.98 && ours.least > 0.93 && ours.settled <= 6,
        "{:.3}",
        ours.mean
    );
    assert!(before.mean < ours.mean - 0.05, "{:.3}", before.mean);
    let (ours, before) = unsteady;
    assert!(ours.mean > before.mean + 0.02, "{:.3}", ours.mean);
}

#[test]
fn the_demand_of_a_closed_loop_is_found_at_once_within_twice_its_use() {
    let flow = Flow::Closed { outstanding: 3 };
    let held = flow.run(2_000);
    assert_eq!(
        ours(&[held]),
        2_000,
        "3 000 requests/s, of which 1 000 are reserved"
    );
    let many = Flow::Closed { outstanding: 40 };
    let first = many.run(RESERVED_PER_S);
    assert_eq!((ours(&[first]), equation_6(&[first])), (1_000, 39_000));
}
