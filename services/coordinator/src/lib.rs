//! The coordinator: it alone admits, places, detects failures and issues epochs.
//!
//! - [`command`]: what is logged, and what follows: types alone
//! - [`state`]: the state machine, pure: commands change it
//! - [`planner`]: which commands to propose, pure: leases, suspicions, reports
//! - [`engine`]: inputs to commands and messages, pure
//! - [`view`]: the state as the API shows it
//! - [`log`]: the durable log of commands
//! - [`shell`]: sockets, HTTP, clock, keys around them
//! - [`options`], [`exit`], [`ids`]: flags, exit codes, numbers of connections and calls

pub mod command;
pub mod engine;
pub mod exit;
pub mod ids;
pub mod log;
pub mod options;
pub mod planner;
pub mod shell;
pub mod state;
pub mod view;
