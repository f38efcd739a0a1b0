//! Latency histograms: log-linear, 32 steps for each power of two, so that a bucket is at most 3.2 % wide.

use std::collections::BTreeMap;

const STEPS: u64 = 32;

/// The sparse form in records: bucket → count.
pub type Buckets = BTreeMap<u32, u64>;

/// The bucket of a value: the value itself below 32, otherwise one of 32 for each power of two.
pub fn bucket_of(value_us: u64) -> u32 {
    if value_us < STEPS {
        return value_us as u32;
    }
    let exponent = u64::from(value_us.ilog2()) - 5;
    (STEPS * exponent + (value_us >> exponent)) as u32
}

/// The largest value of the bucket, which quantiles report.
pub fn upper_edge_us(bucket: u32) -> u64 {
    let bucket = u64::from(bucket);
    if bucket < STEPS {
        return bucket;
    }
    let exponent = bucket / STEPS - 1;
    let begin = (bucket - STEPS * exponent) << exponent;
    begin + ((1 << exponent) - 1)
}

/// Counts of values in microseconds. Dense up to the largest value seen, so that counting is an addition.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Histogram {
    counts: Vec<u64>,
    total: u64,
}

impl Histogram {
    /// Counts `value_us` `count` times.
    pub fn record(&mut self, value_us: u64, count: u64) {
        self.record_bucket(bucket_of(value_us), count);
    }

    /// Counts values of one bucket ([`bucket_of`]).
    pub fn record_bucket(&mut self, bucket: u32, count: u64) {
        if count == 0 {
            return;
        }
        let at = bucket as usize;
        if at >= self.counts.len() {
            self.counts.resize(at + 1, 0);
        }
        self.counts[at] += count;
        self.total += count;
    }

    pub fn merge(&mut self, other: &Histogram) {
        for (bucket, count) in other.nonzero() {
            self.record_bucket(bucket, count);
        }
    }

    /// Takes the counts since the last call. The memory stays, so that counting goes on without allocation.
    pub fn take(&mut self) -> Histogram {
        if self.is_empty() {
            return Histogram::default();
        }
        let taken = self.clone();
        self.counts.fill(0);
        self.total = 0;
        taken
    }

    pub fn total(&self) -> u64 {
        self.total
    }

    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// The least upper edge with at least `per_mille` of the values at or below it; `None` when there are no values.
    pub fn quantile_us(&self, per_mille: u32) -> Option<u64> {
        assert!(per_mille <= 1000, "{per_mille} per mille");
        if self.is_empty() {
            return None;
        }
        let rank = (u128::from(self.total) * u128::from(per_mille))
            .div_ceil(1000)
            .max(1);
        let mut seen = 0u128;
        for (bucket, count) in self.nonzero() {
            seen += u128::from(count);
            if seen >= rank {
                return Some(upper_edge_us(bucket));
            }
        }
        unreachable!("counts add up to the total");
    }

    pub fn buckets(&self) -> Buckets {
        self.nonzero().collect()
    }

    /// Adds the counts to the sparse form.
    pub fn add_to(&self, buckets: &mut Buckets) {
        for (bucket, count) in self.nonzero() {
            *buckets.entry(bucket).or_default() += count;
        }
    }

    fn nonzero(&self) -> impl Iterator<Item = (u32, u64)> {
        self.counts
            .iter()
            .enumerate()
            .filter(|(_, count)| **count > 0)
            .map(|(at, count)| (at as u32, *count))
    }
}
