//! One interval's measurements of a resource.

use quorate_types::Micros;

/// A resource that was busy for less than this part of the interval, in thousandths, has room.
const SLACK_PERMILLE: u64 = 850;
/// A processor that was busy for more serves no more.
const SATURATED_PERMILLE: u64 = 950;
/// A sync is counted in the reading in which it ends, so even two readings of a disk that syncs all the time have less.
const DISK_SATURATED_PERMILLE: u64 = 900;
/// Under load, syncs of a disk that has room take no longer than its least ones, this many times, and this much.
const SATURATED_TIMES: u64 = 2;
const SATURATED_MORE_US: Micros = 5_000;
/// Readings for which the least syncs are known at least, and twice as many at most.
const LEAST_READINGS: u32 = 300;
/// Below, the cost of a token is mostly that of being awake.
const IMPLIED_BUSY_PERMILLE_MIN: u64 = 50;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Saturation {
    /// There is room for more.
    Slack,
    /// Nothing is known.
    Between,
    /// It serves as much as it can.
    Saturated,
}

/// Rates and amounts are in tokens of one resource, all in the same unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Reading {
    /// Served in this interval: the *throughput* of Pulsar §4.3.
    pub used_per_s: u64,
    pub saturation: Saturation,
    /// The rate at which the resource would have no time left; `None`: not known.
    pub implied_per_s: Option<u64>,
    /// Let through and not served yet, on average.
    pub outstanding: u64,
    /// Requests within a reservation were refused or late.
    pub misses_guarantees: bool,
    /// Tokens of the average request: another average is another workload. 0: there was none.
    pub request: f64,
}

/// Busy time of a server's shards.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CpuTime {
    /// On a processor, or waiting for one that others have.
    pub busy_us: Micros,
    /// All shards together.
    pub elapsed_us: Micros,
}

impl CpuTime {
    pub fn saturation(self) -> Saturation {
        match self.busy_permille() {
            SATURATED_PERMILLE.. => Saturation::Saturated,
            SLACK_PERMILLE.. => Saturation::Between,
            _ => Saturation::Slack,
        }
    }

    /// The rate at which the shards would have no time left, if tokens cost as much time as now.
    pub fn implied_per_s(self, used_per_s: u64) -> Option<u64> {
        let busy = self.busy_permille();
        let implied = |busy: u64| u128::from(used_per_s) * 1_000 / u128::from(busy);
        (busy >= IMPLIED_BUSY_PERMILLE_MIN).then(|| u64::try_from(implied(busy)).unwrap_or(u64::MAX))
    }

    fn busy_permille(self) -> u64 {
        (self.busy_us * 1_000)
            .checked_div(self.elapsed_us)
            .map_or(0, |permille| permille.min(1_000))
    }
}

/// Writes and syncs of a journal.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct DiskTime {
    pub busy_us: Micros,
    pub syncs: u64,
    pub elapsed_us: Micros,
}

impl DiskTime {
    /// The mean length of a sync. Where none has ended, it is as long as the interval.
    fn sync_us(self) -> Micros {
        self.busy_us.checked_div(self.syncs).unwrap_or(self.elapsed_us)
    }
}

/// A disk's shortest syncs in the last while.
#[derive(Debug, Clone, Default)]
pub struct DiskWatch {
    /// The least mean of a reading in this span, and in the one before.
    least_us: [Option<Micros>; 2],
    readings: u32,
    before: DiskTime,
}

impl DiskWatch {
    /// A journal that syncs all the time is not saturated by that: under load it takes more with each sync. It is, once that
    /// makes syncs longer than they were.
    pub fn saturation(&mut self, disk: DiskTime) -> Saturation {
        let before = std::mem::replace(&mut self.before, disk);
        if disk.busy_us == 0 {
            return Saturation::Slack;
        }
        let busy_us = disk.busy_us + before.busy_us;
        let busy_permille = busy_us * 1_000 / (disk.elapsed_us + before.elapsed_us).max(1);
        let (sync_us, least_us) = (disk.sync_us(), self.least_us(disk.sync_us()));
        let long_us = SATURATED_TIMES * least_us + SATURATED_MORE_US;
        if busy_permille < SLACK_PERMILLE || sync_us < long_us / 2 {
            Saturation::Slack
        } else if busy_permille >= DISK_SATURATED_PERMILLE && sync_us >= long_us {
            Saturation::Saturated
        } else {
            Saturation::Between
        }
    }

    /// The least so far, this one included.
    fn least_us(&mut self, sync_us: Micros) -> Micros {
        self.readings += 1;
        if self.readings > LEAST_READINGS {
            self.readings = 1;
            self.least_us = [None, self.least_us[0]];
        }
        let least_us = self.least_us[0].map_or(sync_us, |least_us| least_us.min(sync_us));
        self.least_us[0] = Some(least_us);
        self.least_us[1].map_or(least_us, |before| before.min(least_us))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn processors_are_saturated_by_what_they_do_and_by_what_they_wait_for() {
        let busy = |busy_us| CpuTime {
            busy_us,
            elapsed_us: 2_000_000,
        };
        assert_eq!(busy(1_600_000).saturation(), Saturation::Slack);
        assert_eq!(busy(1_800_000).saturation(), Saturation::Between);
        assert_eq!(busy(1_920_000).saturation(), Saturation::Saturated);
        assert_eq!(CpuTime::default().saturation(), Saturation::Slack);
        assert_eq!(busy(1_000_000).implied_per_s(400), Some(800));
        assert_eq!(busy(2_500_000).implied_per_s(400), Some(400), "a late reading");
        assert_eq!(busy(90_000).implied_per_s(400), None);
    }

    fn disk(busy_us: Micros, syncs: u64) -> DiskTime {
        DiskTime {
            busy_us,
            syncs,
            elapsed_us: 1_000_000,
        }
    }

    #[test]
    fn a_disk_is_saturated_by_syncs_that_became_longer() {
        let mut watch = DiskWatch::default();
        assert_eq!(
            watch.saturation(disk(990_000, 990)),
            Saturation::Slack,
            "a millisecond each"
        );
        assert_eq!(watch.saturation(disk(990_000, 200)), Saturation::Between);
        assert_eq!(watch.saturation(disk(990_000, 100)), Saturation::Saturated);
        assert_eq!(
            watch.saturation(disk(500_000, 5)),
            Saturation::Slack,
            "it was idle as long"
        );
        assert_eq!(
            watch.saturation(disk(1_000_000, 0)),
            Saturation::Slack,
            "half of the time"
        );
        assert_eq!(
            watch.saturation(disk(1_000_000, 0)),
            Saturation::Saturated,
            "one hangs"
        );
        assert_eq!(watch.saturation(disk(0, 0)), Saturation::Slack);
    }

    #[test]
    fn a_disk_that_was_always_slow_is_not_saturated_by_one_client() {
        let mut watch = DiskWatch::default();
        for _ in 0..3 * LEAST_READINGS {
            assert_eq!(
                watch.saturation(disk(990_000, 40)),
                Saturation::Slack,
                "25 ms each"
            );
        }
        assert_eq!(watch.saturation(disk(990_000, 15)), Saturation::Saturated);
    }

    #[test]
    fn shorter_syncs_of_long_ago_are_forgotten() {
        let mut watch = DiskWatch::default();
        watch.saturation(disk(990_000, 990));
        let saturated = (0..3 * LEAST_READINGS)
            .take_while(|_| watch.saturation(disk(990_000, 40)) == Saturation::Saturated)
            .count();
        assert!(
            (LEAST_READINGS as usize..2 * LEAST_READINGS as usize).contains(&saturated),
            "{saturated}"
        );
    }
}
