//! The session table: a retry is recognised, a gap refused, and forgetting is safe.

use quorate_chain::{Base, Log, Sessions};
use quorate_types::limits::{SESSION_WINDOW_BATCHES, SESSIONS_PER_GROUP_MAX};
use quorate_types::{Code, Durability};

use crate::rig::{acks, append, batch_after, refusals, sole, step};
use quorate_chain::ReplicaEvent;

fn log_of(sessions: impl IntoIterator<Item = (u64, u64)>) -> Log {
    let mut log = Log::new(Base::default());
    for (session, seq) in sessions {
        let last = log.header(log.last_index()).copied();
        log.push(batch_after(last.as_ref(), 1, session, seq, 20));
    }
    log
}

#[test]
fn a_retry_is_answered_with_its_first_offset() {
    let mut replica = sole(Durability::InMemory, &[], 1);
    assert_eq!(
        acks(&step(&mut replica, ReplicaEvent::Append(append(5, 1)))),
        [(1, 0)]
    );
    assert_eq!(
        acks(&step(&mut replica, ReplicaEvent::Append(append(6, 1)))),
        [(1, 2)]
    );
    assert_eq!(
        acks(&step(&mut replica, ReplicaEvent::Append(append(5, 2)))),
        [(2, 4)]
    );
    assert_eq!(
        acks(&step(&mut replica, ReplicaEvent::Append(append(5, 1)))),
        [(1, 0)]
    );
    assert_eq!(replica.log().last_index(), 3, "nothing was ordered twice");
    assert_eq!(replica.log().sessions().next_seq(5), 3);
    assert_eq!(replica.log().sessions().next_seq(77), 1);
}

#[test]
fn a_gap_is_refused_also_in_a_new_session() {
    let mut replica = sole(Durability::InMemory, &[], 1);
    assert_eq!(
        refusals(&step(&mut replica, ReplicaEvent::Append(append(5, 2)))),
        [(2, Code::SequenceGap)]
    );
    step(&mut replica, ReplicaEvent::Append(append(5, 1)));
    assert_eq!(
        refusals(&step(&mut replica, ReplicaEvent::Append(append(5, 3)))),
        [(3, Code::SequenceGap)]
    );
    assert_eq!(
        acks(&step(&mut replica, ReplicaEvent::Append(append(5, 2)))),
        [(2, 2)]
    );
}

#[test]
fn a_retry_from_before_the_window_is_unknown() {
    let mut replica = sole(Durability::InMemory, &[], 1);
    let last = u64::from(SESSION_WINDOW_BATCHES) + 1;
    for seq in 1..=last {
        step(&mut replica, ReplicaEvent::Append(append(5, seq)));
    }
    assert_eq!(
        refusals(&step(&mut replica, ReplicaEvent::Append(append(5, 1)))),
        [(1, Code::SessionExpired)]
    );
    assert_eq!(
        acks(&step(&mut replica, ReplicaEvent::Append(append(5, 2)))),
        [(2, 2)]
    );
}

#[test]
fn session_zero_and_seq_zero_are_refused() {
    let mut replica = sole(Durability::InMemory, &[], 1);
    assert_eq!(
        refusals(&step(&mut replica, ReplicaEvent::Append(append(0, 1)))),
        [(1, Code::SessionMissing)]
    );
    assert_eq!(
        refusals(&step(&mut replica, ReplicaEvent::Append(append(1, 0)))),
        [(0, Code::SessionMissing)]
    );
}

#[test]
fn the_least_recently_used_session_is_forgotten_and_its_floor_tells() {
    let mut replica = sole(Durability::InMemory, &[], 1);
    let full = SESSIONS_PER_GROUP_MAX as u64;
    for session in 1..=full {
        step(&mut replica, ReplicaEvent::Append(append(session, 1)));
    }
    step(&mut replica, ReplicaEvent::Append(append(1, 2)));
    assert_eq!(replica.log().sessions().len(), SESSIONS_PER_GROUP_MAX);
    // Session 2 is now the oldest; its batch is at index 2.
    let mut newcomer = append(full + 1, 1);
    newcomer.floor_index = 1_000_000;
    step(&mut replica, ReplicaEvent::Append(newcomer));
    assert_eq!(replica.log().sessions().len(), SESSIONS_PER_GROUP_MAX);

    let mut retry = append(2, 1);
    retry.floor_index = 1;
    let commands = step(&mut replica, ReplicaEvent::Append(retry.clone()));
    assert_eq!(
        refusals(&commands),
        [(1, Code::SessionExpired)],
        "it may have been ordered at 2"
    );
    retry.seq = 2;
    assert_eq!(
        refusals(&step(&mut replica, ReplicaEvent::Append(retry))),
        [(2, Code::SessionExpired)]
    );

    let mut new = append(full + 2, 1);
    new.floor_index = 2;
    assert_eq!(
        acks(&step(&mut replica, ReplicaEvent::Append(new))).len(),
        1,
        "forgotten sessions lie before its floor"
    );
    assert_eq!(
        acks(&step(&mut replica, ReplicaEvent::Append(append(1, 2)))).len(),
        1,
        "session 1 was used since"
    );
}

#[test]
fn the_table_travels_in_a_base() {
    let log = log_of([(1, 1), (2, 1), (1, 2), (3, 1), (1, 3)]);
    let mut base = Base::default();
    for index in 1..=4 {
        base.apply(log.header(index).expect("held"));
    }
    let bytes = base.encode();
    assert_eq!(Base::decode(&bytes), Some(base.clone()));
    assert_eq!(
        base.encode(),
        bytes,
        "the encoding does not depend on a hash map's order"
    );
    for cut in 0..bytes.len() {
        assert_eq!(Base::decode(&bytes[..cut]), None, "cut to {cut} bytes");
    }
    let mut carried = Log::new(Base::decode(&bytes).expect("whole"));
    carried.push(batch_after(log.header(4), 1, 1, 3, 20));
    assert_eq!(carried.sessions(), log.sessions());
    assert_eq!((base.index, base.end_offset), (4, 8));
}

#[test]
fn absurd_counts_in_a_base_are_not_believed() {
    let mut bytes = Base::default().encode().to_vec();
    let at = bytes.len() - 4;
    bytes[at..].copy_from_slice(&u32::MAX.to_le_bytes());
    assert_eq!(Base::decode(&bytes), None);
}

#[test]
fn the_table_is_a_function_of_the_log() {
    let mut log = log_of([(1, 1), (2, 1), (1, 2)]);
    let before: Sessions = log.sessions().clone();
    let last = log.header(3).copied();
    log.push(batch_after(last.as_ref(), 1, 2, 2, 20));
    log.push(batch_after(log.header(4).copied().as_ref(), 1, 9, 1, 20));
    assert_ne!(log.sessions(), &before);
    log.truncate(3);
    assert_eq!(log.sessions(), &before);
}

#[test]
fn a_full_table_stays_within_its_bound() {
    let mut sessions = Sessions::default();
    let mut index = 0;
    for session in 1..=SESSIONS_PER_GROUP_MAX as u64 + 200 {
        for seq in 1..=u64::from(SESSION_WINDOW_BATCHES) + 3 {
            index += 1;
            let mut header = batch_after(None, 1, session, seq, 20).header;
            header.index = index;
            sessions.apply(&header);
        }
    }
    assert_eq!(sessions.len(), SESSIONS_PER_GROUP_MAX);
    let base = Base {
        sessions,
        ..Base::default()
    };
    // 20 bytes a batch, 28 a session: the cost of a base in the journal and on a link.
    let most = SESSIONS_PER_GROUP_MAX * (28 + 20 * SESSION_WINDOW_BATCHES as usize) + 100;
    assert!(
        base.encode().len() <= most && most < 5_300_000,
        "{}",
        base.encode().len()
    );
}
