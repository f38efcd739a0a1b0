//! One guarantee for all groups of a project (Pulsar §3: the virtual datacenter), pure.
//!
//! - [`guarantee`]: what a project is promised beside its groups' own rates, and its owner's policy
//! - [`division`]: tokens among groups by that policy (Pulsar §4.1: the local policy)
//! - [`purse`]: what a group may be using of a purse of tokens, whatever messages were lost
//! - [`project_shares`]: the coordinators' part: reports of heads in, shares out
//!
//! [`quorate_types::cost::Budget::guarantee_tokens_milli`] is the price of a request.

pub mod division;
pub mod guarantee;
pub mod project_shares;
pub mod purse;

pub use guarantee::{Guarantee, LocalPolicy, PolicyGroup};
pub use project_shares::{GuaranteedGroup, GuaranteedProject, ProjectShares};
