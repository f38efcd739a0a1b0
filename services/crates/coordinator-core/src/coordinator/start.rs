//! A process's own configuration. Its cost profile and policy come into use when it leads.

use quorate_placement::Profile;
use quorate_types::RunId;

use crate::command::{Command, PlacementPolicy};
use crate::engine::Settings;
use crate::state::{CoordinatorState, ProfileRefused, check_profile};

#[derive(Debug, Clone)]
pub struct Start {
    pub settings: Settings,
    pub profile: Profile,
    pub policy: PlacementPolicy,
    /// Other coordinators reach this one there. None: it stays alone.
    pub address: Option<String>,
    /// The version of the process.
    pub release: String,
    /// Random at each start of the process: the numbers of its runs come from it.
    pub seed: u64,
}

impl Start {
    /// The first command of a run. Nothing else follows from it.
    pub fn begin_run(&mut self) -> Command {
        // SplitMix64: one random number gives those of all runs.
        self.seed = self.seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.seed;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Command::BeginRun {
            run: RunId(mixed ^ (mixed >> 31)),
            release: self.release.clone(),
        }
    }

    /// Commands that put the configuration in use, where the state has another. The profile stays if it is refused.
    pub fn commands(&self, state: &CoordinatorState) -> (Vec<Command>, Result<(), ProfileRefused>) {
        let mut commands = Vec::new();
        let checked = check_profile(&self.profile, state, self.policy.mismatched).map(|_| ());
        if state.profile != self.profile && checked.is_ok() {
            let profile = Box::new(self.profile.clone());
            commands.push(Command::UseProfile { profile });
        }
        if state.policy != self.policy {
            commands.push(Command::UsePlacement { policy: self.policy });
        }
        (commands, checked)
    }
}
