//! The cost of reads: pages of entries that leave any replica (Filo §3, Pulsar §3).
//!
//! Readers ask whichever replica they like, and a replica may fail. So each replica reserves as much as it would serve
//! if only as many were left as accept appends ([`Sla::reads_per_replica_per_s`]).

use quorate_types::cost::{EntryCost, ReadBudget, ShortBatch};
use quorate_types::limits::SINGLE_ENTRY_READS_PER_S;
use quorate_types::{Durability, Sla};
use serde::{Deserialize, Serialize};

use crate::curve::{CPU_NS_MAX, Point, ProfileError, error, milli_at, validate_curve};

/// CPU of one entry in a full page, by size.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadCurves {
    /// Entries in memory, which tails follow.
    memory: Vec<Point>,
    /// All of the cost of entries on the disk: a reader is far behind.
    disk: Vec<Point>,
    /// The cost of a page itself. The points include it, spread over `network.entries_per_batch`.
    page_ns: u32,
}

impl ReadCurves {
    pub fn validate(&self) -> Result<(), ProfileError> {
        validate_curve("cpu.read.memory", &self.memory)?;
        validate_curve("cpu.read.disk", &self.disk)?;
        match self.page_ns {
            0..=CPU_NS_MAX => Ok(()),
            _ => Err(error("cpu.read.page_ns", "must be 0 to 1000000000")),
        }
    }
}

/// Reads as a profile costs them.
pub(crate) struct ReadCosts<'a> {
    pub curves: &'a ReadCurves,
    pub page_header_bytes: u32,
    /// Entries of a full page.
    pub page_entries: u32,
    pub io_bytes: u32,
}

impl ReadCosts<'_> {
    /// The budget of each replica of a group. Persistent groups reserve what their entries cost from the disk.
    pub fn budget(&self, sla: &Sla) -> ReadBudget {
        let budget = ReadBudget {
            rate_per_s: sla.reads_per_replica_per_s(),
            reserved_milli: [0; 3],
            cost: self.line(sla.request_size_bytes, &self.curves.memory, self.network_milli()),
            short_page: self.short_page(),
            from_disk: self.disk(sla.request_size_bytes),
        };
        ReadBudget {
            reserved_milli: reserved_milli(&budget, sla),
            ..budget
        }
    }

    /// Reserved at each replica, in thousandths of tokens each second.
    pub fn reserved_milli(&self, sla: &Sla) -> [u64; 3] {
        match sla.read_rate_per_s {
            0 => [0; 3], // most SLAs, and admission asks often
            _ => self.budget(sla).reserved_milli,
        }
    }

    fn short_page(&self) -> ShortBatch {
        let entries = self.page_entries;
        let each = |milli: u64| milli / u64::from(entries);
        let header_milli = u64::from(self.page_header_bytes) * 1_000;
        ShortBatch {
            entries,
            lacking_milli: [
                each(u64::from(self.curves.page_ns) * 1_000),
                each(header_milli),
                0,
            ],
        }
    }

    /// Network of an entry that leaves once: headers for each, and its bytes.
    fn network_milli(&self) -> (u64, u64) {
        let header_milli = u64::from(self.page_header_bytes) * 1_000;
        (header_milli / u64::from(self.page_entries), 1_000)
    }

    /// A line through the declared size, at which its CPU is exact.
    fn line(&self, size_bytes: u32, points: &[Point], (network, network_byte): (u64, u64)) -> EntryCost {
        let cpu_ps = |size, extend| milli_at(points, size, extend, |point| (point.size_bytes, point.cpu_ns));
        let declared_ps = cpu_ps(size_bytes, false);
        let empty_ps = cpu_ps(0, true).min(declared_ps);
        let byte_ps = (declared_ps - empty_ps) / u64::from(size_bytes);
        EntryCost {
            fixed_milli: [declared_ps - byte_ps * u64::from(size_bytes), network, 0],
            per_byte_milli: [byte_ps, network_byte, 0],
        }
    }

    /// The additional cost of entries that the disk has: CPU by its curve, and an operation for each `io_bytes`. A page is
    /// read in one go, so that its entries share operations.
    fn disk(&self, size_bytes: u32) -> EntryCost {
        let memory = self.line(size_bytes, &self.curves.memory, (0, 0));
        let disk = self.line(size_bytes, &self.curves.disk, (0, 0));
        let more = |all: u64, part: u64| all.saturating_sub(part);
        let operation_milli = 1_000_000u64.div_ceil(u64::from(self.io_bytes));
        EntryCost {
            fixed_milli: [more(disk.fixed_milli[0], memory.fixed_milli[0]), 0, 0],
            per_byte_milli: [
                more(disk.per_byte_milli[0], memory.per_byte_milli[0]),
                0,
                operation_milli,
            ],
        }
    }
}

/// The reservation of one replica, in thousandths of tokens each second. [`SINGLE_ENTRY_READS_PER_S`] of the entries may
/// come in pages of their own.
fn reserved_milli(budget: &ReadBudget, sla: &Sla) -> [u64; 3] {
    let (rate_per_s, size) = (budget.rate_per_s, u64::from(sla.request_size_bytes));
    let alone_per_s = rate_per_s.min(SINGLE_ENTRY_READS_PER_S);
    let full_entries = u64::from(budget.short_page.entries);
    let is_persistent = sla.durability == Durability::Persistent;
    let page = |entries: u64| match is_persistent {
        true => budget.disk_page_milli(entries, entries * size),
        false => budget.page_milli(entries, entries * size),
    };
    let (full, alone) = (page(full_entries), page(1));
    std::array::from_fn(|i| {
        let entry = full[i].div_ceil(full_entries);
        let beside = alone[i].saturating_sub(entry);
        let all = entry.saturating_mul(rate_per_s);
        all.saturating_add(beside.saturating_mul(alone_per_s))
    })
}

#[cfg(test)]
mod tests {
    use quorate_types::ServerId;
    use quorate_types::cost::ResourceVector;
    use quorate_types::sla::ScarceResource;
    use quorate_types::space::Room;
    use serde_json::json;

    use super::*;
    use crate::amounts::Amounts;
    use crate::fleet::Fleet;
    use crate::profile::Profile;
    use crate::quote::{admit, quote};

    fn sla(durability: Durability, appends_per_s: u64, reads_per_s: u64) -> Sla {
        let sla = json!({
            "durability": durability, "replication_degree": 3, "request_size_bytes": 1024,
            "rate_per_s": appends_per_s, "read_rate_per_s": reads_per_s,
        });
        serde_json::from_value(sla).expect("it is an SLA")
    }

    fn fleet(profile: &Profile, cores: f64) -> Fleet {
        let mut fleet = Fleet::default();
        for id in 1..=3 {
            let capacity = ResourceVector::new(cores, 1e9, 1e6);
            let promisable = Amounts::of_capacity(capacity, Room::default(), profile.safety_factor);
            fleet.set_server(ServerId(id), promisable, None, false, true);
        }
        fleet
    }

    #[test]
    fn each_replica_reserves_the_reads_that_the_fewest_replicas_would_serve() {
        let profile = Profile::default_profile();
        for durability in [Durability::InMemory, Durability::Persistent] {
            let (without, with) = (sla(durability, 500, 0), sla(durability, 500, 30_001));
            let budget = profile.budget(&with).reads.expect("it has reads");
            assert_eq!(
                budget.rate_per_s, 15_001,
                "two of three replicas suffice for appends"
            );
            let reserved = budget.reserved_milli.map(|milli| milli.div_ceil(1_000));
            for position in 0..3 {
                let (before, now) = (
                    profile.demands(&without).at(position),
                    profile.demands(&with).at(position),
                );
                for i in 0..3 {
                    let more = now.rates()[i] - before.rates()[i];
                    assert!(
                        more.abs_diff(reserved[i]) <= 1,
                        "{durability:?}, resource {i}: {more}"
                    );
                }
            }
            let lasts = sla(durability, 500, 0);
            assert_eq!(profile.budget(&lasts).reads_reserved_milli(), [0; 3]);
        }
    }

    #[test]
    fn a_reservation_passes_its_rate_in_full_pages_and_some_single_entries() {
        let profile = Profile::default_profile();
        for (durability, reads_per_s) in [(Durability::InMemory, 20_000), (Durability::Persistent, 20_000)] {
            let budget = profile
                .budget(&sla(durability, 1, reads_per_s))
                .reads
                .expect("it has reads");
            let full_entries = u64::from(budget.short_page.entries);
            let is_persistent = durability == Durability::Persistent;
            let page = |entries: u64| match is_persistent {
                true => budget.disk_page_milli(entries, entries * 1024),
                false => budget.page_milli(entries, entries * 1024),
            };
            let full_pages_per_s = (budget.rate_per_s - SINGLE_ENTRY_READS_PER_S) / full_entries;
            for i in 0..3 {
                let used = page(full_entries)[i] * full_pages_per_s + page(1)[i] * SINGLE_ENTRY_READS_PER_S;
                assert!(used <= budget.reserved_milli[i], "{durability:?}, resource {i}");
                assert!(used * 1_001 / 1_000 >= budget.reserved_milli[i] || used == 0);
            }
            assert_eq!(
                budget.reserved_milli[2] > 0,
                is_persistent,
                "memory needs no disk"
            );
            let [one_ps, ..] = budget.page_milli(1, 1024);
            let [full_ps, ..] = budget.page_milli(full_entries, full_entries * 1024);
            assert!(one_ps * full_entries > full_ps, "a page has a cost of its own");
        }
    }

    #[test]
    fn reads_take_part_of_a_shard() {
        let profile = Profile::default_profile();
        let peak = |reads_per_s| profile.shard_peak_per_s(&sla(Durability::InMemory, 1, reads_per_s));
        assert!(peak(0) > peak(100_000) && peak(100_000) > peak(1_000_000));
        assert_eq!(peak(100_000_000), 0, "a shard cannot serve so many");
    }

    #[test]
    fn a_refusal_names_as_many_reads_as_fit() {
        let profile = Profile::default_profile();
        // 0.8 of a core is promised on each server.
        let mut fleet = fleet(&profile, 1.0);
        let asked = sla(Durability::InMemory, 10_000, 5_000_000);
        for _ in 0..2 {
            let refusal = quote(&mut fleet, &profile, &asked)
                .refusal
                .expect("it is too much");
            let fits = refusal.largest_sla_that_fits.expect("fewer reads fit");
            assert_eq!(fits.rate_per_s, asked.rate_per_s, "appends stay as they are");
            assert!(
                (100_000..5_000_000).contains(&fits.read_rate_per_s),
                "{}",
                fits.read_rate_per_s
            );
            assert!(quote(&mut fleet, &profile, &fits).admissible);
            let one_more = Sla {
                read_rate_per_s: fits.read_rate_per_s + 1,
                ..fits
            };
            assert!(!quote(&mut fleet, &profile, &one_more).admissible);
        }
        let taken = sla(Durability::InMemory, 1, 500_000);
        admit(&mut fleet, &profile, &taken).expect("it fits");
        let refusal = quote(&mut fleet, &profile, &taken)
            .refusal
            .expect("the CPU is taken");
        assert_eq!(refusal.scarce_resource, ScarceResource::Cpu);
        let fits = refusal.largest_sla_that_fits.expect("fewer reads fit");
        assert!(fits.read_rate_per_s < 500_000 && fits.rate_per_s == 1, "{fits:?}");
    }
}
