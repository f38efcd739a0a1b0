//! Usage and SLIs: counts of groups, their division into windows, and their form on the way to Redis
//! (`docs/internals/telemetry.md`). Pure.

mod book;
mod live;
mod record;

pub use book::{Mark, UsageBatch, WindowBook};
pub use live::LiveMeter;
pub use quorate_usage::{Buckets, Histogram, Sample, Totals, bucket_of, upper_edge_us};
pub use record::{LiveEntry, LiveGroup, Process, UsageEntry, UsageRecord, WINDOW_MS, WINDOW_S};
