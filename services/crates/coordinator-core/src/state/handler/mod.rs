//! Handlers, one for each concern. A handler is made for one operation, holds the tables that it may touch and no
//! others, and writes what follows into the [`outbox`].
//!
//! Ground: [`outbox`], [`configs`] (configurations sent to members, status), [`drops`] (leftover data), [`replica_choice`]
//! (servers for replicas), [`listing`] (servers open to placement), [`dry_run`] (quotes), [`relocation_plan`] (the fewest moves that make room).
//!
//! Servers: [`vetting`], [`registrations`], [`roster`], [`drains`], [`tokens`], [`revocations`], [`policies`],
//! [`reachability`]. They cannot reach a group's members.
//!
//! Projects: [`guarantees`]. Groups with several chains: [`partitions`].
//!
//! Groups: [`epochs`] alone changes members. [`admissions`], [`resizes`], [`accesses`], [`resets`], [`chain_repairs`], [`returns`],
//! [`moves`], [`relocations`], [`quarantines`] and [`unreachable`] decide which, and hold no table beside it. [`leftovers`] ends deletions.

pub mod accesses;
pub mod admissions;
pub mod chain_repairs;
pub mod configs;
pub mod drains;
pub mod drops;
pub mod dry_run;
pub mod epochs;
pub mod guarantees;
pub mod leftovers;
pub mod listing;
pub mod moves;
pub mod outbox;
pub mod partitions;
pub mod policies;
pub mod quarantines;
pub mod reachability;
pub mod registrations;
pub mod relocation_plan;
pub mod relocations;
pub mod replica_choice;
pub mod resets;
pub mod resizes;
pub mod returns;
pub mod revocations;
pub mod roster;
pub mod tokens;
pub mod unreachable;
pub mod vetting;
