//! Repaired records, given to copiers and written back.

use bytes::Bytes;
use quorate_group::{CopierId, Report};
use quorate_types::GroupId;
use quorate_wire::BatchHeader;

use crate::fleet::World;
use crate::invariants;

pub(super) fn copied(
    world: &mut World,
    s: usize,
    copier: CopierId,
    header: &BatchHeader,
    payload: &Result<Bytes, u32>,
) {
    let known = world.servers[s].copiers.remove(&copier.0);
    let (group_id, _) = known.expect("a copier is answered once");
    if let Ok(payload) = payload {
        world.counts.copied_repaired += 1;
        invariants::when_repaired(s, group_id, header, payload);
    }
}

pub(super) fn copier_released(world: &mut World, s: usize, copier: CopierId) {
    let known = world.servers[s].copiers.remove(&copier.0);
    assert!(known.is_some(), "a copier is released once");
}

pub(super) fn rewrite(world: &mut World, s: usize, group_id: GroupId, header: &BatchHeader, payload: &Bytes) {
    invariants::when_repaired(s, group_id, header, payload);
    let server = &mut world.servers[s];
    let Some(spot) = server.disk.spot(group_id, header.index) else {
        return;
    };
    if server.disk.rewrite(spot, header, payload) {
        world.counts.rewritten += 1;
        server.has_damage &= server.disk.has_damage();
    }
}

pub(super) fn note_report(world: &mut World, s: usize, group_id: GroupId, report: &Report) {
    world.trace.line(Some(World::index_of(group_id)), || {
        format!("s{} reports {report:?}", s + 1)
    });
    match report {
        Report::RecordRepaired { from: Some(_), .. } => world.counts.repaired_by_peers += 1,
        Report::RecordsUnrepaired { records, .. } => world.counts.unrepaired += *records as u64,
        Report::PageUnreadable { .. } => world.counts.unreadable_pages += 1,
        _ => {}
    }
}
