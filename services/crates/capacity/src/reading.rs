//! One interval's measurements of a resource.

use quorate_types::Micros;

/// A resource that was busy for less than this part of the interval, in thousandths, has room.
const SLACK_PERMILLE: u64 = 850;
/// One that was busy for more serves no more.
const SATURATED_PERMILLE: u64 = 960;
/// Shorter syncs hold nobody up, however many follow one another: each takes all that waits.
const LONG_SYNC_US: Micros = 20_000;
const SHORT_SYNC_US: Micros = LONG_SYNC_US / 2;
/// Processors are not asked for more than what would take this part of their time at the present cost of a token, in
/// thousandths. Larger batches make tokens cheaper, so it is more than all of the time.
const CEILING_PERMILLE: u64 = 1_050;
/// Below, the cost of a token is mostly that of being awake.
const CEILING_BUSY_PERMILLE_MIN: u64 = 50;

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
    /// No more than this is worth trying next; `None`: unknown.
    pub ceiling_per_s: Option<u64>,
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
            0..SLACK_PERMILLE => Saturation::Slack,
            SLACK_PERMILLE..SATURATED_PERMILLE => Saturation::Between,
            _ => Saturation::Saturated,
        }
    }

    /// The rate at which the shards would have no time left, and a little more.
    pub fn ceiling_per_s(self, used_per_s: u64) -> Option<u64> {
        let busy = self.busy_permille();
        let ceiling = |busy: u64| u128::from(used_per_s) * u128::from(CEILING_PERMILLE) / u128::from(busy);
        (busy >= CEILING_BUSY_PERMILLE_MIN).then(|| u64::try_from(ceiling(busy)).unwrap_or(u64::MAX))
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
    /// A journal that syncs all the time is not saturated by that: under load it takes more with each sync. It is, once
    /// syncs are so long that the requests of an interval wait for them.
    pub fn saturation(self) -> Saturation {
        let busy_permille = (self.busy_us * 1_000).checked_div(self.elapsed_us).unwrap_or(0);
        // One that has not ended is as long as the interval.
        let sync_us = self.busy_us.checked_div(self.syncs).unwrap_or(self.elapsed_us);
        if busy_permille < SLACK_PERMILLE || sync_us < SHORT_SYNC_US {
            Saturation::Slack
        } else if busy_permille >= SATURATED_PERMILLE && sync_us >= LONG_SYNC_US {
            Saturation::Saturated
        } else {
            Saturation::Between
        }
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
        assert_eq!(
            busy(1_000_000).ceiling_per_s(400),
            Some(840),
            "twice, and a little"
        );
        assert_eq!(busy(2_500_000).ceiling_per_s(400), Some(420), "a late reading");
        assert_eq!(busy(90_000).ceiling_per_s(400), None);
    }

    #[test]
    fn a_disk_is_saturated_by_long_syncs_alone() {
        let disk = |busy_us, syncs| DiskTime {
            busy_us,
            syncs,
            elapsed_us: 1_000_000,
        };
        assert_eq!(
            disk(990_000, 990).saturation(),
            Saturation::Slack,
            "a millisecond each"
        );
        assert_eq!(disk(990_000, 66).saturation(), Saturation::Between);
        assert_eq!(disk(990_000, 20).saturation(), Saturation::Saturated);
        assert_eq!(
            disk(500_000, 5).saturation(),
            Saturation::Slack,
            "it was idle as long"
        );
        assert_eq!(
            disk(1_000_000, 0).saturation(),
            Saturation::Saturated,
            "one hangs"
        );
    }
}
