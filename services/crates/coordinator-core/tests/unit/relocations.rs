//! Replicas move for a larger SLA, or as they are asked to. No sleeping.

use std::collections::BTreeSet;

use crate::world::{World, configures, conflict, group, reply, server, sla};
use quorate_coordinator_core::command::{Cause, Command, Effect, Relocate, Reply};
use quorate_coordinator_core::state::EventKind;
use quorate_coordinator_core::state::GroupStatus::{Active, Degraded};
use quorate_coordinator_core::view::RelocatingView;
use quorate_types::Durability::{InMemory, Persistent};
use quorate_types::Sla;
use quorate_weights::Room;

/// A fleet whose coordinators and servers all know relocations.
fn fleet(servers: u32) -> World {
    let mut world = World::new(servers);
    world.apply(Command::RaiseFleetVersion { to: 2 });
    world
}

fn resize(world: &mut World, n: u128, rate_per_s: u64, revision: u64) -> Vec<Effect> {
    let sla = Sla {
        rate_per_s,
        ..world.group(n).sla.clone()
    };
    world.apply(Command::Resize {
        group_id: group(n),
        sla,
        revision,
    })
}

fn relocate(world: &mut World, n: u128, from: u32, to: Option<u32>) -> Vec<Effect> {
    world.apply(Command::Relocate(Relocate {
        group_id: group(n),
        from: server(from),
        to: to.map(server),
        cause: Cause::Operator,
    }))
}

fn moves(world: &World, n: u128) -> Vec<(u32, u32)> {
    let relocation = world.group(n).relocation.as_ref();
    let moves = relocation.into_iter().flat_map(|one| &one.moves);
    moves.map(|one| (one.from.0, one.to.0)).collect()
}

/// The learner joins, if there is one; the group is never below its degree.
fn let_one_join(world: &mut World, n: u128) -> Vec<Effect> {
    let epoch = world.group(n).epoch;
    let effects = world.caught_up(n, epoch);
    assert_eq!(world.group(n).chain.len(), world.group(n).degree());
    effects
}

/// The largest rate that a group alone could have in its place.
fn most(world: &mut World, n: u128) -> u64 {
    let asked = Sla {
        rate_per_s: 90_000_000,
        ..world.group(n).sla.clone()
    };
    let version = std::mem::replace(&mut world.state.fleet_version, 1);
    let quote = world.state.quote(&asked, Some(group(n)), None);
    world.state.fleet_version = version;
    let refusal = quote.refusal.expect("nobody has that much");
    refusal.largest_sla_that_fits.expect("something fits").rate_per_s
}

/// Three servers are full with two groups, and `others` servers are empty. The rate that group 1 could have in its place.
fn crowded(others: u32) -> (World, u64) {
    let mut world = fleet(3);
    world.active(1, Persistent, 3);
    world.active(2, Persistent, 3);
    let rest = most(&mut world, 2);
    assert_eq!(reply(&resize(&mut world, 2, rest, 2)), Reply::Done);
    let in_place = most(&mut world, 1);
    for n in 4..4 + others {
        assert_eq!(world.join(n, "i1"), Ok(server(n)));
    }
    (world, in_place)
}

#[test]
fn a_group_grows_beyond_the_room_of_its_servers_by_moves() {
    let (mut world, in_place) = crowded(3);
    let (chain, _, epoch, _) = world.shape(1);
    let rate = 7 * in_place;
    let asked = Sla {
        rate_per_s: rate,
        ..world.group(1).sla.clone()
    };
    let quote = world.state.quote(&asked, Some(group(1)), None);
    assert!(quote.admissible && quote.moves > 0, "{quote:?}");
    let effects = resize(&mut world, 1, rate, 2);
    assert_eq!(reply(&effects), Reply::Done);
    let way = moves(&world, 1);
    assert_eq!(way.len(), quote.moves);
    assert!(
        way.iter().all(|(from, to)| chain.contains(from) && *to > 3),
        "{way:?}"
    );
    // The former SLA holds meanwhile, and its servers are charged for the next one already.
    assert_eq!(world.group(1).sla.rate_per_s, 1_000);
    let charged = world.state.allocated_on(server(way[0].1));
    assert_ne!(charged, quorate_placement::Amounts::ZERO);
    for (from, to) in &way {
        let (now, learner, _, status) = world.shape(1);
        assert!(now.contains(from), "{now:?}");
        assert_eq!((learner, status), (Some(*to), Active));
        let_one_join(&mut world, 1);
    }
    let known = world.group(1);
    assert_eq!((known.sla.rate_per_s, known.sla_revision), (rate, 2));
    assert_eq!((known.relocation.clone(), known.learner), (None, None));
    assert!(known.epoch > epoch);
    for (from, to) in way {
        assert!(!known.is_member(server(from)) && known.is_member(server(to)));
    }
    let resized = world
        .kinds()
        .iter()
        .filter(|kind| **kind == EventKind::GroupResized)
        .count();
    assert_eq!(resized, 2, "one of each group");
}

#[test]
fn heads_move_last_and_only_if_they_must() {
    let (mut world, in_place) = crowded(3);
    let chain = world.shape(1).0;
    resize(&mut world, 1, 7 * in_place, 2);
    assert_eq!(moves(&world, 1).last().expect("all move").0, chain[0]);

    // The tail's server alone has no room.
    let mut world = fleet(4);
    world.active(1, Persistent, 3);
    let tail = world.shape(1).0[2];
    world.apply(Command::CapacityEstimated {
        server: server(tail),
        permille: [1_000, 1_000, 200],
    });
    assert_eq!(reply(&resize(&mut world, 1, 5_000, 2)), Reply::Done);
    let only: Vec<u32> = moves(&world, 1).iter().map(|(from, _)| *from).collect();
    assert_eq!(only, [tail]);
}

#[test]
fn older_fleets_resize_in_place_alone() {
    let (mut world, in_place) = crowded(3);
    world.state.fleet_version = 1;
    let effects = resize(&mut world, 1, 2 * in_place, 2);
    assert!(matches!(reply(&effects), Reply::Refused(_)));
    assert_eq!(world.group(1).relocation, None);
}

#[test]
fn a_repetition_changes_nothing_and_the_next_revision_calls_a_resize_off() {
    let (mut world, in_place) = crowded(3);
    let (rate, chain) = (7 * in_place, world.shape(1).0);
    resize(&mut world, 1, rate, 2);
    let (shape, way) = (world.shape(1), moves(&world, 1));
    assert_eq!(resize(&mut world, 1, rate, 2), [Effect::Reply(Reply::Done)]);
    assert_eq!((world.shape(1), moves(&world, 1)), (shape, way));
    assert_eq!(conflict(&resize(&mut world, 1, 1_000, 2)), "sla_revision");
    assert_eq!(reply(&resize(&mut world, 1, 1_000, 3)), Reply::Done);
    assert_eq!(world.group(1).relocation, None);
    assert_eq!(world.group(1).sla_revision, 3);
    // The move that has begun goes on, and is the only one.
    let_one_join(&mut world, 1);
    let (now, learner, ..) = world.shape(1);
    assert_eq!(learner, None);
    assert_eq!(now.iter().filter(|member| !chain.contains(member)).count(), 1);
    assert_eq!(conflict(&resize(&mut world, 1, rate, 2)), "sla_revision");
}

#[test]
fn nobody_takes_the_room_of_moves_that_are_still_to_come() {
    let (mut world, in_place) = crowded(3);
    resize(&mut world, 1, 7 * in_place, 2);
    let way = moves(&world, 1);
    assert!(way.len() > 1, "{way:?}");
    // Another group asks for all that is left, again and again.
    for n in 10..20 {
        let asked = sla(Persistent, 3, 30_000_000);
        let quote = world.state.quote(&asked, None, None);
        if let Some(fits) = quote.refusal.and_then(|refusal| refusal.largest_sla_that_fits) {
            world.admit(n, fits);
        }
    }
    for _ in &way {
        let_one_join(&mut world, 1);
    }
    assert_eq!(world.group(1).sla.rate_per_s, 7 * in_place);
}

#[test]
fn another_way_is_taken_when_a_server_on_the_way_fails() {
    for which in 0..3 {
        let (mut world, in_place) = crowded(4);
        resize(&mut world, 1, 7 * in_place, 2);
        let (from, to) = moves(&world, 1)[0];
        let failed = match which {
            0 => from,
            1 => to,
            _ => *world.shape(1).0.iter().find(|member| **member != from).unwrap(),
        };
        world.fail(&[failed]);
        for _ in 0..12 {
            if world.group(1).learner.is_some() {
                let epoch = world.group(1).epoch;
                world.caught_up(1, epoch);
            }
        }
        let known = world.group(1);
        assert_eq!(known.status, Active);
        assert_eq!(
            known.sla.rate_per_s,
            7 * in_place,
            "server {failed} failed: {known:?}"
        );
        assert!(!known.is_member(server(failed)));
    }
}

#[test]
fn a_resize_waits_for_room_and_goes_on_when_there_is_some() {
    let (mut world, in_place) = crowded(3);
    resize(&mut world, 1, 7 * in_place, 2);
    world.fail(&[4, 5, 6]);
    let known = world.group(1);
    assert!(matches!(known.status, Active | Degraded));
    let relocation = known.relocation.as_ref().expect("it waits");
    assert!(
        relocation.moves.is_empty() && relocation.scarce.is_some(),
        "{relocation:?}"
    );
    assert_eq!(known.sla.rate_per_s, 1_000);
    let shown = RelocatingView::all(&world.state);
    assert_eq!((shown.len(), shown[0].group_id), (1, known.group_id));
    assert!(shown[0].relocation.scarce_resource.is_some());
    let before = world.state.epoch_changes;
    let from = world.shape(1).0[0];
    match reply(&relocate(&mut world, 1, from, None)) {
        Reply::Conflict { code, message } => {
            assert_eq!(code, "group_moving");
            assert!(message.contains("waits for room"), "{message}");
        }
        other => panic!("not a conflict: {other:?}"),
    }
    world.apply_all(1);
    assert_eq!(world.state.epoch_changes, before);
    for n in 7..=9 {
        assert_eq!(world.join(n, "i1"), Ok(server(n)));
    }
    for _ in 0..3 {
        let_one_join(&mut world, 1);
        if world.group(1).relocation.is_none() {
            break;
        }
    }
    assert_eq!(world.group(1).sla.rate_per_s, 7 * in_place);
}

#[test]
fn an_operator_moves_one_replica() {
    for durability in [InMemory, Persistent] {
        for position in 0..3 {
            let mut world = fleet(5);
            world.active(1, durability, 3);
            let (chain, ..) = world.shape(1);
            let spare: Vec<u32> = (1..=5).filter(|n| !chain.contains(n)).collect();
            let (from, to) = (chain[position], spare[1]);
            let effects = relocate(&mut world, 1, from, Some(to));
            assert_eq!(reply(&effects), Reply::Done);
            assert_eq!(configures(&effects).len(), 4);
            assert_eq!(world.shape(1).1, Some(to));
            assert_eq!(
                relocate(&mut world, 1, from, Some(to)),
                [Effect::Reply(Reply::Done)]
            );
            let another = chain[(position + 1) % 3];
            assert_eq!(conflict(&relocate(&mut world, 1, another, None)), "group_moving");
            let_one_join(&mut world, 1);
            let mut rest = chain.clone();
            rest.remove(position);
            rest.push(to);
            assert_eq!(world.shape(1).0, rest);
            assert_eq!(world.group(1).relocation, None);
        }
    }
}

#[test]
fn moves_that_cannot_be_are_refused_and_change_nothing() {
    let (mut world, _) = crowded(0);
    let chain = world.shape(1).0;
    let before = world.state.epoch_changes;
    assert_eq!(conflict(&relocate(&mut world, 1, chain[0], None)), "no_room");
    assert_eq!(conflict(&relocate(&mut world, 1, 9, None)), "no_replica");
    assert_eq!(conflict(&relocate(&mut world, 1, chain[0], Some(9))), "no_server");
    assert_eq!(
        conflict(&relocate(&mut world, 1, chain[0], Some(chain[1]))),
        "no_server"
    );
    assert_eq!(reply(&relocate(&mut world, 7, 1, None)), Reply::Unknown);
    world.join(4, "i1").unwrap();
    world.apply(Command::Drain { server: server(4) });
    assert_eq!(conflict(&relocate(&mut world, 1, chain[0], Some(4))), "no_room");
    assert_eq!(world.state.epoch_changes, before);
}

#[test]
fn a_drain_of_a_server_on_the_way_and_a_resize_both_come_to_their_end() {
    let (mut world, in_place) = crowded(5);
    resize(&mut world, 1, 7 * in_place, 2);
    let (_, to) = moves(&world, 1)[0];
    world.apply(Command::Drain { server: server(to) });
    for _ in 0..12 {
        if world.group(1).learner.is_some() {
            let epoch = world.group(1).epoch;
            world.caught_up(1, epoch);
        }
    }
    let known = world.group(1);
    assert_eq!(
        (known.sla.rate_per_s, known.relocation.clone()),
        (7 * in_place, None)
    );
    assert!(!known.is_member(server(to)));
}

#[test]
fn replicas_leave_a_server_that_can_do_less_than_it_has_promised() {
    let (mut world, _) = crowded(1);
    let chain = world.shape(1).0;
    assert_eq!(world.state.overcharged(), []);
    world.apply(Command::CapacityEstimated {
        server: server(chain[1]),
        permille: [1_000, 1_000, 900],
    });
    let pressures = world.state.overcharged();
    assert_eq!(pressures.len(), 1);
    let mut held = BTreeSet::new();
    let asked = world.state.migrations(&pressures, &Room::default(), &held);
    let [one] = &asked[..] else {
        panic!("one replica is enough: {asked:?}");
    };
    assert_eq!(
        (one.from, one.to, one.cause),
        (server(chain[1]), Some(server(4)), Cause::Capacity)
    );
    held.insert((one.group_id, one.from));
    let others = world.state.migrations(&pressures, &Room::default(), &held);
    assert!(others.iter().all(|other| other.group_id != one.group_id));
    world.apply(Command::Relocate(one.clone()));
    assert_eq!(
        world
            .state
            .migrations(&pressures, &Room::default(), &BTreeSet::new()),
        []
    );
    let n = if one.group_id == group(1) { 1 } else { 2 };
    let_one_join(&mut world, n);
    assert_eq!(world.state.overcharged(), []);
}
