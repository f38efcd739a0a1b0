//! The state as the API shows it. JSON shapes: `docs/internals/coordinator.md`.

mod capacity;
mod event;
mod fleet_version;
mod group;
mod guarantee;
mod join_token;
mod partitions;
mod quorum;
mod server;
mod time;

pub use capacity::{Capacity, FleetView};
pub use event::EventView;
pub use fleet_version::FleetVersionView;
pub use group::{GroupView, RelocatingView, ReplicaView};
pub use guarantee::{GuaranteeView, GuaranteedGroupView};
pub use join_token::{JoinTokenState, JoinTokenView};
pub use partitions::PartitionsView;
pub use quorum::{MemberView, QuorumView};
pub use server::{DrainView, ServerView};
