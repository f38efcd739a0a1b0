//! A group that is dropped and comes again, on a real journal: it stands when the journal has the drop.

use std::sync::mpsc::channel;
use std::time::Duration;

use quorate_types::config::Member;
use quorate_types::cost::{AppendCost, Budget};
use quorate_types::{Durability, GroupState};
use quorate_wire::peer::{Envelope, Message, SyncReply};
use uuid::Uuid;

use super::*;
use crate::clock;
use crate::shard::lone_shard::lone_shard;

const GROUP: GroupId = GroupId(Uuid::from_u128(7));
const ME: ServerId = ServerId(1);
const OTHER: ServerId = ServerId(2);

fn member(server_id: ServerId) -> Member {
    Member {
        server_id,
        address: "here".to_string(),
    }
}

fn config(epoch: Epoch, replica: ServerId, learners: &[ServerId]) -> GroupConfig {
    let free = AppendCost {
        fixed_milli: [0; 3],
        per_byte_milli: [0; 3],
    };
    GroupConfig {
        group_id: GROUP,
        epoch,
        durability: Durability::Persistent,
        replication_degree: 1,
        min_replicas: 1,
        replicas: vec![member(replica)],
        learners: learners.iter().copied().map(member).collect(),
        budget: Budget::for_rate(1, 1, free),
        retention_bytes: u64::MAX,
        retention_age_s: None,
        beginning: None,
    }
}

/// What the predecessor of an empty log answers to the only question that was asked.
fn reply(epoch: Epoch) -> Envelope {
    let reply = SyncReply {
        nonce: 1,
        common_index: 0,
        last_index: 0,
        commit_index: 0,
        base: None,
    };
    Envelope {
        group_id: GROUP,
        epoch,
        message: Message::SyncReply(reply),
    }
}

/// A turn that did not end would have time stand still.
fn time_passes(io: &Io) {
    let before = io.now_us();
    while clock::now_us() <= before {}
    assert!(io.now_us() > before);
}

#[test]
fn in_a_turn_time_stands_still() {
    let dir = std::env::temp_dir().join(format!("quorate-turn-{}", std::process::id()));
    let mut io = lone_shard(&dir, |_| {}).io;
    time_passes(&io);
    io.begin_turn();
    let (now, wall_us) = (io.now_us(), io.wall_us());
    while clock::now_us() <= now || clock::wall_us() <= wall_us {}
    assert_eq!((io.now_us(), io.wall_us()), (now, wall_us));
    io.end_turn();
    time_passes(&io);
    assert!(io.wall_us() > wall_us);
    drop(io);
    std::fs::remove_dir_all(dir).unwrap();
}

#[test]
fn what_comes_again_stands_behind_the_drop() {
    let dir = std::env::temp_dir().join(format!("quorate-again-{}", std::process::id()));
    let (told, events) = channel();
    let mut shard = lone_shard(&dir, move |event| {
        let _over = told.send(event).is_err();
    });
    shard.configure(config(1, ME, &[]));
    shard.flush();
    shard.drop_group(GROUP, 1);
    shard.configure(config(3, OTHER, &[ME]));
    shard.peer_envelope(OTHER, reply(3));
    shard.flush();
    let state = |shard: &Shard| shard.groups[&GROUP].replica.state();
    assert_eq!(
        state(&shard),
        GroupState::Syncing,
        "a restart would bring it back"
    );
    while state(&shard) == GroupState::Syncing {
        let event = events
            .recv_timeout(Duration::from_secs(20))
            .expect("the journal is silent");
        run::journal_event(&mut shard, event);
        shard.flush();
    }
    assert!(!shard.io.journal.is_dropping(GROUP));
    time_passes(&shard.io);
    drop(shard);
    std::fs::remove_dir_all(dir).unwrap();
}
