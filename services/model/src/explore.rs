//! Exploring a world, and what came of it.

use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model};

use crate::bounds::Bounds;
use crate::world::World;

pub struct Outcome {
    pub name: &'static str,
    /// Distinct ones, by a 64-bit hash.
    pub states: usize,
    pub transitions: usize,
    /// Steps of the longest of all shortest paths.
    pub depth: usize,
    pub took: Duration,
    /// Whether everything within the bounds was seen.
    pub is_exhaustive: bool,
    pub violations: Vec<Violation>,
    /// States that must be reached in some world and were in this one, and those that were not.
    pub reached: Vec<&'static str>,
    pub unreached: Vec<&'static str>,
}

pub struct Violation {
    pub property: &'static str,
    /// The steps that lead to it, as few as can be with one thread.
    pub steps: Vec<String>,
}

/// What none of these worlds reached and some world must: else the properties hold of a world where nothing happens.
pub fn unreached_by_all(outcomes: &[Outcome]) -> Vec<&'static str> {
    let Some(first) = outcomes.first() else {
        return Vec::new();
    };
    let by_all = |name: &&&str| outcomes.iter().all(|outcome| outcome.unreached.contains(*name));
    first.unreached.iter().filter(by_all).copied().collect()
}

/// Explores everything within the bounds; with a bug planted, up to the first violation.
pub fn explore(bounds: Bounds, threads: usize, timeout: Duration) -> Outcome {
    let name = bounds.name;
    let begun = Instant::now();
    let mut builder = World(bounds).checker().threads(threads).timeout(timeout);
    builder = builder.finish_when(HasDiscoveries::AnyFailures);
    let checker = builder.spawn_bfs().join();
    let took = begun.elapsed();
    let mut violations = Vec::new();
    let (mut reached, mut unreached) = (Vec::new(), Vec::new());
    for property in checker.model().properties() {
        let found = checker.discovery(property.name);
        match (property.expectation, found) {
            (Expectation::Sometimes, None) => unreached.push(property.name),
            (Expectation::Sometimes, Some(_)) => reached.push(property.name),
            (Expectation::Always | Expectation::Eventually, Some(path)) => violations.push(Violation {
                property: property.name,
                steps: path
                    .into_actions()
                    .iter()
                    .map(|action| format!("{action:?}"))
                    .collect(),
            }),
            _ => {}
        }
    }
    Outcome {
        name,
        states: checker.unique_state_count(),
        transitions: checker.state_count(),
        depth: checker.max_depth(),
        took,
        is_exhaustive: took < timeout && violations.is_empty(),
        violations,
        reached,
        unreached,
    }
}
