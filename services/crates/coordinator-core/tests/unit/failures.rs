//! Failures: heads, middles and tails are lost, learners join, servers return. No sleeping.

use crate::world::{
    World, configures, credential, drops, group, held, registered, registration, server, sla,
};
use quorate_coordinator_core::command::{Command, Effect};
use quorate_coordinator_core::state::EventKind;
use quorate_coordinator_core::state::GroupStatus::{Active, Degraded, Lost, Paused, Provisioning};
use quorate_types::Durability::{InMemory, Persistent};
use quorate_types::Role;
use quorate_types::control::ToServer;
use quorate_types::{Durability, Sla};

#[test]
fn losing_any_replica_splices_it_and_brings_a_learner_in_the_same_epoch() {
    for durability in [InMemory, Persistent] {
        for position in 0..3 {
            let mut world = World::new(5);
            world.active(1, durability, 3);
            let (chain, _, epoch, _) = world.shape(1);
            let effects = world.fail(&[chain[position]]);
            let mut rest = chain.clone();
            rest.remove(position);
            let (spliced, learner, next, status) = world.shape(1);
            assert_eq!((&spliced, next, status), (&rest, epoch + 1, Degraded));
            let learner = learner.expect("two servers are free");
            assert!(!chain.contains(&learner));
            // The two remaining members and the learner get the configuration; the failed one is disconnected.
            let configured = configures(&effects);
            assert_eq!(
                configured.iter().map(|(s, _)| *s).collect::<Vec<_>>(),
                [rest[0], rest[1], learner]
            );
            assert!(
                configured
                    .iter()
                    .all(|(_, c)| c.epoch == 2 && c.replicas.len() == 2 && c.learners.len() == 1)
            );
            assert!(effects.contains(&Effect::Disconnect {
                server: server(chain[position])
            }));
            let effects = world.caught_up(1, 2);
            assert_eq!(world.shape(1), (vec![rest[0], rest[1], learner], None, 3, Active));
            assert_eq!(configures(&effects).len(), 3);
        }
    }
}

#[test]
fn two_at_once_leave_one_epoch_and_learners_come_one_after_the_other() {
    let mut world = World::new(7);
    world.active(1, InMemory, 5);
    let (chain, ..) = world.shape(1);
    world.fail(&[chain[0], chain[3]]);
    let (rest, learner, epoch, status) = world.shape(1);
    assert_eq!((rest.len(), epoch, status), (3, 2, Degraded));
    let first = learner.unwrap();
    world.caught_up(1, 2);
    let (four, learner, epoch, _) = world.shape(1);
    assert_eq!((four.last(), epoch), (Some(&first), 3));
    assert!(learner.is_some_and(|second| second != first));
    world.caught_up(1, 3);
    assert_eq!(world.shape(1).3, Active);
}

#[test]
fn a_learner_from_an_older_epoch_or_reported_by_a_non_tail_does_not_join() {
    let mut world = World::new(6);
    world.active(1, InMemory, 3);
    let (chain, ..) = world.shape(1);
    world.fail(&[chain[2]]);
    let learner = world.shape(1).1.unwrap();
    world.fail(&[chain[1]]);
    let before = world.shape(1);
    assert_eq!(
        (before.0.clone(), before.1, before.2, before.3),
        (vec![chain[0]], Some(learner), 3, Paused)
    );
    let caught_up = |from: u32, epoch, learner: u32| Command::LearnerCaughtUp {
        server: server(from),
        group_id: group(1),
        epoch,
        learner: server(learner),
    };
    let stranger = (1..=6).find(|s| !chain.contains(s) && *s != learner).unwrap();
    for command in [
        caught_up(chain[0], 2, learner),
        caught_up(stranger, 3, learner),
        caught_up(chain[0], 3, stranger),
    ] {
        assert!(world.apply(command).is_empty());
        assert_eq!(world.shape(1), before);
    }
    world.apply(caught_up(chain[0], 3, learner));
    assert_eq!(world.shape(1).0, [chain[0], learner]);
    // Reported twice: the second report is from an older epoch by then.
    let after = world.shape(1);
    world.apply(caught_up(chain[0], 3, learner));
    assert_eq!(world.shape(1), after);
}

#[test]
fn a_failed_learner_is_replaced() {
    let mut world = World::new(5);
    world.active(1, InMemory, 3);
    let (chain, ..) = world.shape(1);
    world.fail(&[chain[1]]);
    let first = world.shape(1).1.unwrap();
    world.fail(&[first]);
    let (rest, second, epoch, _) = world.shape(1);
    assert_eq!((rest, epoch), (vec![chain[0], chain[2]], 3));
    assert!(second.is_some_and(|second| second != first && !chain.contains(&second)));
}

#[test]
fn without_room_a_group_stays_degraded_until_a_server_joins() {
    let mut world = World::new(3);
    world.active(1, InMemory, 3);
    let (chain, ..) = world.shape(1);
    world.fail(&[chain[0]]);
    assert_eq!(world.shape(1), (vec![chain[1], chain[2]], None, 2, Degraded));
    world.join(4, "i1").unwrap();
    assert_eq!(world.shape(1), (vec![chain[1], chain[2]], Some(4), 3, Degraded));
}

#[test]
fn a_full_fleet_repairs_when_a_group_is_deleted() {
    let mut world = World::new(4);
    // Two large in-memory groups nearly fill three servers' CPU (0.8 × 2 cores), a third one the fourth's.
    world.admit(1, sla(InMemory, 3, 500_000));
    world.apply_all(1);
    let (chain, ..) = world.shape(1);
    let free = (1..=4).find(|s| !chain.contains(s)).unwrap();
    for n in 2..7 {
        world.admit(n, sla(InMemory, 1, 500_000));
    }
    world.fail(&[chain[2]]);
    let degraded = world.shape(1);
    assert_eq!(degraded.1, None, "no server has room: {degraded:?}");
    for n in 2..7 {
        if world.state.groups.contains_key(&group(n)) && world.shape(n).0 == [free] {
            world.delete(n);
            world.dropped(free, n);
        }
    }
    assert_eq!(world.shape(1).1, Some(free));
}

#[test]
fn an_in_memory_group_whose_replicas_all_fail_is_lost() {
    let mut world = World::new(3);
    world.active(1, InMemory, 3);
    world.fail(&[1, 2, 3]);
    assert_eq!(world.shape(1).3, Lost);
    // One server returns in the same process: it was unreachable, and holds everything.
    let effects = world.come_back(2, "i1", vec![]);
    assert_eq!(configures(&effects).len(), 1);
    assert_eq!(world.shape(1).3, Paused);
    assert_eq!(
        world
            .state
            .laggards()
            .into_iter()
            .map(|s| s.0)
            .collect::<Vec<_>>(),
        [1, 3]
    );
    world.fail(&[1, 3]);
    assert_eq!(world.shape(1), (vec![2], None, 2, Paused));
    // That server was restarted: nothing is left, for good.
    world.come_back(2, "i2", vec![]);
    assert_eq!(world.shape(1), (vec![], None, 3, Lost));
    for n in [1, 3] {
        world.come_back(n, "i1", vec![]);
    }
    assert_eq!(world.shape(1).3, Lost);
    world.delete(1);
    assert_eq!(
        world.statuses(1).last(),
        Some(&quorate_coordinator_core::state::GroupStatus::Deleting)
    );
}

#[test]
fn a_persistent_group_that_is_all_down_waits_and_goes_on_with_returning_servers() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    world.fail(&[1, 2, 3]);
    assert_eq!(world.shape(1), (chain.clone(), None, 1, Paused));
    // It is back with its disk: the same chain in a new epoch waits for the others.
    let effects = world.come_back(chain[1], "i2", vec![held(1, Persistent)]);
    assert_eq!(world.shape(1), (chain.clone(), None, 2, Paused));
    assert_eq!(
        configures(&effects)
            .iter()
            .map(|(s, c)| (*s, c.epoch))
            .collect::<Vec<_>>(),
        [(chain[1], 2)]
    );
    world.come_back(chain[0], "i2", vec![held(1, Persistent)]);
    assert_eq!(world.shape(1), (chain.clone(), None, 3, Paused));
    // The third does not return within its lease: the group goes on without it.
    world.fail(&[chain[2]]);
    assert_eq!(world.shape(1), (chain[..2].to_vec(), None, 4, Degraded));
    // It returns later, and becomes a learner with its data instead of dropping it.
    let effects = world.come_back(chain[2], "i2", vec![held(1, Persistent)]);
    assert_eq!(world.shape(1), (chain[..2].to_vec(), Some(chain[2]), 5, Degraded));
    assert!(drops(&effects).is_empty());
    world.caught_up(1, 5);
    assert_eq!(world.shape(1), (chain, None, 6, Active));
}

#[test]
fn the_last_replica_of_a_persistent_group_is_never_spliced_and_stale_ones_do_not_replace_it() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    for (i, server) in chain.iter().enumerate() {
        world.fail(&[*server]);
        assert_eq!(
            world.shape(1).0,
            if i < 2 { &chain[i + 1..] } else { &chain[2..] }
        );
    }
    assert_eq!(world.shape(1).3, Paused);
    // The first may have missed what the last committed alone: it does not count until the last is back.
    let effects = world.come_back(chain[0], "i2", vec![held(1, Persistent)]);
    assert_eq!(world.shape(1), (vec![chain[2]], None, 3, Paused));
    assert!(
        drops(&effects).is_empty(),
        "nor does it drop what may turn out to be the most that is left"
    );
    world.come_back(chain[2], "i2", vec![held(1, Persistent)]);
    assert_eq!(world.shape(1), (vec![chain[2]], Some(chain[0]), 4, Paused));
    world.caught_up(1, 4);
    assert_eq!(world.shape(1).3, Degraded);
}

#[test]
fn a_quick_restart_keeps_the_place_in_persistent_groups_only() {
    let mut world = World::new(4);
    world.active(1, Persistent, 3);
    world.active(2, InMemory, 3);
    let ((persistent, ..), (memory, ..)) = (world.shape(1), world.shape(2));
    let both = *persistent.iter().find(|s| memory.contains(s)).unwrap();
    let effects = world.come_back(both, "i2", vec![held(1, Persistent)]);
    let mut persistent = persistent;
    persistent.retain(|member| *member != both);
    persistent.push(both);
    assert_eq!(world.shape(1), (persistent.clone(), None, 2, Active));
    let (rest, learner, epoch, status) = world.shape(2);
    assert_eq!((rest.contains(&both), epoch, status), (false, 2, Degraded));
    assert!(learner.is_some());
    let configured: Vec<u32> = configures(&effects)
        .into_iter()
        .filter(|(_, c)| c.group_id == group(1))
        .map(|x| x.0)
        .collect();
    assert_eq!(configured, persistent, "the whole chain agrees anew");
    // With an empty disk it has lost its place there, too.
    let other = *persistent.iter().find(|s| **s != both).unwrap();
    world.come_back(other, "i2", vec![]);
    assert!(!world.shape(1).0.contains(&other));
}

#[test]
fn the_only_disk_coming_back_empty_loses_a_persistent_group() {
    let mut world = World::new(1);
    world.active(1, Persistent, 1);
    world.come_back(1, "i2", vec![]);
    assert_eq!(world.shape(1), (vec![], None, 2, Lost));
}

#[test]
fn a_reconnect_of_the_same_process_changes_nothing_and_is_sent_everything() {
    let mut world = World::new(3);
    world.active(1, InMemory, 3);
    let before = world.shape(1);
    let effects = world.come_back(2, "i1", vec![]);
    assert_eq!(registered(&effects), Ok(server(2)));
    assert_eq!(configures(&effects).len(), 1);
    assert_eq!(world.shape(1), before);
    // With another address its peers get a new configuration.
    let moved = quorate_coordinator_core::command::Registration {
        address: "127.0.0.1:9999".into(),
        ..registration(credential(2), 2, "i1")
    };
    let effects = world.register(moved);
    assert_eq!((world.shape(1).2, configures(&effects).len()), (2, 3));
    assert!(
        configures(&effects)[0]
            .1
            .replicas
            .iter()
            .any(|m| m.address == "127.0.0.1:9999")
    );
}

#[test]
fn a_returning_server_drops_what_went_on_without_it() {
    let mut world = World::new(4);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    world.fail(&[chain[0]]);
    world.caught_up(1, 2);
    assert_eq!(world.shape(1).3, Active);
    let effects = world.come_back(chain[0], "i2", vec![held(1, Persistent)]);
    assert_eq!(drops(&effects), [(chain[0], group(1), 3)]);
    // The order is repeated until it reports the drop, and no more afterwards.
    let effects = world.come_back(chain[0], "i2", vec![held(1, Persistent)]);
    assert_eq!(drops(&effects).len(), 1);
    world.dropped(chain[0], 1);
    assert!(drops(&world.come_back(chain[0], "i2", vec![])).is_empty());
}

#[test]
fn an_unreachable_peer_and_a_faulty_disk_are_noted_and_the_disk_gets_no_new_replicas() {
    let mut world = World::new(3);
    world.apply(Command::PeerUnreachable {
        server: server(1),
        peer: server(2),
    });
    let fault = |fault: Option<&str>| Command::StorageFault {
        server: server(3),
        fault: fault.map(Into::into),
    };
    world.apply(fault(Some("no space left")));
    let refused = world.admit(1, sla(Persistent, 3, 100));
    assert!(!configures(&refused).iter().any(|(s, _)| *s == 3), "{refused:?}");
    world.apply(fault(None));
    world.active(2, Persistent, 3);
    let kinds = world.kinds();
    assert!(kinds.contains(&EventKind::ServerUnreachable));
    assert_eq!(
        kinds
            .iter()
            .filter(|kind| **kind == EventKind::ServerStorageFault)
            .count(),
        2
    );
}

#[test]
fn a_replica_lost_before_the_chain_formed_is_replaced_and_the_group_still_forms() {
    let mut world = World::new(4);
    world.admit(
        1,
        Sla {
            min_replicas: Some(1),
            ..sla(Durability::InMemory, 3, 100)
        },
    );
    let (chain, ..) = world.shape(1);
    world.fail(&[chain[0]]);
    assert_eq!(world.shape(1).3, Provisioning);
    world.apply_all(1);
    assert_eq!(world.shape(1).3, Degraded);
    world.caught_up(1, 2);
    assert_eq!(world.shape(1).3, Active);
}

#[test]
fn a_server_whose_report_differs_from_its_groups_is_sent_them_again() {
    let mut world = World::new(4);
    world.active(1, InMemory, 3);
    let (chain, ..) = world.shape(1);
    let at = |epoch| move |group_id| (group_id == group(1)).then_some(epoch);
    let head = server(chain[0]);
    assert!(world.state.corrections(head, at(1)).is_empty());
    assert!(matches!(
        world.state.corrections(head, |_| None)[..],
        [ToServer::Configure { .. }]
    ));
    world.fail(&[chain[2]]);
    assert!(matches!(
        world.state.corrections(head, at(1))[..],
        [ToServer::Configure { .. }]
    ));
    assert!(world.state.corrections(head, at(2)).is_empty());
    world.delete(1);
    assert!(matches!(
        world.state.corrections(head, at(2))[..],
        [ToServer::Drop { epoch: 3, .. }]
    ));
}

#[test]
fn a_server_that_comes_back_to_a_group_that_waits_for_a_replica_learns_that_it_is_out() {
    let mut world = World::new(3);
    world.active(1, InMemory, 3);
    let (chain, ..) = world.shape(1);
    let head = server(chain[0]);
    // It takes no replicas, so that it is not elected at once.
    world.apply(Command::ServerSlow {
        server: head,
        cause: Some("its disk".into()),
    });
    world.fail(&[chain[0]]);
    assert_eq!(world.shape(1).0, chain[1..]);
    world.come_back(chain[0], "i1", vec![]);
    assert_eq!(world.shape(1), (chain[1..].to_vec(), None, 2, Degraded));
    let at = |epoch| move |group_id| (group_id == group(1)).then_some(epoch);
    let corrections = world.state.corrections(head, at(1));
    let [ToServer::Configure { config }] = &corrections[..] else {
        panic!("{corrections:?}");
    };
    assert_eq!((config.epoch, config.role_of(head)), (2, Role::None));
    assert!(world.state.corrections(head, at(2)).is_empty(), "it knows");
    assert!(
        world.state.corrections(head, |_| None).is_empty(),
        "it holds nothing"
    );
    // The group becomes whole in further epochs, of which it hears as well: the order to drop its data names the last one.
    world.join(4, "i1").expect("joins");
    let (_, learner, epoch, _) = world.shape(1);
    assert_eq!(learner, Some(4));
    world.caught_up(1, epoch);
    let (.., epoch, status) = world.shape(1);
    assert_eq!(status, Active);
    let order = ToServer::Drop {
        group_id: group(1),
        epoch,
    };
    assert_eq!(world.state.corrections(head, at(epoch)), [order]);
}
