//! Work conservation (Filo §4.2), pure: what is free on the servers goes to the tenants who want more than they
//! reserved, fairly by dominant share.
//!
//! - [`problem`]: free vectors and tenants, and what makes grants feasible
//! - [`policy`]: what is free: the unallocated, or all that is idle
//! - [`request_by_request`]: C-DRF as the paper's Algorithm 2, the reference
//! - [`filling`]: raising all dominant shares together, stopping at each saturation
//! - [`exact`]: C-DRF by filling, whatever the number of requests
//! - [`picture`]: what one server of Level-DRF sees
//! - [`rounds`]: servers that exchange messages; any of them may be lost or late
//! - [`exchange`]: one server's part, interval after interval; [`demand`], [`words`] and [`tell`] are parts of it
//! - [`head`], [`all`], [`level`]: Head-DRF, All-DRF and Level-DRF (the default) as such servers
//!
//! All amounts are whole: thousandths of the tokens of `quorate_types::cost`, that is picoseconds of CPU,
//! thousandths of bytes and millionths of storage operations, each second.

// Loops over the resources read several arrays at the same index.
#![allow(clippy::needless_range_loop)]

pub mod all;
pub mod demand;
pub mod exact;
pub mod exchange;
pub mod filling;
pub mod head;
pub mod level;
pub mod picture;
pub mod policy;
pub mod problem;
pub mod request_by_request;
pub mod rounds;
pub mod tell;
pub mod words;

pub use exact::exact;
pub use policy::Policy;
pub use problem::{Invalid, Place, Problem, Tenant, Vector};
pub use request_by_request::request_by_request;
