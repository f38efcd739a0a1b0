//! Commit latencies of a group's entries, in the three ways in which they are counted.

use quorate_chain::Arrival;
use quorate_types::Micros;
use quorate_usage::{Histogram, bucket_of};

/// Batches that wait to be counted: less than 1 KiB for each group at work.
const WAITING_MAX: usize = 64;

/// Latencies since they were last taken. The last ones wait in one piece of memory. Each would touch three histograms,
/// and with many groups those are in no cache.
#[derive(Debug, Default)]
pub(crate) struct Latencies {
    waiting: Vec<Buckets>,
    counted: Counted,
}

/// Time that entries took from their order to their commitment, in sum; sums wrap.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ChainTime {
    sum_us: u64,
    entries: u64,
}

impl ChainTime {
    pub fn add(&mut self, took_us: Micros, entries: u32) {
        let entries = u64::from(entries);
        self.sum_us = self.sum_us.wrapping_add(took_us.wrapping_mul(entries));
        self.entries = self.entries.wrapping_add(entries);
    }

    /// The mean since `before`; `None`: nothing was committed.
    pub fn mean_us_since(&self, before: &Self) -> Option<Micros> {
        let entries = self.entries.wrapping_sub(before.entries);
        self.sum_us.wrapping_sub(before.sum_us).checked_div(entries)
    }
}

/// Histograms of entries.
#[derive(Debug, Default)]
pub(crate) struct Counted {
    /// Since they were received.
    pub all: Histogram,
    /// Within the reservation: since it let them pass.
    pub judged: Histogram,
    /// Since they were ordered.
    pub chain: Histogram,
}

/// The buckets of one batch's latencies.
#[derive(Debug, Clone, Copy)]
struct Buckets {
    all: u16,
    chain: u16,
    judged: Option<u16>,
    entries: u32,
}

impl Latencies {
    pub fn committed(&mut self, arrival: Arrival, now_us: Micros, entries: u32) {
        let since = |from_us: Micros| {
            let bucket = bucket_of(now_us.saturating_sub(from_us));
            u16::try_from(bucket).expect("64 powers of two have fewer buckets")
        };
        if self.waiting.len() == WAITING_MAX {
            self.count();
        }
        self.waiting.push(Buckets {
            all: since(arrival.received_us),
            chain: since(arrival.ordered_us),
            judged: arrival.start_us.map(since),
            entries,
        });
    }

    /// Latencies since the last call.
    pub fn take(&mut self) -> Counted {
        self.count();
        let Counted { all, judged, chain } = &mut self.counted;
        Counted {
            all: all.take(),
            judged: judged.take(),
            chain: chain.take(),
        }
    }

    fn count(&mut self) {
        let Counted { all, judged, chain } = &mut self.counted;
        for one in self.waiting.drain(..) {
            let entries = u64::from(one.entries);
            all.record_bucket(one.all.into(), entries);
            chain.record_bucket(one.chain.into(), entries);
            if let Some(bucket) = one.judged {
                judged.record_bucket(bucket.into(), entries);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_batch_is_counted_once_in_each_way_that_concerns_it() {
        let mut latencies = Latencies::default();
        let batches = 2 * WAITING_MAX as u64 + 3;
        for number in 0..batches {
            let arrival = Arrival {
                received_us: 100,
                ordered_us: 140,
                start_us: (number % 2 == 0).then_some(120),
            };
            latencies.committed(arrival, 150, 2);
        }
        let taken = latencies.take();
        assert_eq!(taken.all.buckets(), [(bucket_of(50), 2 * batches)].into());
        assert_eq!(taken.chain.buckets(), [(bucket_of(10), 2 * batches)].into());
        assert_eq!(taken.judged.buckets(), [(bucket_of(30), batches + 1)].into());
        assert!(latencies.take().all.is_empty(), "taken once");
        assert!(u16::try_from(bucket_of(u64::MAX)).is_ok());
    }
}
