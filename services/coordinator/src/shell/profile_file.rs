//! The cost profile: read at the start, and again when its file changes, so that a new measurement needs no restart.
//! Groups keep what they were admitted with.
//!
//! A profile is of a processor, a number of cores and a version: those that servers name when they register, and not
//! the coordinator's own.

use std::path::PathBuf;
use std::time::Duration;

use quorate_placement::Profile;
use tracing::{error, info, warn};

use super::engine::Handle;
use crate::exit::Failure;
use crate::options::{ForeignProfile, Options};
use crate::state::State;
use crate::state::command::Command;

/// A measurement takes minutes; whoever made one does not wait long.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Where the profile comes from, and what is done with one of other servers than there are.
#[derive(Clone)]
pub struct Source {
    path: Option<PathBuf>,
    foreign: ForeignProfile,
}

impl Source {
    pub fn of(options: &Options) -> Self {
        Self {
            path: options.profile.clone(),
            foreign: options.foreign_profile,
        }
    }

    pub fn read(&self) -> Result<Profile, Failure> {
        let Some(path) = &self.path else {
            return Ok(Profile::default_profile());
        };
        let text = std::fs::read_to_string(path).map_err(|e| self.wrong(e.to_string()))?;
        let profile = Profile::parse(&text).map_err(|e| self.wrong(e.to_string()))?;
        if self.foreign == ForeignProfile::Refuse && !profile.knows_its_machine() {
            return Err(self.wrong(
                "format: 1 does not say where it was measured, and --foreign-profile refuse must know"
                    .to_string(),
            ));
        }
        Ok(profile)
    }

    /// Whether the profile may be used for the servers that are there, or, where none is, for those that were. Who
    /// comes later is looked at then.
    pub fn check(&self, profile: &Profile, state: &State) -> Result<(), Failure> {
        let is_one_there = state.servers.values().any(|server| server.alive);
        let servers = state.servers.values();
        let servers = servers.filter(|server| server.alive || !is_one_there);
        let mut foreign = servers.filter_map(|server| {
            let how = profile.foreign(server.machine.as_ref(), &server.version)?;
            Some((&server.name, how))
        });
        let Some((name, how)) = foreign.next() else {
            return Ok(());
        };
        let others = foreign.count();
        match self.foreign {
            ForeignProfile::Refuse => Err(self.wrong(format!(
                "{name} and {others} more servers: {how}: measure again (make profile), or allow it with \
                 --foreign-profile warn"
            ))),
            ForeignProfile::Warn => {
                let version = &profile.version;
                warn!(
                    version,
                    name, others, "the cost profile is of other servers: {how}"
                );
                Ok(())
            }
        }
    }

    fn wrong(&self, problem: String) -> Failure {
        let path = self.path.as_deref().unwrap_or(std::path::Path::new("(built in)"));
        Failure::configuration(format!("--profile {}: {problem}", path.display()))
    }
}

/// Says what an operator should know of a profile that is used from now on.
pub fn note(profile: &Profile) {
    let version = &profile.version;
    if profile.provisional {
        warn!(
            version,
            "the cost profile is an estimate: measure one before promising much"
        );
    } else {
        info!(version, source = profile.source, "the cost profile");
    }
}

/// Looks for ever. A file that is no profile, or another's that is refused, changes nothing: the one in use stays, and
/// the log says why.
pub async fn follow(source: Source, engine: Handle) {
    let Some(path) = source.path.clone() else { return };
    let mut seen = std::fs::read(&path).ok();
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let found = std::fs::read(&path).ok();
        if found == seen {
            continue;
        }
        seen = found;
        let checked = match source.read() {
            Ok(profile) => {
                let own = source.clone();
                let looked = engine.read(move |state| own.check(&profile, state).map(|()| profile));
                let Ok(checked) = looked.await else {
                    // Too busy, or stopping: look again.
                    seen = None;
                    continue;
                };
                checked
            }
            Err(failure) => Err(failure),
        };
        let profile = match checked {
            Ok(profile) => profile,
            Err(failure) => {
                error!("{}; the profile in use stays", failure.message);
                continue;
            }
        };
        note(&profile);
        if engine
            .command(Command::UseProfile {
                profile: Box::new(profile),
            })
            .await
            .is_err()
        {
            // Too busy, or stopping: look again.
            seen = None;
        }
    }
}
