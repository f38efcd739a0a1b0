//! Work conservation (Filo §4.2), pure: free amounts of servers go to the tenants that want more than they reserved,
//! fairly by dominant share.
//!
//! - [`problem`]: free vectors and tenants, and the feasibility of grants
//! - [`policy`]: the amounts that are free: the unallocated, or all that is idle
//! - [`request_by_request`]: C-DRF as the paper's Algorithm 2, the reference
//! - [`exact`]: C-DRF by filling ([`quorate_policies::filling`]), whatever the number of requests
//! - [`view`]: the view of one server of Level-DRF
//! - [`iterations`]: servers that exchange messages; any of them may be lost or late
//! - [`head`], [`all`], [`level`]: Head-DRF, All-DRF and Level-DRF as such servers
//! - [`fleet`]: C-DRF over the whole fleet, computed by a coordinator (the default, where one does)
//! - [`demand`]: the rate that a group will want
//! - [`exchange`]: one server's part, interval after interval
//!
//! All amounts are whole: thousandths of the tokens of `quorate_types::cost`. That is picoseconds of CPU, thousandths of
//! bytes and millionths of storage operations, each second.

// Loops over the resources read several arrays at the same index.
#![allow(clippy::needless_range_loop)]

pub mod all;
pub mod demand;
pub mod exact;
pub mod exchange;
pub mod fleet;
pub mod head;
pub mod iterations;
pub mod level;
pub mod policy;
pub mod problem;
pub mod request_by_request;
mod uses;
pub mod view;

pub use exact::exact;
pub use policy::Policy;
pub use problem::{InvalidProblem, ReplicaCost, SharingProblem, SharingTenant, Vector};
pub use request_by_request::{TooManyRequests, request_by_request};
