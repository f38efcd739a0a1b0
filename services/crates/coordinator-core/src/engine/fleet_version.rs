//! The fleet's version: what must change before it can be raised.

use quorate_types::{Versions, versions};

use super::sequencer::Sequencer;
use crate::command::{Command, Reply};
use crate::view::FleetVersionView;

/// The refusal of a command that would write a form which a part of the fleet cannot read yet.
pub fn too_new(command: &Command, version: u16) -> Option<Reply> {
    let (what, needed) = match command {
        Command::Admit { sla, .. } | Command::Resize { sla, .. } if sla.read_rate_per_s > 0 => (
            "SLAs that reserve reads (read_rate_per_s)",
            versions::FLEET_WITH_READS,
        ),
        Command::SetPartitions(_) | Command::DivideRates { .. } => {
            ("Groups with partitions", versions::FLEET_WITH_PARTITIONS)
        }
        Command::Relocate(_) => ("Moves of single replicas", versions::FLEET_WITH_RELOCATIONS),
        Command::SetGuarantee(_) => ("Guarantees of projects", versions::FLEET_WITH_GUARANTEES),
        Command::Revoke { .. } => ("Revocations of credentials", versions::FLEET_WITH_REVOCATIONS),
        _ => return None,
    };
    (version < needed).then(|| Reply::Conflict {
        code: "fleet_not_ready",
        message: format!(
            "{what} need version {needed} of the fleet, and it has {version}. Upgrade all servers and coordinators, then run \
             `quorate-coordinator fleet-version --raise`."
        ),
    })
}

/// `members`: coordinators that cannot read the newest forms, in words.
pub fn view(sequencer: &Sequencer, members: Vec<String>) -> FleetVersionView {
    let state = sequencer.state();
    let (version, newest) = (state.fleet_version, versions::FLEET.newest);
    let behind = state.servers.values().filter_map(|server| {
        let told = sequencer.connected().told_by(server.server_id);
        Some(format!(
            "server {} ({}) {}",
            server.server_id,
            server.name,
            lacks(told.map(|told| told.fleet_versions))?
        ))
    });
    let waits_for = match version < newest {
        true => members.into_iter().chain(behind).collect(),
        false => Vec::new(),
    };
    FleetVersionView {
        version,
        newest,
        waits_for,
    }
}

/// The answer while something cannot read the newest forms.
pub fn refusal(view: &FleetVersionView) -> Option<Reply> {
    let (newest, waits_for) = (view.newest, view.waits_for.join("; "));
    (!waits_for.is_empty()).then(|| Reply::Conflict {
        code: "fleet_not_ready",
        message: format!("Not everything can read forms of version {newest}: {waits_for}."),
    })
}

/// Why a server or a coordinator that says this cannot be part of a fleet of the newest version. `told` is none: it has said
/// nothing.
pub fn lacks(told: Option<Versions>) -> Option<String> {
    match told {
        None => Some("is away: start it, or remove it from the fleet".into()),
        Some(told) if told.has(versions::FLEET.newest) => None,
        Some(told) => Some(format!("reads {told}: upgrade it")),
    }
}
