//! Guarantees of projects are admitted, changed and taken back (`docs/internals/allocation.md`, "Guarantees of projects").

use std::collections::BTreeSet;

use quorate_guarantees::Guarantee;
use quorate_placement::{Amounts, Profile};
use quorate_types::sla::{Refusal, RefusalReason, ScarceResource, Sla};
use quorate_types::{GroupId, ServerId};
use uuid::Uuid;

use super::epochs::Epochs;
use crate::command::{GuaranteeChange, GuaranteeRefusal, Reply};
use crate::state::entity::Group;
use crate::state::table::{Groups, Guarantees, ProjectGuarantee};

/// May change guarantees, and what servers are charged for them, through epochs.
#[derive(Debug)]
pub struct GuaranteeChanges<'a> {
    epochs: Epochs<'a>,
    guarantees: &'a mut Guarantees,
}

impl<'a> GuaranteeChanges<'a> {
    pub fn new(epochs: Epochs<'a>, guarantees: &'a mut Guarantees) -> Self {
        Self { epochs, guarantees }
    }

    pub fn set(&mut self, change: &GuaranteeChange) {
        let (project_id, guarantee) = (change.project_id, change.guarantee.as_ref());
        let reply = match self.known_answer(project_id, guarantee, change.revision) {
            Some(reply) => reply,
            None => self.set_if_it_fits(project_id, guarantee, change.revision),
        };
        self.epochs.out().reply(reply);
    }

    /// The answer where no room is to be looked for.
    fn known_answer(&self, project_id: Uuid, guarantee: Option<&Guarantee>, revision: u64) -> Option<Reply> {
        let present = self.guarantees.revision(project_id);
        if revision == present && self.guarantees.of(project_id) == guarantee {
            return Some(Reply::Done); // asked for again: the first answer was lost
        }
        if revision != present + 1 {
            let message = format!("The guarantee has revision {present} by now; ask for the next one.");
            return conflict("guarantee_revision", message);
        }
        let guarantee = guarantee?;
        if let Err((field, problem)) = guarantee.validate() {
            return conflict("invalid_guarantee", format!("{field} {problem}"));
        }
        let groups = self.epochs.groups();
        let is_own = |group_id| {
            groups
                .get(&group_id)
                .is_some_and(|group| group.project_id == project_id)
        };
        if let Some((at, group_id)) = guarantee.policy.foreign(is_own) {
            let message =
                format!("policy.groups.{at}.group_id names {group_id}, which is no group of the project.");
            return conflict("foreign_group", message);
        }
        let own = own_tokens_per_s(groups, project_id, |_| true);
        let least = own.saturating_add(guarantee.shared_tokens_per_s);
        let max = guarantee.max_tokens_per_s.filter(|max| *max < least)?;
        let message = format!(
            "max_tokens_per_s is {max}. The groups' own rates are worth {own} tokens/s, and {} more are to be shared: ask for \
             {least} or more, or delete or resize groups first.",
            guarantee.shared_tokens_per_s
        );
        conflict("guarantee_below_groups", message)
    }

    /// The answer that the next revision would get; all stays as it was.
    pub fn quote(&mut self, project_id: Uuid, guarantee: &Guarantee) -> Reply {
        let revision = self.guarantees.revision(project_id) + 1;
        if let Some(reply) = self.known_answer(project_id, Some(guarantee), revision) {
            return reply;
        }
        let (before, asked) = (
            self.guarantees.shared_tokens_per_s(project_id),
            guarantee.shared_tokens_per_s,
        );
        match share_if_it_fits(&mut self.epochs, project_id, (before, asked)) {
            Some(refusal) => Reply::GuaranteeRefused(refusal),
            None => {
                self.epochs.share(project_id, before);
                Reply::Done
            }
        }
    }

    fn set_if_it_fits(&mut self, project_id: Uuid, guarantee: Option<&Guarantee>, revision: u64) -> Reply {
        let tokens_per_s = guarantee.map_or(0, |one| one.shared_tokens_per_s);
        let before = self.guarantees.shared_tokens_per_s(project_id);
        if let Some(refusal) = share_if_it_fits(&mut self.epochs, project_id, (before, tokens_per_s)) {
            return Reply::GuaranteeRefused(refusal);
        }
        let since_ms = self.epochs.out().now_ms();
        let guarantee = ProjectGuarantee {
            guarantee: guarantee.cloned(),
            revision,
            since_ms,
        };
        self.guarantees.set(project_id, guarantee);
        Reply::Done
    }
}

/// Charges the project's groups for `to` shared tokens instead of `from`, or changes nothing and says what is short.
fn share_if_it_fits(
    epochs: &mut Epochs<'_>,
    project_id: Uuid,
    (from, to): (u64, u64),
) -> Option<GuaranteeRefusal> {
    let short = lacking(epochs, project_id, (from, to))?;
    let (mut known, mut above) = (from.min(to), to);
    while above - known > 1 {
        let middle = known + (above - known) / 2;
        if lacking(epochs, project_id, (from, middle)).is_none() {
            epochs.share(project_id, from);
            known = middle;
        } else {
            above = middle;
        }
    }
    let (server, resource) = short;
    let scarce_resource = ScarceResource::OF_SERVER[resource];
    let name = epochs.servers().name_of(server);
    let message = format!(
        "Each server of the project's groups reserves the shared tokens, and {name} has too little {} free for {to} tokens/s. \
         {known} fit now.",
        scarce_resource.in_words(),
    );
    Some(GuaranteeRefusal {
        scarce_resource,
        message,
        largest_shared_tokens_per_s: known,
    })
}

/// The server and the resource that keep the project's groups from sharing `to` tokens; nothing is charged then. `None`: they
/// are charged for it. Less always fits, also on servers that are charged more than may be promised of them.
fn lacking(epochs: &mut Epochs<'_>, project_id: Uuid, (from, to): (u64, u64)) -> Option<(ServerId, usize)> {
    let before = charged(epochs, project_id);
    epochs.share(project_id, to);
    let after = charged(epochs, project_id);
    let mut pairs = before.iter().zip(&after);
    let short = pairs.find_map(|((server, before, free), (_, after, _))| {
        let fits = |i: &usize| after.0[*i] <= before.0[*i].saturating_add(free.0[*i]);
        Some((*server, (0..ScarceResource::OF_SERVER.len()).find(|i| !fits(i))?))
    });
    if short.is_some() {
        epochs.share(project_id, from);
    }
    short
}

/// The servers of the project's groups, what each is charged in all, and what is free for applicants.
fn charged(epochs: &Epochs<'_>, project_id: Uuid) -> Vec<(ServerId, Amounts, Amounts)> {
    let groups = epochs.groups().of_project(project_id);
    let servers: BTreeSet<ServerId> = groups.flat_map(Group::members).collect();
    let region = |server: &ServerId| epochs.servers()[server].region.clone();
    let of = |server: ServerId| {
        let fleet = epochs
            .fleets()
            .in_region(&region(&server))
            .expect("a server's region has a fleet");
        (server, fleet.allocated(server), fleet.free_for_applicants(server))
    };
    servers.into_iter().map(of).collect()
}

/// The worth of the own rates of those of a project's groups that count.
pub fn own_tokens_per_s(groups: &Groups, project_id: Uuid, counts: impl Fn(&Group) -> bool) -> u64 {
    let own = groups.of_project(project_id).filter(|group| counts(group));
    own.map(Group::own_guarantee_tokens).fold(0, u64::saturating_add)
}

/// The refusal of an SLA, of so many partitions, with which the project's groups would reserve more than its guarantee's maximum.
/// `instead_of`: the group that is to have it.
pub fn beyond_max(
    guarantees: &Guarantees,
    groups: &Groups,
    profile: &Profile,
    project_id: Uuid,
    (instead_of, sla, partitions): (Option<GroupId>, &Sla, u16),
) -> Option<Refusal> {
    let guarantee = guarantees.of(project_id)?;
    let max = guarantee.max_tokens_per_s?;
    let others = own_tokens_per_s(groups, project_id, |group| {
        let whole = group.partition.map_or(group.group_id, |partition| partition.of);
        Some(whole) != instead_of
    });
    let left = max
        .saturating_sub(others)
        .saturating_sub(guarantee.shared_tokens_per_s);
    let degree = usize::from(sla.replication_degree);
    let worth = |sla: &Sla| -> u64 {
        let parts = (0..partitions).map(|number| sla.part(number, partitions));
        parts
            .map(|part| profile.budget(&part).reserved_guarantee_tokens(degree))
            .sum()
    };
    let needed = worth(sla);
    if needed <= left {
        return None;
    }
    let at = |rate_per_s| Sla {
        rate_per_s,
        ..sla.clone()
    };
    let fits = |rate_per_s: u64| rate_per_s >= u64::from(partitions) && worth(&at(rate_per_s)) <= left;
    let rate_per_s = profile
        .budget(sla)
        .requests_of_guarantee(left, degree)
        .min(sla.rate_per_s);
    Some(Refusal {
        reason: RefusalReason::BeyondGuarantee,
        scarce_resource: ScarceResource::Guarantee,
        message: format!(
            "The project's guarantee has a maximum of {max} tokens/s, and {left} of them are neither shared nor reserved by its \
             groups. This SLA is worth {needed}: raise the maximum, or ask for less."
        ),
        largest_sla_that_fits: fits(rate_per_s).then(|| at(rate_per_s)),
    })
}

fn conflict(code: &'static str, message: String) -> Option<Reply> {
    Some(Reply::Conflict { code, message })
}
