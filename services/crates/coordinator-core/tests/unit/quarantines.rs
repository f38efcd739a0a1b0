//! Replicas that an assertion stopped. One is replaced; the second stops the group, and an operator releases it.

use crate::world::{World, configures, drops, group, held, server, sla};
use quorate_coordinator_core::command::{Command, Effect, Reply};
use quorate_coordinator_core::planner::reports;
use quorate_coordinator_core::state::EventKind;
use quorate_coordinator_core::state::GroupStatus::{Active, Degraded, Lost, Paused};
use quorate_types::Durability;
use quorate_types::Durability::{InMemory, Persistent};
use quorate_types::Sla;
use quorate_types::control::{ToCoordinator, ToServer};
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

/// A group that is quarantined as a whole: its chain, of which the first is in quarantine. It has a learner when it is short.
fn stopped(servers: u32, durability: Durability, degree: u8, is_short: bool) -> (World, Vec<u32>) {
    let mut world = World::new(servers);
    world.active(1, durability, degree);
    let (chain, ..) = world.shape(1);
    quarantined(&mut world, chain[0]);
    if !is_short {
        world.caught_up(1, 2);
    }
    let (after, ..) = world.shape(1);
    quarantined(&mut world, after[0]);
    assert!(world.group(1).quarantine.is_whole());
    (world, after)
}

fn is_refused_for_a_restart(effects: &[Effect]) -> bool {
    let restart = |effect: &Effect| {
        matches!(
            effect,
            Effect::Reply(Reply::Conflict {
                code: "restart_needed",
                ..
            })
        )
    };
    effects.iter().any(restart)
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

/// The others are well, whatever is wrong on that server.
#[test]
fn a_server_that_has_it_again_after_a_restart_does_not_stop_the_group() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    for process in ["i2", "i3", "i4"] {
        quarantined(&mut world, chain[2]);
        assert_eq!(
            (world.shape(1).0, world.shape(1).3),
            (chain[..2].to_vec(), Degraded)
        );
        world.come_back(chain[2], process, vec![held(1, Persistent)]);
        assert_eq!(world.shape(1).1, Some(chain[2]), "it learns");
    }
    quarantined(&mut world, chain[1]);
    assert!(world.group(1).quarantine.is_whole(), "another one has it, too");
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
    assert!(is_refused_for_a_restart(&refused), "{refused:?}");
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

/// The data of a sound member is all there is: a failure of its server does not take it out.
#[test]
fn a_sound_member_stays_while_its_server_is_away_and_a_release_waits_for_it() {
    let (mut world, chain) = stopped(5, InMemory, 3, true);
    let before = world.shape(1);
    world.fail(&[chain[1]]);
    assert_eq!(world.shape(1), before);
    assert!(
        world.state.laggards().is_empty(),
        "it is not failed again and again"
    );
    assert!(release(&mut world).contains(&Effect::Reply(Reply::Done)));
    let (released, .., status) = world.shape(1);
    assert_eq!((&released[..], status), (&chain[1..], Lost));
    world.come_back(chain[1], "i1", vec![]);
    assert_eq!(
        world.shape(1).3,
        Paused,
        "two of three are needed, and the second learns"
    );
    assert!(world.shape(1).1.is_some());
}

#[test]
fn a_release_goes_on_without_servers_that_failed_meanwhile_where_a_sound_one_is_left() {
    for durability in [InMemory, Persistent] {
        let (mut world, chain) = stopped(6, durability, 4, true);
        let before = world.shape(1);
        let learner = before.1.expect("one learns");
        world.fail(&[chain[1], learner]);
        let (same, learning, epoch, _) = world.shape(1);
        assert_eq!((same, learning, epoch), (before.0, before.1, before.2));
        assert!(release(&mut world).contains(&Effect::Reply(Reply::Done)));
        let (released, after, ..) = world.shape(1);
        assert_eq!(released, chain[2..], "{durability:?}");
        assert_ne!(after, Some(learner));
    }
}

/// Its log on the disk of a stopped replica is worth a restart, rather than to wait for a server that may never return.
#[test]
fn a_persistent_group_whose_sound_servers_are_away_is_released_after_a_restart() {
    let (mut world, chain) = stopped(4, Persistent, 2, false);
    world.fail(&[chain[1]]);
    assert_eq!(world.shape(1).0, chain);
    let refused = release(&mut world);
    assert!(is_refused_for_a_restart(&refused), "{refused:?}");
    assert_eq!((world.shape(1).0, world.shape(1).3), (chain.clone(), Paused));
    world.come_back(chain[0], "i2", vec![held(1, Persistent)]);
    assert_eq!(world.shape(1).0.len(), 2, "the other keeps its place");
    assert!(release(&mut world).contains(&Effect::Reply(Reply::Done)));
    assert_eq!(world.shape(1).0, chain[..1]);
}

#[test]
fn the_only_live_member_of_a_chain_that_was_down_is_the_last() {
    let mut world = World::new(4);
    world.active(1, Persistent, 2);
    let (chain, ..) = world.shape(1);
    world.fail(&[chain[0], chain[1]]);
    world.come_back(chain[0], "i1", vec![held(1, Persistent)]);
    quarantined(&mut world, chain[0]);
    assert!(world.group(1).quarantine.is_whole());
    assert_eq!(world.shape(1).0, chain, "the other may hold the end of the log");
}

/// Every command that changes members otherwise.
#[test]
fn no_command_changes_the_members_of_a_group_in_quarantine() {
    let fault = |server| Command::StorageFault {
        server,
        fault: Some("full".into()),
    };
    for durability in [InMemory, Persistent] {
        let (world, chain) = stopped(7, durability, 3, false);
        let out = server(chain[1]);
        let slow = Command::ServerSlow {
            server: out,
            cause: Some("its disk".into()),
        };
        let part = Command::PairUnreachable {
            server: out,
            peer: server(chain[2]),
            unreachable: true,
            at_fault: None,
        };
        let servers = vec![out];
        let cases = [
            vec![fault(out), Command::StorageFaultLasts { server: out }],
            vec![slow],
            vec![
                Command::Drain { server: out },
                Command::CallOffDrain { server: out },
            ],
            vec![part],
            vec![Command::ServersHung { servers }],
            vec![Command::Resize {
                group_id: group(1),
                sla: Sla {
                    rate_per_s: 500,
                    ..sla(durability, 3, 1_000)
                },
                revision: 2,
            }],
        ];
        drop(world);
        for commands in cases {
            let (mut world, _) = stopped(7, durability, 3, false);
            let (chain, learner, epoch, _) = world.shape(1);
            for command in commands.clone() {
                world.apply(command);
            }
            let (after, learns, now, _) = world.shape(1);
            assert_eq!((after, learns, now), (chain, learner, epoch), "{commands:?}");
        }
    }
}

#[test]
fn a_learner_joins_a_group_in_quarantine_after_the_release() {
    let (mut world, chain) = stopped(5, Persistent, 3, true);
    let (before, learner, epoch, _) = world.shape(1);
    let learner = server(learner.unwrap());
    let tail = server(*before.last().unwrap());
    let message = ToCoordinator::LearnerCaughtUp {
        group_id: group(1),
        epoch,
        learner,
    };
    assert_eq!(reports::proposal(&world.state, tail, &message), None);
    world.caught_up(1, epoch);
    assert_eq!(world.shape(1).0, before);
    release(&mut world);
    world.caught_up(1, epoch + 1);
    assert_eq!(world.shape(1).0, [chain[1], learner.0]);
}

/// Its move waits for the release, and keeps no other group of the server waiting.
#[test]
fn a_move_of_a_group_in_quarantine_holds_up_no_other() {
    let mut world = World::new(4);
    let strict = Sla {
        min_replicas: Some(2),
        ..sla(Persistent, 2, 100)
    };
    for n in 1..=6 {
        world.admit(n, strict.clone());
        world.apply_all(n);
    }
    let (chain, ..) = world.shape(1);
    quarantined(&mut world, chain[0]);
    world.caught_up(1, 2);
    world.dropped(chain[0], 1);
    let (chain, ..) = world.shape(1);
    let slow = server(chain[1]);
    let other = (2..=6)
        .find(|n| world.group(*n).is_member(slow))
        .expect("it has several");
    world.apply(Command::ServerSlow {
        server: slow,
        cause: Some("its disk".into()),
    });
    assert_eq!(
        (world.group(1).leaving, world.group(other).leaving),
        (Some(slow), None),
        "one at a time"
    );
    quarantined(&mut world, chain[0]);
    assert!(world.group(1).quarantine.is_whole());
    assert_eq!(
        (world.group(1).leaving, world.group(other).leaving),
        (Some(slow), Some(slow))
    );
}
