//! Servers' reports of their groups, as their heartbeats have told. Nothing of it is durable: a server tells all of it
//! anew on each connection.

use std::collections::HashMap;

use quorate_types::control::{GroupReport, ReportChanges, ReportSum};
use quorate_types::ids::IdMap;
use quorate_types::{Epoch, GroupId, ServerId};

#[derive(Debug, Default)]
pub struct Heard {
    by_server: HashMap<ServerId, Reports>,
}

/// One server's reports.
#[derive(Debug, Default)]
pub struct Reports {
    groups: IdMap<GroupId, Told>,
    sum: ReportSum,
    /// Every group of the server was told.
    is_whole: bool,
}

#[derive(Debug, Clone, Copy)]
struct Told {
    epoch: Epoch,
    digest: u64,
}

impl Heard {
    /// Takes in the groups of a heartbeat, all of them or the changed ones. False: something was lost, and the server is
    /// to begin anew.
    pub fn take(
        &mut self,
        server: ServerId,
        groups: &[GroupReport],
        changes: Option<&ReportChanges>,
    ) -> bool {
        let reports = self.by_server.entry(server).or_default();
        if changes.is_none_or(|changes| changes.begins) {
            *reports = Reports::default();
        }
        for group_id in changes.into_iter().flat_map(|changes| &changes.gone) {
            reports.forget(group_id);
        }
        groups.iter().for_each(|report| reports.note(report));
        let Some(changes) = changes else {
            reports.is_whole = true;
            return true;
        };
        let agrees = reports.sum == changes.sum;
        reports.is_whole = agrees && !changes.continues;
        agrees
    }

    /// The server's reports, once all of them were told.
    pub fn whole(&self, server: ServerId) -> Option<&Reports> {
        self.by_server.get(&server).filter(|reports| reports.is_whole)
    }

    /// The server has no connection: it tells everything on the next one.
    pub fn forget(&mut self, server: ServerId) {
        self.by_server.remove(&server);
    }
}

impl Reports {
    /// The epoch of the server's configuration of a group; `None`: the group is not there.
    pub fn epoch_of(&self, group_id: GroupId) -> Option<Epoch> {
        self.groups.get(&group_id).map(|told| told.epoch)
    }

    fn note(&mut self, report: &GroupReport) {
        let told = Told {
            epoch: report.epoch,
            digest: report.digest(),
        };
        self.sum.add(told.digest);
        if let Some(before) = self.groups.insert(report.group_id, told) {
            self.sum.remove(before.digest);
        }
    }

    fn forget(&mut self, group_id: &GroupId) {
        if let Some(before) = self.groups.remove(group_id) {
            self.sum.remove(before.digest);
        }
    }
}
