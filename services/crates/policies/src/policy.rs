//! The policies by name.

use serde::{Deserialize, Serialize};

use crate::drf;
use crate::first_fit;
use crate::hierarchical;
use crate::problem::{Allocation, Problem};
use crate::revenue;

/// How resources are shared. Each is a pure function of demands, weights and capacities.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Policy {
    /// Equal dominant shares by weight, whatever the project.
    #[default]
    Drf,
    /// Equal dominant shares among projects by weight, and among the flows of each.
    HierarchicalDrf,
    /// In the order of the flows, as much as is left.
    FirstFit,
    /// The highest revenue.
    MaximumRevenue,
}

impl Policy {
    pub const ALL: [Policy; 4] = [
        Policy::Drf,
        Policy::HierarchicalDrf,
        Policy::FirstFit,
        Policy::MaximumRevenue,
    ];

    /// The name in the API, and in settings.
    pub fn name(self) -> &'static str {
        match self {
            Policy::Drf => "drf",
            Policy::HierarchicalDrf => "hierarchical_drf",
            Policy::FirstFit => "first_fit",
            Policy::MaximumRevenue => "maximum_revenue",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.name() == name)
    }

    /// Feasible: no resource gives more than it has.
    pub fn share(self, problem: &Problem) -> Allocation {
        match self {
            Policy::Drf => drf::share(problem),
            Policy::HierarchicalDrf => hierarchical::share(problem),
            Policy::FirstFit => first_fit::share(problem),
            Policy::MaximumRevenue => revenue::share(problem),
        }
    }
}
