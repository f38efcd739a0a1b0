//! The task that owns the coordinator, and how the others reach it.
//!
//! - `coordinator_task`: events in, writes to the log, messages out
//! - `calls`: calls that wait for their answers
//! - `handle`: the task's inputs, and access for calls of the API
//! - `credentials`: secrets that servers show, certificates and peer tokens for them
//! - `notes`, `clock`: lines of the process's log, wall-clock time

mod calls;
mod clock;
mod coordinator_task;
mod credentials;
mod handle;
pub mod notes;

pub use clock::unix_ms;
pub use coordinator_task::{CoordinatorTask, Reports};
pub use credentials::Credentials;
pub use handle::{Handle, QuorumChange, Reported, TaskInput, Unavailable};
