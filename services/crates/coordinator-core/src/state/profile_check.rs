//! Whether another cost profile may come into use.

use quorate_placement::Profile;
use quorate_types::ServerId;

use super::entity::Server;
use super::machine::CoordinatorState;
use crate::command::Mismatched;

/// A server that takes new replicas now, and would take none under the profile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProfileRefused {
    pub server: String,
    pub how: String,
    /// Further ones.
    pub more: usize,
}

/// Whether the profile may replace the one in use, judged by the live servers; by all known ones when none is alive. Where
/// mismatched servers are refused it may not when a server that takes new replicas now would take none. Servers that
/// register later are judged then.
///
/// Gives the servers that it does not match, and how.
pub fn check_profile(
    profile: &Profile,
    state: &CoordinatorState,
    mismatched: Mismatched,
) -> Result<Vec<(ServerId, String)>, ProfileRefused> {
    let is_one_alive = state.servers.values().any(|server| server.alive);
    let servers = state.servers.values();
    let servers = servers.filter(|server| server.alive || !is_one_alive);
    let mismatch =
        |server: &Server, profile: &Profile| profile.mismatch(server.machine.as_ref(), &server.version);
    let others = servers.filter_map(|server| Some((server, mismatch(server, profile)?)));
    if mismatched == Mismatched::Used {
        return Ok(others.map(|(server, how)| (server.server_id, how)).collect());
    }
    let mut lost = others.filter(|(server, _)| mismatch(server, &state.profile).is_none());
    let Some((first, how)) = lost.next() else {
        return Ok(Vec::new());
    };
    Err(ProfileRefused {
        server: first.name.clone(),
        how,
        more: lost.count(),
    })
}
