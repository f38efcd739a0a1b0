//! The coordinator's behaviour: its real engine, with its log on a disk that crashes, and connections that break. Each
//! file calls only files above it in this list:
//!
//! - `input`: into the engine
//! - [`drains`], [`moves`], [`operator`]: requests of people
//! - [`replacements`]: one comes in the place of another
//! - `resets`: groups that have been reset
//! - [`outages`]: it is stopped, killed, started; [`restores`]: on an older copy of its log, too
//! - `output`: decisions of the engine
//! - [`arrivals`]: messages and ticks

pub mod arrivals;
pub mod drains;
mod input;
mod moves;
pub mod operator;
pub mod outages;
mod output;
pub mod replacements;
mod resets;
pub mod restores;
