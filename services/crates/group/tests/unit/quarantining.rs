//! A replica that an assertion stopped: what is given back, what ends its quarantine, what is reported.

use bytes::Bytes;
use quorate_group::{Absence, CopierId, Event, Quarantines, Release, Standing};
use quorate_types::config::Beginning;
use quorate_types::limits::{QUARANTINE_REASON_CHARS_MAX, REPAIRS_PER_SHARD_MAX};
use quorate_types::{Durability, Epoch, GroupConfig};
use quorate_wire::client::Message;

use crate::rig::{CLIENT, GROUP, ME, OTHER, Rig, append, config};

fn reset_in(epoch: Epoch, reset: Epoch) -> GroupConfig {
    GroupConfig {
        beginning: Some(Beginning {
            epoch: reset,
            offset: 1 << 40,
            entries_before: 0,
            bytes_before: 0,
        }),
        ..config(epoch, &[ME])
    }
}

/// A group of epoch 2, and its quarantine.
fn quarantined() -> (Rig, Quarantines) {
    let mut rig = Rig::new(config(2, &[ME]));
    let mut quarantines = Quarantines::default();
    quarantines.begin(&mut rig.group, "it is wrong", &mut rig.turn);
    (rig, quarantines)
}

#[test]
fn its_part_of_the_pool_is_given_back() {
    let mut rig = Rig::new(GroupConfig {
        durability: Durability::Persistent,
        retention_bytes: 1,
        ..config(2, &[ME])
    });
    rig.turn.is_unmetered = true;
    let mut payload = (1u32 << 20).to_le_bytes().to_vec();
    payload.resize(4 + (1 << 20), 0);
    let payload = Bytes::from(payload);
    for seq in 1..=8 {
        rig.ask(CLIENT, Message::Append(append(seq, payload.clone())));
        rig.flush();
    }
    assert!(rig.turn.pool.used_bytes() > 0);
    Quarantines::default().begin(&mut rig.group, "", &mut rig.turn);
    assert_eq!(rig.turn.pool.used_bytes(), 0);
    Quarantines::default().begin(&mut rig.group, "", &mut rig.turn);
    assert_eq!(rig.turn.pool.used_bytes(), 0, "once");
}

#[test]
fn its_places_for_repairs_are_given_back() {
    let mut rig = Rig::new(GroupConfig {
        durability: Durability::Persistent,
        ..config(2, &[ME])
    });
    rig.turn.is_unmetered = true;
    rig.group.keep_recent(0);
    rig.append(REPAIRS_PER_SHARD_MAX as u64);
    let epoch = rig.group.replica().epoch();
    let index = REPAIRS_PER_SHARD_MAX as u64;
    rig.replica_event(quorate_chain::ReplicaEvent::Persisted { index, epoch });
    rig.flush();
    rig.step(Event::Configure(Box::new(GroupConfig {
        durability: Durability::Persistent,
        ..config(3, &[ME, OTHER])
    })));
    rig.out.clear();
    let damaged = (1..=index).map(|index| (index, Some(CopierId(index))));
    rig.step(Event::Damaged(damaged.collect()));
    assert!(!rig.turn.may_begin_repair(), "all are asked for");
    Quarantines::default().begin(&mut rig.group, "", &mut rig.turn);
    assert!(rig.turn.may_begin_repair());
}

#[test]
fn it_is_listed_with_its_epoch_and_the_assertion() {
    let mut rig = Rig::new(config(2, &[ME]));
    let mut quarantines = Quarantines::default();
    let long = "é".repeat(QUARANTINE_REASON_CHARS_MAX + 1);
    let released = quarantines.begin(&mut rig.group, &long, &mut rig.turn);
    let listed: Vec<_> = quarantines.reports().collect();
    assert_eq!((listed.len(), quarantines.len()), (1, 1));
    assert_eq!((listed[0].group_id, listed[0].epoch), (GROUP, 2));
    assert_eq!(listed[0].reason.chars().count(), QUARANTINE_REASON_CHARS_MAX);
    assert_eq!(released[3], Release::Listed(listed[0].clone()));
    assert_eq!(quarantines.epoch_of(GROUP), Some(2));
    assert!(quarantines.end(GROUP));
    assert!(!quarantines.end(GROUP));
    assert!(quarantines.is_empty());
}

#[test]
fn no_configuration_ends_it_but_one_of_a_later_reset() {
    let (_, mut quarantines) = quarantined();
    for stays in [config(2, &[ME]), config(9, &[ME]), reset_in(9, 2)] {
        assert_eq!(quarantines.configure(&stays), Standing::Stays, "{stays:?}");
    }
    assert_eq!(quarantines.configure(&reset_in(9, 3)), Standing::Ended);
    assert_eq!(quarantines.configure(&reset_in(9, 3)), Standing::Free);
}

#[test]
fn clients_hear_of_a_whole_quarantine_until_a_later_epoch() {
    let (_, mut quarantines) = quarantined();
    assert_eq!(quarantines.absence_of(GROUP, false), Absence::NotHere);
    assert!(quarantines.be_whole(GROUP, 3));
    assert_eq!(quarantines.configure(&config(3, &[ME])), Standing::Stays);
    assert_eq!(quarantines.absence_of(GROUP, true), Absence::Quarantined);
    assert_eq!(quarantines.configure(&config(4, &[ME])), Standing::Stays);
    assert_eq!(quarantines.absence_of(GROUP, true), Absence::Lost);
    quarantines.end(GROUP);
    assert!(!quarantines.be_whole(GROUP, 5));
}
