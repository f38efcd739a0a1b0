//! The rate of a group with partitions is divided by what each partition wants (Pisces, OSDI'12 §3.2 and Algorithm 1).
//!
//! A tenant's rates keep their sum, and no server is charged more than it may be: a tenant that takes rate on one server gives as
//! much back on another. Where the servers have room, it takes from and gives to the room. Where they are full, it swaps
//! with tenants that have more there than they want: along the path of the widest bottleneck (§3.2, Figure 3).
//!
//! - [`tenant`]: tenants with their partitions, and what each lacks or has to spare
//! - [`room`]: what servers have free
//! - [`swap`]: paths of reciprocal swaps
//! - [`division`]: all of it, in one interval
//! - [`migration`]: replicas that should move, where no swap helps

pub mod division;
pub mod migration;
pub mod room;
pub mod swap;
pub mod tenant;
mod working;

pub use division::{Divided, Division, Pressed, divide};
pub use migration::{Migration, Patience, Pressure, Replica, relieve};
pub use room::{Amounts, Room};
pub use tenant::{Partition, Tenant};
