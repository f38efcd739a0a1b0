//! The real binary over TCP and HTTP.

mod certificates;
mod coordinator;
mod stage;
