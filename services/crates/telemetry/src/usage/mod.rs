//! Usage and SLIs: what is counted, cut into windows, and its shape on the way to Redis
//! (`docs/internals/telemetry.md`). Pure.

mod book;
mod histogram;
mod live;
mod record;
mod sample;

pub use book::{Batch, Mark, WindowBook};
pub use histogram::{Buckets, Histogram, bucket_of, upper_edge_us};
pub use live::LiveMeter;
pub use record::{LiveEntry, LiveGroup, Process, Record, UsageEntry, WINDOW_MS, WINDOW_S};
pub use sample::{Sample, Totals};
