//! Invariants: they hold after every command. Tests check them after each, the coordinator once after a restart.

use std::collections::{BTreeMap, BTreeSet};

use quorate_placement::ServerCharges;
use quorate_types::{GroupId, ServerId};

use super::entity::{Group, Move, Partition, Terms};
use super::machine::CoordinatorState;

impl CoordinatorState {
    /// The first broken invariant, in words.
    pub fn validate(&self) -> Result<(), String> {
        let laggards = self.laggards();
        for group in self.groups.values() {
            self.validate_group(group, &laggards)
                .map_err(|problem| format!("group {}: {problem}", group.group_id))?;
        }
        self.validate_allocations()?;
        self.validate_shared()?;
        self.validate_guarantees()?;
        self.validate_partitions()?;
        self.groups.validate()?;
        self.servers.validate()?;
        self.validate_drained()
    }

    fn validate_group(&self, group: &Group, laggards: &BTreeSet<ServerId>) -> Result<(), String> {
        self.validate_members(group)?;
        validate_moves(group)?;
        validate_relocation(group)?;
        self.validate_failed(group, laggards)?;
        self.validate_leftovers(group)?;
        let status = group.status_with(|s| self.is_alive(s));
        check(status == group.status, || {
            format!("status {} was reported as {}", status, group.status)
        })
    }

    fn validate_members(&self, group: &Group) -> Result<(), String> {
        let members: Vec<ServerId> = group.members().collect();
        let distinct: BTreeSet<ServerId> = members.iter().copied().collect();
        check(distinct.len() == members.len(), || {
            format!("two replicas on one server: {members:?}")
        })?;
        check(members.iter().all(|s| self.servers.contains_key(s)), || {
            format!("unknown members: {members:?}")
        })?;
        check(
            group.chain.is_empty() == (group.lost || group.is_deleting()),
            || format!("an empty chain is lost or being deleted, and only that: {group:?}"),
        )?;
        check(!group.chain.is_empty() || group.learner.is_none(), || {
            "a learner without a chain".into()
        })?;
        let most = group.degree() + usize::from(group.leaving.is_some());
        check(
            group.chain.len() <= group.degree() && members.len() <= most,
            || format!("{} members, degree {}", members.len(), group.degree()),
        )?;
        check(group.epoch >= 1, || "epoch 0".into())?;
        check(group.applied.iter().all(|s| group.chain.contains(s)), || {
            "applied by a server outside of the chain".into()
        })
    }

    fn validate_failed(&self, group: &Group, laggards: &BTreeSet<ServerId>) -> Result<(), String> {
        let down = group.chain.iter().filter(|s| !self.is_alive(**s)).count();
        let waits_for_laggards = group.chain.iter().any(|s| laggards.contains(s));
        if !group.may_change_members() {
            return Ok(());
        }
        let in_quarantine = group.members().find(|s| group.quarantine.servers.contains(s));
        check(in_quarantine.is_none(), || {
            format!("{in_quarantine:?} is in quarantine, and a member")
        })?;
        check(
            down == 0 || down == group.chain.len() || waits_for_laggards,
            || format!("a failed server in a chain that has others: {:?}", group.chain),
        )?;
        check(group.learner.is_none_or(|s| self.is_alive(s)), || {
            "a failed learner".into()
        })
    }

    fn validate_leftovers(&self, group: &Group) -> Result<(), String> {
        for server in group.members() {
            let dropping = self.servers[&server].to_drop.contains_key(&group.group_id);
            check(!dropping, || format!("member {server} has orders to drop it"))?;
        }
        for server in group.dropping.iter().flatten() {
            let holds = (self.servers.get(server)).is_some_and(|s| s.to_drop.contains_key(&group.group_id));
            check(self.is_alive(*server) && holds, || {
                format!("waits for {server}, which need not drop it")
            })?;
        }
        Ok(())
    }

    /// Every server is charged the cost of its replicas.
    fn validate_allocations(&self) -> Result<(), String> {
        let mut expected: BTreeMap<ServerId, ServerCharges> = BTreeMap::new();
        for (server, demand) in self.groups.values().flat_map(Group::charges) {
            expected.entry(server).or_default().add(&demand);
        }
        for server in self.servers.values() {
            let fleet = (self.fleets.in_region(&server.region))
                .ok_or_else(|| format!("no fleet for {}", server.region))?;
            let (allocated, sum) = (
                fleet.allocated(server.server_id),
                expected.remove(&server.server_id).map(|charges| charges.sum()),
            );
            check(allocated == sum.unwrap_or_default(), || {
                format!(
                    "server {}: {allocated:?} allocated, replicas are charged {sum:?}",
                    server.server_id
                )
            })?;
        }
        check(expected.is_empty(), || {
            format!("charges on unknown servers: {expected:?}")
        })
    }

    /// Servers share the groups that placement counts for them.
    fn validate_shared(&self) -> Result<(), String> {
        let mut shared: BTreeMap<(ServerId, ServerId), u32> = BTreeMap::new();
        for group in self.groups.values() {
            let members: Vec<ServerId> = group.members().collect();
            for (i, one) in members.iter().enumerate() {
                for other in &members[..i] {
                    *shared.entry((*one.min(other), *one.max(other))).or_default() += 1;
                }
            }
        }
        for fleet in self.fleets.iter() {
            for (pair, groups) in fleet.all_shared() {
                let counted = shared.remove(pair);
                check(counted == Some(*groups), || {
                    format!("{pair:?} share {counted:?} groups, and not {groups}")
                })?;
            }
        }
        check(shared.is_empty(), || {
            format!("shared groups that placement does not count: {shared:?}")
        })
    }

    /// Groups are charged for the guarantee that their project has.
    fn validate_guarantees(&self) -> Result<(), String> {
        for group in self.groups.values().filter(|group| !group.is_deleting()) {
            let tokens_per_s = self.guarantees.shared_tokens_per_s(group.project_id);
            check(group.shared_tokens_per_s == tokens_per_s, || {
                let (group_id, charged) = (group.group_id, group.shared_tokens_per_s);
                format!("group {group_id} shares {charged} tokens/s, and its project {tokens_per_s}")
            })?;
        }
        Ok(())
    }

    /// Each partition has its part of the SLA, and its number; no group is a partition of nothing.
    fn validate_partitions(&self) -> Result<(), String> {
        for (of, partitioned) in self.partitions.iter() {
            check(partitioned.members.first() == Some(of), || {
                format!("the first partition of {of} has another id")
            })?;
            for ((number, member), part) in (0..).zip(&partitioned.members).zip(partitioned.parts()) {
                let group = self.groups.get(member).filter(|group| !group.is_deleting());
                let partition = Partition {
                    of: *of,
                    number,
                    layout: partitioned.layout,
                };
                let is_so = group.is_some_and(|one| one.sla == part && one.partition == Some(partition));
                check(is_so, || format!("partition {number} of {of} is {group:?}"))?;
            }
        }
        let alone = self.groups.values().find(|group| {
            let whole = group.partition.filter(|_| !group.is_deleting());
            whole.is_some_and(|partition| !self.partitions.contains_key(&partition.of))
        });
        check(alone.is_none(), || format!("a partition of nothing: {alone:?}"))
    }

    fn validate_drained(&self) -> Result<(), String> {
        for server in self.servers.values().filter(|server| server.is_drained()) {
            let left: Vec<GroupId> = self.groups.on(server.server_id).collect();
            check(left.is_empty(), || {
                format!("{} is drained and holds {left:?}", server.name)
            })?;
        }
        Ok(())
    }
}

fn validate_moves(group: &Group) -> Result<(), String> {
    let leaves = |leaving| group.chain.contains(&leaving) && group.learner.is_some();
    check(group.leaving.is_none_or(leaves), || {
        format!("{:?} leaves, and no learner replaces it", group.leaving)
    })?;
    let is_out = group.relieved.is_none_or(|slow| !group.chain.contains(&slow));
    check(
        is_out && (group.relieved.is_none() || group.chain.len() < group.degree()),
        || format!("{:?} was relieved in a whole chain", group.relieved),
    )?;
    let begun = group.beginning.map_or(0, |beginning| beginning.offset);
    check(begun < group.offset_ceiling, || {
        format!("begins at {begun}, not below the offset ceiling")
    })
}

fn validate_relocation(group: &Group) -> Result<(), String> {
    let Some(relocation) = &group.relocation else {
        return Ok(());
    };
    let is_ahead = |one: &Move| group.chain.contains(&one.from) && !group.chain.contains(&one.to);
    let first = relocation.moves.first();
    let begun = group
        .learner
        .is_none_or(|learner| first.is_none_or(|one| one.to == learner));
    let is_whole = first.is_none() || group.chain.len() == group.degree();
    check(relocation.moves.iter().all(is_ahead) && begun && is_whole, || {
        format!("{relocation:?} does not begin at {:?}", group.chain)
    })?;
    let is_later = |next: &Terms| next.revision > group.sla_revision && group.keeps_place_with(&next.sla);
    check(relocation.next.as_deref().is_none_or(is_later), || {
        format!("the next SLA has revision {:?}", relocation.next)
    })
}

fn check(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}
