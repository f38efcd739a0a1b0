//! `lead-alone`: the last coordinator of a fleet goes on without the others, whose disks are lost.

use std::path::Path;

use quorate_types::FleetId;

use crate::disk::DurableLog;
use crate::exit::Failure;
use quorate_coordinator_core::coordinator::{Alone, alone};
use quorate_coordinator_core::log::Contents;

/// Changes the log only if the operator says that the others are lost.
pub fn lead_alone(data_dir: &Path, others_are_lost: bool) -> Result<(), Failure> {
    // Opening makes a log where there is none.
    if !data_dir.join("coordinator.log").exists() {
        let message = format!("--data-dir {}: there is no coordinator.log", data_dir.display());
        return Err(Failure::configuration(message));
    }
    let (mut log, opened) = DurableLog::open(data_dir)?;
    let Contents::Member(disk) = opened.contents else {
        let message = "it was never one of several coordinators: start it as it is";
        return Err(Failure::configuration(message));
    };
    let unusable = |problem| Failure::disk(format!("{}: {problem}", data_dir.display()));
    let Alone { base, state, lost } = alone(&disk, FleetId(rand::random())).map_err(unusable)?;
    if lost.is_empty() {
        return Err(Failure::configuration(
            "it is the only one with a vote: start it as it is",
        ));
    }
    let names: Vec<String> = lost.iter().map(ToString::to_string).collect();
    println!(
        "{} servers and {} groups, as of entry {}. Entries that only {} have agreed are lost; servers that know of them say so",
        state.servers.len(),
        state.groups.len(),
        base.point.position.0,
        names.join(" and ")
    );
    if !others_are_lost {
        return Err(Failure::configuration(
            "nothing was changed. If those disks will not come back, keep a copy of this folder, and add \
             --the-others-are-lost",
        ));
    }
    let member = base.member;
    log.begin(base, Some(&state))?;
    println!(
        "{member} leads alone from its next start on. Wipe the others' disks, and let new coordinators --join it"
    );
    Ok(())
}
