//! One server: its replica, and the commands carried out as `services/replica` does it.

use std::collections::BTreeMap;

use quorate_chain::{AppendRequest, Command, Event, Happened, Replica};
use quorate_types::{Code, Durability, Epoch, GroupConfig, Index, Micros, ServerId};
use rand::Rng;

use crate::client::{Answer, Reply};
use crate::disk::{Disk, Record};
use crate::invariants;
use crate::world::{What, World};

#[derive(Debug)]
pub struct Server {
    pub id: ServerId,
    pub alive: bool,
    pub incarnation: u64,
    pub paused_until: Micros,
    /// What came while it was stopped.
    pub deferred: Vec<What>,
    pub disk_fault: bool,
    pub replica: Option<Replica>,
    pub disk: Disk,
    /// The connection on which each session was attached last.
    pub sessions: BTreeMap<u64, u64>,
    pub is_dirty: bool,
    /// Committed by this incarnation.
    pub commit_seen: Index,
}

/// What the coordinator tells a server.
#[derive(Debug, Clone)]
#[expect(clippy::large_enum_variant, reason = "few are under way")]
pub enum Instruction {
    Configure(GroupConfig),
    Drop,
}

impl Server {
    pub fn new(index: usize) -> Self {
        Self {
            id: ServerId(index as u32 + 1),
            alive: true,
            incarnation: 1,
            paused_until: 0,
            deferred: Vec::new(),
            disk_fault: false,
            replica: None,
            disk: Disk::default(),
            sessions: BTreeMap::new(),
            is_dirty: false,
            commit_seen: 0,
        }
    }

    /// Whether it has, for good, the batch that `epoch` ordered at `index`.
    pub fn has(&self, durability: Durability, index: Index, epoch: Epoch) -> bool {
        match durability {
            Durability::Persistent => self.disk.image.has(index, epoch),
            Durability::InMemory => self.replica.as_ref().is_some_and(|r| {
                index <= r.log().base().index || r.log().header(index).is_some_and(|h| h.epoch == epoch)
            }),
        }
    }
}

/// A replica whose learner is sent no more than the plan allows, if it says so.
pub fn paced(mut replica: Replica, is_paced: bool) -> Replica {
    if is_paced {
        replica.pace_catchup();
    }
    replica
}

impl World {
    pub fn step(&mut self, s: usize, event: Event) {
        let now = self.now;
        let Some(replica) = &mut self.servers[s].replica else {
            return;
        };
        let mut commands = Vec::new();
        self.trace.line(|| {
            format!("{now:>8} s{} {event:?}", s + 1)
                .chars()
                .take(300)
                .collect()
        });
        replica.step(now, event, &mut commands);
        if self.plan.flush_at_once >= 1.0 || self.rng.random_bool(self.plan.flush_at_once) {
            replica.flush(&mut commands);
            self.servers[s].is_dirty = false;
        } else if !std::mem::replace(&mut self.servers[s].is_dirty, true) {
            let incarnation = self.servers[s].incarnation;
            let at = now + self.rng.random_range(1..200);
            self.at(
                at,
                What::Flush {
                    server: s,
                    incarnation,
                },
            );
        }
        self.after(s, commands);
    }

    pub fn flush(&mut self, s: usize) {
        let mut commands = Vec::new();
        let server = &mut self.servers[s];
        if let Some(replica) = &mut server.replica
            && std::mem::take(&mut server.is_dirty)
        {
            replica.flush(&mut commands);
            self.after(s, commands);
        }
    }

    fn after(&mut self, s: usize, commands: Vec<Command>) {
        let server = &self.servers[s];
        let Some(replica) = &server.replica else { return };
        let log = replica.log();
        let (commit, last, epoch) = (replica.commit_index(), log.last_index(), replica.epoch());
        self.trace
            .numbers(&[self.now, s as u64, epoch, commit, last, commands.len() as u64]);
        self.trace.line(|| {
            format!(
                "           s{} epoch {epoch} {:?} {:?} base {} commit {commit} last {last} durable {}",
                s + 1,
                replica.role(),
                replica.state(),
                log.base().index,
                replica.durable_offset()
            )
        });
        invariants::after_step(self, s);
        for command in commands {
            self.carry_out(s, epoch, command);
        }
    }

    fn carry_out(&mut self, s: usize, epoch: Epoch, command: Command) {
        match command {
            Command::Send { to, message } => {
                self.trace.line(|| {
                    format!("           -> {to}: {message:?}")
                        .chars()
                        .take(200)
                        .collect()
                });
                self.send(s, to.0 as usize - 1, epoch, message);
            }
            Command::Persist(batch) => self.write(s, Record::Batch(batch)),
            Command::PersistBase { base, index, epoch } => self.write(s, Record::Base { base, index, epoch }),
            Command::Cut { index, number } => self.write(s, Record::Cut { index, number }),
            Command::PersistTrim { index } => self.write(s, Record::Trim { index }),
            Command::Answer {
                client,
                asked,
                refused,
                ..
            } => self.answer_asked(s, client, asked, refused),
            Command::Load { from_index, to_index } => self.load(s, from_index, to_index),
            Command::Ack {
                client,
                seq,
                base_offset,
                entry_count,
                ..
            } => {
                let answer = Answer::Acked {
                    base_offset,
                    entry_count,
                };
                self.answer(s, client, Reply { seq, answer });
            }
            Command::Refuse {
                client,
                seq,
                code,
                happened,
                ..
            } => {
                let is_unknown = happened == Happened::Unknown;
                self.answer(
                    s,
                    client,
                    Reply {
                        seq,
                        answer: Answer::Refused { code, is_unknown },
                    },
                );
            }
            Command::LearnerCaughtUp { learner } => {
                let at = self.now + self.rng.random_range(100..5_000);
                self.at(
                    at,
                    What::CaughtUp {
                        epoch,
                        learner: learner.0 as usize - 1,
                    },
                );
            }
            Command::Adopted { .. } => {
                let server = &mut self.servers[s];
                if !server.replica.as_ref().is_some_and(Replica::is_head) {
                    server.sessions.clear();
                }
            }
            Command::Committed | Command::Trimmed { .. } => {}
            Command::Forget => unreachable!("no group of this fleet is lost"),
        }
    }

    fn write(&mut self, s: usize, record: Record) {
        self.trace
            .line(|| format!("           disk {record:?}").chars().take(120).collect());
        self.servers[s].disk.submit(record);
        self.start_sync(s);
    }

    pub fn start_sync(&mut self, s: usize) {
        let server = &mut self.servers[s];
        if server.disk.syncing > 0 || !server.disk.has_pending() || server.disk_fault {
            return;
        }
        server.disk.begin_sync(&mut self.rng);
        let incarnation = server.incarnation;
        let at = self.now + self.rng.random_range(20..=self.plan.sync_us_max);
        self.at(
            at,
            What::Synced {
                server: s,
                incarnation,
            },
        );
    }

    pub fn synced(&mut self, s: usize) {
        let events = self.servers[s]
            .disk
            .complete(self.plan.completions_are_merged, &mut self.rng);
        self.start_sync(s);
        for event in events {
            self.step(s, event);
        }
        invariants::durable_member(self, s);
    }

    fn load(&mut self, s: usize, from: Index, to: Index) {
        self.loads += 1;
        assert!(to - from < 256, "a load of {from} to {to}");
        let to = if self.rng.random_bool(0.1) {
            self.rng.random_range(from..=to)
        } else {
            to
        };
        let disk = &self.servers[s].disk;
        let batches = (from..=to)
            .map_while(|index| Some((index, disk.payload(index)?)))
            .collect();
        let incarnation = self.servers[s].incarnation;
        let at = self.now + self.rng.random_range(10..3_000);
        self.at(
            at,
            What::Loaded {
                server: s,
                incarnation,
                batches,
            },
        );
    }

    pub fn instruct(&mut self, s: usize, instruction: Instruction) {
        let durability = self.plan.durability;
        match instruction {
            Instruction::Configure(config) => {
                let server = &mut self.servers[s];
                let me = server.id;
                let is_paced = self.plan.catchup_bytes.is_some();
                server
                    .replica
                    .get_or_insert_with(|| paced(Replica::new(me, durability), is_paced));
                self.step(s, Event::Configure(config));
            }
            Instruction::Drop => {
                let server = &mut self.servers[s];
                server.replica = None;
                server.commit_seen = 0;
                server.sessions.clear();
                // As if a record said that all before it means nothing.
                server.disk.wipe();
                self.dropped(s);
            }
        }
    }

    /// An append arrives on a connection.
    pub fn append(&mut self, s: usize, connection: u64, request: AppendRequest) {
        let server = &self.servers[s];
        if server.sessions.get(&request.session) != Some(&connection) {
            let code = if server.replica.is_some() {
                Code::SessionMoved
            } else {
                Code::GroupNotHere
            };
            let reply = Reply {
                seq: request.seq,
                answer: Answer::Refused {
                    code,
                    is_unknown: false,
                },
            };
            return self.answer(s, request.client, reply);
        }
        self.step(s, Event::Append(request));
    }
}
