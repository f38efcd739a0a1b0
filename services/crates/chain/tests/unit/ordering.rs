//! The head orders: densely, under conditions, and with answers that hold.

use quorate_chain::{AppendRequest, Asked, ClientRef, Happened, Replica, ReplicaCommand, ReplicaEvent};
use quorate_types::{Code, Durability, GroupConfig, GroupState, Role, ServerId};

use crate::rig::{CLIENT, Fleet, TICK, acks, append, config, refusals, sends, sole, step};

#[test]
fn only_the_head_orders() {
    let mut none = Replica::new(ServerId(9), Durability::InMemory);
    assert_eq!(
        refusals(&step(&mut none, ReplicaEvent::Append(append(1, 1)))),
        [(1, Code::GroupNotHere)]
    );
    let mut fleet = Fleet::of_three(Durability::InMemory);
    for id in [2, 3] {
        fleet.append(id, append(1, 1));
        assert_eq!(refusals(&fleet.take_commands()), [(1, Code::NotHead)]);
    }
    assert_eq!(fleet.node(1).role(), Role::Head);
}

#[test]
fn a_batch_is_made_from_the_request() {
    let mut replica = sole(Durability::InMemory, &[], 4);
    let mut request = append(7, 1);
    (request.wall_us, request.fencing_token) = (98, 3);
    step(&mut replica, ReplicaEvent::Append(request.clone()));
    request.seq = 2;
    step(&mut replica, ReplicaEvent::Append(request));
    let header = replica.log().header(2).expect("ordered");
    assert_eq!(
        (
            header.epoch,
            header.index,
            header.base_offset,
            header.cumulative_bytes
        ),
        (4, 2, 2, 24)
    );
    assert_eq!(
        (
            header.session,
            header.seq,
            header.timestamp_us,
            header.fencing_token
        ),
        (7, 2, 98, 3)
    );
    assert_eq!(
        (header.entry_count, header.payload_len, header.payload_crc),
        (2, 20, 7001)
    );
    assert_eq!(
        (
            replica.commit_offset(),
            replica.committed_bytes(),
            replica.uncommitted_bytes()
        ),
        (4, 24, 0)
    );
}

#[test]
fn an_expected_offset_must_be_the_end() {
    let mut replica = sole(Durability::InMemory, &[], 1);
    let mut request = append(1, 1);
    request.expected_offset = 1;
    assert_eq!(
        refusals(&step(&mut replica, ReplicaEvent::Append(request.clone()))),
        [(1, Code::ConditionFailed)]
    );
    request.expected_offset = 0;
    assert_eq!(
        acks(&step(&mut replica, ReplicaEvent::Append(request.clone()))),
        [(1, 0)]
    );
    assert_eq!(
        acks(&step(&mut replica, ReplicaEvent::Append(request))),
        [(1, 0)],
        "a retry is not judged again"
    );
}

#[test]
fn an_older_fencing_token_is_refused() {
    let mut replica = sole(Durability::InMemory, &[], 1);
    let with_token = |session, token| {
        let mut request = append(session, 1);
        request.fencing_token = token;
        ReplicaEvent::Append(request)
    };
    assert_eq!(acks(&step(&mut replica, with_token(1, 5))).len(), 1);
    assert_eq!(
        refusals(&step(&mut replica, with_token(2, 4))),
        [(1, Code::Fenced)]
    );
    assert_eq!(acks(&step(&mut replica, with_token(2, 5))).len(), 1);
    assert_eq!(
        acks(&step(&mut replica, with_token(3, 0))).len(),
        1,
        "without a token nothing is fenced"
    );
}

#[test]
fn below_min_replicas_appends_pause_and_retries_wait() {
    let mut fleet = Fleet::new(Durability::InMemory, &[1, 2]);
    fleet.configure(1, &[1, 2], &[]);
    fleet.unreachable.push((1, 2));
    fleet.append(1, append(1, 1));
    let paused = GroupConfig {
        min_replicas: 2,
        ..config(2, &[1], &[])
    };
    fleet.event(1, ReplicaEvent::Configure(Box::new(paused)));
    assert_eq!(fleet.node(1).state(), GroupState::Paused);
    fleet.take_commands();
    fleet.append(1, append(1, 2));
    fleet.append(1, append(1, 1));
    let taken = fleet.take_commands();
    let paused = |c: &ReplicaCommand| {
        matches!(
            c,
            ReplicaCommand::Refuse {
                code: Code::Paused,
                happened: Happened::No,
                retry_after_ms: 200,
                ..
            }
        )
    };
    assert!(taken.iter().any(paused));
    assert_eq!(
        (acks(&taken).len(), fleet.node(1).commit_index()),
        (0, 0),
        "nothing commits below min_replicas"
    );

    fleet.event(1, ReplicaEvent::Configure(Box::new(config(3, &[1], &[]))));
    assert_eq!(
        acks(&fleet.take_commands()),
        [(1, 0)],
        "the append is answered, once for all its sendings"
    );
}

#[test]
fn the_last_sender_of_a_batch_waits_for_it() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.unreachable.push((1, 2));
    let again = ClientRef {
        connection: 2,
        channel: 9,
    };
    for seq in 1..=3 {
        fleet.append(1, append(1, seq));
    }
    for _ in 0..100 {
        fleet.append(1, append(1, 2));
    }
    let retry = AppendRequest {
        client: again,
        ..append(1, 1)
    };
    fleet.append(1, retry);
    fleet.take_commands();
    fleet.event(1, ReplicaEvent::Configure(Box::new(config(2, &[1], &[]))));
    let taken: Vec<(ClientRef, u64)> = fleet.take_commands().iter().filter_map(acked).collect();
    assert_eq!(taken, [(again, 1), (CLIENT, 2), (CLIENT, 3)]);
}

#[test]
fn a_client_that_is_gone_gets_no_answer() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.unreachable.push((1, 2));
    let other = ClientRef {
        connection: 2,
        channel: 9,
    };
    let not_there = AppendRequest {
        expected_offset: 99,
        ..append(1, 2)
    };
    fleet.append(1, append(1, 1));
    fleet.append(1, not_there);
    let kept = AppendRequest {
        client: other,
        ..append(2, 1)
    };
    fleet.append(1, kept);
    for asked in [Asked::Status, Asked::Trim { before_offset: 2 }] {
        let (client, request) = (CLIENT, 1);
        fleet.event(
            1,
            ReplicaEvent::Ask {
                client,
                request,
                asked,
            },
        );
    }
    fleet.take_commands();
    fleet.nodes.get_mut(&1).expect("a server").forget_client(CLIENT);
    fleet.event(1, ReplicaEvent::Configure(Box::new(config(2, &[1], &[]))));
    let taken = fleet.take_commands();
    assert_eq!(taken.iter().filter_map(acked).collect::<Vec<_>>(), [(other, 1)]);
    let is_answer =
        |c: &ReplicaCommand| matches!(c, ReplicaCommand::Answer { .. } | ReplicaCommand::Refuse { .. });
    assert!(!taken.iter().any(is_answer), "{taken:?}");
}

fn acked(command: &ReplicaCommand) -> Option<(ClientRef, u64)> {
    match command {
        ReplicaCommand::Ack { client, seq, .. } => client.map(|client| (client, *seq)),
        _ => None,
    }
}

#[test]
fn a_deposed_head_says_that_it_does_not_know() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.unreachable.push((1, 2));
    fleet.append(1, append(1, 1));
    fleet.take_commands();
    fleet.event(1, ReplicaEvent::Configure(Box::new(config(2, &[2, 3], &[]))));
    let taken = fleet.take_commands();
    let unknown = |c: &ReplicaCommand| {
        matches!(
            c,
            ReplicaCommand::Refuse {
                seq: 1,
                code: Code::EpochChanged,
                happened: Happened::Unknown,
                ..
            }
        )
    };
    assert!(taken.iter().any(unknown));
    assert!(
        taken
            .iter()
            .any(|c| matches!(c, ReplicaCommand::Adopted { epoch: 2 }))
    );
}

#[test]
fn a_head_that_stays_head_keeps_its_clients_waiting() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    fleet.unreachable.push((2, 3));
    fleet.append(1, append(1, 1));
    assert_eq!(acks(&fleet.take_commands()), []);
    fleet.configure(2, &[1, 2], &[]);
    assert_eq!(acks(&fleet.take_commands()), [(1, 0)]);
}

#[test]
fn the_chain_agrees_when_every_replica_has_acknowledged() {
    let mut fleet = Fleet::of_three(Durability::InMemory);
    assert!(fleet.node(1).chain_agrees() && !fleet.node(2).chain_agrees());
    fleet.unreachable.push((2, 3));
    fleet.configure(2, &[1, 2, 3], &[]);
    assert!(
        !fleet.node(1).chain_agrees(),
        "the tail has not agreed in this epoch"
    );
    fleet.unreachable.clear();
    fleet.now += 1_000_000;
    fleet.event(3, TICK);
    assert!(fleet.node(1).chain_agrees());
    assert!(sole(Durability::InMemory, &[], 1).chain_agrees());
}

#[test]
fn the_successor_is_fed_at_once() {
    let mut head = Replica::new(ServerId(1), Durability::InMemory);
    step(
        &mut head,
        ReplicaEvent::Configure(Box::new(config(1, &[1, 2], &[]))),
    );
    let commands = step(&mut head, ReplicaEvent::Append(append(1, 1)));
    assert!(sends(&commands, 2).is_empty(), "it has not asked in this epoch");
}
