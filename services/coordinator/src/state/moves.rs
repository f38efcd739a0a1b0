//! Replicas leave servers that are well enough to be left in order: a server that drains, or one that is slow.
//!
//! A replica leaves in the epoch in which its replacement joins as the new tail, so that its group is never below
//! its degree. Only a slow replica makes way before, where the group can spare one: it holds the others up.
//!
//! Nothing is remembered of what is still to do: after each command what can be begun is begun, so a move that was
//! cut off (a learner failed, the coordinator was restarted) is taken up again by itself.

use quorate_placement::{Amounts, Pool};
use quorate_types::control::ToServer;
use quorate_types::limits::DRAIN_MOVES_MAX;
use quorate_types::sla::ScarceResource;
use quorate_types::{GroupId, ServerId};

use super::command::{Effect, Reply};
use super::event::EventKind;
use super::group::Group;
use super::server::Drain;
use super::{Change, State, Subject, fleet_of};

impl Change<'_> {
    pub(super) fn drain(&mut self, id: ServerId) {
        let now_ms = self.now_ms;
        let Some(server) = self.state.servers.get_mut(&id) else {
            return self.effects.push(Effect::Reply(Reply::Unknown));
        };
        self.effects.push(Effect::Reply(Reply::Done));
        if server.drain.is_some() {
            return;
        }
        server.drain = Some(Drain {
            since_ms: now_ms,
            drained_at_ms: None,
            scarce: None,
        });
        self.state.list_server(id);
        let replicas = self.groups_of(id).len();
        let message = format!(
            "Server {} drains: {replicas} replicas are to leave it.",
            self.server_name(id)
        );
        self.event(EventKind::ServerDraining, Subject::Server(id), message);
        self.tell_drain(id);
    }

    pub(super) fn call_off_drain(&mut self, id: ServerId) {
        let Some(server) = self.state.servers.get_mut(&id) else {
            return self.effects.push(Effect::Reply(Reply::Unknown));
        };
        self.effects.push(Effect::Reply(Reply::Done));
        if server.drain.take().is_none() {
            return;
        }
        self.state.list_server(id);
        let message = format!(
            "The drain of server {} is called off: it takes replicas again.",
            self.server_name(id)
        );
        self.event(EventKind::ServerDrainCalledOff, Subject::Server(id), message);
        self.tell_drain(id);
        self.call_off_moves(id);
    }

    pub(super) fn server_slow(&mut self, id: ServerId, cause: Option<String>) {
        let Some(server) = self.state.servers.get_mut(&id) else {
            return;
        };
        if server.slow.is_some() == cause.is_some() {
            return;
        }
        let (kind, message) = match &cause {
            Some(cause) => {
                let message = format!(
                    "Server {} holds up its groups and is relieved of them one by one: {cause}.",
                    server.name
                );
                (EventKind::ServerSlow, message)
            }
            None => (
                EventKind::ServerRecovered,
                format!("Server {} is quick again, and takes replicas.", server.name),
            ),
        };
        server.slow = cause;
        let recovered = server.slow.is_none();
        self.state.list_server(id);
        self.event(kind, Subject::Server(id), message);
        if recovered && self.state.servers[&id].drain.is_none() {
            self.call_off_moves(id);
        }
    }

    /// Replicas that were about to leave stay. A replacement of one that left already goes on learning.
    fn call_off_moves(&mut self, id: ServerId) {
        for group_id in self.groups_of(id) {
            if self.state.groups[&group_id].leaving == Some(id) {
                self.reconfigure(group_id, |group| {
                    group.leaving = None;
                    if group.chain.len() >= group.degree() {
                        group.learner = None;
                    }
                });
            }
        }
    }

    /// Begins what can be begun of the moves that are due, and notices when a server has nothing left.
    pub(super) fn pursue_moves(&mut self) {
        for id in self.state.derived.vacating.iter().copied().collect::<Vec<_>>() {
            let draining = self.state.servers[&id].drain.is_some();
            let scarce = if draining {
                self.move_away(id)
            } else {
                self.relieve(id)
            };
            if draining {
                self.note_drain(id, scarce);
            }
        }
    }

    /// Moves of a draining server, a few at a time. What those that found no server lack.
    fn move_away(&mut self, id: ServerId) -> Option<ScarceResource> {
        let groups = self.groups_of(id);
        let moving = |change: &Self, group_id: &GroupId| change.state.groups[group_id].leaving == Some(id);
        let mut under_way = groups.iter().filter(|group_id| moving(self, group_id)).count();
        let mut scarce = None;
        for group_id in groups {
            if under_way >= DRAIN_MOVES_MAX || moving(self, &group_id) {
                continue;
            }
            if self.state.groups[&group_id].learner == Some(id) {
                self.replace_learner(group_id);
                continue;
            }
            if !self.is_settled(group_id) {
                continue;
            }
            match self.begin_move(group_id, id) {
                Ok(()) => under_way += 1,
                Err(lacking) => scarce = scarce.or(Some(lacking)),
            }
        }
        scarce
    }

    /// Replaces a slow server in one of its groups, when none is under way. Like a failed one where the group can
    /// spare it; else its replacement learns first.
    fn relieve(&mut self, id: ServerId) -> Option<ScarceResource> {
        let busy = |group: &Group| group.leaving == Some(id) || group.relieved == Some(id);
        if self.state.groups.values().any(busy) {
            return None;
        }
        for group_id in self.groups_of(id) {
            if self.state.groups[&group_id].learner == Some(id) {
                if self.replace_learner(group_id) {
                    return None;
                }
                continue;
            }
            if !self.is_settled(group_id) {
                continue;
            }
            let begun = if self.state.groups[&group_id].can_spare_one() {
                self.splice_slow(group_id, id)
            } else {
                self.begin_move(group_id, id).is_ok()
            };
            if begun {
                return None;
            }
        }
        None
    }

    /// Whole, all of it alive, and nobody is learning: a replica may leave.
    fn is_settled(&self, group_id: GroupId) -> bool {
        let group = &self.state.groups[&group_id];
        group.learner.is_none()
            && group.chain.len() == group.degree()
            && group.chain.iter().all(|server| self.state.is_alive(*server))
    }

    /// Elects the replacement and has it learn; the replica stays until it has.
    fn begin_move(&mut self, group_id: GroupId, from: ServerId) -> Result<(), ScarceResource> {
        let Some(learner) = self.elect_for_move(group_id, from, Pool::Admission) else {
            let group = &self.state.groups[&group_id];
            let fleet = fleet_of(&mut self.state.derived, &self.state.servers, from);
            return Err(quorate_placement::scarce_for(
                fleet,
                group.demands.tail(),
                &group.chain,
            ));
        };
        self.reconfigure(group_id, |group| {
            group.leaving = Some(from);
            group.learner = Some(learner);
        });
        Ok(())
    }

    fn splice_slow(&mut self, group_id: GroupId, slow: ServerId) -> bool {
        if self.elect_for_move(group_id, slow, Pool::Replacement).is_none() {
            return false;
        }
        self.reconfigure(group_id, |group| {
            group.chain.retain(|server| *server != slow);
            group.relieved = Some(slow);
        });
        true
    }

    /// A learner whose server drains or is slow: another is elected, if there is one; else it goes on.
    fn replace_learner(&mut self, group_id: GroupId) -> bool {
        let group = &self.state.groups[&group_id];
        let learner = group.learner.expect("asked for groups that have one");
        let pool = if group.leaving.is_some() {
            Pool::Admission
        } else {
            Pool::Replacement
        };
        let Some(other) = self.elect_for_move(group_id, learner, pool) else {
            return false;
        };
        self.reconfigure(group_id, |group| group.learner = Some(other));
        true
    }

    /// Who would take the place of `leaving`; nothing is charged yet. It must reach all of the chain: it may learn
    /// from the very replica that leaves.
    pub(super) fn elect_for_move(
        &mut self,
        group_id: GroupId,
        leaving: ServerId,
        pool: Pool,
    ) -> Option<ServerId> {
        let group = &self.state.groups[&group_id];
        let others: Vec<ServerId> = group.members().filter(|server| *server != leaving).collect();
        let tail = group.demands.tail();
        let (region, severed) = (group.sla.region.clone(), &self.state.severed);
        let reaches = |id: ServerId| !group.chain.iter().any(|member| is_severed(severed, id, *member));
        let fits = |id: ServerId| id != leaving && reaches(id);
        let fleet = self.state.derived.fleets.get_mut(&region)?;
        let elected = fleet.elect_among(tail, &others, pool, &fits)?;
        fleet.release(elected, tail);
        Some(elected)
    }

    /// Tells when nothing is left on a draining server, or when what is left finds no room.
    fn note_drain(&mut self, id: ServerId, scarce: Option<ScarceResource>) {
        let empty = self.groups_of(id).is_empty() && self.state.servers[&id].to_drop.is_empty();
        let (now_ms, name) = (self.now_ms, self.server_name(id));
        let Some(drain) = self
            .state
            .servers
            .get_mut(&id)
            .and_then(|server| server.drain.as_mut())
        else {
            return;
        };
        if empty && drain.drained_at_ms.is_none() {
            drain.drained_at_ms = Some(now_ms);
            drain.scarce = None;
            let message = format!("Server {name} is drained: it holds no replica and may stop.");
            self.event(EventKind::ServerDrained, Subject::Server(id), message);
            self.tell_drain(id);
        } else if drain.scarce != scarce {
            drain.scarce = scarce;
            if let Some(scarce) = scarce {
                let message = format!(
                    "The drain of server {name} waits: {}. It goes on by itself when there is room.",
                    lacking(scarce)
                );
                self.event(EventKind::ServerDrainWaiting, Subject::Server(id), message);
            }
        }
    }

    pub(super) fn tell_drain(&mut self, id: ServerId) {
        let server = &self.state.servers[&id];
        if server.alive {
            let message = ToServer::Drain {
                state: server.drain_state(),
            };
            self.effects.push(Effect::Send { server: id, message });
        }
    }
}

/// Why a replica finds no place, for people.
pub(super) fn lacking(scarce: ScarceResource) -> &'static str {
    match scarce {
        ScarceResource::Cpu => "no other server has enough CPU free for its replicas",
        ScarceResource::Network => "no other server has enough network free for its replicas",
        ScarceResource::StorageIo => "no other server has enough storage IO free for its replicas",
        ScarceResource::Servers | ScarceResource::Shard => {
            "there is no other server that its replicas could go to; join one"
        }
    }
}

pub(super) fn is_severed(
    severed: &std::collections::BTreeSet<(ServerId, ServerId)>,
    a: ServerId,
    b: ServerId,
) -> bool {
    severed.contains(&(a.min(b), a.max(b)))
}

impl State {
    /// How far a drain is: replicas that are moving, and that wait.
    pub(super) fn drain_progress(&self, id: ServerId) -> (usize, usize) {
        let groups = self.derived.groups_of.get(&id).into_iter().flatten();
        let all: Vec<&Group> = groups.map(|group_id| &self.groups[group_id]).collect();
        let moving = all.iter().filter(|group| group.leaving == Some(id)).count();
        (moving, all.len() - moving)
    }

    /// What is charged to it in all, for tests and views.
    pub fn allocated_on(&self, id: ServerId) -> Amounts {
        let server = &self.servers[&id];
        self.fleet(&server.region)
            .map_or(Amounts::ZERO, |fleet| fleet.allocated(id))
    }
}
