//! The estimates of one server: of its processors and its disk.
//!
//! The network is not estimated, as in Pulsar §4.5: the capacity of a link is known.

use crate::estimator::{Bounds, Estimate, Estimator};
use crate::lasting::{Lasting, WHOLE_PERMILLE};
use crate::reading::{CpuTime, DiskTime, DiskWatch, Reading, Saturation};

/// In the order of `quorate_types::cost::RESOURCES`.
pub const RESOURCES: usize = 3;
const CPU: usize = 0;
const STORAGE: usize = 2;
const ESTIMATED: [usize; 2] = [CPU, STORAGE];
/// Shards that serve less than this part of the stated capacity, in thousandths, are busy with something else: groups that come
/// and go, connections. That says nothing about requests.
const SERVED_PERMILLE_MIN: u64 = 10;

/// Measurements of one interval; amounts in thousandths of tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Measured {
    pub used_per_s: [u64; RESOURCES],
    pub outstanding: [u64; RESOURCES],
    pub entries_per_s: f64,
    /// `None`: not known, since shards look for work without sleeping.
    pub cpu: Option<CpuTime>,
    /// `None`: a sync is under way for longer than the interval, and the next reading has all of it.
    pub disk: Option<DiskTime>,
    pub misses_guarantees: bool,
}

#[derive(Debug, Clone)]
pub struct ServerEstimates {
    stated: [u64; RESOURCES],
    promised: [u64; RESOURCES],
    raises: bool,
    /// Resources in the order of [`ESTIMATED`].
    found: [Found; 2],
    disk: DiskWatch,
}

#[derive(Debug, Clone)]
struct Found {
    estimator: Estimator,
    lasting: Lasting,
}

impl ServerEstimates {
    /// `stated`: by the operator, in thousandths of tokens each second. Admission promises `promised_share` of it. `raises`:
    /// more than that may be lent as well, as far as it was measured.
    pub fn new(stated: [u64; RESOURCES], promised_share: f64, raises: bool) -> Self {
        let promised = part_of(stated, promised_share);
        let found = |i: usize| Found {
            estimator: Estimator::new(bounds(stated[i], promised[i], raises)),
            lasting: Lasting::default(),
        };
        Self {
            stated,
            promised,
            raises,
            found: ESTIMATED.map(found),
            disk: DiskWatch::default(),
        }
    }

    pub fn set_promised_share(&mut self, promised_share: f64) {
        self.promised = part_of(self.stated, promised_share);
        for (found, i) in self.found.iter_mut().zip(ESTIMATED) {
            let bounds = bounds(self.stated[i], self.promised[i], self.raises);
            found.estimator.set_bounds(bounds);
        }
    }

    pub fn observe(&mut self, measured: &Measured) {
        for (found, i) in self.found.iter_mut().zip(ESTIMATED) {
            if i == STORAGE && measured.disk.is_none() {
                continue;
            }
            let serves_little = measured.used_per_s[i] < self.stated[i] / 1_000 * SERVED_PERMILLE_MIN;
            let mut reading = reading(measured, &mut self.disk, i);
            if i == CPU && serves_little {
                reading.saturation = reading.saturation.min(Saturation::Between);
            }
            let estimate = found.estimator.observe(&reading);
            found.lasting.note(&estimate, self.stated[i]);
        }
    }

    /// May be handed out here, reserved or lent, in thousandths of tokens each second.
    pub fn lendable(&self) -> [u64; RESOURCES] {
        let mut lendable = self.promised;
        for (found, i) in self.found.iter().zip(ESTIMATED) {
            lendable[i] = found.estimator.estimate().per_s;
        }
        lendable
    }

    /// `None` of a resource that is not estimated.
    pub fn estimates(&self) -> [Option<Estimate>; RESOURCES] {
        let of = |i: usize| {
            let found = ESTIMATED.iter().position(|one| *one == i)?;
            Some(self.found[found].estimator.estimate())
        };
        std::array::from_fn(of)
    }

    /// The part of the stated capacity that admission should go by, in thousandths.
    pub fn lasting_permille(&self) -> [u16; RESOURCES] {
        let mut permille = [WHOLE_PERMILLE; RESOURCES];
        for (found, i) in self.found.iter().zip(ESTIMATED) {
            permille[i] = found.lasting.permille();
        }
        permille
    }
}

fn part_of(stated: [u64; RESOURCES], share: f64) -> [u64; RESOURCES] {
    stated.map(|all| (all as f64 * share) as u64)
}

fn bounds(stated: u64, promised: u64, raises: bool) -> Bounds {
    Bounds {
        start_per_s: promised,
        most_per_s: if raises { stated } else { promised },
    }
}

fn reading(measured: &Measured, disk: &mut DiskWatch, resource: usize) -> Reading {
    let used_per_s = measured.used_per_s[resource];
    let (saturation, implied_per_s) = match (resource, measured.cpu, measured.disk) {
        (CPU, Some(cpu), _) => (cpu.saturation(), cpu.implied_per_s(used_per_s)),
        (STORAGE, _, Some(time)) => (disk.saturation(time), None),
        _ => (Saturation::Between, None),
    };
    let request = if measured.entries_per_s > 0.0 {
        used_per_s as f64 / measured.entries_per_s
    } else {
        0.0
    };
    Reading {
        used_per_s,
        saturation,
        implied_per_s,
        outstanding: measured.outstanding[resource],
        misses_guarantees: measured.misses_guarantees,
        request,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::estimator::Phase;

    const STATED: [u64; RESOURCES] = [4_000_000, 1_000_000, 400_000];

    /// A second of shards that have no time left, and of a disk that is idle.
    fn busy(used_cpu: u64) -> Measured {
        Measured {
            used_per_s: [used_cpu, 0, 100],
            entries_per_s: 10.0,
            cpu: Some(CpuTime {
                busy_us: 1_000_000,
                elapsed_us: 1_000_000,
            }),
            disk: Some(DiskTime {
                busy_us: 1_000,
                syncs: 10,
                elapsed_us: 1_000_000,
            }),
            ..Measured::default()
        }
    }

    #[test]
    fn a_server_that_can_do_less_lends_less_at_once_and_promises_less_later() {
        let mut server = ServerEstimates::new(STATED, 0.8, false);
        assert_eq!(server.lendable(), [3_200_000, 800_000, 320_000]);
        for _ in 0..4 {
            server.observe(&busy(1_000_000));
        }
        assert_eq!(server.lendable(), [1_000_000, 800_000, 320_000]);
        assert_eq!(server.lasting_permille(), [1_000; 3]);
        for _ in 0..30 {
            server.observe(&busy(1_000_000));
        }
        assert_eq!(server.lasting_permille(), [250, 1_000, 1_000]);
        let [cpu, network, storage] = server.estimates();
        assert!(cpu.is_some_and(|cpu| cpu.is_measured && cpu.phase == Phase::Stable));
        assert_eq!(network, None);
        assert!(storage.is_some_and(|storage| !storage.is_measured));
    }

    #[test]
    fn shards_that_are_busy_with_something_else_say_nothing() {
        let mut server = ServerEstimates::new(STATED, 0.8, false);
        for _ in 0..60 {
            server.observe(&busy(30_000));
        }
        assert_eq!(server.lendable(), [3_200_000, 800_000, 320_000]);
        assert_eq!(server.lasting_permille(), [1_000; 3]);
    }

    #[test]
    fn shards_that_spin_say_nothing_either() {
        let mut server = ServerEstimates::new(STATED, 0.8, false);
        let spinning = Measured {
            cpu: None,
            ..busy(1_000_000)
        };
        for _ in 0..60 {
            server.observe(&spinning);
        }
        assert_eq!(server.lendable()[CPU], 3_200_000);
    }

    #[test]
    fn a_sync_that_is_under_way_is_read_when_it_ends() {
        let mut server = ServerEstimates::new(STATED, 0.8, true);
        server.observe(&busy(1));
        let before = server.estimates();
        let under_way = Measured {
            disk: None,
            cpu: None,
            misses_guarantees: true,
            ..busy(1)
        };
        for _ in 0..60 {
            server.observe(&under_way);
        }
        assert_eq!(server.estimates()[STORAGE], before[STORAGE]);
    }
}
