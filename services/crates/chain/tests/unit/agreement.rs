//! Agreement on two logs: the successor asks, the predecessor answers with a common index or with a base.

use quorate_chain::{Base, Replica, ReplicaCommand, ReplicaEvent};
use quorate_types::limits::{BATCH_MEMORY_BYTES, CATCHUP_WINDOW_BYTES};
use quorate_types::{Durability, Epoch, GroupConfig, GroupState, Index, ServerId};
use quorate_wire::peer::{Message, Progress, SyncReply, SyncRequest};

use crate::rig::{Fleet, TICK, append, batch_after, batches, config, payload, peer, sends, step};

/// A head that holds batches of these epochs, with all but the last `kept` trimmed.
fn head_with(epochs: &[Epoch], kept: usize) -> Replica {
    let mut replica = Replica::new(ServerId(1), Durability::InMemory);
    for batch in batches(epochs) {
        replica.recover(batch);
    }
    step(
        &mut replica,
        ReplicaEvent::Configure(Box::new(config(100, &[1], &[]))),
    );
    let trimming = GroupConfig {
        retention_bytes: (20 + BATCH_MEMORY_BYTES) * kept as u64,
        ..config(101, &[1], &[])
    };
    step(&mut replica, ReplicaEvent::Configure(Box::new(trimming)));
    step(&mut replica, TICK);
    step(
        &mut replica,
        ReplicaEvent::Configure(Box::new(config(200, &[1, 2], &[]))),
    );
    replica
}

fn ask(head: &mut Replica, last_index: Index, history: &[(Epoch, Index)]) -> SyncReply {
    let request = SyncRequest {
        nonce: 8,
        last_index,
        commit_index: 0,
        history: history.to_vec(),
    };
    let commands = peer(head, 2, Message::SyncRequest(request));
    match sends(&commands, 2).into_iter().next() {
        Some(Message::SyncReply(reply)) => reply,
        other => panic!("answered {other:?}"),
    }
}

#[test]
fn the_common_index_of_whole_logs() {
    let held = &[1, 1, 3, 3, 5];
    for (last, history, common) in [
        (0, vec![], 0),
        (5, vec![(1, 1), (3, 3), (5, 5)], 5),
        (3, vec![(1, 1), (3, 3)], 3),
        (9, vec![(1, 1), (3, 3), (5, 5)], 5),
        (4, vec![(1, 1)], 2),
        (4, vec![(1, 1), (2, 3)], 2),
        (4, vec![(1, 1), (2, 2)], 1),
        (4, vec![(1, 1), (3, 3), (4, 4)], 3),
        (3, vec![(2, 1)], 0),
        (6, vec![(1, 1), (2, 2), (6, 3)], 1),
        (5, vec![(1, 1), (4, 3), (5, 5)], 5),
    ] {
        let reply = ask(&mut head_with(held, 5), last, &history);
        assert_eq!(
            (reply.common_index, reply.base),
            (common, None),
            "last {last}, {history:?}"
        );
        assert_eq!((reply.nonce, reply.last_index), (8, 5));
    }
}

#[test]
fn a_log_that_ends_before_the_base_begins_again() {
    for (last, history) in [
        (0, vec![]),
        (1, vec![(1, 1)]),
        (9, vec![(2, 1)]),
        (9, vec![(2, 3)]),
    ] {
        let mut head = head_with(&[1, 1, 3, 3, 5], 2);
        assert_eq!(head.log().first_index(), 4);
        let reply = ask(&mut head, last, &history);
        let base = Base::decode(&reply.base.expect("a base")).expect("decodes");
        assert_eq!(
            (reply.common_index, base.index, base.epoch, base.end_offset),
            (3, 3, 3, 6),
            "last {last}"
        );
        assert_eq!(base.sessions.next_seq(1), 4);
    }
}

#[test]
fn a_log_that_reaches_the_base_goes_on() {
    for (last, history, common) in [
        (3, vec![(1, 1), (3, 3)], 3),
        (5, vec![(1, 1), (3, 3), (5, 5)], 5),
        (9, vec![(3, 3), (4, 5)], 4),
        (9, vec![(3, 3), (4, 4)], 3),
        (7, vec![(3, 2), (5, 5)], 5),
    ] {
        let reply = ask(&mut head_with(&[1, 1, 3, 3, 5], 2), last, &history);
        assert_eq!(
            (reply.common_index, reply.base.is_some()),
            (common, false),
            "last {last}, {history:?}"
        );
    }
}

#[test]
fn a_question_waits_until_it_can_be_answered() {
    let mut middle = Replica::new(ServerId(2), Durability::InMemory);
    step(
        &mut middle,
        ReplicaEvent::Configure(Box::new(config(1, &[1, 2, 3], &[]))),
    );
    let request = || {
        Message::SyncRequest(SyncRequest {
            nonce: 1,
            last_index: 0,
            commit_index: 0,
            history: vec![],
        })
    };
    assert!(
        sends(&peer(&mut middle, 3, request()), 3).is_empty(),
        "it has not agreed itself"
    );
    let base = None;
    let settled = SyncReply {
        nonce: 1,
        common_index: 0,
        last_index: 0,
        commit_index: 0,
        base,
    };
    let commands = peer(&mut middle, 1, Message::SyncReply(settled));
    assert!(matches!(
        &sends(&commands, 3)[..],
        [Message::SyncReply(_), Message::ChainNotice(_)]
    ));

    let newer = ReplicaEvent::Peer {
        from: ServerId(3),
        epoch: 4,
        message: request(),
    };
    assert!(
        step(&mut middle, newer).is_empty(),
        "it does not know that epoch yet"
    );
    let commands = step(
        &mut middle,
        ReplicaEvent::Configure(Box::new(config(4, &[2, 3], &[]))),
    );
    assert!(matches!(sends(&commands, 3)[0], Message::SyncReply(_)));

    let stranger = ReplicaEvent::Peer {
        from: ServerId(7),
        epoch: 4,
        message: request(),
    };
    assert!(sends(&step(&mut middle, stranger), 7).is_empty());
}

#[test]
fn an_old_heads_suffix_is_truncated() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.append(1, append(1, 1));
    fleet.unreachable = vec![(1, 2), (1, 3)];
    fleet.append(1, append(1, 2));
    fleet.append(1, append(1, 3));
    fleet.configure(2, &[2, 3], &[]);
    fleet.append(2, append(9, 1));
    fleet.unreachable.clear();
    fleet.configure(3, &[2, 3], &[1]);
    let (old, new) = (fleet.node(1).log(), fleet.node(2).log());
    assert_eq!((old.last_index(), old.epoch_at(2)), (2, Some(2)));
    assert_eq!(
        old.sessions(),
        new.sessions(),
        "the table no longer knows truncated batches"
    );
    assert_eq!(fleet.commits(&[1, 2, 3]), [2, 2, 2]);
}

#[test]
#[should_panic(expected = "below the commit index")]
fn a_committed_batch_is_never_truncated() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.append(1, append(1, 1));
    let follower = fleet.nodes.get_mut(&2).expect("follower");
    step(follower, ReplicaEvent::LinkUp { server: ServerId(1) });
    let reply = |nonce| SyncReply {
        nonce,
        common_index: 0,
        last_index: 0,
        commit_index: 0,
        base: None,
    };
    for nonce in 0..9 {
        peer(follower, 1, Message::SyncReply(reply(nonce)));
    }
}

#[test]
fn a_replica_whose_way_down_is_full_sends_its_batches_when_it_is_not() {
    let mut fleet = Fleet::new(Durability::InMemory, &[1, 2]);
    fleet.configure(1, &[1, 2], &[]);
    let sent = |commands: &[ReplicaCommand]| {
        let indexes = sends(commands, 2).into_iter().filter_map(|m| match m {
            Message::Replicate(r) => Some(r.batch.header.index),
            _ => None,
        });
        indexes.collect::<Vec<_>>()
    };
    let head = fleet.nodes.get_mut(&1).expect("head");
    assert_eq!(head.feeds(), Some(ServerId(2)));
    head.hold(true);
    for seq in 1..=3 {
        assert_eq!(sent(&step(head, ReplicaEvent::Append(append(1, seq)))), [0; 0]);
    }
    head.hold(false);
    let mut commands = Vec::new();
    head.flush(&mut commands);
    assert_eq!(sent(&commands), [1, 2, 3], "in order, and none twice");
}

#[test]
fn the_window_bounds_batches_on_their_way() {
    let mut fleet = Fleet::new(Durability::InMemory, &[1]);
    fleet.configure(1, &[1], &[]);
    for seq in 1..=20 {
        let mut request = append(1, seq);
        request.payload = payload(1 << 20);
        fleet.append(1, request);
    }
    let head = fleet.nodes.get_mut(&1).expect("head");
    step(head, ReplicaEvent::Configure(Box::new(config(2, &[1, 2], &[]))));
    let request = SyncRequest {
        nonce: 1,
        last_index: 0,
        commit_index: 0,
        history: vec![],
    };
    let count = |commands: &[ReplicaCommand]| {
        sends(commands, 2)
            .iter()
            .filter(|m| matches!(m, Message::Replicate(_)))
            .count() as u64
    };
    let window = CATCHUP_WINDOW_BYTES >> 20;
    assert_eq!(count(&peer(head, 2, Message::SyncRequest(request))), window);
    assert_eq!(
        count(&peer(
            head,
            2,
            Message::Progress(Progress {
                index: 2,
                is_caught_up: false,
                ..Progress::default()
            })
        )),
        2
    );
    assert_eq!(
        count(&peer(
            head,
            2,
            Message::Progress(Progress {
                index: 1,
                is_caught_up: false,
                ..Progress::default()
            })
        )),
        0
    );
    assert_eq!(
        count(&peer(
            head,
            3,
            Message::Progress(Progress {
                index: 9,
                is_caught_up: false,
                ..Progress::default()
            })
        )),
        0,
        "not the successor"
    );
    step(head, ReplicaEvent::LinkDown { server: ServerId(2) });
    assert_eq!(count(&step(head, TICK)), 0, "it must ask again");
}

#[test]
fn evicted_payloads_are_loaded_for_a_successor() {
    let mut head = Replica::new(ServerId(1), Durability::Persistent);
    let mut last = None;
    for seq in 1..=24 {
        let batch = batch_after(last.as_ref(), 1, 1, seq, 1 << 20);
        last = Some(batch.header);
        head.recover(batch);
    }
    assert!(
        head.payload(1).is_none() && head.payload(24).is_some(),
        "16 MiB stay in memory"
    );
    step(
        &mut head,
        ReplicaEvent::Configure(Box::new(config(2, &[1, 2], &[]))),
    );
    let request = SyncRequest {
        nonce: 1,
        last_index: 0,
        commit_index: 0,
        history: vec![],
    };
    let commands = peer(&mut head, 2, Message::SyncRequest(request));
    let Some(ReplicaCommand::Load {
        from_index: 1,
        to_index,
    }) = commands.iter().find(|c| matches!(c, ReplicaCommand::Load { .. }))
    else {
        panic!("no load in {commands:?}")
    };
    assert!(
        *to_index <= CATCHUP_WINDOW_BYTES >> 20,
        "a load is at most a window: {to_index}"
    );
    let loaded = (1..=*to_index).map(|index| (index, payload(1 << 20))).collect();
    let commands = step(&mut head, ReplicaEvent::Loaded { batches: loaded });
    let sent = sends(&commands, 2)
        .iter()
        .filter(|m| matches!(m, Message::Replicate(_)))
        .count() as u64;
    assert_eq!(sent, *to_index);
    let next = |c: &ReplicaCommand| matches!(c, ReplicaCommand::Load { from_index, .. } if *from_index == to_index + 1);
    assert!(commands.iter().any(next), "the next run: {commands:?}");
    // Payloads for an earlier stream are passed over.
    assert!(
        sends(
            &step(
                &mut head,
                ReplicaEvent::Loaded {
                    batches: vec![(1, payload(1 << 20))]
                }
            ),
            2
        )
        .is_empty()
    );
}

#[test]
fn a_learner_that_feeds_another_begins_again_without_harm() {
    let mut fleet = Fleet::new(Durability::InMemory, &[1, 2, 3]);
    fleet.configure(1, &[1], &[2, 3]);
    for seq in 1..=3 {
        fleet.append(1, append(1, seq));
    }
    assert_eq!(fleet.node(3).log().last_index(), 3);
    // The first learner is away while the head goes on and trims beyond it, in one epoch.
    let first = fleet.nodes.get_mut(&2).expect("learner");
    step(first, ReplicaEvent::LinkUp { server: ServerId(1) });
    let mut base = Base::default();
    for batch in batches(&[1, 1, 1, 1, 1]) {
        base.apply(&batch.header);
    }
    for nonce in 0..9 {
        let (common_index, base) = (5, Some(base.encode()));
        let reply = SyncReply {
            nonce,
            common_index,
            last_index: 5,
            commit_index: 5,
            base,
        };
        let epoch = 1;
        fleet.event(
            2,
            ReplicaEvent::Peer {
                from: ServerId(1),
                epoch,
                message: Message::SyncReply(reply),
            },
        );
    }
    assert_eq!(fleet.node(2).log().first_index(), 6);
    assert_eq!(fleet.node(3).log().last_index(), 3);
    fleet.now = 2_000_000;
    fleet.event(3, TICK);
    assert_eq!(fleet.node(3).log().first_index(), 6, "it is behind, and asks");
    assert_ne!(fleet.node(3).state(), GroupState::Syncing);
}
