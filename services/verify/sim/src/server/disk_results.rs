//! Results of reads from the disk go into the groups that asked.

use bytes::Bytes;
use quorate_group::{Event, Generation, Lack};
use quorate_types::{GroupId, Index, Micros};
use quorate_wire::Batch;
use quorate_wire::peer::{Envelope, Message};
use rand::Rng;

use super::groups;
use crate::disk::Spot;
use crate::fleet::{DiskRead, Scheduled, World};
use crate::links;

/// A server waits before it reports that nothing could be loaded.
const LOAD_RETRY_US: Micros = 50_000;

/// The disk has read it.
pub fn receive(world: &mut World, s: usize, group_id: GroupId, read: DiskRead) {
    match read {
        DiskRead::Load {
            generation,
            from_index,
            spots,
        } => loaded(world, s, group_id, generation, from_index, &spots),
        DiskRead::Page { read, spots } => {
            let payloads = spots
                .into_iter()
                .map(|spot| read_payload(world, s, spot))
                .collect();
            groups::step(world, s, group_id, Event::PageRead { read, payloads });
        }
        DiskRead::ForPeer {
            to,
            epoch,
            header,
            spot,
        } => {
            let payload = read_payload(world, s, spot).ok();
            let batch = payload.map(|payload| Batch {
                header,
                payload,
                trace: None,
            });
            let index = header.index;
            let message = Message::Fetched { index, batch };
            let envelope = Envelope {
                group_id,
                epoch,
                message,
            };
            links::send(world, s, to, envelope);
            world.servers[s].turn.end_fetch();
        }
    }
}

fn read_payload(world: &mut World, s: usize, spot: Option<Spot>) -> Result<Bytes, Lack> {
    let spot = spot.ok_or(Lack::Trimmed)?;
    // As if it had been copied to the group's log meanwhile, or the device had refused.
    if world.rng.random_bool(0.03) {
        return Err(Lack::Moved);
    }
    if !world.is_healing && world.rng.random_bool(0.003) {
        return Err(Lack::Other("the device refuses".to_string()));
    }
    world.servers[s].disk.read(spot)
}

/// A batch that cannot be read ends the run: the replica asks again from there.
fn loaded(
    world: &mut World,
    s: usize,
    group_id: GroupId,
    generation: Generation,
    from: Index,
    spots: &[Spot],
) {
    let disk = &world.servers[s].disk;
    let mut batches = Vec::new();
    let mut damaged = None;
    for (index, spot) in (from..).zip(spots) {
        match disk.read(*spot) {
            Ok(payload) => batches.push((index, payload)),
            Err(lack) => {
                damaged = (lack == Lack::Damaged).then_some(index);
                break;
            }
        }
    }
    if let Some(index) = damaged {
        groups::step(world, s, group_id, Event::Damaged(vec![(index, None)]));
    }
    let is_empty = batches.is_empty();
    let event = Event::Loaded { generation, batches };
    if !is_empty {
        return groups::step(world, s, group_id, event);
    }
    let incarnation = world.servers[s].incarnation;
    let at = world.now + LOAD_RETRY_US;
    world.schedule(
        at,
        Scheduled::AtGroup {
            server: s,
            incarnation,
            group: group_id,
            event: Box::new(event),
        },
    );
}
