//! A process's own configuration. Its cost profile and policy come into use when it leads.

use quorate_placement::Profile;
use quorate_types::RunId;

use crate::command::{Command, FleetSecrets, PlacementPolicy};
use crate::engine::Settings;
use crate::state::{CoordinatorState, Overpromising, ProfileRefused, check_profile};

#[derive(Debug, Clone)]
pub struct Start {
    pub settings: Settings,
    pub profile: Profile,
    pub policy: PlacementPolicy,
    /// The treatment of the profile where promises would not hold by it.
    pub overpromising: Overpromising,
    /// New keys, for a fleet that has none.
    pub secrets: Option<Box<FleetSecrets>>,
    /// Other coordinators reach this one there. None: it stays alone.
    pub address: Option<String>,
    /// The version of the process.
    pub release: String,
    /// Random at each start of the process: the numbers of its runs count from there.
    pub next_run: u64,
}

impl Start {
    /// The first command of a run. Nothing else follows from it.
    pub fn begin_run(&mut self) -> Command {
        self.next_run = self.next_run.wrapping_add(1);
        Command::BeginRun {
            run: RunId(self.next_run),
            release: self.release.clone(),
        }
    }

    /// The command that gives the fleet its keys, if it has none. Servers cannot connect before.
    pub fn first_secrets(&self, state: &CoordinatorState) -> Option<Command> {
        let secrets = self.secrets.clone().filter(|_| state.secrets.is_none())?;
        Some(Command::UseSecrets { secrets })
    }

    /// Commands that put the configuration in use, where the state has another. The profile stays if it is refused.
    pub fn commands(&self, state: &CoordinatorState) -> (Vec<Command>, Result<(), ProfileRefused>) {
        let mut commands = Vec::new();
        let checked = check_profile(&self.profile, state, self.policy.mismatched, self.overpromising);
        let checked = checked.map(|_| ());
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
