//! The coordinator's rules (`docs/internals/coordinator.md`, "When servers fail"). Each change
//! of a group is a new epoch, in which a replacement is elected if the chain lacks a replica and all of it is alive.

use crate::bounds::{Bounds, Bug};
use crate::config::ChainConfig;
use crate::ids::ServerId;
use crate::state::ModelState;

/// Whether the bounds allow one more epoch.
pub fn may_issue(state: &ModelState, bounds: &Bounds) -> bool {
    state.epoch() < bounds.epochs
}

/// Takes these servers for dead, at once and rightly or not. The last servers of a chain are never left out.
pub fn suspect(state: &mut ModelState, bounds: &Bounds, suspects: &[ServerId]) {
    for server in suspects {
        state.coordinator.alive[usize::from(*server)] = false;
    }
    splice(state, bounds);
}

/// Takes dead servers out of the chain, unless all are dead.
pub fn splice(state: &mut ModelState, bounds: &Bounds) {
    let alive = |server: &ServerId| state.coordinator.alive[usize::from(*server)];
    let mut config = state.latest().clone();
    let survivors: Vec<ServerId> = config.chain.iter().copied().filter(alive).collect();
    config.learner = config.learner.filter(alive);
    if !survivors.is_empty() {
        config.chain = survivors;
    } else if bounds.has(Bug::LastReplicaReplaced) {
        let others = (0..bounds.servers).filter(alive);
        config.chain = others.take(1).collect();
        config.learner = None;
        if config.chain.is_empty() {
            return;
        }
    }
    if config != *state.latest() {
        issue(state, bounds, config);
    }
}

/// Whether some servers of the chain are dead and others are not: all had failed, and not all came back.
pub fn may_splice_rest(state: &ModelState) -> bool {
    let alive = |server: &ServerId| state.coordinator.alive[usize::from(*server)];
    let chain = &state.latest().chain;
    chain.iter().any(alive) && !chain.iter().all(alive)
}

/// A suspected server answers again, in the same process: it keeps its place if it has one.
pub fn return_of(state: &mut ModelState, bounds: &Bounds, server: ServerId) {
    state.coordinator.alive[usize::from(server)] = true;
    elect_if_wanted(state, bounds);
}

/// A server registers in a new process. A member that found the group on its disk keeps its place, in a new epoch;
/// another one counts as failed.
pub fn register(state: &mut ModelState, bounds: &Bounds, server: ServerId) {
    state.coordinator.alive[usize::from(server)] = true;
    let mut config = state.latest().clone();
    let is_member = config.line().any(|member| member == server);
    let is_learner = config.learner == Some(server);
    let on_disk = bounds.is_persistent() && !(is_learner && state.server(server).disk.is_empty());
    if !is_member {
        elect_if_wanted(state, bounds);
    } else if on_disk || bounds.has(Bug::EmptyReplicaKeepsPlace) {
        if !bounds.has(Bug::EpochGivenTwice) {
            issue(state, bounds, config);
        }
    } else {
        config.chain.retain(|member| *member != server);
        config.learner = config.learner.filter(|learner| *learner != server);
        if config.chain.is_empty() {
            state.coordinator.lost = true;
        } else {
            issue(state, bounds, config);
        }
    }
    let epochs_from = match bounds.has(Bug::EpochGivenTwice) {
        true => 1,
        // A lost group has no configuration until its owner resets it.
        false => state.epoch() + u8::from(state.coordinator.lost),
    };
    state.servers[usize::from(server)].epochs_from = epochs_from;
}

/// Takes the tail's report that its learner may join.
pub fn take_report(state: &mut ModelState, bounds: &Bounds) {
    let Some(report) = state.coordinator.report.take() else {
        return;
    };
    let mut config = state.latest().clone();
    let is_current = report.epoch == state.epoch() || bounds.has(Bug::StaleReportTaken);
    let is_right = config.learner == Some(report.learner) && config.chain.last() == Some(&report.from);
    if is_current && is_right && state.coordinator.alive[usize::from(report.learner)] {
        config.chain.push(report.learner);
        config.learner = None;
        issue(state, bounds, config);
    }
}

/// [`Bug::PromotedUnasked`]: the learner joins without a report.
pub fn promote_unasked(state: &mut ModelState, bounds: &Bounds) {
    let mut config = state.latest().clone();
    config.chain.extend(config.learner.take());
    issue(state, bounds, config);
}

fn elect_if_wanted(state: &mut ModelState, bounds: &Bounds) {
    if replacement(state, bounds, state.latest()).is_some() {
        let config = state.latest().clone();
        issue(state, bounds, config);
    }
}

fn issue(state: &mut ModelState, bounds: &Bounds, mut config: ChainConfig) {
    config.learner = config.learner.or(replacement(state, bounds, &config));
    state.coordinator.configs.push(config);
    // A report of an earlier epoch says nothing any more.
    if !bounds.has(Bug::StaleReportTaken) {
        state.coordinator.report = None;
    }
}

/// The server to elect as learner, if one is wanted: it is alive and no member. Placement chooses among several; here
/// it is the first.
fn replacement(state: &ModelState, bounds: &Bounds, config: &ChainConfig) -> Option<ServerId> {
    let alive = |server: &ServerId| state.coordinator.alive[usize::from(*server)];
    let wants = config.chain.len() < bounds.degree && config.learner.is_none() && !state.coordinator.lost;
    if !wants || !config.chain.iter().all(alive) {
        return None;
    }
    (0..bounds.servers)
        .filter(alive)
        .find(|server| !config.chain.contains(server))
}
