//! The actions that are possible in a state: one step of a client, a replica, a link, a disk, a process or the coordinator.

use crate::bounds::{Bounds, Bug};
use crate::config::Role;
use crate::coordinator;
use crate::ids::{Epoch, ServerId, Session};
use crate::message::{MessageBody, ModelMessage};
use crate::replica::ReplicaStep;
use crate::server::{ServerState, Upstream};
use crate::state::ModelState;

/// One group within its bounds.
pub struct GroupModel(pub Bounds);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ModelAction {
    /// The head orders the append of a session that its table does not know.
    Order {
        head: ServerId,
        session: Session,
    },
    /// A client attaches, hears that its append was not ordered, and abandons it.
    Deny {
        head: ServerId,
        session: Session,
    },
    /// The oldest message of a link arrives.
    Deliver {
        from: ServerId,
        to: ServerId,
    },
    /// The oldest write that is under way reaches the disk.
    Sync {
        server: ServerId,
    },
    /// A configuration arrives.
    Adopt {
        server: ServerId,
        epoch: Epoch,
    },
    /// A sync request that nothing answers is sent again.
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
    /// All servers of a chain had failed; the ones that did not come back are left out.
    SpliceRest,
    /// A wrongly suspected server answers again.
    Return {
        server: ServerId,
    },
    TakeReport,
    /// Only with [`Bug::PromotedUnasked`].
    PromoteUnasked,
}

impl GroupModel {
    /// Every action that is possible in a state; none after a breach.
    pub fn possible(&self, state: &ModelState, actions: &mut Vec<ModelAction>) {
        if state.history.breach.is_some() {
            return;
        }
        for server in 0..self.0.servers {
            self.actions_of(state, server, actions);
        }
        self.actions_of_coordinator(state, actions);
    }

    /// Carries out an action.
    pub fn apply(&self, state: &mut ModelState, action: ModelAction) {
        let bounds = &self.0;
        match action {
            ModelAction::Order { head, session } => self.turn(state, head).order(session),
            ModelAction::Deny { head, session } => {
                let epoch = state.server(head).epoch;
                state.history.denied[usize::from(session)] = epoch;
            }
            ModelAction::Deliver { from, to } => {
                let message = state.take(from, to).expect("something is on the link");
                self.turn(state, to).receive(from, message);
            }
            ModelAction::Sync { server } => self.turn(state, server).sync(),
            ModelAction::Adopt { server, epoch } => self.turn(state, server).adopt(epoch),
            ModelAction::AskAgain { server } => self.turn(state, server).ask_predecessor(),
            ModelAction::Break { a, b } => {
                state.spent.breaks += 1;
                state.break_link(a, b);
            }
            ModelAction::Crash { server } => crash(state, server),
            ModelAction::Restart { server } => restart(state, bounds, server),
            ModelAction::Suspect { servers } => {
                if servers.iter().any(|server| state.server(*server).up) {
                    state.spent.wrong_suspicions += 1;
                }
                coordinator::suspect(state, bounds, &servers);
            }
            ModelAction::SpliceRest => coordinator::splice(state, bounds),
            ModelAction::Return { server } => coordinator::return_of(state, bounds, server),
            ModelAction::TakeReport => coordinator::take_report(state, bounds),
            ModelAction::PromoteUnasked => coordinator::promote_unasked(state, bounds),
        }
    }

    fn turn<'a>(&'a self, state: &'a mut ModelState, me: ServerId) -> ReplicaStep<'a> {
        let bounds = &self.0;
        ReplicaStep { bounds, state, me }
    }

    fn actions_of(&self, state: &ModelState, id: ServerId, actions: &mut Vec<ModelAction>) {
        let bounds = &self.0;
        let server = state.server(id);
        if !server.up {
            if coordinator::may_issue(state, bounds) && !state.coordinator.lost {
                actions.push(ModelAction::Restart { server: id });
            }
            return;
        }
        self.appends(state, id, actions);
        for other in 0..bounds.servers {
            if !state.on_link(id, other).is_empty() {
                actions.push(ModelAction::Deliver { from: id, to: other });
            }
            if id < other && state.spent.breaks < bounds.breaks && has_traffic(state, id, other) {
                actions.push(ModelAction::Break { a: id, b: other });
            }
        }
        if !server.unsynced.is_empty() {
            actions.push(ModelAction::Sync { server: id });
        }
        for epoch in server.epochs_from.max(server.epoch + 1)..=state.epoch() {
            if state.config(epoch).is_some_and(|c| c.role_of(id) != Role::None) {
                actions.push(ModelAction::Adopt { server: id, epoch });
            }
        }
        if waits_in_vain(state, id) {
            actions.push(ModelAction::AskAgain { server: id });
        }
        if state.spent.crashes < bounds.crashes {
            actions.push(ModelAction::Crash { server: id });
        }
    }

    fn appends(&self, state: &ModelState, head: ServerId, actions: &mut Vec<ModelAction>) {
        let bounds = &self.0;
        let server = state.server(head);
        if !server.is_head() {
            return;
        }
        let config = state.config(server.epoch).expect("a head is configured");
        let has_quorum = config.chain.len() >= bounds.min_replicas || bounds.has(Bug::MinReplicasIgnored);
        let may_attach = bounds.has(Bug::AttachedBeforeRingPass)
            || (server.ring_pass_is_complete() && server.is_settled());
        let history = &state.history;
        for session in 0..bounds.sessions {
            let at = usize::from(session);
            // Sessions differ only by number, so they first append in order.
            let is_due = session == 0 || history.tried[at - 1] > 0;
            if server.table[at] > 0 || !is_due {
                continue;
            }
            let is_abandoned = history.denied[at] > 0 && server.epoch >= history.denied[at];
            if has_quorum && !is_abandoned {
                actions.push(ModelAction::Order { head, session });
            }
            let is_sent = history.tried[at] > 0 && history.denied[at] == 0;
            if may_attach && is_sent && server.epoch >= history.tried[at] {
                actions.push(ModelAction::Deny { head, session });
            }
        }
    }

    fn actions_of_coordinator(&self, state: &ModelState, actions: &mut Vec<ModelAction>) {
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
                actions.push(ModelAction::Suspect { servers });
            }
        }
        if coordinator::may_splice_rest(state) {
            actions.push(ModelAction::SpliceRest);
        }
        for server in 0..bounds.servers {
            if state.server(server).up && !state.coordinator.alive[usize::from(server)] {
                actions.push(ModelAction::Return { server });
            }
        }
        if state.coordinator.report.is_some() {
            actions.push(ModelAction::TakeReport);
        }
        if bounds.has(Bug::PromotedUnasked) && state.latest().learner.is_some() {
            actions.push(ModelAction::PromoteUnasked);
        }
    }
}

/// Loses everything volatile, and the writes that were not synced.
fn crash(state: &mut ModelState, id: ServerId) {
    state.spent.crashes += 1;
    let server = &mut state.servers[usize::from(id)];
    *server = ServerState {
        incarnation: server.incarnation,
        disk: std::mem::take(&mut server.disk),
        ..ServerState::default()
    };
    state.close_links_of(id);
}

/// `Replica::recover`, then registration.
fn restart(state: &mut ModelState, bounds: &Bounds, id: ServerId) {
    let server = &mut state.servers[usize::from(id)];
    server.up = true;
    server.incarnation += 1;
    server.log = server.disk.clone();
    server.durable = server.last();
    if !bounds.has(Bug::TableForgotten) {
        server.rebuild_table();
    }
    state.connect(id);
    coordinator::register(state, bounds, id);
}

fn has_traffic(state: &ModelState, a: ServerId, b: ServerId) -> bool {
    let busy = |from, to| {
        let on_link = state.on_link(from, to);
        !on_link.is_empty() && on_link[0].body != MessageBody::LinkUp
    };
    state.server(b).up && (busy(a, b) || busy(b, a))
}

/// `Upstream::is_ask_due`: the server waits for an answer or for batches, and none are under way.
pub fn waits_in_vain(state: &ModelState, id: ServerId) -> bool {
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
    let is_new = |messages: &[ModelMessage]| {
        messages
            .iter()
            .any(|m| m.epoch == server.epoch || m.body == MessageBody::LinkUp)
    };
    let comes = is_new(state.on_link(before, id)) || is_new(state.on_link(id, before));
    predecessor.up && predecessor.epoch <= server.epoch && !is_parked && !comes
}
