//! The coordinator: it alone admits, places, detects failures and issues epochs.
//!
//! - [`state`]: the state machine, pure
//! - [`engine`]: inputs, and what follows from them, around the state machine: pure
//! - [`leases`]: who has failed, pure
//! - [`suspicions`]: who holds others up though it has not failed, pure
//! - [`log`]: the durable log of commands
//! - [`shell`]: sockets, HTTP, clock, keys around them
//! - [`options`], [`exit`]: flags and exit codes

pub mod engine;
pub mod exit;
pub mod leases;
pub mod log;
pub mod options;
pub mod shell;
pub mod state;
pub mod suspicions;
