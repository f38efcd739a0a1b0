//! Resizes: a group's SLA is changed where the group is. No sleeping.

use crate::world::{World, configures, conflict, group, reply, server, sla};
use quorate_coordinator_core::command::{Command, Effect, Reply};
use quorate_coordinator_core::state::EventKind;
use quorate_coordinator_core::state::GroupStatus::{Active, Degraded, Paused};
use quorate_coordinator_core::state::apply;
use quorate_types::Durability::{InMemory, Persistent};
use quorate_types::Sla;
use quorate_types::sla::{Refusal, RefusalReason, ScarceResource};

fn resize(world: &mut World, sla: Sla, revision: u64) -> Vec<Effect> {
    world.apply(Command::Resize {
        group_id: group(1),
        sla,
        revision,
    })
}

fn refusal(effects: &[Effect]) -> Refusal {
    match reply(effects) {
        Reply::Refused(refusal) => refusal,
        other => panic!("not refused: {other:?}"),
    }
}

/// The largest rate that group 1 could have.
fn most(world: &mut World) -> u64 {
    let asked = sla(Persistent, 3, 90_000_000);
    let quote = world.state.quote(&asked, Some(group(1)), None);
    let refusal = quote.refusal.expect("nobody has that much");
    refusal.largest_sla_that_fits.expect("something fits").rate_per_s
}

#[test]
fn a_group_is_resized_in_a_new_epoch_with_the_same_chain_and_another_budget() {
    let mut world = World::new(4);
    world.active(1, Persistent, 3);
    let (chain, _, epoch, _) = world.shape(1);
    let charged = world.state.allocated_on(server(chain[0]));
    let effects = resize(&mut world, sla(Persistent, 3, 3_000), 2);
    assert_eq!(reply(&effects), Reply::Done);
    assert_eq!(world.shape(1), (chain.clone(), None, epoch + 1, Active));
    let configs = configures(&effects);
    assert_eq!(configs.iter().map(|(n, _)| *n).collect::<Vec<_>>(), chain);
    for (_, config) in configs {
        assert_eq!((config.epoch, config.budget.rate_per_s), (epoch + 1, 3_000));
    }
    let more = world.state.allocated_on(server(chain[0]));
    assert!(
        charged.fits(more) && charged != more,
        "{more:?} after {charged:?}"
    );
    assert_eq!(world.group(1).sla_revision, 2);
    assert_eq!(world.group(1).sla_since_ms, Some(world.now_ms));
    assert_eq!(
        world
            .kinds()
            .iter()
            .filter(|k| **k == EventKind::GroupResized)
            .count(),
        1
    );

    assert_eq!(
        reply(&resize(&mut world, sla(Persistent, 3, 1_000), 3)),
        Reply::Done
    );
    assert_eq!(world.state.allocated_on(server(chain[0])), charged);
}

#[test]
fn a_repetition_changes_nothing_and_a_late_one_nothing_back() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    resize(&mut world, sla(Persistent, 3, 2_000), 2);
    let shape = world.shape(1);
    assert_eq!(
        resize(&mut world, sla(Persistent, 3, 2_000), 2),
        [Effect::Reply(Reply::Done)]
    );
    assert_eq!(world.shape(1), shape);
    resize(&mut world, sla(Persistent, 3, 4_000), 3);
    assert_eq!(
        conflict(&resize(&mut world, sla(Persistent, 3, 2_000), 2)),
        "sla_revision"
    );
    assert_eq!(
        conflict(&resize(&mut world, sla(Persistent, 3, 5_000), 3)),
        "sla_revision"
    );
    assert_eq!(
        conflict(&resize(&mut world, sla(Persistent, 3, 5_000), 9)),
        "sla_revision"
    );
    assert_eq!(world.group(1).sla.rate_per_s, 4_000);
}

#[test]
fn an_sla_that_does_not_fit_is_refused_with_the_scarce_resource_and_nothing_changes() {
    let mut world = World::new(4);
    world.active(1, Persistent, 3);
    world.active(2, Persistent, 3);
    let most = most(&mut world);
    assert!(most > 1_000, "there is room to grow: {most}");
    let before = world.group(1).clone();
    let refused = refusal(&resize(&mut world, sla(Persistent, 3, most + 1), 2));
    assert_eq!(refused.reason, RefusalReason::InsufficientCapacity);
    assert!(
        refused.message.contains("The server of the head lacks"),
        "{}",
        refused.message
    );
    assert_eq!(
        refused.largest_sla_that_fits.map(|sla| sla.rate_per_s),
        Some(most)
    );
    assert_eq!(world.group(1), &before);
    // The quote agrees, and an SLA that it calls admissible is.
    assert!(
        !world
            .state
            .quote(&sla(Persistent, 3, most + 1), Some(group(1)), None)
            .admissible
    );
    assert!(
        world
            .state
            .quote(&sla(Persistent, 3, most), Some(group(1)), None)
            .admissible
    );
    assert_eq!(
        reply(&resize(&mut world, sla(Persistent, 3, most), 2)),
        Reply::Done
    );
    // Without the group's own share there would be no room.
    assert!(
        !world
            .state
            .quote(&sla(Persistent, 3, most), None, None)
            .admissible
    );
}

#[test]
fn a_group_grows_where_it_is_although_others_have_room() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    world.active(2, Persistent, 3);
    for n in 4..=6 {
        world.join(n, "i1").expect("joins");
    }
    let most = most(&mut world);
    let asked = sla(Persistent, 3, most + 1);
    assert!(
        world.state.quote(&asked, None, None).admissible,
        "the new servers have room"
    );
    assert!(matches!(reply(&resize(&mut world, asked, 2)), Reply::Refused(_)));
}

#[test]
fn shrinking_is_never_refused_also_where_a_follower_became_head() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    let most = most(&mut world);
    resize(&mut world, sla(Persistent, 3, most), 2);
    let head = world.shape(1).0[0];
    world.fail(&[head]);
    assert_eq!(world.shape(1).3, Degraded);
    assert_eq!(
        reply(&resize(&mut world, sla(Persistent, 3, most - 1), 3)),
        Reply::Done
    );
    let refused = refusal(&resize(&mut world, sla(Persistent, 3, most), 4));
    assert_eq!(refused.scarce_resource, ScarceResource::Servers);
    assert_eq!(refused.reason, RefusalReason::TooFewServers);
}

#[test]
fn a_learner_on_its_way_is_charged_the_new_share_too() {
    let mut world = World::new(4);
    world.active(1, Persistent, 3);
    let tail = world.shape(1).0[2];
    world.apply(Command::Drain { server: server(tail) });
    let (_, learner, epoch, _) = world.shape(1);
    let learner = learner.expect("somebody learns");
    assert_eq!(
        reply(&resize(&mut world, sla(Persistent, 3, 5_000), 2)),
        Reply::Done
    );
    assert_eq!(world.shape(1).1, Some(learner), "the move goes on");
    assert_eq!(
        world.state.allocated_on(server(learner)),
        world.group(1).demands.tail()
    );
    // The tail's report of the epoch before does not count in this one.
    world.caught_up(1, epoch);
    assert_eq!(world.shape(1).1, Some(learner));
    world.caught_up(1, epoch + 1);
    assert_eq!(world.shape(1).0[2], learner);
}

#[test]
fn changes_that_need_another_place_are_refused() {
    let mut world = World::new(4);
    world.active(1, Persistent, 3);
    for other in [
        sla(InMemory, 3, 1_000),
        sla(Persistent, 2, 1_000),
        Sla {
            region: "mars".into(),
            ..sla(Persistent, 3, 1_000)
        },
    ] {
        assert_eq!(conflict(&resize(&mut world, other, 2)), "not_in_place");
    }
    let invalid = Sla {
        min_replicas: Some(4),
        ..sla(Persistent, 3, 1_000)
    };
    assert_eq!(conflict(&resize(&mut world, invalid, 2)), "invalid_sla");
    world.delete(1);
    assert_eq!(
        conflict(&resize(&mut world, sla(Persistent, 3, 2_000), 2)),
        "group_deleted"
    );
    let mut empty = World::new(1);
    assert_eq!(
        reply(&resize(&mut empty, sla(Persistent, 1, 1), 2)),
        Reply::Unknown
    );
}

#[test]
fn a_lost_group_is_reset_before_it_grows() {
    let mut world = World::new(3);
    world.active(1, InMemory, 3);
    world.fail(&[1, 2, 3]);
    assert_eq!(
        conflict(&resize(&mut world, sla(InMemory, 3, 2_000), 2)),
        "group_lost"
    );
}

#[test]
fn min_replicas_counts_from_the_resize_on() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    world.fail(&[world.shape(1).0[2]]);
    assert_eq!(world.shape(1).3, Degraded);
    let all = Sla {
        min_replicas: Some(3),
        ..sla(Persistent, 3, 1_000)
    };
    assert_eq!(reply(&resize(&mut world, all, 2)), Reply::Done);
    assert_eq!(world.shape(1).3, Paused);
    assert_eq!(
        reply(&resize(&mut world, sla(Persistent, 3, 1_000), 3)),
        Reply::Done
    );
    assert_eq!(world.shape(1).3, Degraded);
}

#[test]
fn what_it_frees_others_get() {
    let mut world = World::new(4);
    world.active(1, Persistent, 3);
    let most = most(&mut world);
    resize(&mut world, sla(Persistent, 3, most), 2);
    let outside = (1..=4).find(|n| !world.shape(1).0.contains(n)).expect("one");
    world.admit(2, sla(Persistent, 1, 1_000));
    world.apply_all(2);
    assert_eq!(world.shape(2).0, [outside]);
    world.apply(Command::Drain {
        server: server(outside),
    });
    assert_eq!(world.shape(2).1, None, "nobody else has room");
    resize(&mut world, sla(Persistent, 3, 1_000), 3);
    assert!(world.shape(2).1.is_some(), "the replica that waited moves");
}

#[test]
fn a_restart_remembers_it() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    resize(&mut world, sla(Persistent, 3, 2_500), 2);
    let snapshot = serde_json::to_value(&world.state).expect("serialises");
    let mut back: quorate_coordinator_core::state::CoordinatorState =
        serde_json::from_value(snapshot).expect("reads");
    back.restore();
    assert_eq!(back.groups, world.state.groups);
    back.validate().expect("valid");

    let mut replayed = World::new(0).state;
    for (now_ms, command) in &world.history {
        apply(&mut replayed, *now_ms, command);
    }
    assert_eq!(replayed.groups, world.state.groups);
}
