//! The estimator against a resource whose real capacity is known.

use proptest::prelude::*;
use quorate_capacity::estimator::Phase;
use quorate_capacity::{Bounds, Estimator, Reading, Saturation};

const BOUNDS: Bounds = Bounds {
    start_per_s: 800_000,
    most_per_s: 1_000_000,
};

/// A resource that serves no more than its capacity, and tenants that want `demand_per_s` of it.
#[derive(Clone, Copy)]
struct Resource {
    capacity_per_s: u64,
    demand_per_s: u64,
    /// Reserved: let through whatever the estimate is.
    reserved_per_s: u64,
    /// Whether its busy time is known, as a processor's is.
    tells_busy: bool,
}

impl Resource {
    fn serve(&self, estimator: &Estimator) -> Reading {
        let let_through = estimator.estimate().per_s.max(self.reserved_per_s);
        let asked = let_through.min(self.demand_per_s);
        let used_per_s = asked.min(self.capacity_per_s);
        let busy = used_per_s as f64 / self.capacity_per_s.max(1) as f64;
        let saturation = match busy {
            ..0.85 => Saturation::Slack,
            0.85..0.95 => Saturation::Between,
            _ => Saturation::Saturated,
        };
        Reading {
            used_per_s,
            saturation,
            implied_per_s: (self.tells_busy && busy > 0.05).then(|| (used_per_s as f64 / busy) as u64),
            outstanding: used_per_s / 100 + (asked - used_per_s),
            misses_guarantees: false,
            request: 10.0,
        }
    }

    /// Intervals until the estimate is within 5 % of the capacity, and stays there.
    fn settles(&self, estimator: &mut Estimator) -> usize {
        let capacity = self.capacity_per_s.min(BOUNDS.most_per_s) as f64;
        let is_near =
            |estimator: &Estimator| (estimator.estimate().per_s as f64 / capacity - 1.0).abs() <= 0.05;
        let mut last_far = 0;
        for interval in 1..=60 {
            let reading = self.serve(estimator);
            estimator.observe(&reading);
            if !is_near(estimator) {
                last_far = interval;
            }
        }
        last_far + 1
    }
}

fn greedy(capacity_per_s: u64) -> Resource {
    Resource {
        capacity_per_s,
        demand_per_s: 10_000_000,
        reserved_per_s: 0,
        tells_busy: false,
    }
}

#[test]
fn a_capacity_that_falls_and_rises_is_found_within_eight_intervals() {
    for tells_busy in [false, true] {
        let mut estimator = Estimator::new(BOUNDS);
        for capacity_per_s in [900_000, 400_000, 150_000, 700_000, 300_000, 950_000] {
            let resource = Resource {
                tells_busy,
                ..greedy(capacity_per_s)
            };
            let intervals = resource.settles(&mut estimator);
            assert!(
                intervals <= 8,
                "{capacity_per_s}: {intervals} intervals, {tells_busy}"
            );
            let estimate = estimator.estimate();
            assert_eq!((estimate.phase, estimate.is_measured), (Phase::Stable, true));
        }
    }
}

#[test]
fn a_capacity_beyond_the_stated_one_is_not_sought() {
    let mut estimator = Estimator::new(BOUNDS);
    greedy(5_000_000).settles(&mut estimator);
    let estimate = estimator.estimate();
    assert!(
        estimate.per_s > 985_000 && estimate.per_s <= 1_000_000,
        "{estimate:?}"
    );
}

#[test]
fn nothing_is_tried_that_nobody_wants() {
    let mut estimator = Estimator::new(BOUNDS);
    let calm = Resource {
        demand_per_s: 300_000,
        ..greedy(10_000_000)
    };
    for _ in 0..50 {
        estimator.observe(&calm.serve(&estimator));
        assert_eq!(estimator.estimate().per_s, BOUNDS.start_per_s);
    }
    assert!(!estimator.estimate().is_measured);
}

#[test]
fn two_bad_readings_change_nothing() {
    let mut estimator = Estimator::new(BOUNDS);
    let calm = Resource {
        demand_per_s: 700_000,
        ..greedy(10_000_000)
    };
    for _ in 0..10 {
        for _ in 0..2 {
            estimator.observe(&greedy(100_000).serve(&estimator));
        }
        estimator.observe(&calm.serve(&estimator));
        assert_eq!(estimator.estimate().per_s, BOUNDS.start_per_s);
    }
}

#[test]
fn a_resource_that_somebody_else_holds_up_is_not_blamed() {
    let mut estimator = Estimator::new(BOUNDS);
    for _ in 0..20 {
        let mut reading = greedy(100_000).serve(&estimator);
        reading.saturation = Saturation::Slack;
        estimator.observe(&reading);
    }
    assert_eq!(estimator.estimate().per_s, BOUNDS.start_per_s);
}

#[test]
fn missed_guarantees_end_the_search_until_they_are_met() {
    let bounds = Bounds {
        start_per_s: 500_000,
        ..BOUNDS
    };
    let mut estimator = Estimator::new(bounds);
    let roomy = greedy(10_000_000);
    estimator.observe(&roomy.serve(&estimator));
    assert_eq!(estimator.estimate().per_s, 750_000, "the middle of the window");
    for _ in 0..4 {
        let mut missed = roomy.serve(&estimator);
        missed.misses_guarantees = true;
        missed.saturation = Saturation::Between;
        estimator.observe(&missed);
    }
    let waiting = estimator.estimate();
    assert!(
        waiting.per_s <= 875_000 && waiting.phase == Phase::Waiting,
        "{waiting:?}"
    );
    let held = waiting.per_s;
    for _ in 0..10 {
        let mut missed = roomy.serve(&estimator);
        missed.misses_guarantees = true;
        missed.saturation = Saturation::Between;
        estimator.observe(&missed);
        assert!(estimator.estimate().per_s <= held);
        assert_eq!(estimator.estimate().phase, Phase::Waiting);
    }
    estimator.observe(&roomy.serve(&estimator));
    assert_ne!(estimator.estimate().phase, Phase::Waiting, "they are met again");
}

#[test]
fn an_estimate_that_is_too_high_falls_while_a_processor_is_nearly_saturated() {
    let mut estimator = Estimator::new(BOUNDS);
    greedy(400_000).settles(&mut estimator);
    let nearly = Resource {
        demand_per_s: 300_000,
        tells_busy: true,
        ..greedy(330_000)
    };
    for _ in 0..20 {
        estimator.observe(&nearly.serve(&estimator));
    }
    let estimate = estimator.estimate().per_s;
    assert!((325_000..335_000).contains(&estimate), "{estimate}");
}

#[test]
fn other_requests_start_the_search_again() {
    let mut estimator = Estimator::new(BOUNDS);
    greedy(400_000).settles(&mut estimator);
    assert_eq!(estimator.estimate().phase, Phase::Stable);
    for interval in 1..=3 {
        let mut reading = greedy(400_000).serve(&estimator);
        reading.request = 12.0;
        reading.saturation = Saturation::Between;
        estimator.observe(&reading);
        let is_stable = estimator.estimate().phase == Phase::Stable;
        assert_eq!(is_stable, interval < 3, "interval {interval}");
    }
}

#[test]
fn a_longer_queue_lowers_a_stable_estimate() {
    let mut estimator = Estimator::new(BOUNDS);
    greedy(400_000).settles(&mut estimator);
    let before = estimator.estimate().per_s;
    let mut reading = greedy(400_000).serve(&estimator);
    reading.saturation = Saturation::Between;
    reading.outstanding += 50_000;
    estimator.observe(&reading);
    let after = estimator.estimate().per_s;
    assert!(
        (before - 5_500..before - 4_500).contains(&after),
        "{before} {after}: a tenth of it"
    );
}

#[test]
fn a_throughput_that_varies_is_followed_by_its_mean() {
    let mut estimator = Estimator::new(BOUNDS);
    let varied = [0, 60, -90, 30, 80, -40, -70, 90, -30, -20, 50, -60]; // thousandths
    let mut worst: f64 = 0.0;
    for (interval, permille) in varied.iter().cycle().take(120).enumerate() {
        let capacity_per_s = (400_000 + 400 * permille) as u64;
        let reserved = Resource {
            reserved_per_s: 10_000_000,
            ..greedy(capacity_per_s)
        };
        estimator.observe(&reserved.serve(&estimator));
        if interval >= 8 {
            worst = worst.max((estimator.estimate().per_s as f64 / 400_000.0 - 1.0).abs());
        }
    }
    assert!(worst <= 0.05, "{worst}");
}

#[test]
fn what_nothing_confirms_is_forgotten() {
    let mut estimator = Estimator::new(BOUNDS);
    greedy(200_000).settles(&mut estimator);
    assert!(estimator.estimate().is_measured);
    let idle = Resource {
        demand_per_s: 1_000,
        ..greedy(10_000_000)
    };
    let mut intervals = 0;
    while estimator.estimate().is_measured {
        estimator.observe(&idle.serve(&estimator));
        intervals += 1;
        assert!(intervals <= 300, "it is forgotten");
    }
    assert_eq!(estimator.estimate().per_s, BOUNDS.start_per_s);
}

#[test]
fn other_bounds_keep_what_was_measured() {
    let mut estimator = Estimator::new(BOUNDS);
    greedy(400_000).settles(&mut estimator);
    let measured = estimator.estimate().per_s;
    estimator.set_bounds(Bounds {
        start_per_s: 500_000,
        most_per_s: 500_000,
    });
    assert_eq!(estimator.estimate().per_s, measured);
    estimator.set_bounds(Bounds {
        start_per_s: 100_000,
        most_per_s: 100_000,
    });
    assert_eq!(estimator.estimate().per_s, 100_000);
}

proptest! {
    /// Assertions of the estimator hold whatever it is told.
    #[test]
    fn an_estimate_stays_within_its_bounds(
        start in 1u64..1_000_000_000_000,
        beyond in 0u64..1_000_000_000_000,
        readings in prop::collection::vec(
            (0u64..4_000_000_000_000, 0u8..3, prop::option::of(1u64..u64::MAX), any::<u64>(), any::<bool>(), 0f64..1e9),
            1..200,
        ),
    ) {
        let bounds = Bounds { start_per_s: start, most_per_s: start + beyond };
        let mut estimator = Estimator::new(bounds);
        for (used_per_s, saturation, implied_per_s, outstanding, misses_guarantees, request) in readings {
            let saturation = [Saturation::Slack, Saturation::Between, Saturation::Saturated][usize::from(saturation)];
            let reading = Reading { used_per_s, saturation, implied_per_s, outstanding, misses_guarantees, request };
            let estimate = estimator.observe(&reading);
            prop_assert!(estimate.per_s <= bounds.most_per_s);
        }
    }

    /// Any capacity within the bounds is found, wherever the search stands.
    #[test]
    fn any_capacity_is_found(
        capacities in prop::collection::vec(20_000u64..1_000_000, 1..8),
        reserved in 0u64..15_000,
    ) {
        let mut estimator = Estimator::new(BOUNDS);
        for capacity_per_s in capacities {
            let resource = Resource { reserved_per_s: reserved, tells_busy: true, ..greedy(capacity_per_s) };
            let intervals = resource.settles(&mut estimator);
            prop_assert!(intervals <= 8, "{capacity_per_s}: {intervals}");
        }
    }
}
