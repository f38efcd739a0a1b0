//! `apply`: the one way in which the state changes. Each command is a script of handlers' operations.

use std::collections::BTreeSet;

use quorate_guarantees::Guarantee;
use quorate_types::place::IssuedEpoch;
use quorate_types::sla::Quote;
use quorate_types::{GroupId, ServerId};
use uuid::Uuid;

use super::entity::Group;
use super::handler::registrations::{Arrival, Disk};
use super::handler::roster::Failure;
use super::machine::CoordinatorState;
use super::step::Step;
use crate::command::{Command, Effect, QuoteRequest, Registration, Relief, Reply};

/// Passes of moves after one command; the next command goes on.
const SETTLE_PASSES_MAX: usize = 16;

/// Applies a command that was proposed at `now_ms` (Unix time). The effects may be carried out once the command is
/// durable.
pub fn apply(state: &mut CoordinatorState, now_ms: u64, command: &Command) -> Vec<Effect> {
    state.history.advance();
    if let Command::BeginRun { run, .. } = command {
        // Nothing else follows from it: nothing may be issued before the roll call.
        state.history.begin_run(*run);
        return Vec::new();
    }
    let mut step = Step::new(state, now_ms);
    carry_out(&mut step, command);
    if command.may_free_capacity() {
        // Failed replicas are replaced before any new applicant is considered (Filo §4.1).
        step.chain_repairs().elect_replacements();
    }
    let may_free = command.may_free_capacity() || matches!(command, Command::LearnerCaughtUp { .. });
    settle(&mut step, may_free);
    step.into_effects()
}

/// The same, with the epochs that were issued apart from the other effects.
pub fn applied(
    state: &mut CoordinatorState,
    now_ms: u64,
    command: &Command,
) -> (Vec<Effect>, Vec<IssuedEpoch>) {
    let mut issued = Vec::new();
    let mut effects = apply(state, now_ms, command);
    effects.retain(|effect| match effect {
        Effect::Issued(epoch) => {
            issued.push(*epoch);
            false
        }
        _ => true,
    });
    (effects, issued)
}

/// A dry run of a change of a project's guarantee: the answer that it would get. All stays as it was.
pub fn quote_guarantee(state: &mut CoordinatorState, project_id: Uuid, guarantee: &Guarantee) -> Reply {
    Step::new(state, 0)
        .guarantee_changes()
        .quote(project_id, guarantee)
}

/// A dry run of an admission, or of a change of a group. It leaves the state as it was.
pub fn quote(state: &mut CoordinatorState, asked: &QuoteRequest) -> Quote {
    let present = asked.replaces.and_then(|id| state.partitions.get(&id));
    if present.is_none() && asked.partitions.unwrap_or(1) <= 1 {
        return state.quote(&asked.sla, asked.replaces, asked.project_id);
    }
    Step::new(state, 0).partition_changes().quote(asked)
}

fn carry_out(step: &mut Step<'_>, command: &Command) {
    match command {
        Command::BeginRun { .. } => {}
        Command::UseProfile { profile } => step.policies().use_profile(profile),
        Command::UsePlacement { policy } => step.policies().use_policy(*policy),
        Command::UseSecrets { secrets } => step.policies().use_secrets(secrets),
        Command::RaiseFleetVersion { to } => step.policies().raise_fleet_version(*to),
        Command::IssueJoinToken { digest, token } => step.tokens().issue(digest, token),
        Command::RevokeJoinToken { id } => step.tokens().revoke(id),
        Command::Revoke { revocations } => step.revoking().revoke(revocations),
        Command::Register(registration) => register(step, registration),
        Command::ServersFailed { servers } => servers_failed(step, servers, Failure::Silent),
        Command::ServersHung { servers } => servers_failed(step, servers, Failure::Hung),
        Command::StorageFault { server, fault } => storage_fault(step, *server, fault.clone()),
        Command::StorageFaultLasts { server } => step.roster().storage_fault_lasts(*server),
        Command::PeerUnreachable { server, peer } => step.reachability().reported(*server, *peer),
        Command::PairUnreachable {
            server,
            peer,
            unreachable,
            at_fault,
        } => (step.reachability()).set_pair((*server, *peer), *unreachable, *at_fault),
        Command::ServerSlow { server, cause } => server_slow(step, *server, cause.clone()),
        Command::CapacityEstimated { server, permille } => step.roster().estimated(*server, *permille),
        Command::Drain { server } => step.drains().begin(*server),
        Command::CallOffDrain { server } => call_off_drain(step, *server),
        Command::Forget { server } => forget(step, *server),
        Command::Reset {
            group_id,
            epoch,
            entries_before,
            bytes_before,
        } => (step.resets()).reset(*group_id, *epoch, *entries_before, *bytes_before),
        Command::Resize {
            group_id,
            sla,
            revision,
        } => step.resizes().resize(*group_id, sla, *revision),
        Command::Relocate(asked) => step.relocations().begin(asked),
        Command::SetGuarantee(change) => step.guarantee_changes().set(change),
        Command::SetPartitions(change) => step.partition_changes().set(change),
        Command::DivideRates { changes } => step.partition_changes().divide(changes),
        Command::SetAccess { group_id, access } => step.accesses().set(*group_id, *access),
        Command::Admit {
            group_id,
            project_id,
            sla,
        } => step.admissions().admit(*group_id, *project_id, sla),
        Command::Delete { group_id } => delete(step, *group_id),
        Command::Release { group_id } => step.quarantines().release(*group_id),
        Command::Applied { .. }
        | Command::LearnerCaughtUp { .. }
        | Command::OffsetsReached { .. }
        | Command::LayoutSealed { .. }
        | Command::Dropped { .. }
        | Command::Quarantined { .. } => reported(step, command),
    }
}

/// Reports of replicas.
fn reported(step: &mut Step<'_>, command: &Command) {
    match command {
        Command::LayoutSealed {
            group_id,
            layout,
            end_offset,
        } => (step.partition_changes()).sealed(*group_id, *layout, *end_offset),
        Command::OffsetsReached {
            group_id,
            commit_offset,
        } => (step.configs()).offsets_reached(*group_id, *commit_offset),
        Command::Applied {
            server,
            group_id,
            epoch,
        } => step.configs().applied(*server, *group_id, *epoch),
        Command::LearnerCaughtUp {
            server,
            group_id,
            epoch,
            learner,
        } => (step.chain_repairs()).learner_caught_up(*server, *group_id, *epoch, *learner),
        Command::Dropped { server, group_id } => dropped(step, *server, *group_id),
        Command::Quarantined {
            server,
            group_id,
            reason,
        } => (step.quarantines()).reported(*server, *group_id, reason),
        other => unreachable!("no report of a replica: {}", other.name()),
    }
}

/// Begins the moves that have become possible. The room that one frees, another may need. Each takes a replica from a
/// server that it should leave to one where it may stay, so this ends without the bound, too.
fn settle(step: &mut Step<'_>, replans: bool) {
    for _ in 0..SETTLE_PASSES_MAX {
        let before = step.epoch_changes();
        step.unreachable().resolve();
        for server in step.servers().vacating() {
            let known = &step.servers()[&server];
            let (is_draining, is_slow, has_fault) =
                (known.drain.is_some(), known.slow.is_some(), known.fault_lasts);
            if has_fault {
                step.moves().leave_faulty_disk(server);
            }
            if is_draining {
                let scarce = step.moves().move_away(server);
                step.drains().report(server, scarce);
            } else if is_slow {
                match step.relief() {
                    Relief::AtOnce => step.moves().vacate(server),
                    Relief::OneByOne => step.moves().relieve(server),
                }
            }
        }
        step.relocations().advance(replans);
        if step.epoch_changes() == before {
            break;
        }
    }
}

fn register(step: &mut Step<'_>, registration: &Registration) {
    let arrival = step.registrations().register(registration);
    match arrival {
        Err(refused) => step.out().refuse(refused),
        Ok(Arrival::Joined(server)) => {
            step.quarantines().process_ended(server);
            step.returns().confirm_places(server);
            step.leftovers().send_drops(server);
            step.leftovers().note_unknown(server, registration);
        }
        Ok(Arrival::Returned(back)) => {
            let (server, is_same_process) = (back.server, back.disk == Disk::SameProcess);
            if !is_same_process {
                step.quarantines().process_ended(server);
            }
            step.returns().settle(back, registration);
            step.leftovers().settle(server, registration, is_same_process);
            step.leftovers().note_unknown(server, registration);
            step.configs().send_all_lost(server);
            if step.servers()[&server].drain.is_some() {
                step.drains().send_state(server);
            }
        }
    }
}

/// All of them are marked first, so that chains which fail as a whole stay as they were.
fn servers_failed(step: &mut Step<'_>, servers: &[ServerId], how: Failure) {
    let mut affected: BTreeSet<GroupId> = BTreeSet::new();
    for server in servers.iter().copied() {
        affected.extend(step.groups().on(server));
        if step.roster().fail(server, how) {
            step.leftovers().stop_waiting_for(server);
        }
    }
    step.chain_repairs().splice_all(affected);
}

fn storage_fault(step: &mut Step<'_>, server: ServerId, fault: Option<String>) {
    let is_over = fault.is_none() && step.servers().get(&server).is_some_and(|known| known.fault_lasts);
    step.roster().storage_fault(server, fault);
    if is_over && !step.servers()[&server].is_vacating() {
        step.moves().call_off(server);
    }
}

fn server_slow(step: &mut Step<'_>, server: ServerId, cause: Option<String>) {
    let has_recovered = cause.is_none();
    let is_other = step.roster().slow(server, cause);
    if is_other && has_recovered && !step.servers()[&server].is_vacating() {
        step.moves().call_off(server);
    }
}

fn dropped(step: &mut Step<'_>, server: ServerId, group_id: GroupId) {
    step.quarantines().dropped(server, group_id);
    step.leftovers().dropped(server, group_id);
}

fn call_off_drain(step: &mut Step<'_>, server: ServerId) {
    if step.drains().call_off(server) && !step.servers()[&server].fault_lasts {
        step.moves().call_off(server);
    }
}

/// A failed server is given up: it will not come back, and what only it held is lost.
fn forget(step: &mut Step<'_>, server: ServerId) {
    if !step.roster().begin_giving_up(server) {
        return;
    }
    for group_id in step.groups().on(server).collect::<Vec<_>>() {
        step.epochs().leave(group_id, server);
    }
    for group_id in step.servers().to_drop_on(server) {
        step.leftovers().dropped(server, group_id);
    }
    step.roster().give_up(server);
}

/// Deletes a group with all its partitions.
fn delete(step: &mut Step<'_>, group_id: GroupId) {
    let group = step.groups().get(&group_id).filter(|group| !group.is_deleting());
    let whole = group
        .and_then(|group| group.partition)
        .map(|partition| partition.of);
    if whole.is_some_and(|of| of != group_id) {
        return step.out().reply(Reply::Conflict {
            code: "group_partitioned",
            message: "The group is a partition of another: delete that one.".into(),
        });
    }
    step.out().reply(Reply::Deleted);
    let partitions = step.take_partitions(group_id).unwrap_or_else(|| vec![group_id]);
    for partition in partitions {
        delete_one(step, partition);
    }
}

fn delete_one(step: &mut Step<'_>, group_id: GroupId) {
    match step.groups().get(&group_id).map(Group::is_deleting) {
        None => step.leftovers().forbid(group_id),
        Some(true) => {}
        Some(false) => {
            step.epochs().dissolve(group_id);
            step.leftovers().await_drops(group_id);
        }
    }
}
