//! Lines of the process's own log.

use quorate_placement::Profile;
use quorate_types::ServerId;
use tracing::{error, info, warn};

use quorate_coordinator_core::engine::Note;
use quorate_coordinator_core::state::ProfileRefused;

pub fn write(note: &Note) {
    match note {
        Note::Registered { server, name } => info!(server_id = server.0, name, "server registered"),
        Note::Mismatched {
            server,
            how,
            is_refused,
        } => mismatch(*server, how, *is_refused),
        Note::ProfileRefused(refused) => {
            error!(
                "--profile: {}; the profile in use stays",
                profile_refused(refused)
            );
        }
        Note::Refused { name, code, message } => warn!(name, ?code, message, "registration refused"),
        Note::OfAnotherLog { name } => warn!(
            name,
            "a server that this log does not know was told of commands that this log lacks: is the log an older copy? It \
             tries again"
        ),
        Note::KeptOut { server, hung_ms } => {
            warn!(server_id = server.0, hung_ms, "a server that hangs is not let in");
        }
        Note::Failed(server) => warn!(server_id = server.0, "server failed"),
        Note::ConnectionBroke(server) => warn!(server_id = server.0, "control connection broke"),
        Note::RollCallBegan { servers } => {
            info!(
                servers,
                "roll call: no epoch is issued before the servers are heard"
            );
        }
        Note::RollCallStuck(view) => error!(
            awaited = view.awaited,
            heard = view.heard,
            missing = ?view.missing.iter().map(|server| server.0).collect::<Vec<_>>(),
            "the roll call waits: fewer than a majority of the servers were heard, and no epoch is issued. Start them, or \
             end it with DELETE /v1/roll-call if they are gone and the log is the newest"
        ),
        Note::RollCallOver { heard, missing } => info!(heard, missing, "roll call over"),
        Note::ClientKeysChanged => {
            info!("the keys that sign clients' tokens have changed; servers get the new ones")
        }
    }
}

/// The servers that speak against a profile, and the remedy.
pub fn profile_refused(refused: &ProfileRefused) -> String {
    match refused {
        ProfileRefused::Mismatched { server, how, more } => format!(
            "{server} and {more} more servers: {how}: measure again (make profile), or allow it with --foreign-profile warn"
        ),
        ProfileRefused::Overpromised {
            server,
            resource,
            percent,
            more,
        } => format!(
            "by its costs the groups of {server} need {percent} % of the {resource} that may be promised of it, and {more} \
             more servers have too many groups, too: add servers and drain these, or allow it with \
             --overpromising-profile use"
        ),
    }
}

/// A profile comes into use.
pub fn profile(profile: &Profile) {
    let version = &profile.version;
    if profile.provisional {
        warn!(
            version,
            "the cost profile is an estimate: measure one before admitting much"
        );
    } else {
        info!(version, source = profile.source, "cost profile in use");
    }
}

/// The profile does not match a server. The line names the remedy where the server is refused.
pub fn mismatch(server: ServerId, how: &str, is_refused: bool) {
    let server_id = server.0;
    if is_refused {
        warn!(
            server_id,
            "the cost profile does not match this server, so no replica is placed on it: {how}: measure again (make \
             profile), or allow it with --foreign-profile warn"
        );
    } else {
        warn!(server_id, "the cost profile does not match this server: {how}");
    }
}
