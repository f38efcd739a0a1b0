//! The things that the state is about: servers, groups, events.
//!
//! Each knows its own fields and what follows from them alone. The tables ([`super::table`]) keep several of them in
//! agreement.

pub mod event;
pub mod group;
pub mod group_status;
pub mod history;
pub mod join_token;
pub mod partitioned;
pub mod quarantine;
pub mod relocation;
pub mod returned;
pub mod server;
pub mod terms;

pub use event::{Event, EventKind, EventSubject};
pub use group::{Group, Membership};
pub use group_status::GroupStatus;
pub use history::History;
pub use join_token::JoinToken;
pub use partitioned::{LayoutChange, Partition, Partitioned};
pub use quarantine::Quarantine;
pub use relocation::{Move, Relocation};
pub use returned::{ByLogs, Returned};
pub use server::{Drain, Server, lacking};
pub use terms::Terms;
