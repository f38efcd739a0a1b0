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
    pub fn parts(&self) -> impl Iterator<Item = Sla> + '_ {
        let count = self.members.len() as u16;
        (0..count).map(move |number| self.sla.part(number, count))
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
