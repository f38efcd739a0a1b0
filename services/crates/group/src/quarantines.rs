//! Quarantine: an assertion stopped a replica, and this process serves it no more. The shell catches the panic and
//! discards the outputs of that step; the rules that follow are here.
//!
//! The replica's part of what groups share is given back at once. Its data stays on the disk. No configuration brings it
//! back with an empty log under the same epoch: the quarantine ends with the data, by a drop or a reset of the log.

use std::collections::BTreeMap;

use quorate_types::control::QuarantinedReplica;
use quorate_types::limits::QUARANTINE_REASON_CHARS_MAX;
use quorate_types::{Epoch, GroupConfig, GroupId};

use crate::absent::Absence;
use crate::group::Group;
use crate::turn::Turn;

/// The replicas of one shard that are in quarantine.
#[derive(Debug, Default)]
pub struct Quarantines {
    replicas: BTreeMap<GroupId, Quarantined>,
}

#[derive(Debug)]
struct Quarantined {
    report: QuarantinedReplica,
    /// The epoch in which the group is quarantined as a whole.
    whole_in: Option<Epoch>,
}

/// A shell's task for a group when the quarantine of its replica begins.
#[derive(Debug, PartialEq, Eq)]
pub enum Release {
    /// Copiers of the journal wait for this group's records no longer.
    Copiers,
    /// Heartbeats report the group no more, and no link is kept for it.
    Reports,
    /// Connections of its clients are closed: nobody can say which of their requests have no answer.
    Clients,
    /// Heartbeats list the replica.
    Listed(QuarantinedReplica),
}

/// The standing of a group when a configuration of it comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// It is in no quarantine.
    Free,
    /// The configuration is ignored.
    Stays,
    /// The configuration resets the log: the group's data on the disk is dropped before it is followed.
    Ended,
}

impl Quarantines {
    /// An assertion stopped the group's replica. Its state is in doubt: no more than counts is taken from it.
    pub fn begin(&mut self, group: &mut Group, reason: &str, turn: &mut Turn) -> [Release; 4] {
        group.give_back(turn);
        let report = QuarantinedReplica {
            group_id: group.id(),
            epoch: group.replica().epoch(),
            reason: reason.chars().take(QUARANTINE_REASON_CHARS_MAX).collect(),
        };
        let quarantined = Quarantined {
            report: report.clone(),
            whole_in: None,
        };
        self.replicas.insert(report.group_id, quarantined);
        let listed = Release::Listed(report);
        [Release::Copiers, Release::Reports, Release::Clients, listed]
    }

    /// The group is quarantined as a whole. True: a replica of it is in quarantine here.
    pub fn be_whole(&mut self, group_id: GroupId, epoch: Epoch) -> bool {
        let quarantined = self.replicas.get_mut(&group_id);
        quarantined.map(|one| one.whole_in = Some(epoch)).is_some()
    }

    /// A configuration comes. In a later epoch than that of a whole quarantine the group goes on elsewhere.
    pub fn configure(&mut self, config: &GroupConfig) -> Standing {
        let Some(quarantined) = self.replicas.get_mut(&config.group_id) else {
            return Standing::Free;
        };
        quarantined.whole_in = quarantined.whole_in.filter(|epoch| config.epoch <= *epoch);
        let former = quarantined.report.epoch;
        if config.beginning.is_none_or(|beginning| beginning.epoch <= former) {
            return Standing::Stays;
        }
        self.replicas.remove(&config.group_id);
        Standing::Ended
    }

    /// The data of the replica is dropped. True: it was in quarantine.
    pub fn end(&mut self, group_id: GroupId) -> bool {
        self.replicas.remove(&group_id).is_some()
    }

    /// The epoch of a replica in quarantine.
    pub fn epoch_of(&self, group_id: GroupId) -> Option<Epoch> {
        Some(self.replicas.get(&group_id)?.report.epoch)
    }

    /// The reason for which a group that is not served here is not. `is_lost`: nothing of it is left anywhere.
    pub fn absence_of(&self, group_id: GroupId, is_lost: bool) -> Absence {
        let quarantined = self.replicas.get(&group_id);
        if quarantined.is_some_and(|one| one.whole_in.is_some()) {
            Absence::Quarantined
        } else if is_lost {
            Absence::Lost
        } else {
            Absence::NotHere
        }
    }

    pub fn reports(&self) -> impl Iterator<Item = &QuarantinedReplica> {
        self.replicas.values().map(|one| &one.report)
    }

    pub fn len(&self) -> usize {
        self.replicas.len()
    }

    pub fn is_empty(&self) -> bool {
        self.replicas.is_empty()
    }
}
