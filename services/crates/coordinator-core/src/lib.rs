//! The coordinator's decisions: it alone admits, places, detects failures and issues epochs. Pure: no socket, no disk, no clock.
//! `services/coordinator` is the process around it; the simulator runs the same code.
//!
//! - [`command`]: what is logged, and what follows: types alone
//! - [`state`]: the state machine, pure: commands change it
//! - [`planner`]: which commands to propose, pure: leases, suspicions, reports
//! - [`engine`]: inputs to commands and messages, pure
//! - [`coordinator`]: a member of the quorum, which decides while it leads
//! - [`view`]: the state as the API shows it
//! - [`log`]: the durable log of one member, as bytes
//! - [`ids`]: numbers of connections and calls

pub mod command;
pub mod coordinator;
pub mod engine;
pub mod ids;
pub mod log;
pub mod planner;
pub mod state;
pub mod view;
