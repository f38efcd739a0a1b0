//! One copy pass: records of full segments, sorted by group, written and synced.

pub mod due;
mod pace;
pub mod pass;
pub mod pending;
mod rescue;
mod writing;
