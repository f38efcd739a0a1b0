//! Usage and SLIs of the groups here, sampled each second and handed to telemetry.

use std::sync::Arc;

use quorate_journal::Journal;

use crate::flags::Flags;
use crate::shard::group::Group;
use crate::shared::Shared;

pub struct GroupSample {}

pub fn sample(_group: &mut Group) -> Option<GroupSample> {
    None
}

pub fn start(_flags: &Flags, _shared: Arc<Shared>, _journal: Arc<Journal>) {}
