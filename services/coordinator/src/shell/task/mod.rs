//! The task that owns the engine, and how the others reach it.
//!
//! - `engine_task`: inputs in, commands to the log, messages out
//! - `handle`: the task's inputs, and access for calls of the API
//! - `credentials`: secrets that servers show, certificates and peer tokens for them
//! - `notes`, `clock`: lines of the process's log, wall-clock time

mod clock;
mod credentials;
mod engine_task;
mod handle;
pub mod notes;

pub use clock::unix_ms;
pub use credentials::Credentials;
pub use engine_task::EngineTask;
pub use handle::{Handle, TaskInput, Unavailable};
