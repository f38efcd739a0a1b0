//! One command being applied: the state, taken apart for the handlers.

use quorate_placement::Profile;
use quorate_types::GroupId;

use super::handler::accesses::Accesses;
use super::handler::admissions::Admissions;
use super::handler::chain_repairs::ChainRepairs;
use super::handler::configs::Configs;
use super::handler::drains::Drains;
use super::handler::epochs::Epochs;
use super::handler::guarantees::GuaranteeChanges;
use super::handler::leftovers::Leftovers;
use super::handler::listing::Listing;
use super::handler::moves::Moves;
use super::handler::outbox::Outbox;
use super::handler::partitions::PartitionChanges;
use super::handler::policies::{InUse, Policies};
use super::handler::quarantines::Quarantines;
use super::handler::reachability::Reachability;
use super::handler::registrations::Registrations;
use super::handler::relocations::Relocations;
use super::handler::resets::Resets;
use super::handler::resizes::Resizes;
use super::handler::returns::Returns;
use super::handler::revocations::Revoking;
use super::handler::roster::Roster;
use super::handler::tokens::Tokens;
use super::handler::unreachable::Unreachable;
use super::machine::CoordinatorState;
use super::table::{DeletedGroups, Groups, Guarantees, Partitions, Servers};
use crate::command::{Effect, Relief};

/// Makes a handler for each operation, with the tables that it may touch. No handler sees the whole state.
#[derive(Debug)]
pub struct Step<'a> {
    state: &'a mut CoordinatorState,
    effects: Vec<Effect>,
    now_ms: u64,
}

/// Epochs, and what handlers above them read beside.
struct Parts<'a> {
    epochs: Epochs<'a>,
    deleted: &'a DeletedGroups,
    profile: &'a Profile,
    guarantees: &'a mut Guarantees,
    partitions: &'a mut Partitions,
}

impl<'a> Step<'a> {
    pub fn new(state: &'a mut CoordinatorState, now_ms: u64) -> Self {
        Self {
            state,
            effects: Vec::new(),
            now_ms,
        }
    }

    pub fn into_effects(self) -> Vec<Effect> {
        self.effects
    }

    pub fn groups(&self) -> &Groups {
        &self.state.groups
    }

    pub fn servers(&self) -> &Servers {
        &self.state.servers
    }

    pub fn relief(&self) -> Relief {
        self.state.policy.relief
    }

    pub fn epoch_changes(&self) -> u64 {
        self.state.epoch_changes
    }

    pub fn out(&mut self) -> Outbox<'_> {
        Outbox::new(&mut self.state.events, &mut self.effects, self.now_ms)
    }
}

/// Handlers of servers, tokens and policies.
impl Step<'_> {
    pub fn tokens(&mut self) -> Tokens<'_> {
        let state = &mut *self.state;
        let out = Outbox::new(&mut state.events, &mut self.effects, self.now_ms);
        Tokens::new(&mut state.join_tokens, out)
    }

    pub fn revoking(&mut self) -> Revoking<'_> {
        let state = &mut *self.state;
        let out = Outbox::new(&mut state.events, &mut self.effects, self.now_ms);
        Revoking::new(&mut state.revocations, &state.servers, out)
    }

    pub fn policies(&mut self) -> Policies<'_> {
        let state = &mut *self.state;
        let out = Outbox::new(&mut state.events, &mut self.effects, self.now_ms);
        let policies = InUse {
            profile: &mut state.profile,
            policy: &mut state.policy,
            secrets: &mut state.secrets,
            fleet_version: &mut state.fleet_version,
        };
        Policies::new(policies, &mut state.fleets, &state.servers, out)
    }

    pub fn reachability(&mut self) -> Reachability<'_> {
        let state = &mut *self.state;
        let out = Outbox::new(&mut state.events, &mut self.effects, self.now_ms);
        Reachability::new(&mut state.unreachable_pairs, &state.servers, out)
    }

    pub fn roster(&mut self) -> Roster<'_> {
        let state = &mut *self.state;
        let out = Outbox::new(&mut state.events, &mut self.effects, self.now_ms);
        let listing = Listing::new(&mut state.fleets, &state.profile, &state.policy);
        Roster::new(&mut state.servers, listing, out)
    }

    pub fn registrations(&mut self) -> Registrations<'_> {
        let state = &mut *self.state;
        let out = Outbox::new(&mut state.events, &mut self.effects, self.now_ms);
        let listing = Listing::new(&mut state.fleets, &state.profile, &state.policy);
        let roster = Roster::new(&mut state.servers, listing, out);
        Registrations::new(roster, &mut state.join_tokens, &state.groups)
    }

    pub fn drains(&mut self) -> Drains<'_> {
        let state = &mut *self.state;
        let out = Outbox::new(&mut state.events, &mut self.effects, self.now_ms);
        let listing = Listing::new(&mut state.fleets, &state.profile, &state.policy);
        Drains::new(&mut state.servers, &state.groups, listing, out)
    }
}

/// Handlers of groups.
impl Step<'_> {
    pub fn configs(&mut self) -> Configs<'_> {
        let state = &mut *self.state;
        let out = Outbox::new(&mut state.events, &mut self.effects, self.now_ms);
        Configs::new(&mut state.groups, &state.servers, out)
    }

    pub fn leftovers(&mut self) -> Leftovers<'_> {
        let state = &mut *self.state;
        let out = Outbox::new(&mut state.events, &mut self.effects, self.now_ms);
        Leftovers::new(&mut state.groups, &mut state.servers, &mut state.deleted, out)
    }

    pub fn epochs(&mut self) -> Epochs<'_> {
        self.parts().epochs
    }

    pub fn admissions(&mut self) -> Admissions<'_> {
        let parts = self.parts();
        Admissions::new(parts.epochs, parts.deleted, parts.profile, parts.guarantees)
    }

    pub fn resizes(&mut self) -> Resizes<'_> {
        let may_move = self.state.knows_relocations();
        let parts = self.parts();
        let relocations = Relocations::new(parts.epochs, parts.profile);
        Resizes::new(relocations, parts.guarantees, may_move)
    }

    pub fn relocations(&mut self) -> Relocations<'_> {
        let parts = self.parts();
        Relocations::new(parts.epochs, parts.profile)
    }

    pub fn guarantee_changes(&mut self) -> GuaranteeChanges<'_> {
        let parts = self.parts();
        GuaranteeChanges::new(parts.epochs, parts.guarantees)
    }

    pub fn partition_changes(&mut self) -> PartitionChanges<'_> {
        let parts = self.parts();
        PartitionChanges::new(
            parts.epochs,
            parts.partitions,
            parts.deleted,
            parts.profile,
            parts.guarantees,
        )
    }

    /// The chains of a group that is deleted, which has no partitions from here on.
    pub fn take_partitions(&mut self, group_id: GroupId) -> Option<Vec<GroupId>> {
        self.state.partitions.remove(group_id)
    }

    pub fn accesses(&mut self) -> Accesses<'_> {
        Accesses::new(self.epochs())
    }

    pub fn resets(&mut self) -> Resets<'_> {
        let parts = self.parts();
        Resets::new(parts.epochs, parts.profile)
    }

    pub fn chain_repairs(&mut self) -> ChainRepairs<'_> {
        let order = self.state.policy.replacements;
        ChainRepairs::new(self.epochs(), order)
    }

    pub fn returns(&mut self) -> Returns<'_> {
        Returns::new(self.epochs())
    }

    pub fn moves(&mut self) -> Moves<'_> {
        Moves::new(self.epochs())
    }

    pub fn quarantines(&mut self) -> Quarantines<'_> {
        Quarantines::new(self.epochs())
    }

    pub fn unreachable(&mut self) -> Unreachable<'_> {
        Unreachable::new(self.epochs())
    }

    fn parts(&mut self) -> Parts<'_> {
        let state = &mut *self.state;
        let out = Outbox::new(&mut state.events, &mut self.effects, self.now_ms);
        Parts {
            epochs: Epochs::new(
                &mut state.groups,
                &mut state.servers,
                &mut state.fleets,
                &state.unreachable_pairs,
                &mut state.epoch_changes,
                out,
            ),
            deleted: &state.deleted,
            profile: &state.profile,
            guarantees: &mut state.guarantees,
            partitions: &mut state.partitions,
        }
    }
}
