//! The exploration of a world, and its outcome.

use std::time::{Duration, Instant};

use stateright::{Checker, Expectation, HasDiscoveries, Model};

use crate::actions::GroupModel;
use crate::bounds::Bounds;

pub struct Exploration {
    pub name: &'static str,
    /// Distinct states, by a 64-bit hash.
    pub states: usize,
    pub transitions: usize,
    /// Steps of the longest of all shortest paths.
    pub depth: usize,
    pub took: Duration,
    /// Whether every state within the bounds was visited.
    pub is_exhaustive: bool,
    pub violations: Vec<Violation>,
    /// States that some world must reach: reached in this one, and not.
    pub reached: Vec<&'static str>,
    pub unreached: Vec<&'static str>,
}

pub struct Violation {
    pub property: &'static str,
    /// Steps that lead to it; the fewest, with one thread.
    pub steps: Vec<String>,
}

/// States that some world must reach and none did. Without them, the properties hold of a world in which nothing happens.
pub fn unreached_by_all(outcomes: &[Exploration]) -> Vec<&'static str> {
    let Some(first) = outcomes.first() else {
        return Vec::new();
    };
    let by_all = |name: &&&str| outcomes.iter().all(|outcome| outcome.unreached.contains(*name));
    first.unreached.iter().filter(by_all).copied().collect()
}

/// Explores everything within the bounds, or up to the first violation.
pub fn explore(bounds: Bounds, threads: usize, timeout: Duration) -> Exploration {
    let name = bounds.name;
    let begun = Instant::now();
    let mut builder = GroupModel(bounds).checker().threads(threads).timeout(timeout);
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
    Exploration {
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
