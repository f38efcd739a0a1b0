//! The real binary over TCP and HTTP, and its log on a disk.

mod certificates;
mod coordinator;
mod log_file;
mod members;
mod sharing;
mod stage;
