//! Replicas leave servers that drain or are slow, and one server of an unreachable pair. No sleeping.

use crate::world::{World, configures, drops, group, held, registration, server, sla};
use quorate_coordinator_core::command::{
    Command, Effect, PlacementPolicy, Proof, Registration, Relief, Replacements, Reply,
};
use quorate_coordinator_core::state::EventKind;
use quorate_coordinator_core::state::GroupStatus::{Active, Degraded};
use quorate_coordinator_core::view::ServerView;
use quorate_types::Durability::{InMemory, Persistent};
use quorate_types::Sla;
use quorate_types::control::{DrainState, ToServer};
use quorate_types::cost::ResourceVector;
use quorate_types::limits::DRAIN_MOVES_MAX;
use quorate_types::sla::ScarceResource;

fn drain(world: &mut World, n: u32) -> Vec<Effect> {
    let effects = world.apply(Command::Drain { server: server(n) });
    assert_eq!(effects[0], Effect::Reply(Reply::Done));
    effects
}

fn leaving(world: &World, n: u32) -> usize {
    world
        .state
        .groups
        .values()
        .filter(|g| g.leaving == Some(server(n)))
        .count()
}

fn state_of(world: &World, n: u32) -> DrainState {
    world.state.servers[&server(n)].drain_state()
}

/// All learners join, one after the other, and dropped data is confirmed, until nothing moves. No group is ever
/// below its degree.
fn let_all_move(world: &mut World) {
    for round in 0.. {
        assert!(round < 500, "it never comes to rest");
        let learning = world.state.groups.values().find_map(|g| {
            let learner = g.learner?;
            Some((g.group_id, g.epoch, *g.chain.last().unwrap(), learner))
        });
        let Some((group_id, epoch, from, learner)) = learning else {
            break;
        };
        world.apply(Command::LearnerCaughtUp {
            server: from,
            group_id,
            epoch,
            learner,
        });
        for known in world.state.groups.values() {
            assert!(known.chain.len() == known.degree() || known.status != Active);
        }
    }
    for (id, known) in (*world.state.servers).clone() {
        for group_id in known.to_drop.into_keys() {
            world.apply(Command::Dropped { server: id, group_id });
        }
    }
}

#[test]
fn the_replica_leaves_in_the_epoch_in_which_its_replacement_joins() {
    for durability in [InMemory, Persistent] {
        for position in 0..3 {
            let mut world = World::new(5);
            world.active(1, durability, 3);
            let (chain, _, epoch, _) = world.shape(1);
            let effects = drain(&mut world, chain[position]);
            let (same, learner, next, status) = world.shape(1);
            assert_eq!((&same, next, status), (&chain, epoch + 1, Active));
            let learner = learner.expect("two servers are free");
            assert!(!chain.contains(&learner));
            assert_eq!(configures(&effects).len(), 4);
            assert!(drops(&effects).is_empty());
            assert!(effects.contains(&Effect::Send {
                server: server(chain[position]),
                message: ToServer::Drain {
                    state: DrainState::Draining
                }
            }));
            let effects = world.caught_up(1, next);
            let mut rest = chain.clone();
            rest.remove(position);
            rest.push(learner);
            assert_eq!(world.shape(1), (rest.clone(), None, 3, Active));
            // The server that left gets the configuration, so that it names the new head, and then the drop.
            let gone = chain[position];
            let configured: Vec<u32> = configures(&effects).into_iter().map(|(s, _)| s).collect();
            assert_eq!(configured, [rest[0], rest[1], rest[2], gone]);
            assert_eq!(drops(&effects), [(gone, group(1), 3)]);
            assert_eq!(state_of(&world, gone), DrainState::Draining);
            let effects = world.apply(Command::Dropped {
                server: server(gone),
                group_id: group(1),
            });
            assert_eq!(
                effects,
                [Effect::Send {
                    server: server(gone),
                    message: ToServer::Drain {
                        state: DrainState::Drained
                    }
                }]
            );
            // Its stop is no failure now, and it stays drained when it is started again.
            world.fail(&[gone]);
            assert_eq!(world.kinds().last(), Some(&EventKind::ServerStopped));
            assert!(!world.kinds().contains(&EventKind::ServerFailed));
            world.come_back(gone, "i2", vec![]);
            assert_eq!(state_of(&world, gone), DrainState::Drained);
            world.active(2, durability, 3);
            assert!(!world.shape(2).0.contains(&gone));
        }
    }
}

#[test]
fn a_few_at_a_time_until_the_server_is_drained() {
    let mut world = World::new(6);
    for n in 1..=20 {
        world.active(n, InMemory, 3);
    }
    let full = ServerView::of(&world.state, &world.state.servers[&server(1)]).replicas;
    assert!(full > DRAIN_MOVES_MAX);
    drain(&mut world, 1);
    assert_eq!(leaving(&world, 1), DRAIN_MOVES_MAX);
    let view = ServerView::of(&world.state, &world.state.servers[&server(1)]);
    let progress = view.drain.expect("it drains");
    assert_eq!(
        (progress.moving, progress.waiting),
        (DRAIN_MOVES_MAX, full - DRAIN_MOVES_MAX)
    );
    // A repetition changes nothing.
    let before = world.state.epoch_changes;
    drain(&mut world, 1);
    assert_eq!(world.state.epoch_changes, before);
    let_all_move(&mut world);
    assert_eq!(state_of(&world, 1), DrainState::Drained);
    let view = ServerView::of(&world.state, &world.state.servers[&server(1)]);
    assert_eq!((view.replicas, view.draining), (0, true));
    assert_eq!(
        world.state.allocated_on(server(1)),
        quorate_placement::Amounts::ZERO
    );
}

#[test]
fn without_room_it_says_what_is_scarce_and_goes_on_when_there_is() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    drain(&mut world, 2);
    let scarce = |world: &World| world.state.servers[&server(2)].drain.as_ref().unwrap().scarce;
    assert_eq!(scarce(&world), Some(ScarceResource::Servers));
    assert_eq!(world.kinds().last(), Some(&EventKind::ServerDrainWaiting));
    world.join(4, "i1").unwrap();
    assert_eq!((leaving(&world, 2), scarce(&world)), (1, None));
    let_all_move(&mut world);
    assert_eq!(state_of(&world, 2), DrainState::Drained);
    // A fourth server that has no CPU left.
    let mut world = World::new(4);
    world.active(1, InMemory, 3);
    let (chain, ..) = world.shape(1);
    let free = (1..=4).find(|s| !chain.contains(s)).unwrap();
    for n in 2..9 {
        world.admit(n, sla(InMemory, 1, 500_000));
    }
    let big: Vec<u128> = (2..9)
        .filter(|n| {
            world
                .state
                .groups
                .get(&group(*n))
                .is_some_and(|g| g.chain == [server(free)])
        })
        .collect();
    world.admit(20, sla(InMemory, 4, 150_000));
    drain(&mut world, chain[0]);
    if leaving(&world, chain[0]) == 0 {
        let waits = world.state.servers[&server(chain[0])].drain.as_ref().unwrap();
        assert_eq!(waits.scarce, Some(ScarceResource::Cpu));
    }
    for n in big {
        world.delete(n);
        world.dropped(free, n);
    }
    assert!(leaving(&world, chain[0]) > 0, "it goes on by itself");
}

#[test]
fn called_off_what_has_not_moved_stays() {
    let mut world = World::new(5);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    drain(&mut world, chain[0]);
    let learner = world.shape(1).1.unwrap();
    let effects = world.apply(Command::CallOffDrain {
        server: server(chain[0]),
    });
    assert_eq!(world.shape(1), (chain.clone(), None, 3, Active));
    assert_eq!(drops(&effects), [(learner, group(1), 3)]);
    assert_eq!(state_of(&world, chain[0]), DrainState::None);
    let unknown = world.apply(Command::CallOffDrain { server: server(99) });
    assert_eq!(unknown, [Effect::Reply(Reply::Unknown)]);
}

#[test]
fn failures_in_the_middle_of_a_drain() {
    // The learner fails, and another is elected.
    let mut world = World::new(5);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    drain(&mut world, chain[1]);
    let first = world.shape(1).1.unwrap();
    world.fail(&[first]);
    let (same, second, _, status) = world.shape(1);
    assert_eq!((same, status), (chain.clone(), Active));
    assert!(second.is_some_and(|second| second != first));
    let_all_move(&mut world);
    assert!(!world.shape(1).0.contains(&chain[1]));

    // The draining server fails: its learner goes on, as the replacement of a failed one.
    let mut world = World::new(5);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    drain(&mut world, chain[0]);
    let learner = world.shape(1).1;
    world.fail(&[chain[0]]);
    assert_eq!(world.shape(1), (chain[1..].to_vec(), learner, 3, Degraded));
    world.caught_up(1, 3);
    assert_eq!(world.shape(1).3, Active);
    // It returns with its disk: it drops its leftovers, and is drained.
    world.come_back(chain[0], "i2", vec![held(1, Persistent)]);
    world.dropped(chain[0], 1);
    assert_eq!(state_of(&world, chain[0]), DrainState::Drained);

    // Another of the chain fails: the learner first makes the chain whole, then the move begins again.
    let mut world = World::new(6);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    drain(&mut world, chain[0]);
    let learner = world.shape(1).1.unwrap();
    world.fail(&[chain[2]]);
    world.caught_up(1, 3);
    let (whole, next, ..) = world.shape(1);
    assert_eq!(whole, [chain[0], chain[1], learner]);
    assert!(next.is_some());
    let_all_move(&mut world);
    assert_eq!(world.shape(1).0.len(), 3);
    assert!(!world.shape(1).0.contains(&chain[0]));
}

#[test]
fn a_restart_of_the_coordinator_takes_the_drain_up_again() {
    let mut world = World::new(5);
    for n in 1..=8 {
        world.active(n, Persistent, 3);
    }
    drain(&mut world, 3);
    let bytes = serde_json::to_vec(&world.state).unwrap();
    world.state = serde_json::from_slice(&bytes).unwrap();
    world.state.restore();
    assert_eq!(world.state.validate(), Ok(()));
    let_all_move(&mut world);
    assert_eq!(state_of(&world, 3), DrainState::Drained);
}

#[test]
fn several_drains_at_once_never_swap_replicas_among_themselves() {
    let mut world = World::new(8);
    for n in 1..=12 {
        world.active(n, if n % 2 == 0 { Persistent } else { InMemory }, 3);
    }
    for n in [1, 2, 3] {
        drain(&mut world, n);
    }
    let_all_move(&mut world);
    for n in [1, 2, 3] {
        assert_eq!(state_of(&world, n), DrainState::Drained);
    }
    assert!((1..=12).all(|n| world.shape(n).3 == Active));
}

#[test]
fn auxiliary_servers_are_kept_for_failures() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    let terms = quorate_coordinator_core::command::JoinTokenTerms {
        expires_at_ms: world.now_ms + 10_000,
        name: None,
        auxiliary: true,
    };
    world.apply(Command::IssueJoinToken {
        digest: "auxiliary".into(),
        token: terms,
    });
    world.join_with("auxiliary", 4, "i1").unwrap();
    drain(&mut world, 1);
    assert_eq!(leaving(&world, 1), 0);
    world.fail(&[1]);
    assert_eq!(
        world.shape(1).1,
        Some(4),
        "but a failed replica is replaced there"
    );
}

fn slow(world: &mut World, n: u32, cause: Option<&str>) -> Vec<Effect> {
    world.apply(Command::ServerSlow {
        server: server(n),
        cause: cause.map(Into::into),
    })
}

#[test]
fn a_slow_server_leaves_one_group_at_a_time() {
    let mut world = World::new(6);
    for n in 1..=4 {
        world.active(n, InMemory, 3);
    }
    let busy = (1..=6)
        .max_by_key(|s| (1..=4).filter(|n| world.shape(*n).0.contains(s)).count())
        .unwrap();
    let hosts = |world: &World| {
        (1..=4u128)
            .filter(|n| world.shape(*n).0.contains(&busy))
            .collect::<Vec<_>>()
    };
    let mut left = hosts(&world).len();
    assert!(left >= 2);
    slow(&mut world, busy, Some("its disk"));
    while left > 0 {
        left -= 1;
        assert_eq!(hosts(&world).len(), left, "one at a time");
        let group = (1..=4u128).find(|n| world.shape(*n).1.is_some()).unwrap();
        assert_eq!(world.shape(group).3, Degraded);
        assert_ne!(world.shape(group).1, Some(busy));
        let epoch = world.shape(group).2;
        world.caught_up(group, epoch);
    }
    assert!((1..=4).all(|n| world.shape(n).3 == Active));
    slow(&mut world, busy, None);
    assert!(world.state.servers[&server(busy)].takes_replicas());
}

#[test]
fn a_slow_replica_that_cannot_be_spared_learns_its_replacement_first_and_without_one_stays() {
    let mut world = World::new(3);
    let strict = Sla {
        min_replicas: Some(3),
        ..sla(Persistent, 3, 100)
    };
    world.admit(1, strict);
    world.apply_all(1);
    let (chain, ..) = world.shape(1);
    slow(&mut world, chain[1], Some("its link"));
    assert_eq!(world.shape(1), (chain.clone(), None, 1, Active));
    world.join(4, "i1").unwrap();
    assert_eq!(world.shape(1), (chain.clone(), Some(4), 2, Active));
    world.caught_up(1, 2);
    assert_eq!(world.shape(1), (vec![chain[0], chain[2], 4], None, 3, Active));
}

/// Groups whose chains contain the server.
fn chains_with(world: &World, n: u32) -> usize {
    let groups = world.state.groups.values();
    groups.filter(|g| g.chain.contains(&server(n))).count()
}

#[test]
fn a_slow_server_leaves_all_groups_that_can_spare_a_replica_in_one_step() {
    let mut world = World::with_headroom(6);
    for n in 1..=60 {
        world.admit(n, sla(if n % 2 == 0 { InMemory } else { Persistent }, 3, 100));
        world.apply_all(n);
    }
    let before = chains_with(&world, 1);
    assert!(before > 20, "{before}");
    let epochs = world.state.epoch_changes;
    slow(&mut world, 1, Some("its disk"));
    assert_eq!(chains_with(&world, 1), 0);
    assert_eq!(
        world.state.epoch_changes - epochs,
        before as u64,
        "one epoch for each"
    );
    for group in world.state.groups.values() {
        assert!(group.chain.len() >= usize::from(group.sla.min_replicas()));
        assert!(group.chain.len() == 3 || group.learner.is_some_and(|learner| learner != server(1)));
    }
    let_all_move(&mut world);
    assert!(world.state.groups.values().all(|g| g.status == Active));
}

#[test]
fn groups_of_a_slow_server_that_cannot_spare_a_replica_move_a_few_at_a_time() {
    let mut world = World::with_headroom(6);
    let strict = Sla {
        min_replicas: Some(3),
        ..sla(Persistent, 3, 100)
    };
    for n in 1..=20 {
        world.admit(n, strict.clone());
        world.apply_all(n);
    }
    world.active(21, Persistent, 3);
    let busy = (1..=6).max_by_key(|n| chains_with(&world, *n)).unwrap();
    assert!(chains_with(&world, busy) > DRAIN_MOVES_MAX + 1);
    slow(&mut world, busy, Some("its disk"));
    assert_eq!(leaving(&world, busy), DRAIN_MOVES_MAX);
    assert!(
        (1..=20).all(|n| world.shape(n).3 == Active),
        "none falls below its degree"
    );
    assert!(!world.shape(21).0.contains(&busy), "the one that can, spares it");
    let_all_move(&mut world);
    assert_eq!(chains_with(&world, busy), 0);
}

#[test]
fn a_slow_server_stays_where_no_server_has_room_and_the_heaviest_groups_leave_first() {
    let mut world = World::new(3);
    let policy = PlacementPolicy {
        relief: Relief::AtOnce,
        replacements: Replacements::HeaviestFirst,
        ..PlacementPolicy::default()
    };
    world.apply(Command::UsePlacement { policy });
    let (light, heavy) = (sla(InMemory, 3, 10_000), sla(InMemory, 3, 40_000));
    let share = world.state.profile.safety_factor;
    let room = world.state.quote(&heavy, None, None).demand[2].demand.cpu / share;
    for (n, sla) in [(1, light), (2, heavy)] {
        world.admit(n, sla);
        world.apply_all(n);
    }
    slow(&mut world, 1, Some("its disk"));
    assert_eq!(chains_with(&world, 1), 2, "there is no other server");
    world.issue_token("token-4", 60_000, None);
    let proof = Proof::JoinToken {
        digest: "token-4".into(),
        credential_digest: "credential-4".into(),
    };
    world.register(Registration {
        capacity: ResourceVector::new(room * 1.1, 1.25e9, 20_000.0),
        ..registration(proof, 4, "i1")
    });
    assert_eq!(world.shape(2).1, Some(4), "the heavy one leaves");
    assert_eq!((world.shape(1).0.len(), world.shape(1).1), (3, None));
}

fn part(world: &mut World, a: u32, b: u32, unreachable: bool) {
    world.apply(Command::PairUnreachable {
        server: server(a),
        peer: server(b),
        unreachable,
        at_fault: None,
    });
}

#[test]
fn the_server_of_an_unreachable_pair_further_from_the_head_leaves() {
    let mut world = World::new(5);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    part(&mut world, chain[1], chain[0], true);
    let (rest, learner, ..) = world.shape(1);
    assert_eq!(rest, [chain[0], chain[2]]);
    assert!(
        learner.is_some_and(|learner| learner != chain[1]),
        "not the one that it cannot reach"
    );
    // The tail must reach the head, too.
    let mut world = World::new(4);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    part(&mut world, chain[0], chain[2], true);
    assert_eq!(world.shape(1).0, chain[..2]);
}

#[test]
fn a_persistent_groups_head_must_be_reached_by_each_of_its_chain() {
    for (durability, goes) in [(Persistent, true), (InMemory, false)] {
        let mut world = World::new(4);
        world.active(1, durability, 4);
        let (chain, ..) = world.shape(1);
        part(&mut world, chain[2], chain[0], true);
        let mut rest = chain.clone();
        if goes {
            rest.remove(2);
        }
        assert_eq!(world.shape(1).0, rest, "{durability:?}");
    }
}

#[test]
fn a_server_in_several_unreachable_pairs_leaves_rather_than_its_neighbours() {
    let mut world = World::new(6);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    let stranger = (1..=6).find(|s| !chain.contains(s)).unwrap();
    part(&mut world, chain[0], stranger, true);
    part(&mut world, chain[0], chain[1], true);
    assert!(
        !world.shape(1).0.contains(&chain[0]),
        "the head itself is at fault"
    );
}

#[test]
fn a_pair_that_cannot_spare_anybody_waits_for_its_link_or_for_a_replacement() {
    let mut world = World::new(2);
    world.active(1, Persistent, 2);
    let (chain, ..) = world.shape(1);
    part(&mut world, chain[0], chain[1], true);
    assert_eq!(world.shape(1), (chain.clone(), None, 1, Active));
    world.join(3, "i1").unwrap();
    let (rest, learner, ..) = world.shape(1);
    assert_eq!((rest, learner), (vec![chain[0]], Some(3)));
    part(&mut world, chain[0], chain[1], false);
    assert!(world.state.unreachable_pairs.is_empty());
}

#[test]
fn the_one_of_an_unreachable_pair_that_hangs_leaves_wherever_it_stands() {
    for out in [0, 1] {
        let mut world = World::new(5);
        world.active(1, Persistent, 3);
        let (chain, ..) = world.shape(1);
        world.apply(Command::PairUnreachable {
            server: server(chain[0]),
            peer: server(chain[1]),
            unreachable: true,
            at_fault: Some(server(chain[out])),
        });
        assert!(!world.shape(1).0.contains(&chain[out]));
        assert!(world.shape(1).0.contains(&chain[1 - out]));
    }
}
