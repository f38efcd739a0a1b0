//! The cost profile: read at the start, and again when its file changes, so that a new measurement needs no restart.
//! Groups keep what they were admitted with.
//!
//! A profile is of a processor, a number of cores and a version: those that servers name when they register, and not
//! the coordinator's own.

use std::path::PathBuf;
use std::time::Duration;

use quorate_placement::Profile;
use quorate_types::ServerId;
use tracing::{error, info, warn};

use super::engine::Handle;
use crate::exit::Failure;
use crate::options::{ForeignProfile, Options};
use crate::state::State;
use crate::state::command::Command;
use crate::state::server::Server;

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

    /// Whether the profile may be used instead of the one in use, with the servers that are there, or, where none is,
    /// those that were. `refuse`: not if a server that new replicas are placed on would take none then. Who comes later
    /// is looked at then.
    pub fn check(&self, profile: &Profile, state: &State) -> Result<(), Failure> {
        let is_one_there = state.servers.values().any(|server| server.alive);
        let servers = state.servers.values();
        let servers = servers.filter(|server| server.alive || !is_one_there);
        let foreign =
            |server: &Server, profile: &Profile| profile.foreign(server.machine.as_ref(), &server.version);
        let others = servers.filter_map(|server| Some((server, foreign(server, profile)?)));
        match self.foreign {
            ForeignProfile::Refuse => {
                let mut lost = others.filter(|(server, _)| foreign(server, &state.profile).is_none());
                let Some((first, how)) = lost.next() else {
                    return Ok(());
                };
                let (name, more) = (&first.name, lost.count());
                Err(self.wrong(format!(
                    "{name} and {more} more servers: {how}: measure again (make profile), or allow it with \
                     --foreign-profile warn"
                )))
            }
            ForeignProfile::Warn => {
                for (server, how) in others {
                    note_foreign(server.server_id, &how, false);
                }
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

/// Says that the profile is not of this server, and what to do about it where that matters.
pub fn note_foreign(server: ServerId, how: &str, is_refused: bool) {
    let server_id = server.0;
    if is_refused {
        warn!(
            server_id,
            "no replica is placed on this server, as the cost profile is of others: {how}: measure again (make \
             profile), or allow it with --foreign-profile warn"
        );
    } else {
        warn!(server_id, "the cost profile is of other servers: {how}");
    }
}

/// Looks for ever. A file that is no profile, or another's that is refused, changes nothing: the one in use stays, and
/// the log says why. One that is refused is used when the servers that it is not of are gone.
pub async fn follow(source: Source, engine: Handle) {
    let Some(path) = source.path.clone() else { return };
    // What was found last, if nothing is left to do about it. At first that is not known: a profile of other servers
    // may have been refused at the start.
    let mut settled = None;
    let mut told = None;
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
            let is_news = profile != state.profile;
            let checked = if is_news {
                own.check(&profile, state)
            } else {
                Ok(())
            };
            checked.map(|()| is_news.then_some(profile))
        });
        // Too busy, or stopping: look again.
        let Ok(checked) = looked.await else { continue };
        let profile = match checked {
            Ok(Some(profile)) => profile,
            Ok(None) => {
                settled = Some(found);
                continue;
            }
            Err(failure) => {
                if told.as_ref() != Some(&failure.message) {
                    error!("{}; the profile in use stays", failure.message);
                }
                told = Some(failure.message);
                continue;
            }
        };
        note(&profile);
        let command = Command::UseProfile {
            profile: Box::new(profile),
        };
        if engine.command(command).await.is_ok() {
            (settled, told) = (Some(found), None);
        }
    }
}
