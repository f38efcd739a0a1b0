//! The input of every policy, and its output.

use thiserror::Error;

/// One flow's row of `D`, and its weight among the flows of its project.
#[derive(Debug, Clone, PartialEq)]
pub struct Flow {
    /// Position in [`Problem::projects`].
    pub project: usize,
    /// Above 0.
    pub weight: f64,
    /// Resources and the tokens/s wanted of each, none of them twice.
    pub demand: Vec<(usize, u64)>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Project {
    /// Above 0.
    pub weight: f64,
    /// Revenue for a million tokens of any resource.
    pub price: u64,
}

/// `D`, `W` and `C`.
#[derive(Debug, Clone, PartialEq)]
pub struct Problem {
    capacity: Vec<u64>,
    projects: Vec<Project>,
    flows: Vec<Flow>,
}

/// The first fault that [`Problem::new`] found.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum InvalidProblem {
    #[error("the weight of project {project} is {weight}: it must be a number above 0")]
    ProjectWeight { project: usize, weight: f64 },
    #[error("the weight of flow {flow} is {weight}: it must be a number above 0")]
    FlowWeight { flow: usize, weight: f64 },
    #[error("flow {flow} names project {project}, which is not there")]
    UnknownProject { flow: usize, project: usize },
    #[error("flow {flow} demands resource {resource}, which is not there")]
    UnknownResource { flow: usize, resource: usize },
    #[error("flow {flow} demands resource {resource} twice")]
    Twice { flow: usize, resource: usize },
}

impl Problem {
    /// `capacity`: tokens/s of each resource.
    pub fn new(capacity: Vec<u64>, projects: Vec<Project>, flows: Vec<Flow>) -> Result<Self, InvalidProblem> {
        for (project, Project { weight, .. }) in projects.iter().enumerate() {
            if !is_weight(*weight) {
                let weight = *weight;
                return Err(InvalidProblem::ProjectWeight { project, weight });
            }
        }
        for (f, flow) in flows.iter().enumerate() {
            flow.check(f, projects.len(), capacity.len())?;
        }
        Ok(Self {
            capacity,
            projects,
            flows,
        })
    }

    pub fn capacity(&self) -> &[u64] {
        &self.capacity
    }

    pub fn projects(&self) -> &[Project] {
        &self.projects
    }

    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// The largest part of any resource that the flow's whole demand takes. Infinite where a resource has nothing.
    pub fn dominant_share(&self, f: usize) -> f64 {
        let demand = self.flows[f].demand.iter();
        demand
            .filter(|(_, tokens)| *tokens > 0)
            .map(|(resource, tokens)| *tokens as f64 / self.capacity[*resource] as f64)
            .fold(0.0, f64::max)
    }
}

impl Flow {
    fn check(&self, flow: usize, projects: usize, resources: usize) -> Result<(), InvalidProblem> {
        let (project, weight) = (self.project, self.weight);
        if project >= projects {
            return Err(InvalidProblem::UnknownProject { flow, project });
        }
        if !is_weight(weight) {
            return Err(InvalidProblem::FlowWeight { flow, weight });
        }
        for (at, (resource, _)) in self.demand.iter().enumerate() {
            let resource = *resource;
            if resource >= resources {
                return Err(InvalidProblem::UnknownResource { flow, resource });
            }
            if self.demand[..at].iter().any(|(other, _)| *other == resource) {
                return Err(InvalidProblem::Twice { flow, resource });
            }
        }
        Ok(())
    }
}

fn is_weight(weight: f64) -> bool {
    weight.is_finite() && weight > 0.0
}

/// `A`: the part of its demand that each flow gets.
#[derive(Debug, Clone, PartialEq)]
pub struct Allocation {
    /// From 0 to 1.
    pub parts: Vec<f64>,
}

/// Sums of real parts may be above the whole by rounding; of a thousand million tokens one is kept back for it.
const ROUNDING: f64 = 1e-9;

impl Allocation {
    /// The same, less where a resource would give more than it has: for results that are right but for a tolerance.
    pub(crate) fn within(mut self, problem: &Problem) -> Self {
        let mut used = vec![0.0; problem.capacity.len()];
        for (part, flow) in self.parts.iter().zip(&problem.flows) {
            for (resource, tokens) in &flow.demand {
                used[*resource] += part * *tokens as f64;
            }
        }
        let fits = |resource: usize| {
            let capacity = problem.capacity[resource] as f64;
            if used[resource] > capacity {
                capacity / used[resource]
            } else {
                1.0
            }
        };
        for (part, flow) in self.parts.iter_mut().zip(&problem.flows) {
            let least = flow
                .demand
                .iter()
                .filter(|(_, tokens)| *tokens > 0)
                .map(|(r, _)| fits(*r));
            *part *= least.fold(1.0, f64::min);
        }
        self
    }

    /// Whole tokens/s of each resource that flow `f` demands, in the order of its demand.
    pub fn tokens(&self, problem: &Problem, f: usize) -> impl Iterator<Item = u64> {
        let part = self.parts[f] * (1.0 - ROUNDING);
        let demand = problem.flows[f].demand.iter();
        demand.map(move |(_, tokens)| (part * *tokens as f64) as u64)
    }

    /// Tokens/s of each resource that are given away.
    pub fn used(&self, problem: &Problem) -> Vec<u64> {
        let mut used = vec![0; problem.capacity.len()];
        for (f, flow) in problem.flows.iter().enumerate() {
            for ((resource, _), tokens) in flow.demand.iter().zip(self.tokens(problem, f)) {
                used[*resource] += tokens;
            }
        }
        used
    }

    /// Whether no resource gives more than it has.
    pub fn is_feasible(&self, problem: &Problem) -> bool {
        let used = self.used(problem);
        used.iter()
            .zip(&problem.capacity)
            .all(|(used, capacity)| used <= capacity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(project: usize, weight: f64, demand: &[(usize, u64)]) -> Flow {
        Flow {
            project,
            weight,
            demand: demand.to_vec(),
        }
    }

    #[test]
    fn faults_are_named() {
        let project = |weight| Project { weight, price: 0 };
        let new = |weight, flow| Problem::new(vec![10, 0], vec![project(weight)], vec![flow]);
        let fine = || flow(0, 1.0, &[(0, 5)]);
        assert!(new(1.0, fine()).is_ok());
        for weight in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(new(weight, fine()).unwrap_err().to_string().contains("above 0"));
            assert!(
                new(1.0, flow(0, weight, &[]))
                    .unwrap_err()
                    .to_string()
                    .contains("above 0")
            );
        }
        let unknown = InvalidProblem::UnknownProject { flow: 0, project: 1 };
        assert_eq!(new(1.0, flow(1, 1.0, &[])).unwrap_err(), unknown);
        let unknown = InvalidProblem::UnknownResource { flow: 0, resource: 2 };
        assert_eq!(new(1.0, flow(0, 1.0, &[(2, 1)])).unwrap_err(), unknown);
        let twice = InvalidProblem::Twice { flow: 0, resource: 0 };
        assert_eq!(new(1.0, flow(0, 1.0, &[(0, 1), (0, 2)])).unwrap_err(), twice);
    }

    #[test]
    fn a_dominant_share_is_of_the_scarcest_resource() {
        let project = Project {
            weight: 1.0,
            price: 0,
        };
        let flows = [&[(0, 5), (1, 1)][..], &[(2, 1)], &[(2, 0)]].map(|demand| flow(0, 1.0, demand));
        let problem = Problem::new(vec![10, 4, 0], vec![project], flows.to_vec()).unwrap();
        assert_eq!(problem.dominant_share(0), 0.5);
        assert_eq!(problem.dominant_share(1), f64::INFINITY);
        assert_eq!(problem.dominant_share(2), 0.0);
    }
}
