//! Commands of operators: `quorate-coordinator status | step-down | replace | remove | lead-alone`.
//!
//! - `options`: flags; `commands`: each command; `alone`: the last of several coordinators; `client`: HTTP to the coordinators; `table`: the status for people

mod alone;
mod client;
mod commands;
mod options;
mod table;

pub use commands::run;
pub use options::{COMMANDS, Operator};
