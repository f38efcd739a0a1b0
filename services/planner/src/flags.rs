//! The algorithms and policies that flags name.

use clap::ValueEnum;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Algorithm {
    /// Filo's Algorithm 2, request by request.
    Cdrf,
    /// The same outcome up to one request, in time that does not depend on the number of requests.
    CdrfExact,
    Head,
    All,
    Level,
    /// One computes for all of them, as coordinators do.
    Fleet,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Placing {
    /// Filo's Algorithm 1 as printed.
    Filo,
    /// The same, but servers are chosen by the shape of their free amounts, as the coordinator does.
    Shape,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    Unallocated,
    Idle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SharePolicy {
    /// Equal dominant shares by weight.
    Drf,
    /// Equal dominant shares among projects, and among the flows of each.
    HierarchicalDrf,
    /// One flow after the other, as much as is left.
    FirstFit,
    /// The highest revenue.
    MaximumRevenue,
}

impl From<SharePolicy> for quorate_policies::Policy {
    fn from(policy: SharePolicy) -> Self {
        match policy {
            SharePolicy::Drf => Self::Drf,
            SharePolicy::HierarchicalDrf => Self::HierarchicalDrf,
            SharePolicy::FirstFit => Self::FirstFit,
            SharePolicy::MaximumRevenue => Self::MaximumRevenue,
        }
    }
}
