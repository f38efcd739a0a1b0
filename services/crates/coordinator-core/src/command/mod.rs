//! The contents of the log, and what follows from them: plain types that import nothing above them.
//!
//! - [`entry`]: commands, each with its time in the log
//! - [`registration`]: a server's request to be let in, with its secrets replaced by digests
//! - [`join_token`]: the terms of a join token, and its public name
//! - [`guarantee_change`]: another guarantee for a project
//! - [`partitions_change`]: another number of partitions for a group, or another SLA of all of them
//! - [`relocate`]: a replica that is to move to another server
//! - [`policy`]: how servers are chosen for replicas
//! - [`quote_request`]: a dry run of an admission, or of a change of a group
//! - [`secrets`]: keys of the fleet, encrypted
//! - [`effect`]: actions of the engine once a command is durable

pub mod effect;
pub mod entry;
pub mod guarantee_change;
pub mod join_token;
pub mod partitions_change;
pub mod policy;
pub mod quote_request;
pub mod registration;
pub mod relocate;
pub mod secrets;

pub use effect::{Effect, GuaranteeRefusal, Refused, Reply};
pub use entry::{Command, Timed};
pub use guarantee_change::GuaranteeChange;
pub use join_token::{Digest, JoinTokenTerms, join_token_id};
pub use partitions_change::{PartitionsChange, RateChange};
pub use policy::{Headroom, Mismatched, PlacementPolicy, Relief, Replacements};
pub use quote_request::QuoteRequest;
pub use registration::{Proof, Registration};
pub use relocate::{Cause, Relocate};
pub use secrets::FleetSecrets;
