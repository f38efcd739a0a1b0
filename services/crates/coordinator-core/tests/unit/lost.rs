//! Groups of which nothing is left, disks that are damaged or old, and resets. No sleeping.

use crate::world::{World, configures, credential, drops, group, held, registration, server};
use quorate_coordinator_core::command::{Command, Effect, Registration, Reply};
use quorate_coordinator_core::state::EventKind;
use quorate_coordinator_core::state::GroupStatus::{Active, Lost, Paused, Provisioning};
use quorate_coordinator_core::view::ServerView;
use quorate_types::Durability::{InMemory, Persistent};
use quorate_types::config::{GroupState, Role};
use quorate_types::control::{GroupReport, HeldGroup, ToServer};
use quorate_types::limits::{RESET_GAP_OFFSETS, RESET_OFFSET_MAX};
use quorate_types::sla::RefusalReason;

fn reset(world: &mut World, epoch: u64) -> Vec<Effect> {
    world.apply(Command::Reset {
        group_id: group(1),
        epoch,
        entries_before: 1_000,
        bytes_before: 64_000,
    })
}

fn lost_sent_to(effects: &[Effect]) -> Vec<u32> {
    let lost = |effect: &Effect| match effect {
        Effect::Send {
            server,
            message: ToServer::Lost { .. },
        } => Some(server.0),
        _ => None,
    };
    effects.iter().filter_map(lost).collect()
}

fn conflict(effects: &[Effect]) -> &'static str {
    match effects[0] {
        Effect::Reply(Reply::Conflict { code, .. }) => code,
        ref other => panic!("not a conflict: {other:?}"),
    }
}

fn damaged(n: u128) -> HeldGroup {
    HeldGroup {
        damaged: true,
        ..held(n, Persistent)
    }
}

#[test]
fn a_lost_group_is_reset_above_all_offsets_when_its_owner_asks() {
    let mut world = World::new(4);
    world.active(1, InMemory, 3);
    assert_eq!(conflict(&reset(&mut world, 1)), "group_not_lost");
    let (chain, ..) = world.shape(1);
    world.fail(&chain);
    let mut notified = Vec::new();
    for n in &chain {
        notified = lost_sent_to(&world.come_back(*n, "i2", vec![]));
    }
    let mut all = chain.clone();
    all.sort_unstable();
    notified.dedup();
    assert_eq!(notified, all, "servers that held it answer its clients so");
    // A server that restarts later gets it, too.
    assert_eq!(lost_sent_to(&world.come_back(chain[1], "i3", vec![])), [chain[1]]);
    let lost_in = world.shape(1).2;
    assert_eq!(world.shape(1), (vec![], None, lost_in, Lost));

    let effects = reset(&mut world, lost_in);
    assert!(effects.contains(&Effect::Reply(Reply::Done)));
    let (anew, _, epoch, status) = world.shape(1);
    assert_eq!((anew.len(), epoch, status), (3, lost_in + 1, Provisioning));
    let configs = configures(&effects);
    assert_eq!(configs.len(), 3);
    for (_, config) in &configs {
        let beginning = config.beginning.expect("a beginning");
        assert_eq!((beginning.epoch, beginning.offset), (epoch, RESET_GAP_OFFSETS));
        assert_eq!(
            (beginning.entries_before, beginning.bytes_before),
            (1_000, 64_000)
        );
    }
    // Servers outside of the new chain cease to answer that it is lost.
    let outside: Vec<u32> = chain.iter().copied().filter(|s| !anew.contains(s)).collect();
    assert_eq!(drops(&effects).iter().map(|d| d.0).collect::<Vec<_>>(), outside);
    // The answer was lost and the call is repeated: nothing happens.
    let before = world.shape(1);
    assert_eq!(reset(&mut world, lost_in), [Effect::Reply(Reply::Done)]);
    assert_eq!(world.shape(1), before);
    world.apply_all(1);
    assert_eq!(world.shape(1).3, Active);
    assert!(world.kinds().contains(&EventKind::GroupReset));
    // It is lost once more, and begins above that.
    let (chain, ..) = world.shape(1);
    world.fail(&chain);
    let epoch = world.shape(1).2;
    assert_eq!(world.shape(1).3, Lost);
    let refused = reset(&mut world, epoch);
    assert!(
        matches!(refused[..], [Effect::Reply(Reply::Refused(_))]),
        "one server is left"
    );
    for n in 5..8 {
        world.join(n, "i1").unwrap();
    }
    assert!(reset(&mut world, epoch).contains(&Effect::Reply(Reply::Done)));
    assert_eq!(world.group(1).beginning.unwrap().offset, 2 * RESET_GAP_OFFSETS);
    // The failed servers return in their old processes, with the lost log.
    let effects = world.come_back(chain[0], "i2", vec![]);
    assert!(!configures(&effects).iter().any(|(s, _)| *s == chain[0]));
}

#[test]
fn a_reset_without_room_is_refused_and_leaves_the_group_as_it_was() {
    let mut world = World::new(3);
    world.active(1, InMemory, 3);
    world.fail(&[1, 2, 3]);
    let before = world.shape(1);
    let effects = reset(&mut world, 1);
    match &effects[..] {
        [Effect::Reply(Reply::Refused(refusal))] => assert_eq!(refusal.reason, RefusalReason::TooFewServers),
        other => panic!("{other:?}"),
    }
    assert_eq!(world.shape(1), before);
    // The unreachable group comes back whole: it was not reset.
    for n in 1..=3 {
        world.come_back(n, "i1", vec![]);
    }
    assert_eq!(world.shape(1).3, Active);
    assert_eq!(
        world.apply(Command::Reset {
            group_id: group(9),
            epoch: 1,
            entries_before: 0,
            bytes_before: 0
        }),
        [Effect::Reply(Reply::Unknown)]
    );
}

#[test]
fn the_ceiling_is_raised_long_before_it_is_reached_and_resets_end_where_numbers_do() {
    let mut world = World::new(6);
    world.active(1, InMemory, 3);
    let (chain, ..) = world.shape(1);
    let report = |commit_offset| GroupReport {
        group_id: group(1),
        epoch: 1,
        role: Role::Head,
        state: GroupState::Active,
        last_index: 0,
        commit_offset,
    };
    let head = server(chain[0]);
    let half = RESET_GAP_OFFSETS / 2;
    assert!(world.state.offsets_due(head, &[report(half)]).is_empty());
    let due = world.state.offsets_due(head, &[report(half + 1)]);
    assert_eq!(due, [(group(1), half + 1)]);
    let stranger = server((1..=6).find(|s| !chain.contains(s)).unwrap());
    assert!(world.state.offsets_due(stranger, &[report(half + 1)]).is_empty());
    world.apply(Command::OffsetsReached {
        group_id: group(1),
        commit_offset: half + 1,
    });
    assert!(world.state.offsets_due(head, &[report(half + 1)]).is_empty());
    assert!(world.group(1).offset_ceiling >= half + 1 + RESET_GAP_OFFSETS / 2);
    world.apply(Command::OffsetsReached {
        group_id: group(1),
        commit_offset: RESET_OFFSET_MAX,
    });
    world.fail(&chain);
    assert_eq!(conflict(&reset(&mut world, 1)), "too_many_resets");
}

#[test]
fn a_damaged_disk_makes_a_learner_and_when_all_are_damaged_the_group_is_lost() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    world.come_back(chain[0], "i2", vec![damaged(1)]);
    assert_eq!(
        (world.shape(1).0, world.shape(1).1),
        (chain[1..].to_vec(), Some(chain[0]))
    );
    assert!(world.kinds().contains(&EventKind::ServerDiskStale));
    let epoch = world.shape(1).2;
    world.caught_up(1, epoch);
    assert_eq!(world.shape(1).3, Active);

    let (chain, ..) = world.shape(1);
    world.fail(&chain);
    for n in &chain[..2] {
        world.come_back(*n, "i5", vec![damaged(1)]);
        assert_eq!(world.shape(1).3, Paused, "the last disk may be whole");
    }
    world.come_back(chain[2], "i5", vec![damaged(1)]);
    assert_eq!(world.shape(1).3, Lost);
    // The remaining data is kept until the owner has decided.
    let epoch = world.shape(1).2;
    let effects = world.come_back(chain[2], "i6", vec![damaged(1)]);
    assert!(drops(&effects).is_empty());
    assert!(reset(&mut world, epoch).contains(&Effect::Reply(Reply::Done)));
    world.apply_all(1);
    assert_eq!(world.shape(1).3, Active);
}

#[test]
fn the_whole_of_three_is_enough() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    world.fail(&chain);
    world.come_back(chain[0], "i2", vec![damaged(1)]);
    world.come_back(chain[2], "i2", vec![]);
    world.come_back(chain[1], "i2", vec![held(1, Persistent)]);
    let (rest, learner, ..) = world.shape(1);
    assert_eq!(rest, [chain[1]]);
    assert!(learner.is_some());
}

fn on_an_older_copy(n: u32, incarnation: &str) -> Registration {
    Registration {
        held: vec![held(1, Persistent)],
        previous_incarnations: vec!["long-ago".into()],
        ..registration(credential(n), n, incarnation)
    }
}

#[test]
fn an_older_copy_of_a_disk_counts_only_where_it_is_all_there_is() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    world.register(on_an_older_copy(chain[0], "i2"));
    assert_eq!(
        (world.shape(1).0, world.shape(1).1),
        (chain[1..].to_vec(), Some(chain[0]))
    );
    // The folder is the one from before: its starts name the incarnation that the coordinator knows.
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    world.register(Registration {
        previous_incarnations: vec!["i1".into(), "never-arrived".into()],
        ..on_an_older_copy(chain[0], "i2")
    });
    assert_eq!(world.shape(1).0, [chain[1], chain[2], chain[0]], "it stays");
    let mut world = World::new(1);
    world.active(1, Persistent, 1);
    world.register(on_an_older_copy(1, "i2"));
    assert_eq!(world.shape(1), (vec![1], None, 2, Active));
    assert_eq!(
        world
            .kinds()
            .iter()
            .filter(|k| **k == EventKind::ServerDiskStale)
            .count(),
        1
    );
}

/// A new process on a folder that names the run before and no other.
fn with_log(n: u32, incarnation: &str, end: (u64, u64), committed: (u64, u64)) -> Registration {
    let held = HeldGroup {
        epoch: end.0,
        last_index: end.1,
        committed_epoch: committed.0,
        committed_index: committed.1,
        ..held(1, Persistent)
    };
    Registration {
        held: vec![held],
        ..registration(credential(n), n, incarnation)
    }
}

#[test]
fn the_longest_log_of_returning_members_leads() {
    // Two cases: their leases have ended, or they are back before that.
    for is_down in [true, false] {
        let mut world = World::new(3);
        world.active(1, Persistent, 3);
        let (chain, ..) = world.shape(1);
        let [a, b, c] = chain[..] else { panic!("of three") };
        if is_down {
            world.fail(&[a, b, c]);
        }
        world.register(with_log(a, "i2", (1, 100), (0, 0)));
        let others_lead = if is_down { [a, b, c] } else { [b, c, a] };
        assert_eq!(
            world.shape(1).0,
            others_lead,
            "while they are not known to be back"
        );
        world.register(with_log(b, "i2", (1, 5_000), (0, 0)));
        let other_leads = if is_down { [b, a, c] } else { [c, b, a] };
        assert_eq!(world.shape(1).0, other_leads);
        let effects = world.register(with_log(c, "i2", (2, 4_000), (0, 0)));
        assert_eq!(world.shape(1).0, [c, b, a], "an epoch goes before any index");
        let configured = configures(&effects);
        assert_eq!(configured.len(), 3);
        assert!(
            configured
                .iter()
                .all(|(_, config)| config.replicas[0].server_id.0 == c)
        );
    }
}

#[test]
fn a_member_that_lacks_what_another_proves_to_be_committed_is_an_older_copy() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    let [a, b, c] = chain[..] else { panic!("of three") };
    world.fail(&[a, b, c]);
    for n in [a, b, c] {
        world.register(with_log(n, "i2", (1, 90), (0, 0)));
    }
    world.apply_all(1);
    world.fail(&[a, b, c]);
    world.register(with_log(a, "i3", (1, 5_000), (1, 90)));
    world.register(with_log(b, "i3", (2, 4_000), (2, 3_900)));
    assert_eq!(
        world.shape(1).0,
        [b, c],
        "an index of an earlier epoch proves nothing"
    );
    assert!(world.kinds().contains(&EventKind::ServerDiskStale));
    let effects = world.register(with_log(c, "i3", (2, 4_000), (2, 3_000)));
    assert_eq!((world.shape(1).0, world.shape(1).1), (vec![b, c], Some(a)));
    assert!(configures(&effects).iter().any(|(server, _)| *server == a));
}

#[test]
fn a_process_that_lived_on_leads_those_that_did_not() {
    for is_first in [true, false] {
        let mut world = World::new(2);
        world.active(1, Persistent, 2);
        let (chain, ..) = world.shape(1);
        let [a, b] = chain[..] else { panic!("of two") };
        world.fail(&[a, b]);
        let lived_on = with_log(b, "i1", (1, 3), (0, 0));
        if is_first {
            world.register(lived_on.clone());
        }
        world.register(with_log(a, "i2", (1, 100), (0, 0)));
        if !is_first {
            world.register(lived_on);
        }
        assert_eq!(world.shape(1).0, [b, a]);
    }
}

#[test]
fn reported_logs_count_until_the_members_are_in_one_epoch_again() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    world.fail(&chain);
    for n in &chain {
        world.register(with_log(*n, "i2", (1, 100), (0, 0)));
    }
    let (_, _, epoch, status) = world.shape(1);
    assert_eq!(
        (world.shape(1).0, status),
        (chain.clone(), Active),
        "of equals none moves"
    );
    world.apply_all(1);
    // The first log has grown since: the second log is longer than the first was then.
    world.register(with_log(chain[1], "i3", (epoch, 9_000), (0, 0)));
    assert_eq!(world.shape(1).0, [chain[0], chain[2], chain[1]]);
}

/// Its disk may have lost a write that it had called durable.
#[test]
fn a_head_that_restarts_quickly_goes_behind_those_that_lived_on() {
    let mut world = World::new(4);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    let [a, b, c] = chain[..] else { panic!("of three") };
    let effects = world.register(with_log(a, "i2", (1, 9_000), (1, 8_000)));
    assert_eq!(
        world.shape(1),
        (vec![b, c, a], None, 2, Active),
        "whatever it holds"
    );
    assert_eq!(configures(&effects).len(), 3);
    world.apply_all(1);
    // One after the other, and always somebody has lived on.
    world.register(with_log(b, "i2", (2, 9_000), (2, 8_000)));
    assert_eq!(world.shape(1).0, [c, a, b]);
    // Nobody has: the last log to be reported is the longest.
    world.register(with_log(a, "i3", (2, 9_500), (2, 8_000)));
    world.register(with_log(c, "i2", (2, 9_700), (2, 8_000)));
    assert_eq!(world.shape(1).0, [c, a, b]);
}

#[test]
fn a_log_that_ends_before_what_its_own_disk_proves_is_all_there_is_or_an_older_copy() {
    let mut world = World::new(1);
    world.active(1, Persistent, 1);
    let (chain, ..) = world.shape(1);
    world.register(with_log(chain[0], "i2", (1, 5), (1, 7)));
    let (members, _, epoch, status) = world.shape(1);
    assert_eq!(
        (members, epoch, status),
        (chain, 2, Active),
        "the only one goes on"
    );
    assert!(world.kinds().contains(&EventKind::ServerDiskStale));

    let mut world = World::new(2);
    world.active(1, Persistent, 2);
    let (chain, ..) = world.shape(1);
    let [a, b] = chain[..] else { panic!("of two") };
    world.fail(&[a, b]);
    world.register(with_log(a, "i2", (1, 5), (1, 7)));
    assert_eq!(world.shape(1).0, [b], "the other may have all of it");
    world.register(with_log(b, "i2", (1, 6), (1, 6)));
    assert_eq!(world.shape(1).0, [b]);
}

/// All are in one epoch and commit in it. Another is restarted before the last of them has reported so.
#[test]
fn a_reported_log_is_out_of_date_once_more_was_committed_with_its_member() {
    let mut world = World::new(3);
    world.active(1, Persistent, 2);
    let (chain, ..) = world.shape(1);
    let [a, b] = chain[..] else { panic!("of two") };
    world.fail(&[a, b]);
    world.register(with_log(a, "i2", (1, 100), (1, 90)));
    world.register(with_log(b, "i2", (1, 100), (1, 90)));
    let (_, _, epoch, _) = world.shape(1);
    world.register(with_log(a, "i3", (epoch, 9_000), (epoch, 8_000)));
    assert_eq!((world.shape(1).0, world.shape(1).1), (vec![b, a], None));
    assert!(!world.kinds().contains(&EventKind::ServerDiskStale));
    // It must have all that was committed before it returned.
    world.register(with_log(b, "i3", (1, 100), (1, 90)));
    assert_eq!(world.shape(1).0, [a], "an older copy, beside what was committed");
}

#[test]
fn a_group_is_lost_with_the_given_up_server_that_alone_held_it() {
    let mut world = World::new(4);
    world.active(1, Persistent, 1);
    let only = world.shape(1).0[0];
    let alive = world.apply(Command::Forget { server: server(only) });
    assert_eq!(conflict(&alive), "server_alive");
    world.fail(&[only]);
    assert_eq!(world.shape(1).3, Paused);
    assert!(
        world
            .apply(Command::Forget { server: server(only) })
            .contains(&Effect::Reply(Reply::Done))
    );
    assert_eq!(world.shape(1).3, Lost);
    assert_eq!(
        world.apply(Command::Forget { server: server(only) }),
        [Effect::Reply(Reply::Done)]
    );
    assert!(reset(&mut world, 2).contains(&Effect::Reply(Reply::Done)));
    // Its credential is worth nothing, its name is free.
    assert!(matches!(
        world.come_back(only, "i2", vec![])[0],
        Effect::Refuse { .. }
    ));
    assert_eq!(world.join(only, "i3"), Ok(server(only)));
}

#[test]
fn a_server_that_is_given_up_is_shown_no_more_until_its_name_joins_again() {
    let mut world = World::new(4);
    let shown = |world: &World| -> Vec<u32> {
        let views = ServerView::all(&world.state);
        views.iter().map(|view| view.server_id.0).collect()
    };
    world.fail(&[4]);
    assert_eq!(shown(&world), [1, 2, 3, 4], "it may come back");
    world.apply(Command::Forget { server: server(4) });
    assert_eq!(shown(&world), [1, 2, 3]);
    assert_eq!(ServerView::with_id(&world.state, server(4)), None);
    // No other server gets its number, and a restart from a snapshot changes nothing of this.
    let snapshot = serde_json::to_string(&world.state).unwrap();
    world.state = serde_json::from_str(&snapshot).unwrap();
    world.state.restore();
    assert_eq!(shown(&world), [1, 2, 3]);
    assert_eq!(world.join(5, "i1"), Ok(server(5)));
    assert_eq!(world.join(4, "i2"), Ok(server(4)));
    assert_eq!(shown(&world), [1, 2, 3, 4, 5]);
}

#[test]
fn all_servers_restart_at_once() {
    let mut world = World::new(5);
    for n in 1..=6 {
        world.active(n, if n % 2 == 0 { Persistent } else { InMemory }, 3);
    }
    let chains: Vec<Vec<u32>> = (1..=6).map(|n| world.shape(n).0).collect();
    world.fail(&[1, 2, 3, 4, 5]);
    for n in 1..=5 {
        let found = (1..=6u128)
            .filter(|g| g % 2 == 0 && chains[*g as usize - 1].contains(&n))
            .map(|g| held(g, Persistent))
            .collect();
        world.come_back(n, "i2", found);
    }
    for n in 1..=6u128 {
        let (chain, .., status) = world.shape(n);
        if n % 2 == 0 {
            assert_eq!((chain, status), (chains[n as usize - 1].clone(), Active));
        } else {
            assert_eq!((chain, status), (vec![], Lost));
        }
    }
}

#[test]
fn an_unauthenticated_registration_leaves_no_trace() {
    let world = World::new(1);
    let stranger = registration(credential(77), 77, "i1");
    assert!(world.state.vet(&stranger, world.now_ms).is_err());
    let many = Registration {
        held: vec![held(1, Persistent); 16_385],
        ..registration(credential(1), 1, "i2")
    };
    let (_, message) = world.state.vet(&many, world.now_ms).unwrap_err();
    assert!(message.contains("16384"), "{message}");
    let long = Registration {
        version: "v".repeat(65),
        ..registration(credential(1), 1, "i2")
    };
    assert!(world.state.vet(&long, world.now_ms).is_err());
    assert_eq!(
        world
            .state
            .vet(&registration(credential(1), 1, "i2"), world.now_ms),
        Ok(())
    );
}
