//! What may happen next: one step of a client, a replica, a link, a disk, a process or the coordinator.

use stateright::{Model, Property};

use crate::bounds::{Bounds, Bug};
use crate::coordinator;
use crate::properties;
use crate::replica::Turn;
use crate::state::{Body, Epoch, Role, Server, ServerId, Session, State, Upstream};

/// A world within its bounds.
pub struct World(pub Bounds);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// The head orders the append of a session that its table does not know.
    Order {
        head: ServerId,
        session: Session,
    },
    /// A client attaches, is told that its append was not ordered, and gives it up.
    Deny {
        head: ServerId,
        session: Session,
    },
    /// The oldest message of a link arrives.
    Deliver {
        from: ServerId,
        to: ServerId,
    },
    /// The disk has the oldest write that it was handed.
    Sync {
        server: ServerId,
    },
    /// A configuration arrives.
    Adopt {
        server: ServerId,
        epoch: Epoch,
    },
    /// A question that nothing answers is asked again.
    AskAgain {
        server: ServerId,
    },
    Break {
        a: ServerId,
        b: ServerId,
    },
    Crash {
        server: ServerId,
    },
    /// A process starts again and registers.
    Restart {
        server: ServerId,
    },
    Suspect {
        servers: Vec<ServerId>,
    },
    /// Those of a chain that had all failed and who did not come back are left out.
    SpliceRest,
    /// Of a server that was suspected wrongly.
    Return {
        server: ServerId,
    },
    TakeReport,
    /// Only with [`Bug::PromotedUnasked`].
    PromoteUnasked,
}

impl Model for World {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State::first(&self.0)]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Action>) {
        if state.past.wrong.is_some() {
            return;
        }
        for server in 0..self.0.servers {
            self.actions_of(state, server, actions);
        }
        self.actions_of_coordinator(state, actions);
    }

    fn next_state(&self, state: &State, action: Action) -> Option<State> {
        let mut next = state.clone();
        let bounds = &self.0;
        let state = &mut next;
        match action {
            Action::Order { head, session } => self.turn(state, head).order(session),
            Action::Deny { head, session } => {
                let epoch = state.server(head).epoch;
                state.past.denied[usize::from(session)] = epoch;
            }
            Action::Deliver { from, to } => {
                let message = state.take(from, to).expect("something is on the link");
                self.turn(state, to).receive(from, message);
            }
            Action::Sync { server } => self.turn(state, server).sync(),
            Action::Adopt { server, epoch } => self.turn(state, server).adopt(epoch),
            Action::AskAgain { server } => self.turn(state, server).ask_predecessor(),
            Action::Break { a, b } => {
                state.spent.breaks += 1;
                state.break_link(a, b);
            }
            Action::Crash { server } => crash(state, server),
            Action::Restart { server } => restart(state, bounds, server),
            Action::Suspect { servers } => {
                if servers.iter().any(|server| state.server(*server).up) {
                    state.spent.wrong_suspicions += 1;
                }
                coordinator::suspect(state, bounds, &servers);
            }
            Action::SpliceRest => coordinator::splice(state, bounds),
            Action::Return { server } => coordinator::return_of(state, bounds, server),
            Action::TakeReport => coordinator::take_report(state, bounds),
            Action::PromoteUnasked => coordinator::promote_unasked(state, bounds),
        }
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}

impl World {
    fn turn<'a>(&'a self, state: &'a mut State, me: ServerId) -> Turn<'a> {
        let bounds = &self.0;
        Turn { bounds, state, me }
    }

    fn actions_of(&self, state: &State, id: ServerId, actions: &mut Vec<Action>) {
        let bounds = &self.0;
        let server = state.server(id);
        if !server.up {
            if coordinator::may_issue(state, bounds) && !state.coordinator.lost {
                actions.push(Action::Restart { server: id });
            }
            return;
        }
        self.appends(state, id, actions);
        for other in 0..bounds.servers {
            if !state.on_link(id, other).is_empty() {
                actions.push(Action::Deliver { from: id, to: other });
            }
            if id < other && state.spent.breaks < bounds.breaks && has_traffic(state, id, other) {
                actions.push(Action::Break { a: id, b: other });
            }
        }
        if !server.unsynced.is_empty() {
            actions.push(Action::Sync { server: id });
        }
        for epoch in server.epochs_from.max(server.epoch + 1)..=state.epoch() {
            if state.config(epoch).is_some_and(|c| c.role_of(id) != Role::None) {
                actions.push(Action::Adopt { server: id, epoch });
            }
        }
        if waits_in_vain(state, id) {
            actions.push(Action::AskAgain { server: id });
        }
        if state.spent.crashes < bounds.crashes {
            actions.push(Action::Crash { server: id });
        }
    }

    fn appends(&self, state: &State, head: ServerId, actions: &mut Vec<Action>) {
        let bounds = &self.0;
        let server = state.server(head);
        if !server.is_head() {
            return;
        }
        let config = state.config(server.epoch).expect("a head is configured");
        let has_quorum = config.chain.len() >= bounds.min_replicas || bounds.has(Bug::MinReplicasIgnored);
        let may_attach = bounds.has(Bug::AttachedBeforeRing) || (server.ring_closed() && server.is_settled());
        let past = &state.past;
        for session in 0..bounds.sessions {
            let at = usize::from(session);
            // Sessions differ in nothing but their number: the first to append is the first.
            let is_due = session == 0 || past.tried[at - 1] > 0;
            if server.table[at] > 0 || !is_due {
                continue;
            }
            let is_given_up = past.denied[at] > 0 && server.epoch >= past.denied[at];
            if has_quorum && !is_given_up {
                actions.push(Action::Order { head, session });
            }
            let is_sent = past.tried[at] > 0 && past.denied[at] == 0;
            if may_attach && is_sent && server.epoch >= past.tried[at] {
                actions.push(Action::Deny { head, session });
            }
        }
    }

    fn actions_of_coordinator(&self, state: &State, actions: &mut Vec<Action>) {
        let bounds = &self.0;
        if state.coordinator.lost || !coordinator::may_issue(state, bounds) {
            return;
        }
        let alive: Vec<ServerId> = (0..bounds.servers)
            .filter(|server| state.coordinator.alive[usize::from(*server)])
            .collect();
        for chosen in 1u32..1 << alive.len() {
            let bit = |(at, _): &(usize, &ServerId)| chosen & (1 << at) != 0;
            let servers: Vec<ServerId> = alive.iter().enumerate().filter(bit).map(|(_, s)| *s).collect();
            let is_wrong = servers.iter().any(|server| state.server(*server).up);
            if !is_wrong || state.spent.wrong_suspicions < bounds.wrong_suspicions {
                actions.push(Action::Suspect { servers });
            }
        }
        if coordinator::may_splice_rest(state) {
            actions.push(Action::SpliceRest);
        }
        for server in 0..bounds.servers {
            if state.server(server).up && !state.coordinator.alive[usize::from(server)] {
                actions.push(Action::Return { server });
            }
        }
        if state.coordinator.report.is_some() {
            actions.push(Action::TakeReport);
        }
        if bounds.has(Bug::PromotedUnasked) && state.latest().learner.is_some() {
            actions.push(Action::PromoteUnasked);
        }
    }
}

/// All that is volatile is lost, and what the disk was handed and had not synced.
fn crash(state: &mut State, id: ServerId) {
    state.spent.crashes += 1;
    let server = &mut state.servers[usize::from(id)];
    *server = Server {
        life: server.life,
        disk: std::mem::take(&mut server.disk),
        ..Server::default()
    };
    state.cut_links_of(id);
}

/// `Replica::recover`, then registration.
fn restart(state: &mut State, bounds: &Bounds, id: ServerId) {
    let server = &mut state.servers[usize::from(id)];
    server.up = true;
    server.life += 1;
    server.log = server.disk.clone();
    server.durable = server.last();
    if !bounds.has(Bug::TableForgotten) {
        server.rebuild_table();
    }
    state.connect(id);
    coordinator::register(state, bounds, id);
}

fn has_traffic(state: &State, a: ServerId, b: ServerId) -> bool {
    let busy = |from, to| {
        let on_link = state.on_link(from, to);
        !on_link.is_empty() && on_link[0].body != Body::LinkUp
    };
    state.server(b).up && (busy(a, b) || busy(b, a))
}

/// `Replica::ask_again`: no answer, or behind and nothing comes, and none of it is on its way.
pub fn waits_in_vain(state: &State, id: ServerId) -> bool {
    let server = state.server(id);
    let waits = match server.upstream {
        Upstream::Asking => true,
        Upstream::Following { predecessor_last, .. } => predecessor_last > server.last(),
        Upstream::Unconfigured | Upstream::IsHead => false,
    };
    let config = state.config(server.epoch);
    let Some(before) = config.and_then(|c| c.predecessor_of(id)).filter(|_| waits) else {
        return false;
    };
    let predecessor = state.server(before);
    let is_parked = predecessor
        .parked
        .as_ref()
        .is_some_and(|p| p.from == id && p.epoch == server.epoch);
    let is_new = |messages: &[crate::state::Message]| {
        messages
            .iter()
            .any(|m| m.epoch == server.epoch || m.body == Body::LinkUp)
    };
    let comes = is_new(state.on_link(before, id)) || is_new(state.on_link(id, before));
    predecessor.up && predecessor.epoch <= server.epoch && !is_parked && !comes
}
