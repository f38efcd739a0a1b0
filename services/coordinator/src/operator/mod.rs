//! Commands of operators: `quorate-coordinator status | step-down | replace | remove | lead-alone | backup | restore`.
//!
//! - `options`: flags; `commands`: each command; `alone`: the last of several coordinators; `backup`: copies of its log; `client`: HTTP to the coordinators; `table`: the status for people

mod alone;
mod backup;
mod client;
mod commands;
mod options;
mod table;

pub use commands::run;
pub use options::{COMMANDS, Operator};
