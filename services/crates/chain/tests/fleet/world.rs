//! Time, and what happens in it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use bytes::Bytes;
use quorate_chain::Event;
use quorate_types::{Epoch, Index, Micros};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};

use crate::client::{Client, ToClient, ToServer};
use crate::invariants;
use crate::ledger::Ledger;
use crate::link::Link;
use crate::master::{Life, Master};
use crate::plan::Plan;
use crate::server::{Instruction, Server};
use crate::trace::Trace;

/// How long the fleet has, undisturbed, until all is well again.
const HEALING_US: Micros = 20_000_000;
const TICK_US: Micros = 50_000;
const MASTER_TICK_US: Micros = 10_000;

#[derive(Debug)]
pub enum What {
    Deliver {
        from: usize,
        to: usize,
        generation: u64,
    },
    LinkUp {
        server: usize,
        peer: usize,
        generation: u64,
    },
    LinkDown {
        server: usize,
        peer: usize,
        generation: u64,
    },
    Reconnect {
        a: usize,
        b: usize,
    },
    Synced {
        server: usize,
        incarnation: u64,
    },
    Loaded {
        server: usize,
        incarnation: u64,
        batches: Vec<(Index, Bytes)>,
    },
    Flush {
        server: usize,
        incarnation: u64,
    },
    Tick {
        server: usize,
        incarnation: u64,
    },
    DiskWorks {
        server: usize,
    },
    Restart {
        server: usize,
    },
    Resume {
        server: usize,
    },
    Instruct {
        server: usize,
        incarnation: u64,
        instruction: Instruction,
    },
    MasterHears {
        server: usize,
        alive: bool,
        life: Life,
    },
    MasterTick,
    CaughtUp {
        epoch: Epoch,
        learner: usize,
    },
    ClientTick {
        client: usize,
    },
    ToServer {
        server: usize,
        client: usize,
        connection: u64,
        message: ToServer,
    },
    ToClient {
        client: usize,
        connection: u64,
        message: ToClient,
    },
    Fault,
}

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Outcome {
    pub trace_hash: u64,
    pub seeds: u64,
    pub events: u64,
    pub acks: u64,
    pub committed: u64,
    pub crashes: u64,
    pub epochs: u64,
    pub promotions: u64,
    pub loads: u64,
    pub answers: u64,
}

impl Outcome {
    pub fn add(&mut self, other: &Outcome) {
        self.seeds += other.seeds;
        self.events += other.events;
        self.acks += other.acks;
        self.committed += other.committed;
        self.crashes += other.crashes;
        self.epochs += other.epochs;
        self.promotions += other.promotions;
        self.loads += other.loads;
        self.answers += other.answers;
    }
}

pub struct World {
    pub plan: Plan,
    pub rng: SmallRng,
    pub now: Micros,
    queue: BinaryHeap<Reverse<(Micros, u64)>>,
    whats: BTreeMap<u64, What>,
    order: u64,
    pub servers: Vec<Server>,
    pub links: BTreeMap<(usize, usize), Link>,
    pub master: Master,
    pub clients: Vec<Client>,
    pub broken_connections: BTreeSet<u64>,
    pub ledger: Ledger,
    pub trace: Trace,
    pub acks: u64,
    pub crashes: u64,
    pub loads: u64,
    pub answers: u64,
}

impl World {
    pub fn new(seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let plan = Plan::draw(&mut rng);
        let trace = Trace::new();
        trace.line(|| format!("{plan:#?}"));
        Self {
            now: 0,
            queue: BinaryHeap::new(),
            whats: BTreeMap::new(),
            order: 0,
            servers: (0..plan.servers).map(Server::new).collect(),
            links: BTreeMap::new(),
            master: Master::new(plan.servers),
            clients: (1..=plan.clients as u64)
                .map(|c| Client::new(c, plan.batches_per_client))
                .collect(),
            broken_connections: BTreeSet::new(),
            ledger: Ledger::default(),
            trace,
            acks: 0,
            crashes: 0,
            loads: 0,
            answers: 0,
            plan,
            rng,
        }
    }

    pub fn at(&mut self, at: Micros, what: What) {
        self.order += 1;
        self.queue.push(Reverse((at, self.order)));
        self.whats.insert(self.order, what);
    }

    pub fn run(mut self) -> Outcome {
        self.begin();
        let mut is_healing = false;
        while let Some(Reverse((at, order))) = self.queue.pop() {
            let what = self.whats.remove(&order).expect("scheduled");
            self.now = self.now.max(at);
            self.trace.events += 1;
            if !is_healing && self.now >= self.plan.horizon_us {
                is_healing = true;
                self.trace.line(|| "healing".to_string());
                self.heal();
            }
            if is_healing && matches!(what, What::Fault) {
                continue;
            }
            let is_check = matches!(what, What::MasterTick);
            self.happen(what);
            if is_check && is_healing && invariants::is_healed(&self) {
                return self.end();
            }
            if self.now > self.plan.horizon_us + HEALING_US {
                panic!("not healed: {}", invariants::why_not_healed(&self));
            }
        }
        panic!("time stands still: {}", invariants::why_not_healed(&self));
    }

    fn begin(&mut self) {
        for a in 0..self.servers.len() {
            for b in a + 1..self.servers.len() {
                self.open_link(a, b);
            }
            self.at(
                TICK_US,
                What::Tick {
                    server: a,
                    incarnation: 1,
                },
            );
        }
        self.first_chain();
        self.at(MASTER_TICK_US, What::MasterTick);
        for client in 0..self.clients.len() {
            self.at(1_000, What::ClientTick { client });
        }
        self.at(self.plan.fault_every_us, What::Fault);
    }

    fn end(&mut self) -> Outcome {
        invariants::at_end(self);
        Outcome {
            trace_hash: self.trace.hash(),
            seeds: 1,
            events: self.trace.events,
            acks: self.acks,
            committed: self.ledger.last_index(),
            crashes: self.crashes,
            epochs: self.master.epoch,
            promotions: self.master.promotions,
            loads: self.loads,
            answers: self.answers,
        }
    }

    /// A server that is stopped, or no longer the one meant, does not take part.
    fn reaches(&mut self, s: usize, incarnation: Option<u64>, what: What) -> Option<What> {
        let server = &self.servers[s];
        if !server.alive || incarnation.is_some_and(|i| i != server.incarnation) {
            return None;
        }
        if server.paused_until > self.now {
            let until = server.paused_until;
            if server.deferred.is_empty() {
                self.at(until, What::Resume { server: s });
            }
            self.servers[s].deferred.push(what);
            return None;
        }
        Some(what)
    }

    /// A server that was stopped goes on: it finds all that came meanwhile, in order.
    pub fn resume(&mut self, s: usize) {
        let until = self.servers[s].paused_until;
        if until > self.now {
            return self.at(until, What::Resume { server: s });
        }
        for what in std::mem::take(&mut self.servers[s].deferred) {
            self.happen(what);
        }
    }

    fn happen(&mut self, what: What) {
        let target = match &what {
            What::Deliver { to, .. } => Some((*to, None)),
            What::LinkUp { server, .. } | What::LinkDown { server, .. } => Some((*server, None)),
            What::ToServer { server, .. } => Some((*server, None)),
            What::Synced { server, incarnation }
            | What::Loaded {
                server, incarnation, ..
            }
            | What::Flush { server, incarnation }
            | What::Tick { server, incarnation }
            | What::Instruct {
                server, incarnation, ..
            } => Some((*server, Some(*incarnation))),
            _ => None,
        };
        let what = match target {
            Some((s, incarnation)) => self.reaches(s, incarnation, what),
            None => Some(what),
        };
        match what {
            Some(
                What::Deliver { .. } | What::LinkUp { .. } | What::LinkDown { .. } | What::Reconnect { .. },
            ) => {
                self.on_link(what.expect("matched"));
            }
            Some(what) => self.on_other(what),
            None => {}
        }
    }

    fn on_link(&mut self, what: What) {
        match what {
            What::Deliver { from, to, generation } => {
                if let Some((epoch, message)) = self.receive(from, to, generation) {
                    let from = self.servers[from].id;
                    self.step(to, Event::Peer { from, epoch, message });
                }
            }
            What::LinkUp {
                server,
                peer,
                generation,
            } => {
                let link = self.link(server, peer);
                if link.generation == generation && link.is_open {
                    link.knows[usize::from(server > peer)] = true;
                    let server_id = self.servers[peer].id;
                    self.step(server, Event::LinkUp { server: server_id });
                }
            }
            What::LinkDown {
                server,
                peer,
                generation,
            } => {
                let link = self.link(server, peer);
                if link.generation == generation {
                    link.knows[usize::from(server > peer)] = false;
                    let server_id = self.servers[peer].id;
                    self.step(server, Event::LinkDown { server: server_id });
                }
            }
            What::Reconnect { a, b } => {
                let both = self.servers[a].alive && self.servers[b].alive;
                if both && !self.link(a, b).is_open {
                    self.open_link(a, b);
                }
            }
            _ => unreachable!("not of a link"),
        }
    }

    fn on_other(&mut self, what: What) {
        match what {
            What::Synced { server, .. } => self.synced(server),
            What::Loaded { server, batches, .. } => self.step(server, Event::Loaded { batches }),
            What::Flush { server, .. } => self.flush(server),
            What::Tick { server, incarnation } => {
                self.step(server, Event::Tick { wall_us: self.now });
                if let Some(bytes) = self.plan.catchup_bytes {
                    self.step(server, Event::CatchupAllowance { bytes });
                }
                invariants::reads_committed(self, server);
                self.at(self.now + TICK_US, What::Tick { server, incarnation });
            }
            What::DiskWorks { server } => self.set_disk_fault(server, false),
            What::Restart { server } => self.restart(server),
            What::Resume { server } => self.resume(server),
            What::Instruct {
                server, instruction, ..
            } => self.instruct(server, instruction),
            What::MasterHears { server, alive, life } => self.heard(server, alive, life),
            What::MasterTick => {
                self.decide();
                self.at(self.now + MASTER_TICK_US, What::MasterTick);
            }
            What::CaughtUp { epoch, learner } => self.caught_up(epoch, learner),
            What::ClientTick { client } => self.client_tick(client),
            What::ToServer {
                server,
                client,
                connection,
                message,
            } => {
                self.at_server(server, client, connection, message);
            }
            What::ToClient {
                client,
                connection,
                message,
            } => self.at_client(client, connection, message),
            What::Fault => {
                self.fault();
                let at = self.now + self.rng.random_range(1..=2 * self.plan.fault_every_us);
                self.at(at, What::Fault);
            }
            _ => unreachable!("of a link"),
        }
    }
}
