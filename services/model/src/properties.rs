//! What must always hold, and what must be reached: a world in which nothing interesting happens would pass.

use stateright::Property;

use crate::past::Wrong;
use crate::state::{Body, Entry, Epoch, Server, ServerId, State, Upstream};
use crate::world::{World, waits_in_vain};

pub fn all() -> Vec<Property<World>> {
    let mut properties = always();
    properties.extend(reached());
    properties
}

fn always() -> Vec<Property<World>> {
    fn never(state: &State, wrong: Wrong) -> bool {
        state.past.wrong != Some(wrong)
    }
    vec![
        Property::always("committed entries never change", |_, s: &State| {
            never(s, Wrong::Changed) && never(s, Wrong::TwoBatchesAtOneIndex)
        }),
        Property::always("committed entries are never cut", |_, s: &State| {
            never(s, Wrong::CommittedCut)
        }),
        Property::always(
            "committed entries are on every member of the latest chain",
            all_hold,
        ),
        Property::always("only a head commits", |_, s: &State| {
            never(s, Wrong::CommittedByNobody)
        }),
        Property::always("one head commits in an epoch", |_, s: &State| {
            never(s, Wrong::TwoHeadsInOneEpoch)
        }),
        Property::always("a deposed head never commits", |_, s: &State| {
            never(s, Wrong::DeposedHeadCommitted)
        }),
        Property::always("nothing is committed below min_replicas", |_, s: &State| {
            never(s, Wrong::CommittedBelowMinReplicas)
        }),
        Property::always("a retried append is committed once", |_, s: &State| {
            never(s, Wrong::CommittedTwice)
        }),
        Property::always("what was denied is never committed", |_, s: &State| {
            never(s, Wrong::DeniedCommitted)
        }),
        Property::always("no ack of a retry lies", retries_are_true),
        Property::always("neighbours have the prefix property", prefixes_hold),
        Property::always(
            "when nothing is on its way, everything is committed everywhere",
            rest_is_whole,
        ),
    ]
}

/// A member's memory counts while it lives in the chain's life, and what is on disk always.
fn all_hold(world: &World, state: &State) -> bool {
    let committed = &state.past.committed;
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

/// A retry that a head would answer from its table.
fn retries_are_true(world: &World, state: &State) -> bool {
    let mut heads = state
        .servers
        .iter()
        .filter(|server| server.up && server.is_head());
    heads.all(|head| {
        (0..world.0.sessions).all(|session| {
            let index = head.table[usize::from(session)];
            index == 0 || index > head.commit || state.past.is_committed_at(session, index)
        })
    })
}

fn prefixes_hold(_: &World, state: &State) -> bool {
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

/// A line whose members all live in the latest epoch, with nothing under way, has nothing left to do.
fn rest_is_whole(world: &World, state: &State) -> bool {
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
    let head: &Server = state.server(line[0]);
    let same = |id: &ServerId| {
        let server = state.server(*id);
        server.is_settled() && server.log == head.log && server.commit == head.last()
    };
    let reported = config.learner.is_none() || state.coordinator.report.is_some() || {
        // The report was looked at; promotion had no epoch left, or is this epoch's.
        !crate::coordinator::may_issue(state, &world.0)
    };
    line.iter().all(same) && reported
}

/// States that must be reached in some of the worlds explored together.
fn reached() -> Vec<Property<World>> {
    vec![
        Property::sometimes(
            "everything is committed in the first epoch",
            |world: &World, s: &State| {
                s.epoch() == 1 && s.past.committed.len() == usize::from(world.0.sessions)
            },
        ),
        Property::sometimes("a message of an old epoch arrives", |_, s: &State| {
            arriving(s).any(|(to, epoch, _)| epoch > 0 && epoch < s.server(to).epoch)
        }),
        Property::sometimes("an old suffix is about to be cut", |_, s: &State| {
            arriving(s).any(|(to, epoch, body)| {
                let server = s.server(to);
                let cuts = matches!(body, Body::SyncReply { common, .. } if *common < server.last());
                cuts && epoch == server.epoch && server.upstream == Upstream::Asking
            })
        }),
        Property::sometimes("a cut waits for the disk", |_, s: &State| {
            s.servers.iter().any(Server::has_pending_cut)
        }),
        Property::sometimes("a deposed head orders", |_, s: &State| {
            s.past.late.iter().any(|late| *late > 0)
        }),
        Property::sometimes(
            "an append is committed in a later epoch than ordered it",
            |_, s: &State| {
                s.past
                    .committed
                    .iter()
                    .any(|entry| committed_later(s, entry.epoch))
            },
        ),
        Property::sometimes("of what two heads ordered, one is committed", |_, s: &State| {
            s.past.committed.iter().any(|entry| {
                let is_other = |held: &Entry| held.session == entry.session && held.epoch != entry.epoch;
                s.servers.iter().any(|server| server.log.iter().any(is_other))
            })
        }),
        Property::sometimes("an append is denied and another committed", |_, s: &State| {
            s.past.denied.iter().any(|epoch| *epoch > 0) && !s.past.committed.is_empty()
        }),
        Property::sometimes("entries wait below min_replicas", |world: &World, s: &State| {
            let config = s.latest();
            let head = s.server(config.chain[0]);
            let below = config.chain.len() < world.0.min_replicas;
            below && head.epoch == s.epoch() && head.last() > head.commit
        }),
        Property::sometimes("a learner is fed while the group commits", |_, s: &State| {
            let learner = s.latest().learner.map(|id| s.server(id));
            learner.is_some_and(|l| l.epoch == s.epoch() && l.last() > 0 && committed_in(s, s.epoch()))
        }),
        Property::sometimes(
            "a learner joined, and its chain commits",
            |world: &World, s: &State| {
                let joined =
                    s.latest().chain.len() == world.0.degree && s.latest().chain != first_chain(world);
                joined && committed_in(s, s.epoch())
            },
        ),
        Property::sometimes(
            "a link broke, and everything is committed in that epoch",
            |world: &World, s: &State| {
                let is_whole = s.past.committed.len() == usize::from(world.0.sessions);
                is_whole && s.spent.breaks > 0 && s.epoch() == 1
            },
        ),
        Property::sometimes(
            "who was suspected wrongly learns, with what it had",
            |_, s: &State| {
                let learner = s.latest().learner.map(|id| s.server(id));
                learner.is_some_and(|l| l.life == 0 && l.epoch > 0 && l.last() > 0 && s.spent.crashes == 0)
            },
        ),
        Property::sometimes(
            "a member restarts with its disk, and its chain commits",
            |_, s: &State| {
                let back = |id: &ServerId| s.server(*id).life > 0 && s.server(*id).epoch == s.epoch();
                s.latest().chain.iter().any(back)
                    && s.spent.wrong_suspicions == 0
                    && committed_in(s, s.epoch())
            },
        ),
        Property::sometimes(
            "a head restarts having lost what it had not synced",
            |_, s: &State| {
                let head = s.server(s.latest().chain[0]);
                let ordered = s.past.tried.iter().any(|epoch| *epoch > 0);
                head.up && head.life > 0 && ordered && head.log.is_empty()
            },
        ),
        Property::sometimes("the group is lost", |_, s: &State| s.coordinator.lost),
    ]
}

fn first_chain(world: &World) -> Vec<ServerId> {
    (0..world.0.degree as ServerId).collect()
}

/// What is first on each link: receiver, epoch, body.
fn arriving(state: &State) -> impl Iterator<Item = (ServerId, Epoch, &Body)> {
    let count = state.servers.len();
    let links = state.links.iter().enumerate();
    links.filter_map(move |(at, link)| {
        let message = link.first()?;
        Some(((at % count) as ServerId, message.epoch, &message.body))
    })
}

/// Whether a head committed something new in this epoch.
fn committed_in(state: &State, epoch: Epoch) -> bool {
    let committers = &state.past.committers;
    committers
        .get(usize::from(epoch) - 1)
        .is_some_and(Option::is_some)
}

fn committed_later(state: &State, epoch: Epoch) -> bool {
    !committed_in(state, epoch) && state.past.committers.len() > usize::from(epoch)
}
