//! The file of the cost profile: read at the start, and again when it changes, so that a new measurement needs no
//! restart. Groups keep the demand vectors of their admission.
//!
//! A profile was measured on one processor, number of cores and version. It matches servers that register with the same
//! ones; the coordinator's own machine does not matter.

use std::path::PathBuf;
use std::time::Duration;

use quorate_placement::Profile;
use tracing::error;

use super::task::{Handle, notes};
use crate::exit::Failure;
use crate::options::{MismatchedProfile, Options, OverpromisingProfile};
use quorate_coordinator_core::command::Command;
use quorate_coordinator_core::state::{CoordinatorState, check_profile};

/// A measurement takes minutes, so a second more does not count.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// A file that was refused is looked at again this much later: that takes the costs of all groups.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The source of the profile, and the treatment of servers that it does not match.
#[derive(Clone)]
pub struct ProfileSource {
    path: Option<PathBuf>,
    mismatched: MismatchedProfile,
    overpromising: OverpromisingProfile,
}

impl ProfileSource {
    pub fn of(options: &Options) -> Self {
        Self {
            path: options.profile.clone(),
            mismatched: options.foreign_profile,
            overpromising: options.overpromising_profile,
        }
    }

    pub fn read(&self) -> Result<Profile, Failure> {
        let Some(path) = &self.path else {
            return Ok(Profile::default_profile());
        };
        let text = std::fs::read_to_string(path).map_err(|e| self.wrong(e.to_string()))?;
        let profile = Profile::parse(&text).map_err(|e| self.wrong(e.to_string()))?;
        if self.mismatched == MismatchedProfile::Refuse && !profile.knows_its_machine() {
            return Err(self.wrong(
                "format 1 does not name the machine it was measured on, and --foreign-profile refuse needs it"
                    .to_string(),
            ));
        }
        Ok(profile)
    }

    /// Whether the profile may replace the one in use.
    pub fn check(&self, profile: &Profile, state: &CoordinatorState) -> Result<(), Failure> {
        let mismatched = self.mismatched.treatment();
        match check_profile(profile, state, mismatched, self.overpromising.treatment()) {
            Ok(others) => {
                for (server, how) in others {
                    notes::mismatch(server, &how, false);
                }
                Ok(())
            }
            Err(refused) => Err(self.wrong(notes::profile_refused(&refused))),
        }
    }

    fn wrong(&self, problem: String) -> Failure {
        let path = self.path.as_deref().unwrap_or(std::path::Path::new("(built in)"));
        Failure::configuration(format!("--profile {}: {problem}", path.display()))
    }
}

/// Reads the file for ever. A file that is no profile, or that is refused, changes nothing: the profile in use stays, and
/// the log says why. A refused profile is put in use once nothing speaks against it: servers that it does not match are gone,
/// or those with too many groups have fewer.
pub async fn follow(source: ProfileSource, engine: Handle) {
    let Some(path) = source.path.clone() else { return };
    // The last content with which nothing is left to do. At first there is none: the profile may have been refused at
    // the start.
    let mut settled = None;
    let mut reported = None;
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let found = std::fs::read(&path).ok();
        if settled.as_ref() == Some(&found) {
            continue;
        }
        let profile = match source.read() {
            Ok(profile) => profile,
            Err(failure) => {
                error!("{}; the profile in use stays", failure.message);
                settled = Some(found);
                continue;
            }
        };
        let own = source.clone();
        let looked = engine.read(move |state| {
            let is_other = profile != state.profile;
            let checked = if is_other {
                own.check(&profile, state)
            } else {
                Ok(())
            };
            checked.map(|()| is_other.then_some(profile))
        });
        // The coordinator is too busy, or stopping: try again.
        let Ok(checked) = looked.await else { continue };
        let profile = match checked {
            Ok(Some(profile)) => profile,
            Ok(None) => {
                settled = Some(found);
                continue;
            }
            Err(failure) => {
                if reported.as_ref() != Some(&failure.message) {
                    error!("{}; the profile in use stays", failure.message);
                }
                reported = Some(failure.message);
                tokio::time::sleep(LOOK_AGAIN).await;
                continue;
            }
        };
        notes::profile(&profile);
        let command = Command::UseProfile {
            profile: Box::new(profile),
        };
        if engine.command(command).await.is_ok() {
            (settled, reported) = (Some(found), None);
        }
    }
}
