//! A group whose time is the test's.

use bytes::Bytes;
use quorate_burst::exchange::GroupLoad;
use quorate_chain::{ClientRef, ReplicaEvent};
use quorate_group::{Event, Group, Output, Outputs, Record, Request, Turn};
use quorate_types::config::Member;
use quorate_types::cost::{Budget, EntryCost};
use quorate_types::{
    Access, Code, Durability, Epoch, GroupConfig, GroupId, Index, Micros, Permission, ServerId,
};
use quorate_wire::client::{Append, Message, NO_EXPECTED_OFFSET, Refused};
use quorate_wire::peer;
use uuid::Uuid;

pub const GROUP: GroupId = GroupId(Uuid::from_u128(7));
pub const ME: ServerId = ServerId(1);
pub const OTHER: ServerId = ServerId(2);
pub const CLIENT: ClientRef = ClientRef {
    connection: 1,
    channel: 1,
};
/// The same client on another connection.
pub const AGAIN: ClientRef = ClientRef {
    connection: 2,
    channel: 1,
};
pub const SESSION: u64 = 5;
pub const RATE_PER_S: u64 = 10;
pub const SECOND_US: Micros = 1_000_000;
pub const PERMISSION: Permission = Permission {
    may_append: true,
    may_read: true,
    project: None,
    layout: quorate_types::Layout(0),
    expires_at_s: u64::MAX,
};

pub struct Rig {
    pub group: Group,
    pub turn: Turn,
    pub out: Outputs,
    pub seq: u64,
}

pub fn config(epoch: Epoch, replicas: &[ServerId]) -> GroupConfig {
    let cost = EntryCost {
        fixed_milli: [1_000, 0, 0],
        per_byte_milli: [0; 3],
    };
    let member = |id: &ServerId| Member {
        server_id: *id,
        address: format!("server-{}", id.0),
    };
    GroupConfig {
        group_id: GROUP,
        epoch,
        durability: Durability::InMemory,
        replication_degree: replicas.len() as u8,
        min_replicas: 1,
        replicas: replicas.iter().map(member).collect(),
        learners: Vec::new(),
        budget: Budget::for_rate(RATE_PER_S, 1, cost),
        retention_bytes: u64::MAX,
        retention_age_s: None,
        beginning: None,
        access: Access::Full,
        layout: quorate_types::Layout::default(),
    }
}

pub fn append(seq: u64, payload: Bytes) -> Append {
    Append {
        seq,
        floor_index: 0,
        timeout_ms: 0,
        entry_count: 1,
        payload_crc: crc32fast::hash(&payload),
        expected_offset: NO_EXPECTED_OFFSET,
        fencing_token: 0,
        payload,
    }
}

pub fn payload() -> Bytes {
    Bytes::from_static(&[1, 0, 0, 0, 9])
}

impl Rig {
    /// Configured and attached; the time is one hour.
    pub fn new(config: GroupConfig) -> Self {
        let mut turn = Turn::new();
        (turn.now_us, turn.wall_us) = (3_600 * SECOND_US, 1_700_000_000 * SECOND_US);
        let group = Group::new(GROUP, ME, config.durability, false, 1, turn.now_us);
        let mut rig = Self {
            group,
            turn,
            out: Outputs::default(),
            seq: 0,
        };
        rig.step(Event::Configure(Box::new(config)));
        rig.attach(CLIENT, SESSION);
        rig.out.clear();
        rig
    }

    pub fn step(&mut self, event: Event) {
        self.group.step(&mut self.turn, event, &mut self.out);
    }

    pub fn flush(&mut self) {
        self.group.flush(&mut self.turn, &mut self.out);
    }

    pub fn request(&mut self, client: ClientRef, request: Request) {
        self.step(Event::Request { client, request });
    }

    pub fn ask(&mut self, client: ClientRef, message: Message) {
        self.request(client, Request::Message { message, trace: None });
    }

    pub fn attach(&mut self, client: ClientRef, session: u64) {
        self.request(
            client,
            Request::Attach {
                number: 1,
                session,
                permission: PERMISSION,
            },
        );
    }

    /// So many batches of one entry, in one ring_pass each.
    pub fn append(&mut self, count: u64) {
        for _ in 0..count {
            self.seq += 1;
            self.ask(CLIENT, Message::Append(append(self.seq, payload())));
            self.flush();
        }
    }

    pub fn replica_event(&mut self, event: ReplicaEvent) {
        self.step(Event::Replica(event));
    }

    /// The other replica of two has the log up to this index.
    pub fn acknowledge(&mut self, index: Index) {
        let ack = peer::ChainAck {
            acknowledged_index: index,
            ..Default::default()
        };
        let epoch = self.group.replica().epoch();
        self.step(Event::Peer {
            from: OTHER,
            epoch,
            message: peer::Message::ChainAck(ack),
        });
    }

    /// The other replica of two asks for what is in the log, and agrees with it.
    pub fn follow(&mut self) {
        let log = self.group.replica().log();
        let epoch = self.group.replica().epoch();
        let request = peer::SyncRequest {
            nonce: 1,
            last_index: log.last_index(),
            commit_index: 0,
            history: Vec::new(),
        };
        let last = log.last_index();
        self.step(Event::Peer {
            from: OTHER,
            epoch,
            message: peer::Message::SyncRequest(request),
        });
        self.acknowledge(last);
    }

    pub fn ordered(&self) -> u64 {
        self.group.replica().log().next_offset()
    }

    pub fn load(&mut self) -> GroupLoad {
        self.group.take_load(self.turn.now_us).expect("it is a replica")
    }

    /// Messages to clients since the last call.
    pub fn messages(&mut self) -> Vec<(ClientRef, Message)> {
        let acks = std::mem::take(&mut self.out.acks);
        let outputs: Vec<Output> = self.out.list.drain(..).collect();
        self.out.clear();
        let messages = outputs.into_iter().filter_map(|output| match output {
            Output::Client { client, message } | Output::NotAttached { client, message, .. } => {
                Some((client, message))
            }
            Output::Acked { client, acks: range } => {
                let acked = acks[range].iter().map(|(_, seq, offset)| (*seq, *offset));
                Some((client, Message::Acked(acked.collect())))
            }
            _ => None,
        });
        messages.collect()
    }

    /// Refusals since the last call: number and code, and whether the outcome is unknown.
    pub fn refused(&mut self) -> Vec<(u64, u16, bool)> {
        let refusals = self
            .messages()
            .into_iter()
            .filter_map(|(_, message)| match message {
                Message::Refused(Refused {
                    id, code, outcome, ..
                }) => Some((id, code, outcome == 2)),
                _ => None,
            });
        refusals.collect()
    }

    /// Records for the journal since the last call.
    pub fn records(&mut self) -> Vec<Record> {
        let outputs: Vec<Output> = self.out.list.drain(..).collect();
        self.out.clear();
        let records = outputs.into_iter().filter_map(|output| match output {
            Output::Journal(record) => Some(record),
            _ => None,
        });
        records.collect()
    }

    pub fn returned(&mut self) -> bool {
        let has = self
            .out
            .list
            .iter()
            .any(|output| matches!(output, Output::OwnerReturned { .. }));
        self.out.clear();
        has
    }
}

pub fn refusal(id: u64, code: Code) -> (u64, u16, bool) {
    (id, code as u16, false)
}
