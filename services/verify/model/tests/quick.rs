//! The small worlds: every property holds in all of their states, and every state that must be reached is.

use std::time::Duration;

use quorate_model::explore::{explore, unreached_by_all};
use quorate_model::worlds;

#[test]
fn the_protocol_holds_in_the_small_worlds() {
    let mut outcomes = Vec::new();
    for bounds in worlds::quick() {
        println!("{bounds}");
        let outcome = explore(bounds, 2, Duration::from_secs(240));
        println!(
            "  {} states, {} transitions, depth {}, {:.1} s",
            outcome.states,
            outcome.transitions,
            outcome.depth,
            outcome.took.as_secs_f64()
        );
        if let Some(violation) = outcome.violations.first() {
            panic!("{}: {:#?}", violation.property, violation.steps);
        }
        assert!(outcome.is_exhaustive, "the time did not suffice");
        outcomes.push(outcome);
    }
    let unreached = unreached_by_all(&outcomes);
    assert!(unreached.is_empty(), "reached in no world: {unreached:?}");
    let states: usize = outcomes.iter().map(|outcome| outcome.states).sum();
    // Fewer: a bound or a rule shuts out what was explored before.
    assert!(states > 600_000, "{states} states");
}
