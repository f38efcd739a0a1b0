//! Join tokens, admission, deletion, quotes, and recovery by replay.

use crate::world::{
    World, configures, credential, drops, group, held, registered, registration, server, sla,
};
use quorate_coordinator_core::command::{Command, Effect, Proof, Registration, Reply};
use quorate_coordinator_core::state::EventKind;
use quorate_coordinator_core::state::GroupStatus::{Active, Deleting, Provisioning};
use quorate_coordinator_core::state::{CoordinatorState, apply};
use quorate_coordinator_core::view::{JoinTokenState, JoinTokenView};
use quorate_placement::Profile;
use quorate_types::Durability::{InMemory, Persistent};
use quorate_types::control::{RefuseCode, ToServer};
use quorate_types::sla::{RefusalReason, ScarceResource};
use quorate_types::{Role, Sla};
use uuid::Uuid;

#[test]
fn a_join_token_works_once_but_its_process_may_ask_again() {
    let mut world = World::new(0);
    world.issue_token("t", 60_000, None);
    assert_eq!(
        world.join_with("unknown", 1, "i1"),
        Err(RefuseCode::JoinTokenInvalid)
    );
    assert_eq!(world.join_with("t", 1, "i1"), Ok(server(1)));
    assert_eq!(
        world.join_with("t", 1, "i1"),
        Ok(server(1)),
        "the answer was lost"
    );
    assert_eq!(world.join_with("t", 2, "i2"), Err(RefuseCode::JoinTokenUsed));
    assert_eq!(world.join_with("t", 1, "i2"), Err(RefuseCode::JoinTokenUsed));
    world.come_back(1, "i3", vec![]);
    assert_eq!(
        world.join_with("t", 1, "i1"),
        Err(RefuseCode::JoinTokenUsed),
        "that process is gone"
    );
    assert_eq!(world.state.servers.len(), 1);
}

#[test]
fn a_join_token_admits_no_second_server_for_the_process_that_used_it() {
    let mut world = World::new(0);
    world.issue_token("t", 60_000, None);
    assert_eq!(world.join_with("t", 1, "i1"), Ok(server(1)));
    let proof = || Proof::JoinToken {
        digest: "t".into(),
        credential_digest: "credential-1".into(),
    };
    for other in [
        Registration {
            name: "other".into(),
            ..registration(proof(), 1, "i1")
        },
        Registration {
            region: "elsewhere".into(),
            ..registration(proof(), 1, "i1")
        },
    ] {
        let answer = registered(&world.register(other));
        assert_eq!(
            answer,
            Err(RefuseCode::JoinTokenUsed),
            "it is known by another name or region"
        );
    }
    world.state.validate().unwrap();
}

#[test]
fn a_group_that_is_deleted_while_it_forms_leaves_a_sound_state() {
    let mut world = World::new(3);
    world.admit(1, sla(Persistent, 3, 1_000));
    let (first, epoch) = (world.group(1).chain[0], world.group(1).epoch);
    world.apply(Command::Applied {
        server: first,
        group_id: group(1),
        epoch,
    });
    world.delete(1);
    world.state.validate().expect("a coordinator starts from it");
    let restored: CoordinatorState =
        serde_json::from_value(serde_json::to_value(&world.state).unwrap()).unwrap();
    let mut restored = restored;
    restored.restore();
    restored.validate().expect("and from a snapshot of it");
}

#[test]
fn a_join_token_expires_and_may_be_bound_to_a_name() {
    let mut world = World::new(0);
    world.issue_token("short", 1, None);
    assert_eq!(
        world.join_with("short", 1, "i1"),
        Err(RefuseCode::JoinTokenExpired)
    );
    world.issue_token("bound", 60_000, Some("s7"));
    assert_eq!(
        world.join_with("bound", 1, "i1"),
        Err(RefuseCode::JoinTokenInvalid)
    );
    assert_eq!(world.join_with("bound", 7, "i1"), Ok(server(1)));
}

#[test]
fn a_revoked_join_token_lets_nobody_in_and_one_that_was_used_changes_nothing() {
    let mut world = World::new(0);
    let states = |world: &World| -> Vec<JoinTokenState> {
        let views = JoinTokenView::all(&world.state, world.now_ms);
        views.iter().map(|view| view.state).collect()
    };
    world.issue_token("a-lost", 60_000, Some("s1"));
    world.issue_token("b-used", 60_000, None);
    world.issue_token("c-short", 1, None);
    let revoke = |world: &mut World, id: &str| world.apply(Command::RevokeJoinToken { id: id.into() });
    assert_eq!(revoke(&mut world, "a-lost"), [Effect::Reply(Reply::Done)]);
    assert_eq!(
        world.join_with("a-lost", 1, "i1"),
        Err(RefuseCode::JoinTokenInvalid)
    );
    assert_eq!(world.join_with("b-used", 2, "i1"), Ok(server(1)));
    assert_eq!(
        states(&world),
        [
            JoinTokenState::Revoked,
            JoinTokenState::Used,
            JoinTokenState::Expired
        ]
    );
    assert_eq!(JoinTokenView::all(&world.state, 0)[1].server_id, Some(server(1)));
    revoke(&mut world, "b-used");
    assert_eq!(
        world.join_with("b-used", 2, "i1"),
        Ok(server(1)),
        "its first answer may have been lost"
    );
    assert_eq!(revoke(&mut world, "nobody's"), [Effect::Reply(Reply::Unknown)]);
}

#[test]
fn names_are_unique_and_an_abandoned_one_can_be_taken_over() {
    let mut world = World::new(2);
    assert_eq!(world.join(1, "i2"), Err(RefuseCode::NameTaken));
    world.active(1, InMemory, 2);
    world.fail(&[1]);
    assert_eq!(
        world.join(1, "i3"),
        Ok(server(1)),
        "down, and in no group any more"
    );
    assert_eq!(world.join(1, "i4"), Err(RefuseCode::NameTaken));
}

#[test]
fn no_server_takes_the_address_of_one_that_is_alive() {
    let mut world = World::new(2);
    world.issue_token("third", 60_000, None);
    let third = |address: &str| {
        let proof = Proof::JoinToken {
            digest: "third".into(),
            credential_digest: "credential-3".into(),
        };
        Registration {
            address: address.into(),
            ..registration(proof, 3, "i1")
        }
    };
    let moved = Registration {
        address: "127.0.0.1:7002".into(),
        ..registration(credential(1), 1, "i1")
    };
    let taken = registered(&world.register(moved.clone()));
    assert_eq!(taken, Err(RefuseCode::RegisterInvalid));
    assert_eq!(world.state.servers[&server(1)].address, "127.0.0.1:7001");
    world.fail(&[2]);
    assert_eq!(registered(&world.register(moved)), Ok(server(1)), "free by now");
    let back = registered(&world.come_back(2, "i2", Vec::new()));
    assert_eq!(back, Ok(server(2)), "it does not take it, it had it");
    let taken = registered(&world.register(third("127.0.0.1:7002")));
    assert_eq!(
        taken,
        Err(RefuseCode::RegisterInvalid),
        "not by a token either, which is still good"
    );
    world.fail(&[1, 2]);
    let replaced = registered(&world.register(third("127.0.0.1:7002")));
    assert_eq!(
        replaced,
        Ok(server(3)),
        "by a token a new machine may have that of one that is no more"
    );
    let again = registered(&world.register(third("127.0.0.1:7002")));
    assert_eq!(again, Ok(server(3)), "the answer was lost: it has it itself");
}

#[test]
fn the_fields_of_a_registration_are_checked() {
    let mut world = World::new(1);
    assert_eq!(
        registered(&world.register(registration(credential(9), 9, "i1"))),
        Err(RefuseCode::CredentialInvalid)
    );
    let good = || registration(credential(1), 1, "i1");
    let bad = [
        Registration {
            name: "a b".into(),
            ..good()
        },
        Registration {
            name: String::new(),
            ..good()
        },
        Registration {
            address: "127.0.0.1".into(),
            ..good()
        },
        Registration {
            address: "127.0.0.1:0".into(),
            ..good()
        },
        Registration {
            incarnation: String::new(),
            ..good()
        },
        Registration {
            region: "mars".into(),
            ..good()
        },
        Registration {
            capacity: quorate_types::cost::ResourceVector::new(f64::NAN, 1.0, 1.0),
            ..good()
        },
        Registration {
            capacity: quorate_types::cost::ResourceVector::new(0.0, 1.0, 1.0),
            ..good()
        },
        Registration {
            capacity: quorate_types::cost::ResourceVector::new(1.0, 1e300, 1.0),
            ..good()
        },
    ];
    for registration in bad {
        let shown = format!("{registration:?}");
        assert_eq!(
            registered(&world.register(registration)),
            Err(RefuseCode::RegisterInvalid),
            "{shown}"
        );
    }
    assert!(world.state.is_alive(server(1)));
}

#[test]
fn admission_makes_epoch_one_and_is_idempotent_by_id_and_body() {
    let mut world = World::new(3);
    let asked = sla(Persistent, 3, 1_000);
    let effects = world.admit(1, asked.clone());
    let configured = configures(&effects);
    assert_eq!(configured.len(), 3);
    let config = &configured[0].1;
    assert_eq!(
        (config.epoch, config.min_replicas, config.budget.rate_per_s),
        (1, 2, 1_000)
    );
    assert_eq!(config.role_of(config.replicas[0].server_id), Role::Head);
    assert_eq!(world.shape(1).3, Provisioning);
    assert_eq!(
        world.admit(1, asked.clone()),
        [Effect::Reply(Reply::Admitted { created: false })]
    );
    let other = world.admit(
        1,
        Sla {
            rate_per_s: 1,
            ..asked
        },
    );
    assert!(matches!(
        &other[..],
        [Effect::Reply(Reply::Conflict {
            code: "group_exists",
            ..
        })]
    ));
    world.apply_all(1);
    assert_eq!(world.statuses(1), [Provisioning, Active]);
    assert_eq!(world.state.epoch_changes, 1);
}

#[test]
fn applied_counts_for_the_present_epoch_and_members_only() {
    let mut world = World::new(4);
    world.admit(1, sla(InMemory, 3, 100));
    let (chain, ..) = world.shape(1);
    let stranger = (1..=4).find(|s| !chain.contains(s)).unwrap();
    let applied = |s: u32, epoch| Command::Applied {
        server: server(s),
        group_id: group(1),
        epoch,
    };
    for command in [
        applied(chain[0], 1),
        applied(chain[1], 1),
        applied(chain[2], 2),
        applied(stranger, 1),
    ] {
        world.apply(command);
    }
    assert_eq!(world.shape(1).3, Provisioning);
    world.apply(applied(chain[2], 1));
    assert_eq!(world.shape(1).3, Active);
}

#[test]
fn refusals_name_the_reason_and_leave_an_event() {
    let mut world = World::new(3);
    let mut refused = |n, sla: Sla| match &world.admit(n, sla)[..] {
        [Effect::Reply(Reply::Refused(refusal))] => refusal.clone(),
        other => panic!("{other:?}"),
    };
    let absurd = refused(1, sla(InMemory, 3, 50_000_000));
    assert_eq!(
        (absurd.reason, absurd.scarce_resource),
        (RefusalReason::BeyondShardPeak, ScarceResource::Shard)
    );
    assert_eq!(
        refused(1, sla(InMemory, 5, 1)).reason,
        RefusalReason::TooFewServers
    );
    let region = refused(
        1,
        Sla {
            region: "mars".into(),
            ..sla(InMemory, 3, 1)
        },
    );
    assert_eq!(region.reason, RefusalReason::UnknownRegion);
    let fits = absurd.largest_sla_that_fits.unwrap();
    assert!(
        world
            .admit(1, fits)
            .contains(&Effect::Reply(Reply::Admitted { created: true }))
    );
    assert_eq!(
        world
            .kinds()
            .iter()
            .filter(|kind| **kind == EventKind::GroupRefused)
            .count(),
        3
    );
}

#[test]
fn a_quote_keeps_nothing_and_can_stand_in_for_a_group() {
    let mut world = World::new(3);
    let large = sla(InMemory, 3, 530_000);
    for n in 1..=2 {
        assert!(world.state.quote(&large, None, None).admissible);
        world.admit(n, large.clone());
    }
    let quote = world.state.quote(&large, None, None);
    assert!(!quote.admissible && quote.refusal.is_some());
    assert!(world.state.quote(&large, Some(group(1)), None).admissible);
    world.state.validate().unwrap();
    assert_eq!(
        quote.demand.iter().map(|d| d.role).collect::<Vec<_>>(),
        [Role::Head, Role::Follower, Role::Tail]
    );
    let json = serde_json::to_value(&quote).unwrap();
    assert_eq!(json["demand"][0]["role"], "head");
    assert!(json["demand"][0]["cpu"].as_f64().unwrap() > 0.7);
    assert!(!World::new(0).state.quote(&large, None, None).admissible);
}

#[test]
fn deletion_waits_for_live_servers() {
    let mut world = World::new(4);
    world.active(1, InMemory, 3);
    let (chain, ..) = world.shape(1);
    let effects = world.delete(1);
    assert_eq!(drops(&effects).len(), 3);
    assert!(effects.contains(&Effect::Reply(Reply::Deleted)));
    assert_eq!(world.group(1).status, Deleting);
    assert_eq!(world.delete(1), [Effect::Reply(Reply::Deleted)]);
    assert!(matches!(
        &world.admit(1, sla(InMemory, 3, 1_000))[..],
        [Effect::Reply(Reply::Conflict {
            code: "group_deleted",
            ..
        })]
    ));
    world.dropped(chain[0], 1);
    world.dropped(chain[1], 1);
    world.fail(&[chain[2]]);
    assert!(!world.state.groups.contains_key(&group(1)), "the third is gone");
    assert_eq!(
        world
            .kinds()
            .iter()
            .filter(|kind| **kind == EventKind::GroupDeleted)
            .count(),
        1
    );
    assert_eq!(world.delete(1), [Effect::Reply(Reply::Deleted)]);
    assert!(matches!(
        &world.admit(1, sla(InMemory, 3, 1_000))[..],
        [Effect::Reply(Reply::Conflict {
            code: "group_deleted",
            ..
        })]
    ));
}

#[test]
fn a_server_that_was_down_during_the_deletion_drops_when_it_returns() {
    let mut world = World::new(3);
    world.active(1, Persistent, 3);
    let (chain, ..) = world.shape(1);
    world.fail(&[chain[1]]);
    world.delete(1);
    world.dropped(chain[0], 1);
    world.dropped(chain[2], 1);
    assert!(!world.state.groups.contains_key(&group(1)));
    let effects = world.come_back(chain[1], "i2", vec![held(1, Persistent)]);
    assert_eq!(drops(&effects).len(), 1);
    world.dropped(chain[1], 1);
    // Data of a group that was never admitted here stays, and an event names it.
    let effects = world.come_back(chain[1], "i2", vec![held(99, Persistent)]);
    assert!(drops(&effects).is_empty());
    assert_eq!(world.kinds().last(), Some(&EventKind::ServerHoldsUnknownGroup));
}

#[test]
fn replaying_the_commands_gives_the_same_state_and_so_does_a_snapshot_in_the_middle() {
    let mut world = World::new(5);
    world.active(1, Persistent, 3);
    world.active(2, InMemory, 3);
    let (chain, ..) = world.shape(2);
    world.fail(&[chain[0]]);
    // The restart falls between the splice and the learner's arrival.
    let (before, middle) = (world.history.len(), serde_json::to_vec(&world.state).unwrap());
    world.caught_up(2, 2);
    world.delete(1);
    world.apply(Command::Admit {
        group_id: group(3),
        project_id: Uuid::nil(),
        sla: sla(InMemory, 4, 10),
    });
    let expected = serde_json::to_value(&world.state).unwrap();

    let mut replayed = CoordinatorState::new(Profile::default_profile());
    for (now_ms, command) in &world.history {
        apply(&mut replayed, *now_ms, command);
    }
    assert_eq!(serde_json::to_value(&replayed).unwrap(), expected);

    let mut restored: CoordinatorState = serde_json::from_slice(&middle).unwrap();
    restored.restore();
    restored.validate().unwrap();
    for (now_ms, command) in &world.history[before..] {
        apply(&mut restored, *now_ms, command);
        restored.validate().unwrap();
    }
    assert_eq!(serde_json::to_value(&restored).unwrap(), expected);
}

#[test]
fn a_new_profile_changes_later_promises_and_not_earlier_ones() {
    let mut world = World::new(3);
    world.active(1, InMemory, 3);
    let demands = world.group(1).demands.clone();
    let mut cautious: serde_json::Value = serde_json::to_value(Profile::default_profile()).unwrap();
    cautious["safety_factor"] = serde_json::json!(0.000_001);
    let cautious = Profile::parse(&cautious.to_string()).unwrap();
    let effects = world.apply(Command::UseProfile {
        profile: Box::new(cautious.clone()),
    });
    // Servers use unallocated capacity for bursts, so they get the new share.
    let promised = |n| Effect::Send {
        server: server(n),
        message: ToServer::PromisedShare { share: 0.000_001 },
    };
    assert!(
        [1, 2, 3].iter().all(|n| effects.contains(&promised(*n))),
        "{effects:?}"
    );
    let again = world.apply(Command::UseProfile {
        profile: Box::new(cautious),
    });
    assert_eq!(again, [Effect::Reply(Reply::Done)], "the share is the same");
    assert_eq!(world.group(1).demands, demands);
    assert!(!world.state.quote(&sla(InMemory, 3, 1_000), None, None).admissible);
    world.apply(Command::UseProfile {
        profile: Box::new(Profile::default_profile()),
    });
    world.active(2, InMemory, 3);
}
