//! Replicas move to other servers: for a larger SLA, for a partition's demand, or as an operator asks
//! (`docs/internals/relocations.md`).
//!
//! A replica leaves in the epoch in which its replacement joins, as in a drain. The state has the moves that are still to be done,
//! since their servers are charged beforehand. After each command every move that can begin does.

use quorate_placement::Profile;
use quorate_types::GroupId;
use quorate_types::planted::{self, Bug};
use quorate_types::sla::ScarceResource;

use super::epochs::Epochs;
use super::relocation_plan::Wish;
use crate::command::{Cause, Relocate, Reply};
use crate::state::entity::{EventKind, EventSubject, Move, Relocation, Terms, lacking};

/// May move replicas, through epochs; reads the profile.
#[derive(Debug)]
pub struct Relocations<'a> {
    pub(super) epochs: Epochs<'a>,
    pub(super) profile: &'a Profile,
}

impl<'a> Relocations<'a> {
    pub fn new(epochs: Epochs<'a>, profile: &'a Profile) -> Self {
        Self { epochs, profile }
    }

    /// Has a replica move, for another reason than a resize.
    pub fn begin(&mut self, asked: &Relocate) {
        let reply = match self.refusal(asked) {
            Some(refusal) => refusal,
            None => self.begin_if_it_fits(asked),
        };
        self.epochs.out().reply(reply);
    }

    fn refusal(&self, asked: &Relocate) -> Option<Reply> {
        let Some(group) = self.epochs.groups().get(&asked.group_id) else {
            return Some(Reply::Unknown);
        };
        let is_under_way =
            group.leaving == Some(asked.from) && asked.to.is_none_or(|to| group.learner == Some(to));
        if is_under_way {
            return Some(Reply::Done); // asked for again: the first answer was lost
        }
        let (code, message) = if group.is_deleting() {
            ("group_deleted", "The group is being deleted.".to_string())
        } else if !group.chain.contains(&asked.from) {
            let message = format!("Server {} has no replica of the group.", asked.from);
            ("no_replica", message)
        } else if group.relocation.is_some() || group.learner.is_some() {
            let waits = group.relocation.as_ref().is_some_and(Relocation::waits_for_room);
            let message = match waits {
                true => {
                    "A resize of the group waits for room, and moves its replicas then: set its former SLA first."
                }
                false => "A replica of the group is on its way already: ask again when it has arrived.",
            };
            ("group_moving", message.into())
        } else if asked
            .to
            .is_some_and(|to| !self.epochs.servers().contains_key(&to))
        {
            ("no_server", "There is no such server to move to.".into())
        } else if asked.to.is_some_and(|to| group.is_member(to)) {
            (
                "no_server",
                "The server to move to has a replica of the group.".into(),
            )
        } else if group.chain.len() < group.degree() || !group.may_change_members() {
            let message = "The group is not whole: a replica moves once it is.";
            ("group_not_whole", message.into())
        } else {
            return None;
        };
        Some(Reply::Conflict { code, message })
    }

    fn begin_if_it_fits(&mut self, asked: &Relocate) -> Reply {
        let wish = Wish {
            next: None,
            from: Some(asked.from),
            to: asked.to,
        };
        let mut dry_run = self.epochs.dry_run(self.profile);
        let Some(moves) = dry_run.moves_for(asked.group_id, wish) else {
            let message = match asked.to {
                Some(to) => format!("Server {to} has no room for the replica, or takes none at present."),
                None => "No other server has room for the replica.".into(),
            };
            return Reply::Conflict {
                code: "no_room",
                message,
            };
        };
        self.begin_moves(asked.group_id, asked.cause, moves, None);
        Reply::Done
    }

    /// Has the group move to where it can have the next SLA. Its servers are charged from here on.
    pub fn begin_resize(&mut self, group_id: GroupId, moves: Vec<Move>, next: Terms) {
        self.begin_moves(group_id, Cause::Resize, moves, Some(Box::new(next)));
    }

    fn begin_moves(&mut self, group_id: GroupId, cause: Cause, moves: Vec<Move>, next: Option<Box<Terms>>) {
        let relocation = Relocation {
            cause,
            since_ms: self.epochs.out().now_ms(),
            moves,
            next,
            scarce: None,
        };
        self.set_out(group_id, relocation);
    }

    fn set_out(&mut self, group_id: GroupId, relocation: Relocation) {
        let way = self.in_words(&relocation);
        let message = format!("{way}, since {}.", relocation.cause.in_words());
        self.epochs.set_relocation(group_id, Some(relocation));
        self.note(group_id, message);
    }

    /// Begins the next move of each group that has one, and ends what is done. `replans`: resizes that found no room look for
    /// some again.
    pub fn advance(&mut self, replans: bool) {
        for group_id in self.epochs.groups().relocating() {
            self.drop_moves_that_cannot_be(group_id);
            let (group, servers) = (&self.epochs.groups()[&group_id], self.epochs.servers());
            if !group.is_settled(|server| servers.is_alive(server)) {
                continue;
            }
            let relocation = group.relocation.as_ref().expect("it is listed");
            let waits = relocation.scarce.is_some() && !replans;
            match (relocation.moves.first().copied(), relocation.next.is_some()) {
                (Some(first), _) => self.begin_move(group_id, first),
                (None, true) if waits => {}
                (None, true) => self.go_on_with_resize(group_id, &relocation.clone()),
                (None, false) => self.end(group_id),
            }
        }
    }

    fn end(&mut self, group_id: GroupId) {
        self.epochs.set_relocation(group_id, None);
        let names = self.names_of(group_id);
        self.note(
            group_id,
            format!("No replica moves any more: they are on {names}."),
        );
    }

    /// Moves to a server that takes no replicas any more, or cannot reach the group; and moves that leave a replica on a server
    /// that all replicas are to leave. A resize looks for others.
    fn drop_moves_that_cannot_be(&mut self, group_id: GroupId) {
        let group = &self.epochs.groups()[&group_id];
        let Some(relocation) = group.relocation.as_ref().filter(|one| !one.moves.is_empty()) else {
            return;
        };
        let (servers, pairs) = (self.epochs.servers(), self.epochs.pairs());
        let takes = |one: &Move| {
            let to = &servers[&one.to];
            to.alive
                && !to.is_vacating()
                && !group.quarantine.servers.contains(&one.to)
                && !group.chain.iter().any(|member| pairs.contains(one.to, *member))
        };
        let leaves = |server: &_| relocation.moves.iter().any(|one| one.from == *server);
        let stays_badly = |server: &_| servers[server].is_vacating() && !leaves(server);
        if relocation.moves.iter().all(takes) && !group.chain.iter().any(stays_badly) {
            return;
        }
        let without = Relocation {
            moves: Vec::new(),
            ..relocation.clone()
        };
        self.epochs.set_relocation(group_id, Some(without));
    }

    fn begin_move(&mut self, group_id: GroupId, first: Move) {
        self.epochs.reconfigure(group_id, |members| {
            members.leaving = Some(first.from);
            members.learner = Some(first.to);
            if planted::on(Bug::MovedAtOnce) {
                members.chain.retain(|server| *server != first.from);
            }
        });
    }

    /// The next SLA begins, or another way to it does, or it waits for room.
    fn go_on_with_resize(&mut self, group_id: GroupId, relocation: &Relocation) {
        let next = relocation.next.as_deref().expect("it is a resize");
        let found = self.epochs.dry_run(self.profile).moves_under(group_id, next);
        match found {
            Ok(moves) if moves.is_empty() => self.resize(group_id, next.clone()),
            Ok(moves) => {
                let first = moves[0];
                let relocation = Relocation {
                    moves,
                    scarce: None,
                    ..relocation.clone()
                };
                self.set_out(group_id, relocation);
                self.begin_move(group_id, first);
            }
            Err(scarce) => self.wait(group_id, relocation, scarce),
        }
    }

    /// The SLA that a group has from here on, in its place.
    pub fn resize(&mut self, group_id: GroupId, next: Terms) {
        let before = &self.epochs.groups()[&group_id].sla;
        let message = format!(
            "Resized: {}; it was {}.",
            next.sla.rates_in_words(),
            before.rates_in_words(),
        );
        self.epochs.resize(group_id, next);
        let epoch = self.epochs.groups()[&group_id].epoch;
        let subject = EventSubject::Group(group_id, Some(epoch), None);
        self.epochs.out().event(EventKind::GroupResized, subject, message);
        // `min_replicas` may have changed, and with it whether the chain is long enough.
        self.epochs.configs().refresh_status(group_id);
    }

    fn wait(&mut self, group_id: GroupId, before: &Relocation, scarce: ScarceResource) {
        if before.scarce == Some(scarce) {
            return;
        }
        let relocation = Relocation {
            scarce: Some(scarce),
            ..before.clone()
        };
        self.epochs.set_relocation(group_id, Some(relocation));
        let lacking = lacking(scarce);
        self.note(
            group_id,
            format!("The resize waits: {lacking}. It continues when there is room."),
        );
    }

    fn in_words(&self, relocation: &Relocation) -> String {
        let servers = self.epochs.servers();
        let one = |one: &Move| format!("{} to {}", servers.name_of(one.from), servers.name_of(one.to));
        let moves: Vec<String> = relocation.moves.iter().map(one).collect();
        let replicas = if moves.len() == 1 {
            "A replica moves"
        } else {
            "Replicas move"
        };
        format!("{replicas} from {}", moves.join(" and from "))
    }

    fn names_of(&self, group_id: GroupId) -> String {
        let chain = self.epochs.groups()[&group_id].chain.iter();
        let names: Vec<String> = chain
            .map(|server| self.epochs.servers().name_of(*server))
            .collect();
        names.join(", ")
    }

    fn note(&mut self, group_id: GroupId, message: String) {
        let subject = EventSubject::Group(group_id, None, None);
        self.epochs
            .out()
            .event(EventKind::GroupRelocation, subject, message);
    }
}
