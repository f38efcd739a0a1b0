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
