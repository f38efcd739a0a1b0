//! Capacity estimation (Pulsar §4.3), pure: (state, reading) → the tokens that a resource of a server can serve each second.
//!
//! A profile predicts the cost of requests, and an operator states the capacity of a server. Both may be wrong: another process
//! takes the processor, a disk becomes slow. The estimate follows from what was served, and never leaves [`Bounds`].
//!
//! - [`reading`]: the measurements of one interval, and whether the resource was saturated
//! - [`estimator`]: the probing window, and its phases
//! - [`lasting`]: the part of an estimate that has lasted long enough for admission to go by
//! - [`resources`]: the estimators of one server

pub mod estimator;
pub mod lasting;
pub mod reading;
pub mod resources;

pub use estimator::{Bounds, Estimate, Estimator};
pub use lasting::Lasting;
pub use reading::{Reading, Saturation};
pub use resources::{Measured, ServerEstimates};
