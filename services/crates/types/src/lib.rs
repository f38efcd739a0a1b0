//! Types of the domain, shared by every Rust part: no I/O, no clock, no randomness.
//!
//! - [`access`]: the part of a group's service that its owner lets clients use
//! - [`sla`]: a customer's request, and the answer
//! - [`config`]: a group's configuration in one epoch, roles, states
//! - [`durability`]: the condition under which an entry is committed
//! - [`cost`]: the cost of a request to a server, and budgets
//! - [`control`]: messages between coordinator and replica servers
//! - [`ids`]: maps by numbers
//! - [`latency`]: classes of commit latency
//! - [`reports`]: a server's reports of its groups, as changes
//! - [`lived`]: time without the pauses of the own process
//! - [`machine`]: the machine of a server
//! - [`names`]: names in certificates, hosts in addresses
//! - [`place`]: places in the coordinator's log, digests of configurations
//! - [`permission`]: what a client may do with a group
//! - [`revocation`]: credentials whose tokens are refused
//! - [`space`]: the memory and disk that a replica may fill, and a server's room for replicas
//! - [`limits`]: every bound of the data plane, with its reason
//! - [`versions`]: versions of protocols, and of the fleet's formats
//! - [`planted`]: bugs for the simulator to find, never in a server
//! - [`codes`]: error codes of the data plane, from `sdk/contract/errors.json`

pub mod access;
pub mod codes;
pub mod config;
pub mod control;
pub mod coordinators;
pub mod cost;
pub mod durability;
pub mod ids;
pub mod latency;
pub mod limits;
pub mod lived;
pub mod machine;
pub mod names;
pub mod permission;
pub mod place;
pub mod planted;
pub mod reports;
pub mod revocation;
pub mod sla;
pub mod space;
pub mod versions;

pub use access::Access;
pub use codes::Code;
pub use config::{GroupConfig, GroupId, GroupState, Layout, Member, ProjectId, Role, ServerId};
pub use durability::Durability;
pub use latency::Latency;
pub use machine::Machine;
pub use permission::Permission;
pub use place::{ConfigDigest, FleetId, Place, RunId};
pub use revocation::{CredentialId, Revocation};
pub use sla::Sla;
pub use space::{Room, Space};
pub use versions::Versions;

/// A group's configuration number; grows with each reconfiguration and fences everything older.
pub type Epoch = u64;
/// Dense position of a batch in a group's log, from 1; 0 means "none".
pub type Index = u64;
/// Dense position of an entry in a group's log, from 0. `*_offset` bounds are exclusive ends.
pub type Offset = u64;
/// Microseconds on some clock of the caller's; pure code only compares and subtracts them.
pub type Micros = u64;
