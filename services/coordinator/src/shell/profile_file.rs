//! The cost profile: read at the start, and again when its file changes, so that a new measurement needs no restart.
//! Groups keep what they were admitted with.

use std::path::PathBuf;
use std::time::Duration;

use quorate_placement::{Machine, Profile};
use tracing::{error, info, warn};

use super::engine::Handle;
use crate::exit::Failure;
use crate::options::{ForeignProfile, Options};
use crate::state::command::Command;

/// A measurement takes minutes; whoever made one does not wait long.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Where the profile comes from, and what it must be of.
pub struct Source {
    path: Option<PathBuf>,
    foreign: ForeignProfile,
    machine: Machine,
}

impl Source {
    pub fn of(options: &Options) -> Self {
        let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        Self {
            path: options.profile.clone(),
            foreign: options.foreign_profile,
            machine: Machine::of_cpuinfo(&cpuinfo, cores),
        }
    }

    pub fn read(&self) -> Result<Profile, Failure> {
        let Some(path) = &self.path else {
            return Ok(Profile::default_profile());
        };
        let wrong =
            |problem: String| Failure::configuration(format!("--profile {}: {problem}", path.display()));
        let text = std::fs::read_to_string(path).map_err(|e| wrong(e.to_string()))?;
        let profile = Profile::parse(&text).map_err(|e| wrong(e.to_string()))?;
        let foreign = profile.foreign(&self.machine, env!("CARGO_PKG_VERSION"));
        match (foreign, self.foreign) {
            (Some(how), ForeignProfile::Refuse) => Err(wrong(format!(
                "{how}: measure again (make profile), or allow it with --foreign-profile warn"
            ))),
            (Some(how), ForeignProfile::Warn) => {
                warn!(version = profile.version, "the cost profile is another's: {how}");
                Ok(profile)
            }
            (None, _) => Ok(profile),
        }
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
        let profile = match source.read() {
            Ok(profile) => profile,
            Err(failure) => {
                error!("{}; the profile in use stays", failure.message);
                continue;
            }
        };
        note(&profile);
        if engine.command(Command::UseProfile { profile }).await.is_err() {
            // Too busy, or stopping: look again.
            seen = None;
        }
    }
}
