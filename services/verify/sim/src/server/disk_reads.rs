//! Reads from the disk for groups while the server runs; records that are found damaged there, and their repair.

use bytes::Bytes;
use quorate_group::{CopierId, Event, Generation, Lack, PageRead, Report};
use quorate_types::{Epoch, GroupId, Index, Micros, ServerId};
use quorate_wire::peer::{Envelope, Message};
use quorate_wire::{Batch, BatchHeader};
use rand::Rng;

use crate::disk::Spot;
use crate::invariants;
use crate::schedule::What;
use crate::world::World;

/// When nothing could be loaded, a server waits before it says so.
const LOAD_RETRY_US: Micros = 50_000;

/// Something to be read, from where it lay when it was asked for.
#[derive(Debug)]
pub enum DiskRead {
    Load {
        generation: Generation,
        from_index: Index,
        spots: Vec<Spot>,
    },
    Page {
        read: PageRead,
        /// `None`: it was trimmed.
        spots: Vec<Option<Spot>>,
    },
    ForPeer {
        to: ServerId,
        epoch: Epoch,
        header: BatchHeader,
        spot: Option<Spot>,
    },
}

impl World {
    pub(super) fn load(&mut self, s: usize, group_id: GroupId, from_index: Index, to_index: Index) {
        self.counts.loads += 1;
        assert!(
            to_index - from_index < 256,
            "a load of {from_index} to {to_index}"
        );
        let to_index = if self.rng.random_bool(0.1) {
            self.rng.random_range(from_index..=to_index)
        } else {
            to_index
        };
        let server = &self.servers[s];
        let spots = (from_index..=to_index).map_while(|index| server.disk.spot(group_id, index));
        let load = DiskRead::Load {
            generation: server.groups[&group_id].group.generation(),
            from_index,
            spots: spots.collect(),
        };
        self.read_from_disk(s, group_id, load);
    }

    pub(super) fn read_page(&mut self, s: usize, group_id: GroupId, read: PageRead) {
        self.counts.disk_pages += 1;
        let disk = &self.servers[s].disk;
        let spots = read.lacking().map(|index| disk.spot(group_id, index)).collect();
        self.read_from_disk(s, group_id, DiskRead::Page { read, spots });
    }

    pub(super) fn read_for_peer(
        &mut self,
        s: usize,
        group_id: GroupId,
        to: ServerId,
        epoch: Epoch,
        header: BatchHeader,
    ) {
        let spot = self.servers[s].disk.spot(group_id, header.index);
        let read = DiskRead::ForPeer {
            to,
            epoch,
            header,
            spot,
        };
        self.read_from_disk(s, group_id, read);
    }

    fn read_from_disk(&mut self, s: usize, group: GroupId, read: DiskRead) {
        let (incarnation, read) = (self.servers[s].incarnation, Box::new(read));
        let at = self.now + self.rng.random_range(10..self.plan.disk_read_us_max);
        self.at(
            at,
            What::DiskRead {
                server: s,
                incarnation,
                group,
                read,
            },
        );
    }

    /// The disk has read it.
    pub fn disk_read(&mut self, s: usize, group_id: GroupId, read: DiskRead) {
        match read {
            DiskRead::Load {
                generation,
                from_index,
                spots,
            } => self.loaded(s, group_id, generation, from_index, &spots),
            DiskRead::Page { read, spots } => {
                let payloads = spots.into_iter().map(|spot| self.read_payload(s, spot)).collect();
                self.step(s, group_id, Event::PageRead { read, payloads });
            }
            DiskRead::ForPeer {
                to,
                epoch,
                header,
                spot,
            } => {
                let payload = self.read_payload(s, spot).ok();
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
                self.send(s, to, envelope);
                self.servers[s].turn.end_fetch();
            }
        }
    }

    fn read_payload(&mut self, s: usize, spot: Option<Spot>) -> Result<Bytes, Lack> {
        let spot = spot.ok_or(Lack::Trimmed)?;
        // As if it had been copied to the group's log meanwhile, or the device had refused.
        if self.rng.random_bool(0.03) {
            return Err(Lack::Moved);
        }
        if !self.is_healing && self.rng.random_bool(0.003) {
            return Err(Lack::Other("the device refuses".to_string()));
        }
        self.servers[s].disk.read(spot)
    }

    /// A batch that cannot be read ends the run: the replica asks again from there.
    fn loaded(&mut self, s: usize, group_id: GroupId, generation: Generation, from: Index, spots: &[Spot]) {
        let disk = &self.servers[s].disk;
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
            self.step(s, group_id, Event::Damaged(vec![(index, None)]));
        }
        let is_empty = batches.is_empty();
        let event = Event::Loaded { generation, batches };
        if !is_empty {
            return self.step(s, group_id, event);
        }
        let incarnation = self.servers[s].incarnation;
        let at = self.now + LOAD_RETRY_US;
        self.at(
            at,
            What::AtGroup {
                server: s,
                incarnation,
                group: group_id,
                event: Box::new(event),
            },
        );
    }
}

/// A copier of the journal comes upon records that cannot be read, now and then; repaired ones are written back.
impl World {
    pub fn begin_copying(&mut self, s: usize, incarnation: u64) {
        if let Some(every_us) = self.plan.copy_every_us {
            let at = self.now + self.rng.random_range(1..=2 * every_us);
            self.at(
                at,
                What::Copy {
                    server: s,
                    incarnation,
                },
            );
        }
    }

    pub fn copy(&mut self, s: usize, incarnation: u64) {
        self.begin_copying(s, incarnation);
        // A copier that waits for a damaged record does not go on.
        if !self.servers[s].disk.has_damage() || !self.servers[s].copiers.is_empty() {
            return;
        }
        let mut lost = self.servers[s].disk.unreadable_records();
        for group_id in self.servers[s].group_ids() {
            let server = &mut self.servers[s];
            let mut damaged = Vec::new();
            for (index, lsn) in server.disk.batches_in(group_id, &lost) {
                lost.retain(|of| *of != lsn);
                server.copiers_begun += 1;
                server.copiers.insert(server.copiers_begun, (group_id, lsn));
                damaged.push((index, Some(CopierId(server.copiers_begun))));
            }
            if !damaged.is_empty() {
                self.counts.damage_found += damaged.len() as u64;
                self.step(s, group_id, Event::Damaged(damaged));
            }
        }
        let restated = &mut self.servers[s].restated;
        let before = restated.len();
        restated.extend(lost);
        if restated.len() > before {
            self.counts.restated += 1;
            for group_id in self.servers[s].group_ids() {
                self.step(s, group_id, Event::Restate);
            }
        }
    }

    pub(super) fn copied(
        &mut self,
        s: usize,
        copier: CopierId,
        header: &BatchHeader,
        payload: &Result<Bytes, u32>,
    ) {
        let known = self.servers[s].copiers.remove(&copier.0);
        let (group_id, _) = known.expect("a copier is answered once");
        if let Ok(payload) = payload {
            self.counts.copied_repaired += 1;
            invariants::when_repaired(s, group_id, header, payload);
        }
    }

    pub(super) fn copier_released(&mut self, s: usize, copier: CopierId) {
        let known = self.servers[s].copiers.remove(&copier.0);
        assert!(known.is_some(), "a copier is released once");
    }

    pub(super) fn rewrite(&mut self, s: usize, group_id: GroupId, header: &BatchHeader, payload: &Bytes) {
        invariants::when_repaired(s, group_id, header, payload);
        let server = &mut self.servers[s];
        let Some(spot) = server.disk.spot(group_id, header.index) else {
            return;
        };
        if server.disk.rewrite(spot, header, payload) {
            self.counts.rewritten += 1;
            server.is_rotten &= server.disk.has_damage();
        }
    }

    pub(super) fn note_report(&mut self, s: usize, group_id: GroupId, report: &Report) {
        self.trace.line(Some(Self::index_of(group_id)), || {
            format!("s{} reports {report:?}", s + 1)
        });
        match report {
            Report::RecordRepaired { from: Some(_), .. } => self.counts.repaired_by_peers += 1,
            Report::RecordsUnrepaired { records, .. } => self.counts.unrepaired += *records as u64,
            Report::PageUnreadable { .. } => self.counts.unreadable_pages += 1,
            _ => {}
        }
    }
}
