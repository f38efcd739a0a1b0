//! The grants in use of groups whose heads are here.

use std::collections::{BTreeMap, BTreeSet};

use quorate_types::Micros;

use super::bounds::GrantBound;
use super::command::{ExchangeCommand, GrantReason, Granted};
use crate::problem::GroupEpoch;

#[derive(Debug, Clone, Copy)]
pub(super) struct HeldGrant {
    pub interval: u64,
    pub per_s: u64,
    pub until: Micros,
    pub bound: Option<GrantBound>,
}

#[derive(Debug, Default)]
pub(super) struct Grants {
    all: BTreeMap<GroupEpoch, HeldGrant>,
    /// Groups whose commitments of this interval are void, also if their heads are elsewhere.
    recalled: BTreeSet<GroupEpoch>,
}

impl Grants {
    pub fn of(&self, key: &GroupEpoch) -> Option<&HeldGrant> {
        self.all.get(key)
    }

    /// Ends the grants for which `is_over` has a reason.
    pub fn begin(
        &mut self,
        now: Micros,
        is_over: impl Fn(&GroupEpoch, &HeldGrant) -> Option<GrantReason>,
    ) -> Vec<ExchangeCommand> {
        self.recalled.clear();
        let mut commands = Vec::new();
        self.all.retain(|key, grant| {
            let reason = is_over(key, grant);
            commands.extend(reason.map(|reason| ended(*key, now, reason)));
            reason.is_none()
        });
        commands
    }

    pub fn agree(&mut self, key: GroupEpoch, grant: HeldGrant) -> Option<ExchangeCommand> {
        if self.recalled.contains(&key) {
            return None;
        }
        if grant.per_s == 0 {
            let had = self.all.remove(&key);
            return had.map(|_| ended(key, grant.until, GrantReason::Agreed));
        }
        self.all.insert(key, grant);
        Some(ExchangeCommand::Grant(Granted {
            key,
            per_s: grant.per_s,
            until: grant.until,
            reason: GrantReason::Agreed,
            bound: grant.bound,
        }))
    }

    /// Ends the group's grant, and rejects another in this interval.
    pub fn lose(&mut self, now: Micros, key: GroupEpoch) -> Option<ExchangeCommand> {
        self.recalled.insert(key);
        let had = self.all.remove(&key);
        had.map(|_| ended(key, now, GrantReason::Recalled))
    }

    pub fn is_recalled(&self, key: &GroupEpoch) -> bool {
        self.recalled.contains(key)
    }
}

fn ended(key: GroupEpoch, now: Micros, reason: GrantReason) -> ExchangeCommand {
    ExchangeCommand::Grant(Granted {
        key,
        per_s: 0,
        until: now,
        reason,
        bound: None,
    })
}
