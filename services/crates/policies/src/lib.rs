//! Policies that share resources among flows (Pulsar §4.1): `A ← MRA(D, W, C)`, pure.
//!
//! A flow demands several resources at once, in tokens/s, and uses them in the proportions of its demand. A policy gives each
//! flow a part of its demand. A *local* policy shares a project's guarantee among its flows, and a *global* one shares what is
//! spare among projects.
//!
//! - [`problem`]: demands `D`, weights `W` and capacities `C`
//! - [`policy`]: the policies by name; a new one is one file and one line there
//! - [`drf`]: dominant resource fairness
//! - [`hierarchical`]: the same over projects and their flows
//! - [`first_fit`]: one flow after the other
//! - [`revenue`]: the highest revenue
//! - [`filling`]: raising all shares together, stopping at each saturation

pub mod drf;
pub mod filling;
pub mod first_fit;
pub mod hierarchical;
pub mod policy;
pub mod problem;
pub mod revenue;

pub use policy::Policy;
pub use problem::{Allocation, Flow, InvalidProblem, Problem, Project};
