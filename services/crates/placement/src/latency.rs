//! Measured commit latencies of a cost profile.

use quorate_types::Durability;
use serde::{Deserialize, Serialize};

use crate::curve::{BYTES_MAX, ProfileError, error, milli_at};

/// p99 of a commit at the head of a server that carries what admission may promise, by size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Latencies {
    in_memory: Vec<Point>,
    persistent: Vec<Point>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Point {
    size_bytes: u32,
    p99_us: u32,
}

/// The bound of a measurement: a minute.
const P99_US_MAX: u32 = 60_000_000;

impl Latencies {
    /// Interpolated between points. The first point also holds below it; nothing is known of sizes beyond the last.
    pub(crate) fn p99_us(&self, durability: Durability, size_bytes: u32) -> Option<u64> {
        let points = match durability {
            Durability::InMemory => &self.in_memory,
            Durability::Persistent => &self.persistent,
        };
        if points.last().is_none_or(|last| size_bytes > last.size_bytes) {
            return None;
        }
        let milli = milli_at(points, size_bytes, false, |point| {
            (point.size_bytes, point.p99_us)
        });
        Some(milli.div_ceil(1_000))
    }

    pub(crate) fn validate(&self) -> Result<(), ProfileError> {
        for (mode, points) in [("in_memory", &self.in_memory), ("persistent", &self.persistent)] {
            let field = format!("latency.{mode}");
            if points.len() < 2 {
                return Err(error(field, "needs at least two points"));
            }
            for (i, point) in points.iter().enumerate() {
                let after = i == 0 || point.size_bytes > points[i - 1].size_bytes;
                if !(1..=BYTES_MAX).contains(&point.size_bytes) || !after {
                    let problem = "must be 1 to 1073741824, and above the point before";
                    return Err(error(format!("{field}[{i}].size_bytes"), problem));
                }
                if !(1..=P99_US_MAX).contains(&point.p99_us) {
                    return Err(error(format!("{field}[{i}].p99_us"), "must be 1 to 60000000"));
                }
            }
        }
        Ok(())
    }
}
