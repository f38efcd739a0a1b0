//! A group's SLA is changed where the group is (`docs/internals/coordinator.md`, "Resize").

use quorate_types::sla::{Quote, Refusal, RefusalReason, ScarceResource, Sla};
use quorate_types::{GroupId, ServerId};

use super::command::{Effect, Reply};
use super::event::EventKind;
use super::group::{Group, GroupStatus};
use super::{Change, State, Subject, fleet_of};

impl Change<'_> {
    pub(super) fn resize(&mut self, group_id: GroupId, sla: &Sla, revision: u64) {
        let reply = self.resized(group_id, sla, revision);
        self.effects.push(Effect::Reply(reply));
    }

    /// A new epoch with the same members, whose servers are charged anew; or nothing.
    fn resized(&mut self, group_id: GroupId, sla: &Sla, revision: u64) -> Reply {
        match self.state.may_resize(group_id, sla, revision) {
            Ok(()) => {}
            Err(reply) => return reply,
        }
        if let Some(refusal) = self.state.refusal_in_place(group_id, sla) {
            return Reply::Refused(refusal);
        }
        let profile = &self.state.profile;
        let (demands, budget) = (profile.demands(sla), profile.budget(sla));
        let now_ms = self.now_ms;
        let message = format!(
            "Resized: {} appends/s of {} bytes; it was {} of {}.",
            sla.rate_per_s,
            sla.request_size_bytes,
            self.state.groups[&group_id].sla.rate_per_s,
            self.state.groups[&group_id].sla.request_size_bytes,
        );
        self.reconfigure(group_id, |group| {
            (group.sla, group.demands, group.budget) = (sla.clone(), demands, budget);
            (group.sla_revision, group.sla_since_ms) = (revision, Some(now_ms));
        });
        let epoch = self.state.groups[&group_id].epoch;
        let subject = Subject::Group(group_id, Some(epoch), None);
        self.event(EventKind::GroupResized, subject, message);
        // `min_replicas` may have changed, and with it whether the chain is long enough.
        self.refresh_status(group_id);
        Reply::Done
    }
}

impl State {
    /// The answer where nothing is to be looked for.
    fn may_resize(&self, group_id: GroupId, sla: &Sla, revision: u64) -> Result<(), Reply> {
        let conflict = |code, message: String| Err(Reply::Conflict { code, message });
        let Some(group) = self.groups.get(&group_id) else {
            return Err(Reply::Unknown);
        };
        if group.is_deleting() {
            return conflict("group_deleted", "The group is being deleted.".into());
        }
        if revision == group.sla_revision && *sla == group.sla {
            return Err(Reply::Done); // asked for again: the first answer was lost
        }
        if revision != group.sla_revision + 1 {
            let message = format!(
                "The SLA has revision {} by now; ask for the next one.",
                group.sla_revision
            );
            return conflict("sla_revision", message);
        }
        if let Err((field, problem)) = sla.validate() {
            return conflict("invalid_sla", format!("{field} {problem}"));
        }
        if !group.keeps_place_with(sla) {
            let message =
                "Durability, replication degree and region stay as they are for the life of a group.";
            return conflict("not_in_place", message.into());
        }
        if group.status == GroupStatus::Lost {
            return conflict(
                "group_lost",
                "The group is lost: it must begin anew first.".into(),
            );
        }
        Ok(())
    }

    /// Whether the group could have this SLA without any of its replicas moving: a dry run of a resize.
    pub(super) fn quote_in_place(&mut self, group_id: GroupId, sla: &Sla) -> Quote {
        let refusal = self.refusal_in_place(group_id, sla);
        let mut quote = quorate_placement::quote::quote_of(&self.profile, sla, ScarceResource::Cpu, refusal);
        if let Some(fleet) = self.derived.fleets.get(&sla.region) {
            quote.dominant_resource = quorate_placement::quote::dominant(fleet, &self.profile, sla);
        }
        quote
    }

    fn refusal_in_place(&mut self, group_id: GroupId, sla: &Sla) -> Option<Refusal> {
        let group = &self.groups[&group_id];
        let now = group.demands.clone();
        let mut members: Vec<ServerId> = group.chain.clone();
        // A learner comes for the tail, or for one that leaves: it is charged as the tail either way.
        let positions: Vec<usize> = (0..members.len())
            .chain(group.learner.map(|_| group.degree() - 1))
            .collect();
        members.extend(group.learner);
        let seats: Vec<(ServerId, usize)> = members.into_iter().zip(positions).collect();
        let grows = self
            .profile
            .demands(sla)
            .all()
            .iter()
            .zip(now.all())
            .any(|(new, old)| !new.fits(*old));
        if grows && group.wants_learner() {
            return Some(Refusal {
                reason: RefusalReason::TooFewServers,
                scarce_resource: ScarceResource::Servers,
                message: "A replica of the group is missing and no server has room for it: the group can grow when it \
                          is whole again."
                    .into(),
                largest_sla_that_fits: None,
            });
        }
        let charges = group.charges();
        for (server, amounts) in &charges {
            fleet_of(&mut self.derived, &self.servers, *server).release(*server, *amounts);
        }
        let fleet = self
            .derived
            .fleets
            .get(&sla.region)
            .expect("the members are in it");
        let refusal = quorate_placement::in_place(fleet, &self.profile, sla, &now, &seats).err();
        for (server, amounts) in &charges {
            fleet_of(&mut self.derived, &self.servers, *server).charge(*server, *amounts);
        }
        refusal
    }
}

impl Group {
    /// Whether the group could change to this SLA without being made anew.
    pub(super) fn keeps_place_with(&self, sla: &Sla) -> bool {
        (sla.durability, sla.replication_degree, &sla.region)
            == (self.sla.durability, self.sla.replication_degree, &self.sla.region)
    }
}
