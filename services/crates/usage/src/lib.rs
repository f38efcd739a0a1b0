//! Usage of a group, and the units of its counting (`docs/internals/telemetry.md`). Pure.
//!
//! - [`Totals`]: cumulative counts since the group came to a server
//! - [`Histogram`]: commit latencies, log-linear
//! - [`Sample`]: both at one moment, as a server sends them on

mod histogram;
mod sample;

pub use histogram::{Buckets, Histogram, bucket_of, upper_edge_us};
pub use sample::{Sample, Totals};
