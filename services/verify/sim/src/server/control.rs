//! The connection to the coordinator, as `services/replica/src/control.rs` keeps it.

use quorate_types::control::{DrainState, RefuseCode, Register, ToCoordinator, ToServer};
use quorate_types::cost::ResourceVector;
use rand::Rng;

use crate::invariants;
use crate::pipe::Pipe;
use crate::schedule::{Node, What};
use crate::world::World;

/// As in `services/replica`: so many heartbeats without an answer, and the coordinator is dialed anew.
const UNANSWERED_MAX: u64 = 8;

#[derive(Debug)]
pub struct Control {
    pub connection: u64,
    pub is_registered: bool,
    sent: u64,
    answered: u64,
    /// JSON, as on the wire; `None`: the end of the connection.
    pub up: Pipe<Vec<u8>>,
    pub down: Pipe<Option<Vec<u8>>>,
}

impl World {
    /// A join token for the machine at this place.
    pub fn invite(&mut self, s: usize) {
        let token = self.join_token(s);
        self.coordinator.invitations.push(token);
    }

    fn join_token(&self, s: usize) -> String {
        format!("join-{s}-{}", self.servers[s].tokens)
    }

    pub fn control_dial(&mut self, s: usize, incarnation: u64) {
        let server = &self.servers[s];
        if !server.alive || server.incarnation != incarnation || server.control.is_some() {
            return;
        }
        let (up, down) = (
            (Node::Server(s), Node::Coordinator),
            (Node::Coordinator, Node::Server(s)),
        );
        if !self.coordinator.is_up() || self.is_blocked(up.0, up.1) || self.is_blocked(down.0, down.1) {
            let at = self.now + self.rng.random_range(50_000..200_000);
            return self.at(
                at,
                What::ControlDial {
                    server: s,
                    incarnation,
                },
            );
        }
        let connection = self.new_connection();
        let server = &self.servers[s];
        let register = Register {
            join_token: server.credential.is_none().then(|| self.join_token(s)),
            credential: server.credential.clone(),
            name: self.name_of(s),
            address: Self::address_of(s),
            incarnation: server.incarnation_name(s),
            capacity: ResourceVector::new(1_000.0, 1e12, 1e8),
            failure_domain: None,
            region: "local".into(),
            held: server.held.clone(),
            version: "0.1.0".into(),
            machine: None,
            previous_incarnations: server.previous_starts.clone(),
            certificate_request_pem: None,
        };
        self.servers[s].control = Some(Control {
            connection,
            is_registered: false,
            sent: 0,
            answered: 0,
            up: Pipe::default(),
            down: Pipe::default(),
        });
        self.send_up(s, &ToCoordinator::Register(Box::new(register)));
        self.at(
            self.now + 4_000_000,
            What::Unanswered {
                server: s,
                connection,
            },
        );
    }

    /// A registration that was not answered in time is tried again.
    pub fn unanswered(&mut self, s: usize, connection: u64) {
        let control = self.servers[s].control.as_ref();
        if control.is_some_and(|c| c.connection == connection && !c.is_registered) {
            self.break_control(s);
        }
    }

    pub fn address_of(s: usize) -> String {
        format!("127.0.0.1:{}", 7_001 + s)
    }

    pub fn server_at(&self, address: &str) -> Option<usize> {
        let port: usize = address.rsplit_once(':')?.1.parse().ok()?;
        port.checked_sub(7_001).filter(|s| *s < self.servers.len())
    }

    fn send_up(&mut self, s: usize, message: &ToCoordinator) {
        let bytes = serde_json::to_vec(message).expect("control messages serialise");
        let at = self.now + self.rng.random_range(20..=self.plan.control_delay_us_max);
        let Some(control) = &mut self.servers[s].control else {
            return;
        };
        let connection = control.connection;
        let at = control.up.send(bytes, at);
        self.at(
            at,
            What::AtCoordinator {
                server: s,
                connection,
            },
        );
    }

    pub fn tell_coordinator(&mut self, s: usize, message: ToCoordinator) {
        if self.servers[s].control.as_ref().is_some_and(|c| c.is_registered) {
            self.send_up(s, &message);
        } else {
            self.servers[s].news.push(message);
        }
    }

    pub fn heartbeat(&mut self, s: usize, incarnation: u64, connection: u64) {
        let server = &mut self.servers[s];
        let Some(control) = server.control.as_mut().filter(|c| c.connection == connection) else {
            return;
        };
        if !control.is_registered || control.sent - control.answered > UNANSWERED_MAX {
            return self.break_control(s);
        }
        control.sent += 1;
        let seq = control.sent;
        let heartbeat = self.servers[s].heartbeat(seq, self.now);
        self.send_up(s, &ToCoordinator::Heartbeat(heartbeat));
        let drift = self.servers[s].drift_permille;
        let every = (self.plan.heartbeat_ms * 1_000) as i64;
        let at = self.now + (every - every * drift / 1_000) as u64;
        self.at(
            at,
            What::Heartbeat {
                server: s,
                incarnation,
                connection,
            },
        );
    }

    /// The connection breaks; both ends learn of it, the coordinator perhaps not before it hears of another.
    pub fn break_control(&mut self, s: usize) {
        let Some(control) = self.servers[s].control.take() else {
            return;
        };
        let (connection, incarnation) = (control.connection, self.servers[s].incarnation);
        self.trace.line(None, || {
            format!("s{} has no connection to the coordinator", s + 1)
        });
        if self.rng.random_bool(0.8) && !self.is_blocked(Node::Server(s), Node::Coordinator) {
            let at = self.now + self.rng.random_range(100..5_000);
            self.at(
                at,
                What::AtCoordinator {
                    server: s,
                    connection,
                },
            );
        }
        let at = self.now + self.rng.random_range(1_000..100_000);
        self.at(
            at,
            What::ControlDial {
                server: s,
                incarnation,
            },
        );
    }

    /// The direction is open again: what waited arrives.
    pub fn resume_control(&mut self, s: usize, up: bool) {
        let now = self.now;
        let Some(control) = &mut self.servers[s].control else {
            return;
        };
        let connection = control.connection;
        let waiting = if up { control.up.len() } else { control.down.len() } as u64;
        if up {
            control.up.not_before(now + 100 + waiting);
        } else {
            control.down.not_before(now + 100 + waiting);
        }
        for n in 0..waiting {
            let what = if up {
                What::AtCoordinator {
                    server: s,
                    connection,
                }
            } else {
                What::AtServer {
                    server: s,
                    connection,
                }
            };
            self.at(now + 100 + n, what);
        }
    }

    pub fn at_server(&mut self, s: usize, connection: u64) {
        if self.is_blocked(Node::Coordinator, Node::Server(s)) {
            return;
        }
        let Some(control) = self.servers[s]
            .control
            .as_mut()
            .filter(|c| c.connection == connection)
        else {
            return;
        };
        let Some(message) = control.down.receive() else {
            return;
        };
        let Some(bytes) = message else {
            return self.break_control(s);
        };
        let message: ToServer = serde_json::from_slice(&bytes).expect("a control message");
        self.trace.line(None, || {
            format!("s{} is told {}", s + 1, crate::trace::brief(&message))
        });
        match message {
            ToServer::Welcome(welcome) => {
                self.servers[s].lease_us = welcome.lease_ms * 1_000;
                self.heard_coordinator(s);
                self.welcomed(s, welcome.server_id, welcome.credential);
            }
            ToServer::Refuse { code, message } => self.refused_by_coordinator(s, code, &message),
            ToServer::Configure { config } => self.configure(s, config),
            ToServer::Drop { group_id, epoch } => {
                let here = self.servers[s].groups.get(&group_id);
                if here.is_none_or(|hosted| hosted.replica().epoch() <= epoch) {
                    self.drop_group(s, group_id);
                }
            }
            ToServer::Drain { state } => {
                self.servers[s].drain = state;
                if state == DrainState::Drained {
                    self.counts.drained += 1;
                    invariants::when_drained(self, s);
                }
            }
            ToServer::HeartbeatAck { seq } => {
                let control = self.servers[s].control.as_mut().expect("it came on it");
                control.answered = control.answered.max(seq);
                self.heard_coordinator(s);
            }
            ToServer::Lost { group_id } => {
                self.servers[s].lost.insert(group_id);
            }
            _ => {}
        }
    }

    fn heard_coordinator(&mut self, s: usize) {
        self.servers[s].heard_us = self.servers[s].clock_us(self.now);
    }

    fn refused_by_coordinator(&mut self, s: usize, code: RefuseCode, message: &str) {
        match code {
            // The answer to an earlier process was lost: its operator issues another token.
            RefuseCode::JoinTokenUsed => {
                self.servers[s].tokens += 1;
                self.invite(s);
            }
            // Issued with the next tick; free when the former holder of the name has failed.
            RefuseCode::JoinTokenInvalid | RefuseCode::NameTaken => {}
            // Free when the machine that it replaces, and whose address it has, has failed.
            RefuseCode::RegisterInvalid if self.servers[s].machine > 0 && self.servers[s].id.is_none() => {}
            _ => panic!("s{} is refused: {code:?} {message}", s + 1),
        }
        self.break_control(s);
    }

    fn welcomed(&mut self, s: usize, id: quorate_types::ServerId, credential: Option<String>) {
        let server = &mut self.servers[s];
        assert!(
            server.id.is_none_or(|known| known == id),
            "a server keeps its number"
        );
        let is_new = server.id.is_none();
        server.id = Some(id);
        if credential.is_some() {
            server.credential = credential;
        }
        server.starts = vec![server.incarnation_name(s)];
        let incarnation = server.incarnation;
        let control = server.control.as_mut().expect("it came on it");
        control.is_registered = true;
        let connection = control.connection;
        for message in std::mem::take(&mut self.servers[s].news) {
            self.send_up(s, &message);
        }
        self.at(
            self.now,
            What::Heartbeat {
                server: s,
                incarnation,
                connection,
            },
        );
        if is_new {
            for peer in (0..self.servers.len()).filter(|peer| *peer != s) {
                let at = self.now + self.rng.random_range(100..5_000);
                self.at(at, What::Dial { a: s, b: peer });
            }
        }
    }
}
