//! Replicas of one group, and a network between them that delivers at once and in order.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use quorate_chain::{AppendRequest, ClientRef, Command, Event, Replica};
use quorate_types::config::Member;
use quorate_types::cost::{AppendCost, Budget};
use quorate_types::{Code, Durability, Epoch, GroupConfig, GroupId, Index, Micros, Offset, ServerId};
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
pub const TICK: Event = Event::Tick { wall_us: 0 };
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
            AppendCost {
                fixed_milli: [0; 3],
                per_byte_milli: [0; 3],
            },
        ),
        retention_bytes: u64::MAX,
        retention_age_s: None,
        beginning: None,
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
        received_us: 0,
        wall_us: 0,
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

/// What a replica wants after one event and a flush.
pub fn step(replica: &mut Replica, event: Event) -> Vec<Command> {
    step_at(replica, 0, event)
}

pub fn step_at(replica: &mut Replica, now: Micros, event: Event) -> Vec<Command> {
    let mut out = Vec::new();
    replica.step(now, event, &mut out);
    replica.flush(&mut out);
    out
}

pub fn peer(replica: &mut Replica, from: u32, message: Message) -> Vec<Command> {
    let epoch = replica.epoch();
    step(
        replica,
        Event::Peer {
            from: ServerId(from),
            epoch,
            message,
        },
    )
}

pub fn sends(commands: &[Command], to: u32) -> Vec<Message> {
    let send = |c: &Command| match c {
        Command::Send { to: at, message } if at.0 == to => Some(message.clone()),
        _ => None,
    };
    commands.iter().filter_map(send).collect()
}

pub fn acks(commands: &[Command]) -> Vec<(u64, Offset)> {
    let ack = |c: &Command| match c {
        Command::Ack { seq, base_offset, .. } => Some((*seq, *base_offset)),
        _ => None,
    };
    commands.iter().filter_map(ack).collect()
}

/// What was asked and answered: request, and why not.
pub fn answers(commands: &[Command]) -> Vec<(u32, Option<Code>)> {
    let answer = |c: &Command| match c {
        Command::Answer { request, refused, .. } => Some((*request, *refused)),
        _ => None,
    };
    commands.iter().filter_map(answer).collect()
}

pub fn refusals(commands: &[Command]) -> Vec<(u64, Code)> {
    let refusal = |c: &Command| match c {
        Command::Refuse { seq, code, .. } => Some((*seq, *code)),
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
    step(&mut replica, Event::Configure(config(epoch, &[1], &[])));
    replica
}

/// A fleet; links are up unless named in `cut`, journals sync when told to.
pub struct Fleet {
    pub durability: Durability,
    pub nodes: BTreeMap<u32, Replica>,
    pub cut: Vec<(u32, u32)>,
    queue: VecDeque<(u32, u32, Epoch, Message)>,
    pub delivered: u64,
    /// Per server: records submitted and not synced.
    pub unsynced: BTreeMap<u32, Vec<Event>>,
    /// What every replica wanted besides sending and writing, in order.
    pub told: Vec<(u32, Command)>,
    pub now: Micros,
}

impl Fleet {
    pub fn new(durability: Durability, servers: &[u32]) -> Self {
        let node = |id: &u32| (*id, Replica::new(ServerId(*id), durability));
        Self {
            durability,
            nodes: servers.iter().map(node).collect(),
            cut: Vec::new(),
            queue: VecDeque::new(),
            delivered: 0,
            unsynced: BTreeMap::new(),
            told: Vec::new(),
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
            self.give(*id, Event::Configure(config));
        }
        self.settle();
    }

    /// Gives an event and carries out the commands, but delivers nothing yet.
    pub fn give(&mut self, id: u32, event: Event) {
        let now = self.now;
        let replica = self.nodes.get_mut(&id).expect("a server");
        let commands = step_at(replica, now, event);
        let epoch = replica.epoch();
        for command in commands {
            match command {
                Command::Send { to, message } => self.queue.push_back((id, to.0, epoch, message)),
                Command::Persist(batch) => {
                    let (index, epoch) = (batch.header.index, batch.header.epoch);
                    self.unsynced
                        .entry(id)
                        .or_default()
                        .push(Event::Persisted { index, epoch });
                }
                Command::PersistBase { index, epoch, .. } => {
                    self.unsynced
                        .entry(id)
                        .or_default()
                        .push(Event::Persisted { index, epoch });
                }
                Command::Cut { number, .. } => {
                    self.unsynced
                        .entry(id)
                        .or_default()
                        .push(Event::CutPersisted { number });
                }
                Command::PersistTrim { index } => {
                    self.unsynced
                        .entry(id)
                        .or_default()
                        .push(Event::TrimPersisted { index });
                }
                other => self.told.push((id, other)),
            }
        }
    }

    /// Delivers until nobody has anything to say.
    pub fn settle(&mut self) {
        while self.deliver() {}
    }

    /// All that is on the way is lost.
    pub fn lose_on_the_way(&mut self) {
        self.queue.clear();
    }

    /// Delivers the next message, if there is one.
    pub fn deliver(&mut self) -> bool {
        if let Some((from, to, epoch, message)) = self.queue.pop_front() {
            self.delivered += 1;
            let is_cut = self.cut.contains(&(from, to)) || self.cut.contains(&(to, from));
            if self.nodes.contains_key(&to) && !is_cut {
                self.give(
                    to,
                    Event::Peer {
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

    pub fn event(&mut self, id: u32, event: Event) {
        self.give(id, event);
        self.settle();
    }

    pub fn append(&mut self, id: u32, request: AppendRequest) {
        self.event(id, Event::Append(request));
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

    /// Forgets and answers what was told since.
    pub fn take_told(&mut self) -> Vec<Command> {
        self.told.drain(..).map(|(_, command)| command).collect()
    }
}
