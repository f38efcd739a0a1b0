//! What must hold after every command. Checked by the tests after each, and once after a restart.

use std::collections::{BTreeMap, BTreeSet};

use quorate_placement::Amounts;
use quorate_types::{GroupId, ServerId};

use super::State;
use super::group::Group;

impl State {
    /// The first broken invariant, in words.
    pub fn validate(&self) -> Result<(), String> {
        let laggards = self.laggards();
        for group in self.groups.values() {
            self.validate_group(group, &laggards)
                .map_err(|problem| format!("group {}: {problem}", group.group_id))?;
        }
        self.validate_allocations()?;
        self.validate_indexes()
    }

    fn validate_group(&self, group: &Group, laggards: &BTreeSet<ServerId>) -> Result<(), String> {
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
        let leaves = |leaving| group.chain.contains(&leaving) && group.learner.is_some();
        check(group.leaving.is_none_or(leaves), || {
            format!("{:?} leaves, and nobody comes for it", group.leaving)
        })?;
        let makes_way = group.relieved.is_none_or(|slow| !group.chain.contains(&slow));
        check(
            makes_way && (group.relieved.is_none() || group.chain.len() < group.degree()),
            || format!("{:?} made way in a whole chain", group.relieved),
        )?;
        let begun = group.beginning.map_or(0, |beginning| beginning.offset);
        check(begun < group.offset_ceiling, || {
            format!("begins at {begun}, at or above what is set aside")
        })?;
        let down = group.chain.iter().filter(|s| !self.is_alive(**s)).count();
        let waits_for_laggards = group.chain.iter().any(|s| laggards.contains(s));
        check(
            down == 0 || down == group.chain.len() || waits_for_laggards,
            || format!("a failed server in a chain that has others: {:?}", group.chain),
        )?;
        check(group.learner.is_none_or(|s| self.is_alive(s)), || {
            "a failed learner".into()
        })?;
        check(group.epoch >= 1, || "epoch 0".into())?;
        check(group.applied.iter().all(|s| group.chain.contains(s)), || {
            "applied by a stranger".into()
        })?;
        let status = group.status_with(|s| self.is_alive(s));
        check(status == group.status, || {
            format!("status {} was told as {}", status, group.status)
        })?;
        for server in &members {
            let dropping = self.servers[server].to_drop.contains_key(&group.group_id);
            check(!dropping, || format!("member {server} is told to drop it"))?;
        }
        for server in group.dropping.iter().flatten() {
            let holds = self
                .servers
                .get(server)
                .is_some_and(|s| s.to_drop.contains_key(&group.group_id));
            check(self.is_alive(*server) && holds, || {
                format!("waits for {server}, which need not drop it")
            })?;
        }
        Ok(())
    }

    fn validate_allocations(&self) -> Result<(), String> {
        let mut expected: BTreeMap<ServerId, Amounts> = BTreeMap::new();
        for (server, amounts) in self.groups.values().flat_map(Group::charges) {
            let sum = expected.entry(server).or_default();
            *sum = sum.plus(amounts);
        }
        for server in self.servers.values() {
            let fleet = self
                .fleet(&server.region)
                .ok_or_else(|| format!("no fleet for {}", server.region))?;
            let (allocated, sum) = (
                fleet.allocated(server.server_id),
                expected.remove(&server.server_id),
            );
            check(allocated == sum.unwrap_or_default(), || {
                format!(
                    "server {}: {allocated:?} allocated, replicas are charged {sum:?}",
                    server.server_id
                )
            })?;
        }
        let mut shared: BTreeMap<(ServerId, ServerId), u32> = BTreeMap::new();
        for group in self.groups.values() {
            let members: Vec<ServerId> = group.members().collect();
            for (i, one) in members.iter().enumerate() {
                for other in &members[..i] {
                    *shared.entry((*one.min(other), *one.max(other))).or_default() += 1;
                }
            }
        }
        for fleet in self.derived.fleets.values() {
            for (pair, groups) in fleet.all_shared() {
                let counted = shared.remove(pair);
                check(counted == Some(*groups), || {
                    format!("{pair:?} share {counted:?} groups, and not {groups}")
                })?;
            }
        }
        check(shared.is_empty(), || {
            format!("nobody knows that these share groups: {shared:?}")
        })?;
        check(expected.is_empty(), || {
            format!("charges on unknown servers: {expected:?}")
        })
    }

    fn validate_indexes(&self) -> Result<(), String> {
        let mut groups_of: BTreeMap<ServerId, BTreeSet<GroupId>> = BTreeMap::new();
        for group in self.groups.values() {
            for server in group.members() {
                groups_of.entry(server).or_default().insert(group.group_id);
            }
        }
        let mut kept = self.derived.groups_of.clone();
        kept.retain(|_, groups| !groups.is_empty());
        check(kept == groups_of, || {
            "the index of groups by server is stale".into()
        })?;
        let wanting = self
            .groups
            .values()
            .filter(|g| g.wants_learner())
            .map(|g| g.group_id);
        check(self.derived.wanting == wanting.collect(), || {
            "the list of groups to repair is stale".into()
        })?;
        let lost = self
            .groups
            .values()
            .filter(|g| g.lost && !g.is_deleting())
            .map(|g| g.group_id);
        check(self.derived.lost == lost.collect(), || {
            "the list of lost groups is stale".into()
        })?;
        let vacating = self
            .servers
            .values()
            .filter(|s| s.drain.is_some() || s.slow.is_some());
        check(
            self.derived.vacating == vacating.map(|s| s.server_id).collect(),
            || "the list of servers to leave is stale".into(),
        )?;
        for server in self.servers.values().filter(|s| s.is_drained()) {
            let left = groups_of.get(&server.server_id);
            check(left.is_none(), || {
                format!("{} is drained and holds {left:?}", server.name)
            })?;
        }
        let mut holders: BTreeMap<GroupId, BTreeSet<ServerId>> = BTreeMap::new();
        for server in self.servers.values() {
            for group_id in server.to_drop.keys() {
                holders.entry(*group_id).or_default().insert(server.server_id);
            }
        }
        check(self.derived.holders == holders, || {
            "the index of leftovers is stale".into()
        })?;
        let names: BTreeSet<&str> = self.servers.values().map(|s| s.name.as_str()).collect();
        check(names.len() == self.servers.len(), || {
            "two servers of one name".into()
        })
    }
}

fn check(holds: bool, problem: impl FnOnce() -> String) -> Result<(), String> {
    if holds { Ok(()) } else { Err(problem()) }
}
