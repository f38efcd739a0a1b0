//! Groups with partitions are admitted, changed and grown (`docs/internals/partitions.md`).

use quorate_placement::{Asked, Profile};
use quorate_types::sla::{PartDemand, Quote, Refusal, ScarceResource, Sla};
use quorate_types::{GroupId, Layout, Offset, ServerId};
use uuid::Uuid;

use super::dry_run::unknown_region;
use super::epochs::Epochs;
use super::guarantees::beyond_max;
use crate::command::{PartitionsChange, QuoteRequest, RateChange, Reply};
use crate::state::entity::partitioned::{Growth, parts};
use crate::state::entity::{EventKind, EventSubject, Group, GroupStatus, Partition, Partitioned, Terms};
use crate::state::table::{DeletedGroups, Guarantees, Partitions};

/// A refusal names the largest rate that fits, to a hundredth of the one that was asked for.
const RATE_STEPS: u64 = 100;

/// May add partitioned groups and change them, through epochs; reads the profile, guarantees and ids of deleted groups.
#[derive(Debug)]
pub struct PartitionChanges<'a> {
    epochs: Epochs<'a>,
    partitions: &'a mut Partitions,
    deleted: &'a DeletedGroups,
    profile: &'a Profile,
    guarantees: &'a Guarantees,
}

/// Partitions on trial: servers are charged for them.
#[derive(Debug, Default)]
struct Trial {
    /// Each as it is, and as it would be.
    changed: Vec<(Group, Group)>,
    added: Vec<Group>,
}

impl<'a> PartitionChanges<'a> {
    pub fn new(
        epochs: Epochs<'a>,
        partitions: &'a mut Partitions,
        deleted: &'a DeletedGroups,
        profile: &'a Profile,
        guarantees: &'a Guarantees,
    ) -> Self {
        Self {
            epochs,
            partitions,
            deleted,
            profile,
            guarantees,
        }
    }

    pub fn set(&mut self, change: &PartitionsChange) {
        let reply = match self.known_answer(change) {
            Some(reply) => reply,
            None => self.set_if_it_fits(change),
        };
        self.epochs.out().reply(reply);
    }

    /// Whether all partitions would fit, with their demands; all stays as it was.
    pub fn quote(&mut self, asked: &QuoteRequest) -> Quote {
        let change = &self.quoted(asked);
        let count = change.partitions.len() as u16;
        let dominant = match self.epochs.fleets().in_region(&change.sla.region) {
            Some(fleet) => quorate_placement::quote::dominant(fleet, self.profile, &change.sla),
            None => ScarceResource::Servers,
        };
        let mut failure_domains = 0;
        let refusal = match self.fit(change) {
            Ok(trial) => {
                failure_domains = self.fewest_domains(&trial);
                self.undo(&trial);
                None
            }
            Err(refusal) => Some(refusal),
        };
        let part_quote = |sla: &Sla| quorate_placement::quote::quote_of(self.profile, sla, dominant, None);
        let slas = (0..count).map(|number| change.sla.part(number, count));
        let parts: Vec<PartDemand> = slas
            .map(|sla| PartDemand {
                demand: part_quote(&sla).total_demand,
                sla,
            })
            .collect();
        Quote {
            admissible: refusal.is_none(),
            refusal,
            failure_domains,
            total_demand: parts.iter().map(|part| part.demand).sum(),
            parts,
            ..part_quote(&change.sla.part(0, count))
        }
    }

    /// The change that a quote asks for: new partitions have ids that nobody has.
    fn quoted(&self, asked: &QuoteRequest) -> PartitionsChange {
        let known = asked.replaces.filter(|id| self.epochs.groups().contains_key(id));
        let mut ids = known.map(|id| self.members(id)).unwrap_or_default();
        let project_id = match known {
            Some(group_id) => self.epochs.groups()[&group_id].project_id,
            None => asked.project_id.unwrap_or_default(),
        };
        let groups = self.epochs.groups();
        let unused = (0..).map(|number| GroupId(Uuid::from_u128(number)));
        let mut unused = unused.filter(|id| !groups.contains_key(id));
        let count = asked
            .partitions
            .map_or(ids.len().max(1), usize::from)
            .max(ids.len());
        ids.extend(unused.by_ref().take(count - ids.len()));
        PartitionsChange {
            group_id: ids[0],
            project_id,
            sla: asked.sla.clone(),
            partitions: ids,
            revision: 0,
        }
    }

    /// The answer where no room is to be looked for.
    fn known_answer(&self, change: &PartitionsChange) -> Option<Reply> {
        let present = self.partitions.get(&change.group_id);
        let count = u16::try_from(change.partitions.len()).unwrap_or(u16::MAX);
        if let Err((field, problem)) = change.sla.validate_partitions(count) {
            return conflict("invalid_sla", format!("{field} {problem}"));
        }
        let revision = present.map_or(0, |one| one.revision);
        if let Some(present) = present
            && change.revision == revision
            && present.sla == change.sla
            && present.members == change.partitions
        {
            return Some(Reply::Done); // asked for again: the first answer was lost
        }
        if change.revision != revision + 1 {
            let message = format!("The partitions have revision {revision} by now; ask for the next one.");
            return conflict("partitions_revision", message);
        }
        self.wrong_ids(change).or_else(|| self.busy_member(change))
    }

    /// The ids of partitions never change, and new ones are unused.
    fn wrong_ids(&self, change: &PartitionsChange) -> Option<Reply> {
        let groups = self.epochs.groups();
        let members = self.members(change.group_id);
        if change.partitions.first() != Some(&change.group_id) || !change.partitions.starts_with(&members) {
            let message = "Partitions are added and never removed, and the first has the id of the group.";
            return conflict("partitions_differ", message.into());
        }
        let added = &change.partitions[members.len()..];
        let mut seen = std::collections::BTreeSet::new();
        let taken =
            |id: &&GroupId| groups.contains_key(id) || self.deleted.contains(**id) || !seen.insert(**id);
        if let Some(taken) = added.iter().find(taken) {
            let message = format!("The id {taken} was used before; use another for the partition.");
            return conflict("group_exists", message);
        }
        None
    }

    /// A partition in no state for another epoch.
    fn busy_member(&self, change: &PartitionsChange) -> Option<Reply> {
        let members = self.members(change.group_id);
        let grows = change.partitions.len() > members.len();
        if let Some(present) = self.partitions.get(&change.group_id)
            && present.growth.is_some()
        {
            let message = "Partitions are being added; wait until clients use them.";
            return conflict("partitions_growing", message.into());
        }
        for (number, member) in members.iter().enumerate() {
            let group = &self.epochs.groups()[member];
            if group.project_id != change.project_id || group.is_deleting() {
                return conflict(
                    "group_deleted",
                    "The group is deleted, or another project's.".into(),
                );
            }
            if !group.keeps_place_with(&change.sla) {
                let message =
                    "Durability, replication degree and region stay as they are for the life of a group.";
                return conflict("not_in_place", message.into());
            }
            let commits = matches!(group.status, GroupStatus::Active | GroupStatus::Degraded);
            let may_change = group.may_change_members() && group.status != GroupStatus::Lost;
            if !may_change || (grows && !commits) {
                let message = format!("Partition {number} is {}: wait until it is active.", group.status);
                return conflict("partition_not_ready", message);
            }
        }
        None
    }

    /// The chains that the group has: one without partitions is its own first.
    fn members(&self, group_id: GroupId) -> Vec<GroupId> {
        match self.partitions.get(&group_id) {
            Some(present) => present.members.clone(),
            None => self
                .epochs
                .groups()
                .get(&group_id)
                .map(|group| group.group_id)
                .into_iter()
                .collect(),
        }
    }

    fn set_if_it_fits(&mut self, change: &PartitionsChange) -> Reply {
        let trial = match self.fit(change) {
            Ok(trial) => trial,
            Err(refusal) => {
                let subject = EventSubject::Group(change.group_id, None, None);
                let message = refusal.message.clone();
                self.epochs.out().event(EventKind::GroupRefused, subject, message);
                return Reply::Refused(refusal);
            }
        };
        let before = trial.changed.len();
        self.note(change, before);
        for (present, next) in trial.changed {
            self.epochs.charge_on_trial(&next, &present);
            self.resize(present, next);
        }
        for group in trial.added {
            let group_id = group.group_id;
            self.epochs.found(group);
            self.epochs.announce(group_id);
        }
        let message = format!(
            "{} partitions: {} in all.",
            change.partitions.len(),
            change.sla.rates_in_words()
        );
        let epoch = self.epochs.groups()[&change.group_id].epoch;
        let subject = EventSubject::Group(change.group_id, Some(epoch), None);
        let out = self.epochs.out();
        out.event(EventKind::GroupPartitions, subject, message);
        Reply::Done
    }

    fn resize(&mut self, present: Group, next: Group) {
        let terms = Terms {
            revision: present.sla_revision + 1,
            sla: next.sla,
            demands: next.demands,
            budget: next.budget,
            partition: next.partition,
        };
        self.epochs.resize(present.group_id, terms);
        // `min_replicas` may have changed, and with it whether the chain is long enough.
        self.epochs.configs().refresh_status(present.group_id);
    }

    /// Notes the change of a group that has so many chains.
    fn note(&mut self, change: &PartitionsChange, before: usize) {
        let present = self.partitions.get(&change.group_id);
        let grows = before > 0 && change.partitions.len() > before;
        let partitioned = Partitioned {
            project_id: change.project_id,
            sla: change.sla.clone(),
            revision: change.revision,
            since_ms: self.epochs.out().now_ms(),
            rates: self.rates(change),
            members: change.partitions.clone(),
            layout: next_layout(present, change.partitions.len()),
            growth: grows.then(|| Growth {
                from: before as u16,
                ends: Default::default(),
            }),
            changes: present.map(|one| one.changes.clone()).unwrap_or_default(),
        };
        self.partitions.set(change.group_id, partitioned);
    }

    /// Charges servers for all partitions as they are to be, or for none.
    fn fit(&mut self, change: &PartitionsChange) -> Result<Trial, Refusal> {
        let refusal = match self.try_fit(change) {
            Ok(trial) => return Ok(trial),
            Err(refusal) => refusal,
        };
        let at = |percent: u64| PartitionsChange {
            sla: Sla {
                rate_per_s: (u128::from(change.sla.rate_per_s) * u128::from(percent) / u128::from(RATE_STEPS))
                    as u64,
                ..change.sla.clone()
            },
            ..change.clone()
        };
        let (mut known, mut above) = (0, RATE_STEPS);
        while above - known > 1 {
            let middle = known + (above - known) / 2;
            let asked = at(middle);
            let count = asked.partitions.len() as u16;
            let trial = asked
                .sla
                .validate_partitions(count)
                .ok()
                .and_then(|()| self.try_fit(&asked).ok());
            match trial {
                Some(trial) => {
                    self.undo(&trial);
                    known = middle;
                }
                None => above = middle,
            }
        }
        Err(Refusal {
            largest_sla_that_fits: (known > 0).then(|| at(known).sla),
            message: match change.partitions.len() {
                1 => refusal.message,
                count => format!("Of {count} partitions not all have room. {}", refusal.message),
            },
            ..refusal
        })
    }

    fn try_fit(&mut self, change: &PartitionsChange) -> Result<Trial, Refusal> {
        let count = change.partitions.len() as u16;
        let asked = (Some(change.group_id), &change.sla, count);
        let (guarantees, groups) = (self.guarantees, self.epochs.groups());
        let beyond = beyond_max(guarantees, groups, self.profile, change.project_id, asked);
        let unknown = unknown_region(self.epochs.servers(), self.epochs.fleets(), &change.sla);
        if let Some(refusal) = unknown.or(beyond) {
            return Err(refusal);
        }
        let mut trial = Trial::default();
        let parts = parts(&change.sla, &self.rates(change), change.partitions.len());
        for part in (0..count).zip(parts) {
            if let Err(refusal) = self.try_partition(change, part, &mut trial) {
                self.undo(&trial);
                return Err(refusal);
            }
        }
        Ok(trial)
    }

    fn try_partition(
        &mut self,
        change: &PartitionsChange,
        (number, sla): (u16, Sla),
        trial: &mut Trial,
    ) -> Result<(), Refusal> {
        let (group_id, count) = (change.partitions[usize::from(number)], change.partitions.len());
        let cost = (self.profile.demands(&sla), self.profile.budget(&sla));
        let partition = Some(Partition {
            of: change.group_id,
            number,
            layout: next_layout(self.partitions.get(&change.group_id), count),
        });
        if let Some(present) = self.epochs.groups().get(&group_id).cloned() {
            if let Some(refusal) = self.epochs.dry_run(self.profile).refusal_in_place(group_id, &sla) {
                return Err(refusal);
            }
            let (demands, budget) = cost;
            let next = Group {
                sla,
                demands,
                budget,
                partition,
                relocation: present.relocation.clone().filter(|one| one.next.is_none()),
                ..present.clone()
            };
            self.epochs.charge_on_trial(&present, &next);
            trial.changed.push((present, next));
            return Ok(());
        }
        let shared = self.guarantees.shared(change.project_id);
        let chain = self.epochs.place(self.profile, Asked { sla: &sla, shared })?;
        let now_ms = self.epochs.out().now_ms();
        trial.added.push(Group {
            shared_tokens_per_s: self.guarantees.shared_tokens_per_s(change.project_id),
            partition,
            ..Group::admitted((group_id, change.project_id), &sla, cost, chain, now_ms)
        });
        Ok(())
    }

    /// Rates of the partitions after the change, in the present proportions.
    fn rates(&self, change: &PartitionsChange) -> Vec<u64> {
        let present = self.partitions.get(&change.group_id);
        present
            .map(|one| one.rates_of(change.sla.rate_per_s, change.partitions.len()))
            .unwrap_or_default()
    }

    fn undo(&mut self, trial: &Trial) {
        for (present, next) in &trial.changed {
            self.epochs.charge_on_trial(next, present);
        }
        for group in &trial.added {
            self.epochs.give_up_place(group);
        }
    }

    /// Different failure domains of the partition with the fewest.
    fn fewest_domains(&self, trial: &Trial) -> usize {
        let kept = trial.changed.iter().map(|(_, next)| next);
        let domains = kept.chain(&trial.added).map(|group| {
            let members: Vec<ServerId> = group.members().collect();
            let fleet = self.epochs.fleets().in_region(&group.sla.region);
            fleet.map_or(0, |fleet| fleet.failure_domains(&members))
        });
        domains.min().unwrap_or(0)
    }
}

/// Rates.
impl PartitionChanges<'_> {
    /// Divides the rates of groups otherwise, or changes nothing where a server lacks room. Changes that were computed for
    /// another state are left out.
    pub fn divide(&mut self, changes: &[RateChange]) {
        let current: Vec<&RateChange> = changes.iter().filter(|change| self.is_current(change)).collect();
        let mut pairs: Vec<(Group, Group)> = current.iter().flat_map(|change| self.changed(change)).collect();
        // Partitions that get less come first: others take the room that they leave.
        pairs.sort_by_key(|(present, next)| next.sla.rate_per_s > present.sla.rate_per_s);
        if self.fit_rates(&pairs) {
            for change in current {
                self.partitions
                    .change(change.group_id, |one| one.rates.clone_from(&change.rates));
            }
            for (present, next) in pairs {
                self.resize(present, next);
            }
        }
        self.epochs.out().reply(Reply::Done);
    }

    fn is_current(&self, change: &RateChange) -> bool {
        let Some(present) = self.partitions.get(&change.group_id) else {
            return false;
        };
        let sum = change
            .rates
            .iter()
            .try_fold(0u64, |sum, rate| sum.checked_add(*rate));
        let may_change = |member: &GroupId| {
            let group = &self.epochs.groups()[member];
            group.may_change_members() && group.status != GroupStatus::Lost
        };
        present.revision == change.revision
            && present.growth.is_none()
            && change.rates.len() == present.members.len()
            && change.rates.iter().all(|rate| *rate >= 1)
            && sum == Some(present.sla.rate_per_s)
            && present.members.iter().all(may_change)
    }

    /// The partitions whose rates change, each as it is and as it would be.
    fn changed(&self, change: &RateChange) -> Vec<(Group, Group)> {
        let present = &self.partitions[&change.group_id];
        let slas = parts(&present.sla, &change.rates, present.members.len());
        let members = present.members.iter().map(|member| &self.epochs.groups()[member]);
        let changed = members.zip(slas).filter(|(group, sla)| group.sla != *sla);
        let next = |(group, sla): (&Group, Sla)| {
            let next = Group {
                demands: self.profile.demands(&sla),
                budget: self.profile.budget(&sla),
                sla,
                ..group.clone()
            };
            (group.clone(), next)
        };
        changed.map(next).collect()
    }

    /// Whether all of them find room, one after the other. Servers are charged as before afterwards.
    fn fit_rates(&mut self, pairs: &[(Group, Group)]) -> bool {
        let mut charged = 0;
        let mut fits = true;
        for (present, next) in pairs {
            let mut dry_run = self.epochs.dry_run(self.profile);
            if dry_run.refusal_in_place(present.group_id, &next.sla).is_some() {
                fits = false;
                break;
            }
            self.epochs.charge_on_trial(present, next);
            charged += 1;
        }
        for (present, next) in pairs[..charged].iter().rev() {
            self.epochs.charge_on_trial(next, present);
        }
        fits
    }
}

/// Growth.
impl PartitionChanges<'_> {
    /// A partition's former layouts have come to their end.
    pub fn sealed(&mut self, group_id: GroupId, layout: Layout, end_offset: Offset) {
        let partition = self
            .epochs
            .groups()
            .get(&group_id)
            .and_then(|group| group.partition);
        let Some(partition) = partition.filter(|partition| partition.layout == layout) else {
            return;
        };
        let is_over = self.partitions.change(partition.of, |one| {
            one.awaits_seal(&partition) && one.seal(partition.number, end_offset)
        });
        if is_over == Some(true) {
            let count = self.partitions[&partition.of].members.len();
            let message = format!("Clients use {count} partitions from layout {layout} on.");
            let subject = EventSubject::Group(partition.of, None, None);
            self.epochs
                .out()
                .event(EventKind::GroupPartitions, subject, message);
        }
    }
}

/// Another layout begins when partitions are added.
fn next_layout(present: Option<&Partitioned>, count: usize) -> Layout {
    match present {
        Some(present) if present.members.len() == count => present.layout,
        Some(present) => present.layout.next(),
        None => Layout(1),
    }
}

fn conflict(code: &'static str, message: String) -> Option<Reply> {
    Some(Reply::Conflict { code, message })
}
