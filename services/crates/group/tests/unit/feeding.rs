//! Successors and learners: payloads read back for them, links without room, allowances.

use quorate_chain::ReplicaEvent;
use quorate_group::{Event, Generation, Output};
use quorate_types::{Durability, GroupConfig, Index};
use quorate_wire::peer::{self, Envelope, SyncRequest};

use crate::reading::{grown, payload};
use crate::rig::{ME, OTHER, Rig, config};

fn outputs(rig: &mut Rig) -> Vec<Output> {
    let outputs = rig.out.list.drain(..).collect();
    rig.out.clear();
    outputs
}

/// Batches that go to the other replica.
fn sent(outputs: &[Output]) -> Vec<Index> {
    let indexes = outputs.iter().filter_map(|output| match output {
        Output::Peer {
            to: OTHER,
            envelope:
                Envelope {
                    message: peer::Message::Replicate(replicate),
                    ..
                },
        } => Some(replicate.batch.header.index),
        _ => None,
    });
    indexes.collect()
}

/// The other replica, whose log is empty, asks where the logs agree.
fn ask_to_be_fed(rig: &mut Rig) {
    let request = SyncRequest {
        nonce: 1,
        last_index: 0,
        commit_index: 0,
        history: Vec::new(),
    };
    rig.step(Event::Peer {
        from: OTHER,
        epoch: rig.group.replica().epoch(),
        message: peer::Message::SyncRequest(request),
    });
}

/// A head whose learner lacks batches that are on disk only.
fn with_learner() -> Rig {
    let mut rig = grown();
    let learns = GroupConfig {
        durability: Durability::Persistent,
        learners: config(2, &[OTHER]).replicas,
        ..config(2, &[ME])
    };
    rig.step(Event::Configure(Box::new(learns)));
    ask_to_be_fed(&mut rig);
    rig.out.clear();
    rig
}

/// The payloads that are to be read back.
fn load(outputs: &[Output]) -> Option<(Generation, Index, Index)> {
    outputs.iter().find_map(|output| match output {
        Output::Load {
            generation,
            from_index,
            to_index,
        } => Some((*generation, *from_index, *to_index)),
        _ => None,
    })
}

fn loaded(rig: &mut Rig, generation: Generation, (from_index, to_index): (Index, Index)) -> Vec<Index> {
    let batches = (from_index..=to_index).map(|index| (index, payload(index)));
    rig.step(Event::Loaded {
        generation,
        batches: batches.collect(),
    });
    sent(&outputs(rig))
}

#[test]
fn payloads_of_another_log_are_not_sent() {
    let mut rig = with_learner();
    rig.flush();
    let (generation, from_index, to_index) = load(&outputs(&mut rig)).expect("it lacks what is on disk");
    assert_eq!((generation, from_index), (rig.group.generation(), 1));
    let reset = Generation {
        resets: generation.resets + 1,
        ..generation
    };
    let hosted_anew = Generation {
        hosting: generation.hosting + 1,
        ..generation
    };
    for other in [reset, hosted_anew] {
        assert!(loaded(&mut rig, other, (1, to_index)).is_empty());
    }
    let sent = loaded(&mut rig, generation, (1, to_index));
    assert_eq!(sent, (1..=to_index).collect::<Vec<_>>());
}

#[test]
fn a_learner_waits_for_an_allowance() {
    let mut rig = with_learner();
    rig.flush();
    let mut last = outputs(&mut rig);
    let mut next = 1;
    // As much as was appended meanwhile is allowed, up to a window.
    while let Some((generation, from_index, to_index)) = load(&last) {
        assert_eq!(from_index, next);
        loaded(&mut rig, generation, (from_index, to_index));
        next = to_index + 1;
        let progress = peer::Progress {
            index: to_index,
            ..Default::default()
        };
        rig.step(Event::Peer {
            from: OTHER,
            epoch: 2,
            message: peer::Message::Progress(progress),
        });
        rig.flush();
        last = outputs(&mut rig);
    }
    assert!(next < rig.ordered(), "it lacks more");
    assert!(last.iter().any(|output| matches!(output, Output::CatchupWanted)));
    assert!(rig.group.catchup_wanted_bytes() > 0);
    rig.replica_event(ReplicaEvent::CatchupAllowance {
        bytes: rig.group.catchup_wanted_bytes(),
    });
    rig.flush();
    let sent = sent(&outputs(&mut rig));
    assert_eq!(sent.first(), Some(&next), "the rest is in memory");
}

#[test]
fn nothing_is_sent_over_a_link_without_room_until_it_has_room() {
    let mut rig = Rig::new(config(1, &[ME, OTHER]));
    assert_eq!(rig.group.feeds(), None, "the successor has not asked");
    ask_to_be_fed(&mut rig);
    assert_eq!(rig.group.feeds(), Some(OTHER));
    rig.group.hold(true);
    rig.out.clear();
    rig.append(2);
    assert_eq!(rig.ordered(), 2, "they are ordered");
    assert!(sent(&outputs(&mut rig)).is_empty());
    rig.group.hold(false);
    rig.flush();
    assert_eq!(sent(&outputs(&mut rig)), [1, 2]);
}
