//! `quorate-planner share`: resources shared among flows by a policy (Pulsar §4.1).

use std::time::Duration;

use quorate_policies::{Allocation, Flow, Policy, Problem, Project};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::read;
use crate::time::Stopwatch;
use crate::unusable::Unusable;

/// `D`, `W` and `C` of Pulsar's Equation 1.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ShareRequest {
    /// Tokens/s of each resource.
    pub capacity: Vec<u64>,
    pub projects: Vec<ProjectForm>,
    pub flows: Vec<FlowForm>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProjectForm {
    #[serde(default = "one")]
    pub weight: f64,
    /// Revenue for a million tokens.
    #[serde(default)]
    pub price: u64,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FlowForm {
    /// Position in `projects`.
    pub project: usize,
    #[serde(default = "one")]
    pub weight: f64,
    /// Positions in `capacity`, and the tokens/s wanted of each.
    pub demand: Vec<(usize, u64)>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct ShareAnswer {
    pub policy: &'static str,
    /// The part of its demand that each flow gets, from 0 to 1.
    pub parts: Vec<f64>,
    /// Tokens/s of each resource that are given away.
    pub used: Vec<u64>,
    /// Processor time of one computation: the median.
    pub elapsed_us: f64,
}

fn one() -> f64 {
    1.0
}

impl ShareRequest {
    pub fn read(json: &str) -> Result<Problem, Unusable> {
        let request: Self = read::parse(json)?;
        let project = |form: ProjectForm| Project {
            weight: form.weight,
            price: form.price,
        };
        let flow = |form: FlowForm| Flow {
            project: form.project,
            weight: form.weight,
            demand: form.demand,
        };
        let projects = request.projects.into_iter().map(project).collect();
        let flows = request.flows.into_iter().map(flow).collect();
        Problem::new(request.capacity, projects, flows).map_err(|e| Unusable::new("flows", e.to_string()))
    }
}

pub fn share(problem: &Problem, policy: Policy, repeat: u32) -> ShareAnswer {
    let once = |_| {
        let watch = Stopwatch::start();
        let allocation = policy.share(problem);
        (watch.elapsed(), allocation)
    };
    let mut runs: Vec<(Duration, Allocation)> = (0..repeat).map(once).collect();
    runs.sort_by_key(|(elapsed, _)| *elapsed);
    let (elapsed, allocation) = runs.swap_remove(runs.len() / 2);
    ShareAnswer {
        policy: policy.name(),
        used: allocation.used(problem),
        parts: allocation.parts,
        elapsed_us: elapsed.as_secs_f64() * 1e6,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_drf_paper() {
        // Ghodsi et al., §4.1: 9 CPUs and 18 GB; tasks of 1 CPU and 4 GB, and of 3 CPUs and 1 GB.
        let json = r#"{"capacity": [9000, 18000], "projects": [{}, {}],
                       "flows": [{"project": 0, "demand": [[0, 9000], [1, 36000]]},
                                 {"project": 1, "demand": [[0, 9000], [1, 3000]]}]}"#;
        let problem = ShareRequest::read(json).unwrap();
        let answer = share(&problem, Policy::Drf, 3);
        // 3 tasks and 2 tasks.
        assert!((answer.parts[0] - 1.0 / 3.0).abs() < 1e-9, "{answer:?}");
        assert!((answer.parts[1] - 2.0 / 3.0).abs() < 1e-9, "{answer:?}");
    }

    #[test]
    fn faults_are_named() {
        let refused = |json| ShareRequest::read(json).unwrap_err().to_string();
        let weight = refused(r#"{"capacity": [1], "projects": [{"weight": 0}], "flows": []}"#);
        assert!(weight.contains("weight of project 0 is 0"), "{weight}");
        let foreign =
            refused(r#"{"capacity": [1], "projects": [], "flows": [{"project": 0, "demand": []}]}"#);
        assert!(
            foreign.contains("names project 0, which is not there"),
            "{foreign}"
        );
    }
}
