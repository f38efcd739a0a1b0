//! Everything around the engine: start-up, sockets, clock, disk, keys.
//!
//! - `run`: the process, from its options to its end; `recovery`, `listeners`: parts of its start
//! - `control`: connections of replica servers; `http`: calls of the API
//! - `profile_file`, `key_file`: files that are read again when they change
//! - `members`: links to the other coordinators
//! - `guarantees`: shares of projects' guarantees
//! - `rates`: the rates of partitions
//! - `sharing`: the rates of groups that want more than they reserved
//! - `task`: the task that owns the engine and the log
//! - `secrets`: tokens and keys

mod balance;
mod control;
mod guarantees;
mod http;
mod key_file;
mod listeners;
mod members;
mod profile_file;
mod rates;
mod recovery;
mod run;
mod secrets;
mod sharing;
mod task;

pub use run::run;
pub use secrets::read_admin_token;
