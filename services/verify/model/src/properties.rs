//! Properties that always hold, and states that must be reached. Without the latter, a world in which nothing happens would
//! pass.

use stateright::Property;

use crate::actions::{GroupModel, waits_in_vain};
use crate::coordinator;
use crate::history::Breach;
use crate::ids::{Entry, Epoch, ServerId};
use crate::message::MessageBody;
use crate::server::{ServerState, Upstream};
use crate::state::ModelState;

pub fn all() -> Vec<Property<GroupModel>> {
    let mut properties = always();
    properties.extend(reached());
    properties
}

fn always() -> Vec<Property<GroupModel>> {
    fn never(state: &ModelState, breach: Breach) -> bool {
        state.history.breach != Some(breach)
    }
    vec![
        Property::always("committed entries never change", |_, s: &ModelState| {
            never(s, Breach::Changed) && never(s, Breach::TwoBatchesAtOneIndex)
        }),
        Property::always("committed entries are never truncated", |_, s: &ModelState| {
            never(s, Breach::CommittedTruncated)
        }),
        Property::always(
            "committed entries are on every member of the latest chain",
            all_hold,
        ),
        Property::always("only a head commits", |_, s: &ModelState| {
            never(s, Breach::CommittedByNobody)
        }),
        Property::always("one head commits in an epoch", |_, s: &ModelState| {
            never(s, Breach::TwoHeadsInOneEpoch)
        }),
        Property::always("a deposed head never commits", |_, s: &ModelState| {
            never(s, Breach::DeposedHeadCommitted)
        }),
        Property::always("nothing is committed below min_replicas", |_, s: &ModelState| {
            never(s, Breach::CommittedBelowMinReplicas)
        }),
        Property::always("a retried append is committed once", |_, s: &ModelState| {
            never(s, Breach::CommittedTwice)
        }),
        Property::always("a denied append is never committed", |_, s: &ModelState| {
            never(s, Breach::DeniedCommitted)
        }),
        Property::always("every ack of a retry is true", retries_are_true),
        Property::always("neighbours have the prefix property", prefixes_hold),
        Property::always(
            "when nothing is under way, everything is committed everywhere",
            rest_is_whole,
        ),
    ]
}

/// A member's memory counts while it runs; its disk counts always.
fn all_hold(world: &GroupModel, state: &ModelState) -> bool {
    let committed = &state.history.committed;
    if state.coordinator.lost {
        return true;
    }
    state.latest().chain.iter().all(|id| {
        let server = state.server(*id);
        let in_memory = !server.up || server.log.starts_with(committed);
        let on_disk = !world.0.is_persistent() || server.disk.starts_with(committed);
        in_memory && on_disk
    })
}

/// A retry that a head would answer from its session table.
fn retries_are_true(world: &GroupModel, state: &ModelState) -> bool {
    let mut heads = state
        .servers
        .iter()
        .filter(|server| server.up && server.is_head());
    heads.all(|head| {
        (0..world.0.sessions).all(|session| {
            let index = head.table[usize::from(session)];
            index == 0 || index > head.commit || state.history.is_committed_at(session, index)
        })
    })
}

fn prefixes_hold(_: &GroupModel, state: &ModelState) -> bool {
    let settled = |id: ServerId| state.server(id).is_settled();
    (0..state.servers.len() as ServerId).all(|id| {
        let server = state.server(id);
        let before = state
            .config(server.epoch)
            .and_then(|config| config.predecessor_of(id));
        before.is_none_or(|before| {
            let predecessor = state.server(before);
            let comparable = predecessor.epoch == server.epoch && settled(id) && settled(before);
            !comparable || predecessor.log.starts_with(&server.log)
        })
    })
}

/// Chain and learner have nothing left to do, if all run in the latest epoch and nothing is under way.
fn rest_is_whole(world: &GroupModel, state: &ModelState) -> bool {
    let config = state.latest();
    let line: Vec<ServerId> = config.line().collect();
    let rests = |id: ServerId| {
        let server = state.server(id);
        server.up && server.epoch == state.epoch() && server.unsynced.is_empty() && !waits_in_vain(state, id)
    };
    let quiet = state.links.iter().all(Vec::is_empty) && line.iter().all(|id| rests(*id));
    if !quiet || config.chain.len() < world.0.min_replicas {
        return true;
    }
    let head: &ServerState = state.server(line[0]);
    let same = |id: &ServerId| {
        let server = state.server(*id);
        server.is_settled() && server.log == head.log && server.commit == head.last()
    };
    let reported = config.learner.is_none() || state.coordinator.report.is_some() || {
        // The report was taken: the promotion is this epoch, or the bounds allow no further one.
        !coordinator::may_issue(state, &world.0)
    };
    line.iter().all(same) && reported
}

/// States that must be reached in some of the worlds explored together.
fn reached() -> Vec<Property<GroupModel>> {
    let mut reached = reached_by_appends();
    reached.extend(reached_by_members());
    reached
}

fn reached_by_appends() -> Vec<Property<GroupModel>> {
    vec![
        Property::sometimes(
            "everything is committed in the first epoch",
            |world: &GroupModel, s: &ModelState| {
                s.epoch() == 1 && s.history.committed.len() == usize::from(world.0.sessions)
            },
        ),
        Property::sometimes("a message of an old epoch arrives", |_, s: &ModelState| {
            arriving(s).any(|(to, epoch, _)| epoch > 0 && epoch < s.server(to).epoch)
        }),
        Property::sometimes("an old suffix is about to be truncated", |_, s: &ModelState| {
            arriving(s).any(|(to, epoch, body)| {
                let server = s.server(to);
                let cuts = matches!(body, MessageBody::SyncReply { common, .. } if *common < server.last());
                cuts && epoch == server.epoch && server.upstream == Upstream::Asking
            })
        }),
        Property::sometimes("a truncation waits for the disk", |_, s: &ModelState| {
            s.servers.iter().any(ServerState::has_pending_truncation)
        }),
        Property::sometimes("a deposed head orders", |_, s: &ModelState| {
            s.history.late.iter().any(|late| *late > 0)
        }),
        Property::sometimes(
            "an append is committed in a later epoch than ordered it",
            |_, s: &ModelState| {
                s.history
                    .committed
                    .iter()
                    .any(|entry| committed_later(s, entry.epoch))
            },
        ),
        Property::sometimes(
            "two heads ordered an append, and one order is committed",
            |_, s: &ModelState| {
                s.history.committed.iter().any(|entry| {
                    let is_other = |held: &Entry| held.session == entry.session && held.epoch != entry.epoch;
                    s.servers.iter().any(|server| server.log.iter().any(is_other))
                })
            },
        ),
        Property::sometimes(
            "an append is denied and another committed",
            |_, s: &ModelState| {
                s.history.denied.iter().any(|epoch| *epoch > 0) && !s.history.committed.is_empty()
            },
        ),
    ]
}

fn reached_by_members() -> Vec<Property<GroupModel>> {
    vec![
        Property::sometimes(
            "entries wait below min_replicas",
            |world: &GroupModel, s: &ModelState| {
                let config = s.latest();
                let head = s.server(config.chain[0]);
                let below = config.chain.len() < world.0.min_replicas;
                below && head.epoch == s.epoch() && head.last() > head.commit
            },
        ),
        Property::sometimes("a learner is fed while the group commits", |_, s: &ModelState| {
            let learner = s.latest().learner.map(|id| s.server(id));
            learner.is_some_and(|l| l.epoch == s.epoch() && l.last() > 0 && committed_in(s, s.epoch()))
        }),
        Property::sometimes(
            "a learner joined, and its chain commits",
            |world: &GroupModel, s: &ModelState| {
                let joined =
                    s.latest().chain.len() == world.0.degree && s.latest().chain != first_chain(world);
                joined && committed_in(s, s.epoch())
            },
        ),
        Property::sometimes(
            "a link broke, and everything is committed in that epoch",
            |world: &GroupModel, s: &ModelState| {
                let is_whole = s.history.committed.len() == usize::from(world.0.sessions);
                is_whole && s.spent.breaks > 0 && s.epoch() == 1
            },
        ),
        Property::sometimes(
            "a wrongly suspected server learns, and keeps its log",
            |_, s: &ModelState| {
                let learner = s.latest().learner.map(|id| s.server(id));
                learner.is_some_and(|l| {
                    l.incarnation == 0 && l.epoch > 0 && l.last() > 0 && s.spent.crashes == 0
                })
            },
        ),
        Property::sometimes(
            "a member restarts with its disk, and its chain commits",
            |world: &GroupModel, s: &ModelState| {
                let back = |id: &ServerId| s.server(*id).incarnation > 0 && s.server(*id).epoch == s.epoch();
                world.0.is_persistent()
                    && s.latest().chain.iter().any(back)
                    && s.spent.wrong_suspicions == 0
                    && committed_in(s, s.epoch())
            },
        ),
        Property::sometimes(
            "a head restarts without its unsynced entries",
            |_, s: &ModelState| {
                let head = s.server(s.latest().chain[0]);
                let ordered = s.history.tried.iter().any(|epoch| *epoch > 0);
                head.up && head.incarnation > 0 && ordered && head.log.is_empty()
            },
        ),
        Property::sometimes("the group is lost", |_, s: &ModelState| s.coordinator.lost),
    ]
}

fn first_chain(world: &GroupModel) -> Vec<ServerId> {
    (0..world.0.degree as ServerId).collect()
}

/// The first message of each link: receiver, epoch, body.
fn arriving(state: &ModelState) -> impl Iterator<Item = (ServerId, Epoch, &MessageBody)> {
    let count = state.servers.len();
    let links = state.links.iter().enumerate();
    links.filter_map(move |(at, link)| {
        let message = link.first()?;
        Some(((at % count) as ServerId, message.epoch, &message.body))
    })
}

/// Whether a head committed a new entry in this epoch.
fn committed_in(state: &ModelState, epoch: Epoch) -> bool {
    let committers = &state.history.committers;
    committers
        .get(usize::from(epoch) - 1)
        .is_some_and(Option::is_some)
}

fn committed_later(state: &ModelState, epoch: Epoch) -> bool {
    !committed_in(state, epoch) && state.history.committers.len() > usize::from(epoch)
}
