//! Reads that groups ask of the disk while the server runs.

use quorate_group::{Generation, PageRead};
use quorate_types::{Epoch, GroupId, Index, ServerId};
use quorate_wire::BatchHeader;
use rand::Rng;

use crate::fleet::{DiskRead, Scheduled, World};

/// `range`: the first and the last index.
pub(super) fn load(
    world: &mut World,
    s: usize,
    group_id: GroupId,
    generation: Generation,
    range: (Index, Index),
) {
    let (from_index, to_index) = range;
    world.counts.loads += 1;
    assert!(
        to_index - from_index < 256,
        "a load of {from_index} to {to_index}"
    );
    let to_index = if world.rng.random_bool(0.1) {
        world.rng.random_range(from_index..=to_index)
    } else {
        to_index
    };
    let server = &world.servers[s];
    let spots = (from_index..=to_index).map_while(|index| server.disk.spot(group_id, index));
    let load = DiskRead::Load {
        generation,
        from_index,
        spots: spots.collect(),
    };
    read_from_disk(world, s, group_id, load);
}

pub(super) fn read_page(world: &mut World, s: usize, group_id: GroupId, read: PageRead) {
    world.counts.disk_pages += 1;
    let disk = &world.servers[s].disk;
    let spots = read.lacking().map(|index| disk.spot(group_id, index)).collect();
    read_from_disk(world, s, group_id, DiskRead::Page { read, spots });
}

pub(super) fn read_for_peer(
    world: &mut World,
    s: usize,
    group_id: GroupId,
    to: ServerId,
    epoch: Epoch,
    header: BatchHeader,
) {
    let spot = world.servers[s].disk.spot(group_id, header.index);
    let read = DiskRead::ForPeer {
        to,
        epoch,
        header,
        spot,
    };
    read_from_disk(world, s, group_id, read);
}

fn read_from_disk(world: &mut World, s: usize, group: GroupId, read: DiskRead) {
    let (incarnation, read) = (world.servers[s].incarnation, Box::new(read));
    let at = world.now + world.rng.random_range(10..world.plan.disk_read_us_max);
    world.schedule(
        at,
        Scheduled::DiskRead {
            server: s,
            incarnation,
            group,
            read,
        },
    );
}
