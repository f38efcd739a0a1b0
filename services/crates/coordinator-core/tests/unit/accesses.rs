//! The access to groups: what their clients may use. No sleeping.

use crate::world::{World, configures, group};
use quorate_coordinator_core::command::{Command, Effect, Reply};
use quorate_coordinator_core::state::EventKind;
use quorate_coordinator_core::state::GroupStatus::{Active, Lost, Paused};
use quorate_types::Access::{self, Full, Reserved, Suspended};
use quorate_types::Durability::{InMemory, Persistent};

fn set(world: &mut World, access: Access) -> Vec<Effect> {
    world.apply(Command::SetAccess {
        group_id: group(1),
        access,
    })
}

fn reply(effects: &[Effect]) -> Reply {
    let reply = effects.iter().find_map(|effect| match effect {
        Effect::Reply(reply) => Some(reply.clone()),
        _ => None,
    });
    reply.expect("a reply")
}

fn told(world: &World) -> usize {
    let kinds = world.kinds();
    kinds
        .iter()
        .filter(|kind| **kind == EventKind::GroupAccess)
        .count()
}

#[test]
fn another_access_is_an_epoch_with_the_same_chain() {
    let mut world = World::new(4);
    world.active(1, Persistent, 3);
    let (chain, _, epoch, _) = world.shape(1);
    let effects = set(&mut world, Suspended);
    assert_eq!(reply(&effects), Reply::Done);
    assert_eq!(world.shape(1), (chain.clone(), None, epoch + 1, Active));
    let configs = configures(&effects);
    assert_eq!(configs.iter().map(|(n, _)| *n).collect::<Vec<_>>(), chain);
    assert!(configs.iter().all(|(_, config)| config.access == Suspended));
    assert_eq!(told(&world), 1);
}

#[test]
fn a_repetition_changes_nothing() {
    let mut world = World::new(3);
    world.active(1, InMemory, 3);
    set(&mut world, Reserved);
    let (_, _, epoch, _) = world.shape(1);
    let effects = set(&mut world, Reserved);
    assert_eq!(reply(&effects), Reply::Done);
    assert!(configures(&effects).is_empty());
    assert_eq!((world.shape(1).2, told(&world)), (epoch, 1));
    set(&mut world, Full);
    assert_eq!((world.shape(1).2, told(&world)), (epoch + 1, 2));
}

#[test]
fn a_suspended_group_stays_so_when_its_members_change() {
    let mut world = World::new(4);
    world.active(1, Persistent, 3);
    set(&mut world, Suspended);
    let (chain, ..) = world.shape(1);
    let effects = world.fail(&chain[..1]);
    let configs = configures(&effects);
    assert!(!configs.is_empty() && configs.iter().all(|(_, config)| config.access == Suspended));
}

#[test]
fn unknown_and_deleted_groups_are_named() {
    let mut world = World::new(3);
    assert_eq!(reply(&set(&mut world, Suspended)), Reply::Unknown);
    world.active(1, Persistent, 3);
    world.apply(Command::Delete { group_id: group(1) });
    match reply(&set(&mut world, Suspended)) {
        Reply::Conflict { code, .. } => assert_eq!(code, "group_deleted"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_group_that_takes_no_requests_has_the_access_in_its_next_epoch() {
    let mut world = World::new(3);
    world.active(1, InMemory, 3);
    let (chain, ..) = world.shape(1);
    world.fail(&chain);
    assert!(matches!(world.shape(1).3, Lost | Paused));
    let before = world.shape(1).2;
    assert_eq!(reply(&set(&mut world, Suspended)), Reply::Done);
    assert_eq!(world.group(1).access, Suspended);
    assert!(world.shape(1).2 >= before);
}
