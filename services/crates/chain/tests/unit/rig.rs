//! Replicas of one group, and a network between them that delivers at once and in order.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quorate_chain::{AppendRequest, Arrival, ClientRef, Replica, ReplicaCommand, ReplicaEvent};
use quorate_types::config::Member;
use quorate_types::cost::{Budget, EntryCost};
use quorate_types::{Access, Code, Durability, Epoch, GroupConfig, GroupId, Index, Micros, Offset, ServerId};
use quorate_wire::client::NO_EXPECTED_OFFSET;
use quorate_wire::peer::Message;
use quorate_wire::{Batch, BatchHeader};
use uuid::Uuid;

pub const GROUP: GroupId = GroupId(Uuid::from_u128(7));
pub const CLIENT: ClientRef = ClientRef {
    connection: 1,
    channel: 1,
};
/// A tick of a test that has nothing to do with the wall clock.
pub const TICK: ReplicaEvent = ReplicaEvent::Tick { vouched_us: None };
static ZEROS: [u8; 4 << 20] = [0; 4 << 20];

pub fn config(epoch: Epoch, replicas: &[u32], learners: &[u32]) -> GroupConfig {
    let members = |ids: &[u32]| {
        let member = |id: &u32| Member {
            server_id: ServerId(*id),
            address: format!("s{id}"),
        };
        ids.iter().map(member).collect()
    };
    GroupConfig {
        group_id: GROUP,
        epoch,
        durability: Durability::InMemory,
        replication_degree: 3,
        min_replicas: 1,
        replicas: members(replicas),
        learners: members(learners),
        budget: Budget::for_rate(
            1,
            1,
            EntryCost {
                fixed_milli: [0; 3],
                per_byte_milli: [0; 3],
            },
        ),
        retention_bytes: u64::MAX,
        retention_age_s: None,
        beginning: None,
        access: Access::Full,
        layout: quorate_types::Layout::default(),
    }
}

pub fn payload(bytes: usize) -> Bytes {
    Bytes::from_static(&ZEROS[..bytes])
}

pub fn append(session: u64, seq: u64) -> AppendRequest {
    AppendRequest {
        client: CLIENT,
        session,
        seq,
        floor_index: 0,
        expected_offset: NO_EXPECTED_OFFSET,
        fencing_token: 0,
        entry_count: 2,
        payload: payload(20),
        payload_crc: (session * 1000 + seq) as u32,
        arrival: Arrival::default(),
        wall_us: 0,
        is_clock_doubted: false,
        trace: None,
    }
}

/// A batch as a head of `epoch` would have made it, behind `before`.
pub fn batch_after(
    before: Option<&BatchHeader>,
    epoch: Epoch,
    session: u64,
    seq: u64,
    bytes: usize,
) -> Batch {
    let header = BatchHeader {
        group_id: GROUP,
        epoch,
        index: before.map_or(0, |b| b.index) + 1,
        base_offset: before.map_or(0, BatchHeader::end_offset),
        cumulative_bytes: before.map_or(0, |b| b.cumulative_bytes) + bytes as u64 - 8,
        session,
        seq,
        timestamp_us: 0,
        fencing_token: 0,
        entry_count: 2,
        payload_len: bytes as u32,
        payload_crc: (epoch * 1000 + seq) as u32,
    };
    Batch {
        header,
        payload: payload(bytes),
        trace: None,
    }
}

/// Batches of one session, one for each epoch given.
pub fn batches(epochs: &[Epoch]) -> Vec<Batch> {
    let mut made: Vec<Batch> = Vec::new();
    for (at, epoch) in epochs.iter().enumerate() {
        made.push(batch_after(
            made.last().map(|b| &b.header),
            *epoch,
            1,
            at as u64 + 1,
            20,
        ));
    }
    made
}

/// A replica's commands after one event and a flush.
pub fn step(replica: &mut Replica, event: ReplicaEvent) -> Vec<ReplicaCommand> {
    step_at(replica, 0, event)
}

pub fn step_at(replica: &mut Replica, now: Micros, event: ReplicaEvent) -> Vec<ReplicaCommand> {
    let mut out = Vec::new();
    replica.step(now, event, &mut out);
    replica.flush(&mut out);
    out
}

pub fn peer(replica: &mut Replica, from: u32, message: Message) -> Vec<ReplicaCommand> {
    let epoch = replica.epoch();
    step(
        replica,
        ReplicaEvent::Peer {
            from: ServerId(from),
            epoch,
            message,
        },
    )
}

pub fn sends(commands: &[ReplicaCommand], to: u32) -> Vec<Message> {
    let send = |c: &ReplicaCommand| match c {
        ReplicaCommand::Send { to: at, message } if at.0 == to => Some(message.clone()),
        _ => None,
    };
    commands.iter().filter_map(send).collect()
}

pub fn acks(commands: &[ReplicaCommand]) -> Vec<(u64, Offset)> {
    let ack = |c: &ReplicaCommand| match c {
        ReplicaCommand::Ack { seq, base_offset, .. } => Some((*seq, *base_offset)),
        _ => None,
    };
    commands.iter().filter_map(ack).collect()
}

/// Answers to questions: request, and the refusal's code.
pub fn answers(commands: &[ReplicaCommand]) -> Vec<(u32, Option<Code>)> {
    let answer = |c: &ReplicaCommand| match c {
        ReplicaCommand::Answer { request, refused, .. } => Some((*request, *refused)),
        _ => None,
    };
    commands.iter().filter_map(answer).collect()
}

pub fn refusals(commands: &[ReplicaCommand]) -> Vec<(u64, Code)> {
    let refusal = |c: &ReplicaCommand| match c {
        ReplicaCommand::Refuse { seq, code, .. } => Some((*seq, *code)),
        _ => None,
    };
    commands.iter().filter_map(refusal).collect()
}

/// A replica whose log is `held`, as the only one of its chain in `epoch`: all of it is committed.
pub fn sole(durability: Durability, held: &[Batch], epoch: Epoch) -> Replica {
    let mut replica = Replica::recovered(ServerId(1), durability, quorate_chain::Base::default());
    for batch in held {
        replica.recover(batch.clone());
    }
    replica.recovered_all().expect("whole");
    step(
        &mut replica,
        ReplicaEvent::Configure(Box::new(config(epoch, &[1], &[]))),
    );
    replica
}

/// A fleet. Links are up unless named in `unreachable`; journals sync on request.
pub struct Fleet {
    pub durability: Durability,
    pub nodes: BTreeMap<u32, Replica>,
    pub unreachable: Vec<(u32, u32)>,
    queue: VecDeque<(u32, u32, Epoch, Message)>,
    pub delivered: u64,
    /// Per server: records submitted and not synced.
    pub unsynced: BTreeMap<u32, Vec<ReplicaEvent>>,
    /// Commands of all replicas besides sends and writes, in order.
    pub commands: Vec<(u32, ReplicaCommand)>,
    pub now: Micros,
}

impl Fleet {
    pub fn new(durability: Durability, servers: &[u32]) -> Self {
        let node = |id: &u32| (*id, Replica::new(ServerId(*id), durability));
        Self {
            durability,
            nodes: servers.iter().map(node).collect(),
            unreachable: Vec::new(),
            queue: VecDeque::new(),
            delivered: 0,
            unsynced: BTreeMap::new(),
            commands: Vec::new(),
            now: 0,
        }
    }

    /// Servers 1, 2, 3 in one chain, agreed.
    pub fn of_three(durability: Durability) -> Self {
        let mut fleet = Self::new(durability, &[1, 2, 3, 4]);
        fleet.configure(1, &[1, 2, 3], &[]);
        fleet
    }

    pub fn configure(&mut self, epoch: Epoch, replicas: &[u32], learners: &[u32]) {
        for id in replicas.iter().chain(learners) {
            let config = GroupConfig {
                durability: self.durability,
                ..config(epoch, replicas, learners)
            };
            self.give(*id, ReplicaEvent::Configure(Box::new(config)));
        }
        self.settle();
    }

    /// Gives an event and carries out the commands, but delivers nothing yet.
    pub fn give(&mut self, id: u32, event: ReplicaEvent) {
        let now = self.now;
        let replica = self.nodes.get_mut(&id).expect("a server");
        let commands = step_at(replica, now, event);
        let epoch = replica.epoch();
        for command in commands {
            match command {
                ReplicaCommand::Send { to, message } => self.queue.push_back((id, to.0, epoch, message)),
                ReplicaCommand::Persist(batch) => {
                    let (index, epoch) = (batch.header.index, batch.header.epoch);
                    self.unsynced
                        .entry(id)
                        .or_default()
                        .push(ReplicaEvent::Persisted { index, epoch });
                }
                ReplicaCommand::PersistBase { index, epoch, .. } => {
                    self.unsynced
                        .entry(id)
                        .or_default()
                        .push(ReplicaEvent::Persisted { index, epoch });
                }
                ReplicaCommand::Truncate { number, .. } => {
                    self.unsynced
                        .entry(id)
                        .or_default()
                        .push(ReplicaEvent::TruncationPersisted { number });
                }
                ReplicaCommand::PersistTrim { index } => {
                    self.unsynced
                        .entry(id)
                        .or_default()
                        .push(ReplicaEvent::TrimPersisted { index });
                }
                other => self.commands.push((id, other)),
            }
        }
    }

    /// Delivers until no message is left.
    pub fn settle(&mut self) {
        while self.deliver() {}
    }

    /// Messages on their way are lost.
    pub fn lose_on_the_way(&mut self) {
        self.queue.clear();
    }

    /// Delivers the next message, if there is one.
    pub fn deliver(&mut self) -> bool {
        if let Some((from, to, epoch, message)) = self.queue.pop_front() {
            self.delivered += 1;
            let is_cut = self.unreachable.contains(&(from, to)) || self.unreachable.contains(&(to, from));
            if self.nodes.contains_key(&to) && !is_cut {
                self.give(
                    to,
                    ReplicaEvent::Peer {
                        from: ServerId(from),
                        epoch,
                        message,
                    },
                );
            }
            return true;
        }
        false
    }

    pub fn event(&mut self, id: u32, event: ReplicaEvent) {
        self.give(id, event);
        self.settle();
    }

    pub fn append(&mut self, id: u32, request: AppendRequest) {
        self.event(id, ReplicaEvent::Append(request));
    }

    /// The journal of one server syncs what it was given.
    pub fn sync(&mut self, id: u32) {
        for event in self.unsynced.remove(&id).unwrap_or_default() {
            self.event(id, event);
        }
    }

    pub fn node(&self, id: u32) -> &Replica {
        &self.nodes[&id]
    }

    pub fn commits(&self, ids: &[u32]) -> Vec<Index> {
        ids.iter().map(|id| self.node(*id).commit_index()).collect()
    }

    /// Takes the commands since the last call.
    pub fn take_commands(&mut self) -> Vec<ReplicaCommand> {
        self.commands.drain(..).map(|(_, command)| command).collect()
    }
}
