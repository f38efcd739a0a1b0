//! A group with partitions: one SLA over several chains, and the assignment of keys to them.

use std::collections::BTreeMap;

use quorate_types::{GroupId, Layout, Offset, Sla};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The place of a chain in a partitioned group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Partition {
    pub of: GroupId,
    pub number: u16,
    pub layout: Layout,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Partitioned {
    pub project_id: Uuid,
    /// The SLA of all partitions together.
    pub sla: Sla,
    /// 1, and one more for each change.
    pub revision: u64,
    pub since_ms: u64,
    /// The partitions' rates, as they were last divided; none: evenly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rates: Vec<u64>,
    /// The chains, by number of the partition; the first has the group's own id.
    pub members: Vec<GroupId>,
    /// The layout by which heads take appends.
    pub layout: Layout,
    /// Partitions were added, and clients do not know of them yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<Growth>,
    /// Earlier growths, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<LayoutChange>,
}

/// Partitions are added: until all former ones are sealed, no client may append to the new ones.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Growth {
    /// The number of partitions before.
    pub from: u16,
    /// The ends of former layouts, of the partitions that are sealed.
    pub ends: BTreeMap<u16, Offset>,
}

/// A growth that is over. Entries of a key that has moved to a new partition lie before these ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutChange {
    /// The layout that began.
    pub layout: Layout,
    /// The number of partitions before.
    pub from: u16,
    /// The number of partitions from then on.
    pub to: u16,
    /// The ends of the partitions before, in order.
    pub ends: Vec<Offset>,
}

impl Partitioned {
    /// The layout by which clients find keys' partitions.
    pub fn layout_in_use(&self) -> Layout {
        match self.growth {
            Some(_) => Layout(self.layout.0 - 1),
            None => self.layout,
        }
    }

    /// The number of partitions of that layout.
    pub fn partitions_in_use(&self) -> u16 {
        let all = self.members.len() as u16;
        self.growth.as_ref().map_or(all, |growth| growth.from)
    }

    /// The parts of the SLA, by partition.
    pub fn parts(&self) -> Vec<Sla> {
        parts(&self.sla, &self.rates, self.members.len())
    }

    /// Rates for another rate in all, or for more partitions, in the same proportions. Partitions that are new have the mean of
    /// the others.
    pub fn rates_of(&self, rate_per_s: u64, partitions: usize) -> Vec<u64> {
        if self.rates.is_empty() {
            return Vec::new();
        }
        let mean = (self.sla.rate_per_s / self.rates.len() as u64).max(1);
        let mut weights = self.rates.clone();
        weights.resize(partitions, mean);
        in_proportion(rate_per_s, &weights)
    }

    /// Whether a growth waits for this partition.
    pub fn awaits_seal(&self, partition: &Partition) -> bool {
        let growth = self.growth.as_ref();
        partition.layout == self.layout
            && growth.is_some_and(|growth| {
                partition.number < growth.from && !growth.ends.contains_key(&partition.number)
            })
    }

    /// Notes the end of former layouts in a partition. True: it was the last one, and clients may use the new partitions.
    pub fn seal(&mut self, partition: u16, end_offset: Offset) -> bool {
        let Some(growth) = &mut self.growth else {
            return false;
        };
        growth.ends.insert(partition, end_offset);
        if growth.ends.len() < usize::from(growth.from) {
            return false;
        }
        let growth = self.growth.take().expect("it is there");
        self.changes.push(LayoutChange {
            layout: self.layout,
            from: growth.from,
            to: self.members.len() as u16,
            ends: growth.ends.into_values().collect(),
        });
        true
    }
}

/// The parts of an SLA at these rates, or with even ones.
pub fn parts(sla: &Sla, rates: &[u64], partitions: usize) -> Vec<Sla> {
    let count = partitions as u16;
    let part = |number: u16| match rates.get(usize::from(number)) {
        Some(rate_per_s) => sla.part_at(*rate_per_s, number, count),
        None => sla.part(number, count),
    };
    (0..count).map(part).collect()
}

/// Divides a rate in proportion to weights. Each has at least 1, and the sum is exact: `rate_per_s` is no less than their number.
fn in_proportion(rate_per_s: u64, weights: &[u64]) -> Vec<u64> {
    let count = weights.len() as u64;
    let (beyond, all) = (
        rate_per_s - count,
        weights.iter().map(|weight| u128::from(*weight)).sum::<u128>(),
    );
    let part = |weight: &u64| 1 + (u128::from(beyond) * u128::from(*weight) / all.max(1)) as u64;
    let mut rates: Vec<u64> = weights.iter().map(part).collect();
    let rest = (rate_per_s - rates.iter().sum::<u64>()) as usize;
    rates.iter_mut().take(rest).for_each(|rate| *rate += 1);
    rates
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proportions_add_up_to_the_whole() {
        assert_eq!(in_proportion(1_000, &[300, 600, 100]), [301, 599, 100]);
        assert_eq!(in_proportion(3, &[5, 0, 0]), [1, 1, 1]);
        for (rate_per_s, weights) in [
            (7, vec![1; 7]),
            (1_001, vec![7, 1, 900]),
            (u64::from(u32::MAX), vec![9; 250]),
        ] {
            let rates = in_proportion(rate_per_s, &weights);
            assert_eq!(rates.iter().sum::<u64>(), rate_per_s);
            assert!(rates.iter().all(|rate| *rate >= 1));
        }
    }
}
