//! Whether another cost profile may come into use.

use std::collections::BTreeMap;

use quorate_placement::{Profile, ServerCharges};
use quorate_types::ServerId;
use quorate_types::cost::RESOURCES;

use super::entity::Server;
use super::machine::CoordinatorState;
use crate::command::Mismatched;

/// The reason why a profile does not come into use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ProfileRefused {
    /// A server that takes new replicas now would take none under the profile. `more`: further ones.
    Mismatched {
        server: String,
        how: String,
        more: usize,
    },
    /// By its costs the groups of a server need so much of what may be promised of it: what is promised now would not hold.
    Overpromised {
        server: String,
        resource: &'static str,
        percent: u64,
        more: usize,
    },
}

/// The treatment of a profile by whose costs promises that hold now would not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Overpromising {
    /// It does not come into use.
    #[default]
    Refused,
    /// It does: the promises are worth no more than that.
    Used,
}

/// Whether the profile may replace the one in use. Groups keep the demands that they were admitted with, so a profile with
/// higher costs says that more is promised than a server has.
///
/// Gives the live servers that it does not match, and how; all known ones when none is alive. Servers that register later
/// are judged then.
pub fn check_profile(
    profile: &Profile,
    state: &CoordinatorState,
    mismatched: Mismatched,
    overpromising: Overpromising,
) -> Result<Vec<(ServerId, String)>, ProfileRefused> {
    let others = check_machines(profile, state, mismatched)?;
    if overpromising == Overpromising::Refused && *profile != state.profile {
        check_promises(profile, state)?;
    }
    Ok(others)
}

/// Where mismatched servers are refused, a server that takes new replicas now must not take none.
fn check_machines(
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
    Err(ProfileRefused::Mismatched {
        server: first.name.clone(),
        how,
        more: lost.count(),
    })
}

/// Rates alone: space does not depend on costs. A server that is charged as much already is not refused for it.
fn check_promises(profile: &Profile, state: &CoordinatorState) -> Result<(), ProfileRefused> {
    let mut needed: BTreeMap<ServerId, ServerCharges> = BTreeMap::new();
    for group in state.groups.values() {
        for (server, demand) in group.charges_by(&profile.demands(&group.sla), &profile.budget(&group.sla)) {
            needed.entry(server).or_default().add(&demand);
        }
    }
    let beyond = |(id, needed): (&ServerId, &ServerCharges)| {
        let server = &state.servers[id];
        let promisable = server.promisable(profile.safety_factor).rates();
        let charged = state.fleets.in_region(&server.region)?.allocated(*id).rates();
        let needed = needed.sum().rates();
        let percent = |i: usize| (u128::from(needed[i]) * 100 / u128::from(promisable[i].max(1))) as u64;
        let worse = (0..RESOURCES.len()).filter(|i| needed[*i] > promisable[*i].max(charged[*i]));
        let worst = worse.max_by_key(|i| percent(*i))?;
        Some((server.name.clone(), worst, percent(worst)))
    };
    let found: Vec<(String, usize, u64)> = needed.iter().filter_map(beyond).collect();
    let more = found.len().saturating_sub(1);
    match found.into_iter().max_by_key(|(_, _, percent)| *percent) {
        None => Ok(()),
        Some((server, resource, percent)) => Err(ProfileRefused::Overpromised {
            server,
            resource: RESOURCES[resource],
            percent,
            more,
        }),
    }
}
