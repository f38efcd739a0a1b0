//! Replicas that an assertion stopped. One is replaced; the second stops the group, and an operator releases it.

use crate::world::{World, configures, drops, group, held, server};
use quorate_coordinator_core::command::{Command, Effect, Reply};
use quorate_coordinator_core::state::EventKind;
use quorate_coordinator_core::state::GroupStatus::{Active, Degraded, Lost, Paused};
use quorate_types::Durability::{InMemory, Persistent};
use quorate_types::control::ToServer;
use quorate_types::limits::QUARANTINES_REMEMBERED_MS;

fn quarantined(world: &mut World, n: u32) -> Vec<Effect> {
    world.apply(Command::Quarantined {
        server: server(n),
        group_id: group(1),
        reason: "an index ran ahead".into(),
    })
}

fn release(world: &mut World) -> Vec<Effect> {
    world.apply(Command::Release { group_id: group(1) })
}

/// Servers that are told that the whole group is in quarantine.
fn told(effects: &[Effect]) -> Vec<u32> {
    let whole = |effect: &Effect| match effect {
        Effect::Send {
            server,
            message: ToServer::Quarantined { .. },
        } => Some(server.0),
        _ => None,
    };
    effects.iter().filter_map(whole).collect()
}

#[test]
fn a_quarantined_replica_is_replaced_and_keeps_its_data_until_the_group_is_whole() {
    let mut world = World::new(5);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    let effects = quarantined(&mut world, chain[0]);
    let (after, learner, epoch, status) = world.shape(1);
    assert_eq!((&after[..], epoch, status), (&chain[1..], 2, Degraded));
    let learner = learner.expect("a replacement");
    assert!(!chain.contains(&learner));
    assert_eq!(told(&effects), [0; 0], "the group goes on");
    assert_eq!(drops(&quarantined(&mut world, chain[0])), [], "it is known");
    assert_eq!(world.shape(1).2, 2);
    world.caught_up(1, 2);
    assert_eq!(world.shape(1).3, Active);
    assert!(world.group(1).quarantine.servers.contains(&server(chain[0])));
    world.dropped(chain[0], 1);
    assert!(world.group(1).quarantine.servers.is_empty());
}

#[test]
fn a_server_takes_no_replica_of_a_group_that_it_has_in_quarantine() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    quarantined(&mut world, chain[2]);
    assert_eq!(
        world.shape(1).1,
        None,
        "the only server with room has it in quarantine"
    );
    // Its process is started anew, and has read its log again.
    world.come_back(chain[2], "i2", vec![held(1, Persistent)]);
    assert_eq!(world.shape(1).1, Some(chain[2]));
}

#[test]
fn the_second_quarantine_stops_the_group_until_it_is_released() {
    let mut world = World::new(5);
    world.active(1, InMemory, 3);
    let (chain, ..) = world.shape(1);
    quarantined(&mut world, chain[0]);
    let (after, learner, epoch, _) = world.shape(1);
    let effects = quarantined(&mut world, after[0]);
    assert_eq!(configures(&effects), [], "nobody else is given the poison");
    let mut in_quarantine = [chain[0], after[0]];
    in_quarantine.sort_unstable();
    assert_eq!(told(&effects), in_quarantine);
    assert_eq!(world.shape(1), (after.clone(), learner, epoch, Paused));
    let whole = world.kinds().into_iter();
    assert_eq!(
        whole.filter(|kind| *kind == EventKind::GroupQuarantined).count(),
        3
    );
    world.join(6, "i1").unwrap();
    assert_eq!(world.shape(1).2, epoch, "no server that comes is given a replica");

    let effects = release(&mut world);
    assert!(effects.contains(&Effect::Reply(Reply::Done)));
    let (released, ..) = world.shape(1);
    assert_eq!(released, after[1..], "the sound replicas go on");
    assert_eq!(world.group(1).quarantine.since_ms(), None);
    assert_eq!(
        configures(&release(&mut world)),
        [],
        "a repetition changes nothing"
    );
}

#[test]
fn quarantines_far_apart_do_not_add_up() {
    let mut world = World::new(6);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    quarantined(&mut world, chain[0]);
    world.caught_up(1, 2);
    world.now_ms += QUARANTINES_REMEMBERED_MS;
    let (after, ..) = world.shape(1);
    quarantined(&mut world, after[0]);
    assert_eq!(world.shape(1).3, Degraded);
    assert_eq!(world.group(1).quarantine.since_ms(), None);
}

#[test]
fn the_last_replica_stays_where_its_data_is() {
    let mut world = World::new(3);
    world.active(1, Persistent, 1);
    let (chain, ..) = world.shape(1);
    let effects = quarantined(&mut world, chain[0]);
    assert_eq!(told(&effects), chain);
    assert_eq!((world.shape(1).0, world.shape(1).3), (chain.clone(), Paused));
    let refused = release(&mut world);
    let restart = |effect: &Effect| {
        matches!(
            effect,
            Effect::Reply(Reply::Conflict {
                code: "restart_needed",
                ..
            })
        )
    };
    assert!(refused.iter().any(restart), "{refused:?}");
    world.come_back(chain[0], "i2", vec![held(1, Persistent)]);
    assert_eq!(world.shape(1).3, Paused, "an operator decides");
    assert!(release(&mut world).contains(&Effect::Reply(Reply::Done)));
    assert_eq!((world.shape(1).0, world.shape(1).3), (chain, Active));
}

#[test]
fn what_only_memory_held_is_lost_at_the_release() {
    let mut world = World::new(3);
    world.active(1, InMemory, 1);
    let (chain, ..) = world.shape(1);
    quarantined(&mut world, chain[0]);
    assert_eq!(world.shape(1).3, Paused);
    assert!(release(&mut world).contains(&Effect::Reply(Reply::Done)));
    assert_eq!(world.shape(1).3, Lost);
}
