//! The planner, pure: which commands should be proposed, from the state, the clock and servers' reports.
//!
//! - `plan`: the planner as the engine sees it
//! - [`leases`]: servers that have failed
//! - [`hangs`]: servers that have failed though they keep their leases: their threads or syncs hang
//! - [`suspicions`]: servers that slow others, and pairs that cannot reach one another, though they have their leases
//! - [`storage_faults`]: storage faults that last
//! - `shared_cause`: troubles of most servers, for which none is taken out
//! - [`reports`]: servers' messages, of which most change nothing and are kept from the log
//!
//! Its own memory is not durable: after a restart it is gathered again from heartbeats.

pub mod hangs;
pub mod leases;
mod plan;
pub mod reports;
mod shared_cause;
pub mod storage_faults;
mod suspicions;
mod trust;

pub use hangs::Hangs;
pub use leases::{LeaseTimes, Leases};
pub use plan::Planner;
pub use storage_faults::StorageFaults;
pub use suspicions::{SuspicionTimes, Suspicions};
