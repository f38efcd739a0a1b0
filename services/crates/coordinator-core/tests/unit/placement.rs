//! Room kept on each server for replicas of servers that fail, and servers that the profile does not match.

use crate::world::{World, credential, group, registration, server, sla};
use quorate_coordinator_core::command::{Command, Effect, Proof, Registration, Reply};
use quorate_coordinator_core::command::{Headroom, Mismatched, PlacementPolicy, Relief, Replacements};
use quorate_coordinator_core::state::{
    CoordinatorState, Overpromising, ProfileRefused, apply, check_profile,
};
use quorate_coordinator_core::view::ServerView;
use quorate_placement::{Choice, Profile};
use quorate_types::Durability::InMemory;
use quorate_types::cost::ResourceVector;
use quorate_types::{Machine, ServerId};
use serde_json::json;

/// Some fifty replicas a server.
const RATE_PER_S: u64 = 20_000;

/// Admits groups of degree 3 until the fleet refuses one. The number admitted.
fn fill(world: &mut World) -> u128 {
    fill_with(world, &[RATE_PER_S])
}

/// The same with these rates in turn.
fn fill_with(world: &mut World, rates_per_s: &[u64]) -> u128 {
    for n in 1..=500 {
        let rate_per_s = rates_per_s[n as usize % rates_per_s.len()];
        let effects = world.admit(n, sla(InMemory, 3, rate_per_s));
        if let Some(Effect::Reply(Reply::Refused(_))) = effects.first() {
            return n - 1;
        }
        world.apply_all(n);
    }
    panic!("the fleet of the test is too large");
}

/// Groups that lost a replica and found no server to replace it.
fn without_replacement(state: &CoordinatorState) -> usize {
    let groups = state.groups.values();
    groups
        .filter(|group| group.chain.len() < 3 && group.learner.is_none())
        .count()
}

#[test]
fn any_one_server_of_a_full_fleet_may_fail() {
    // Fifty replicas a server, ten, and a mixture.
    let mixed = [60_000, 25_000, 100_000, 5_000, 10_000];
    for (servers, rates_per_s) in (4..=10)
        .flat_map(|servers| [&[RATE_PER_S][..], &[100_000], &mixed].map(|rates_per_s| (servers, rates_per_s)))
    {
        let mut world = World::with_headroom(servers);
        assert!(fill_with(&mut world, rates_per_s) > 3);
        for lost in 1..=servers {
            let mut state = world.state.clone();
            let failed = Command::ServersFailed {
                servers: vec![server(lost)],
            };
            apply(&mut state, world.now_ms + 1, &failed);
            state.validate().unwrap();
            let without = without_replacement(&state);
            assert_eq!(
                without, 0,
                "{servers} servers, {lost} lost, {rates_per_s:?} requests/s"
            );
        }
    }
    let mut careless = World::new(5);
    fill(&mut careless);
    careless.fail(&[1]);
    assert!(
        without_replacement(&careless.state) > 0,
        "without headroom there is none"
    );
}

#[test]
fn the_room_kept_is_one_domains_worth_and_a_tenth() {
    let kept = |servers: u32| {
        let (mut all, mut less) = (World::new(servers), World::with_headroom(servers));
        1.0 - fill(&mut less) as f64 / fill(&mut all) as f64
    };
    // Three servers cannot replace a replica of a group of three, so no room is kept.
    assert_eq!(kept(3), 0.0);
    for servers in [4, 5, 8] {
        let share = 1.0 / f64::from(servers);
        assert!(
            (kept(servers) - share).abs() < 0.08,
            "{servers} servers: {}",
            kept(servers)
        );
    }
}

#[test]
fn a_failed_server_keeps_counting_and_one_that_is_given_up_does_not() {
    let kept = |world: &mut World| {
        let quote = world.state.quote(&sla(InMemory, 3, RATE_PER_S), None, None);
        let message = quote.refusal.expect("the fleet is full").message;
        let (before, _) = message.split_once(" % kept").expect("it says what is kept");
        before.rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    let mut world = World::with_headroom(5);
    fill(&mut world);
    assert_eq!(kept(&mut world), 22.0, "1.1/5");
    world.fail(&[5]);
    assert_eq!(kept(&mut world), 22.0, "its share stays kept");
    world.apply(Command::Forget { server: server(5) });
    assert_eq!(
        kept(&mut world),
        27.5,
        "1.1/4: a fourth of each is kept, no more a fifth"
    );
}

#[test]
fn a_refusal_says_what_is_kept() {
    let mut world = World::with_headroom(5);
    let admitted = fill(&mut world);
    let quote = world.state.quote(&sla(InMemory, 3, RATE_PER_S), None, None);
    let message = quote.refusal.unwrap().message;
    assert!(
        message.contains("beside the 22 % kept for replicas of servers that fail"),
        "{message}"
    );
    assert!(admitted > 0 && world.state.groups.contains_key(&group(admitted)));
}

/// Two groups lose a replica each; the light group has the lesser id. One server has room for either replica, another
/// for the light one alone. The learners of the light and the heavy group.
fn replaced(replacements: Replacements) -> [Option<ServerId>; 2] {
    let mut world = World::new(2);
    let placement = PlacementPolicy {
        replacements,
        ..PlacementPolicy::default()
    };
    world.apply(Command::UsePlacement { policy: placement });
    let (light, heavy) = (sla(InMemory, 2, 10_000), sla(InMemory, 2, 40_000));
    let mut tail_cpu =
        |sla| world.state.quote(sla, None, None).demand[1].demand.cpu / world.state.profile.safety_factor;
    let (light_cpu, heavy_cpu) = (tail_cpu(&light), tail_cpu(&heavy));
    for (n, sla) in [(1, light), (2, heavy)] {
        world.admit(n, sla);
        world.apply_all(n);
    }
    for (n, cpu) in [(3, heavy_cpu + light_cpu / 2.0), (4, light_cpu * 1.5)] {
        let digest = format!("token-{n}");
        world.issue_token(&digest, 60_000, None);
        let proof = Proof::JoinToken {
            digest,
            credential_digest: format!("credential-{n}"),
        };
        world.register(Registration {
            capacity: ResourceVector::new(cpu, 1.25e9, 20_000.0),
            ..registration(proof, n, "i1")
        });
    }
    world.fail(&[1]);
    [1, 2].map(|n| world.group(n).learner)
}

#[test]
fn the_heaviest_replica_is_replaced_first_unless_the_log_is_from_before() {
    assert_eq!(replaced(Replacements::ById), [Some(server(3)), None]);
    assert_eq!(
        replaced(Replacements::HeaviestFirst),
        [Some(server(4)), Some(server(3))]
    );
    let before = r#"{"choice":"shape","headroom":"one_domain"}"#;
    let before: PlacementPolicy = serde_json::from_str(before).unwrap();
    assert_eq!(before.replacements, Replacements::ById);
    assert_eq!(before.relief, Relief::OneByOne);
    assert!(!before.is_spread);
}

#[test]
fn nobody_is_elected_where_followers_that_become_heads_need_the_room() {
    // In the order of ids a learner was elected on a server before a later group's head was charged there.
    for servers in 4..=7 {
        let mut world = World::with_headroom(servers);
        fill(&mut world);
        world.fail(&[1]);
        for n in 2..=servers {
            let resources = ServerView::with_id(&world.state, server(n)).unwrap().resources;
            let is_over = resources.allocated.rates.cpu > resources.promisable.rates.cpu;
            let learners = world
                .state
                .groups
                .values()
                .filter(|group| group.learner == Some(server(n)));
            assert!(!is_over || learners.count() == 0, "{servers} servers: s{n}");
        }
    }
}

/// The built-in profile as if it had been measured on `cores` cores.
fn measured_on(cores: u32) -> Profile {
    let mut profile = serde_json::to_value(Profile::default_profile()).unwrap();
    let measured = json!({"format": 2, "provisional": false, "servers_version": "0.1.0",
        "machine": {"cpu": "A", "cores": cores}});
    for (field, value) in measured.as_object().unwrap() {
        profile[field] = value.clone();
    }
    Profile::parse(&profile.to_string()).unwrap()
}

/// The built-in profile at so many times the CPU.
fn times_as_dear(times: u64) -> Profile {
    let mut profile = serde_json::to_value(Profile::default_profile()).unwrap();
    for mode in ["in_memory", "persistent"] {
        for role in ["head", "follower", "tail"] {
            for point in profile["cpu"][mode][role].as_array_mut().unwrap() {
                point["cpu_ns"] = (point["cpu_ns"].as_u64().unwrap() * times).into();
            }
        }
    }
    profile["version"] = format!("{times} times as dear").into();
    Profile::parse(&profile.to_string()).unwrap()
}

#[test]
fn a_profile_by_which_promises_would_not_hold_is_refused_beforehand() {
    let mut world = World::new(3);
    let check = |world: &World, times, overpromising| {
        check_profile(
            &times_as_dear(times),
            &world.state,
            Mismatched::Used,
            overpromising,
        )
        .map(|_| ())
    };
    assert_eq!(
        check(&world, 1_000, Overpromising::Refused),
        Ok(()),
        "nothing is promised"
    );
    let groups = fill(&mut world);
    assert_eq!(
        check(&world, 1, Overpromising::Refused),
        Ok(()),
        "it costs the same"
    );
    let refused = check(&world, 2, Overpromising::Refused);
    let Err(ProfileRefused::Overpromised {
        resource,
        percent,
        more,
        ..
    }) = refused
    else {
        panic!("not refused: {refused:?}");
    };
    assert_eq!((resource, more), ("cpu", 2));
    assert!(
        (150..=200).contains(&percent),
        "{percent} % of what may be promised"
    );
    assert_eq!(
        check(&world, 2, Overpromising::Used),
        Ok(()),
        "an operator may say so"
    );
    for n in 1..=groups {
        world.delete(n);
    }
    assert_eq!(
        check(&world, 2, Overpromising::Refused),
        Ok(()),
        "the promises are gone"
    );
}

/// Comes back in the same process, and names its machine.
fn says_its_cores(world: &mut World, n: u32, cores: u32) {
    let machine = Some(Machine {
        cpu: "A".into(),
        cores,
    });
    world.register(Registration {
        machine,
        ..registration(credential(n), n, "i1")
    });
}

#[test]
fn servers_that_the_profile_does_not_match_take_no_replicas_when_refused() {
    let mut world = World::new(4);
    world.apply(Command::UseProfile {
        profile: Box::new(measured_on(2)),
    });
    for n in 1..=4 {
        says_its_cores(&mut world, n, if n == 4 { 8 } else { 2 });
    }
    let placement = |mismatched| Command::UsePlacement {
        policy: PlacementPolicy {
            mismatched,
            ..PlacementPolicy::default()
        },
    };
    world.apply(placement(Mismatched::Refused));
    for n in 1..=8 {
        world.active(n, InMemory, 3);
        assert!(!world.group(n).is_member(server(4)), "the profile is not of it");
    }
    let view = ServerView::with_id(&world.state, server(4)).unwrap();
    assert!(view.foreign.unwrap().contains("this is 8 × A"));
    assert_eq!(
        (view.machine.as_deref(), view.takes_replicas),
        (Some("8 × A"), false)
    );
    // Replacements are not placed on it, either, until a profile matches it or the policy allows it.
    world.fail(&[1]);
    assert_eq!(world.group(1).learner, None);
    world.apply(placement(Mismatched::Used));
    assert_eq!(world.group(1).learner, Some(server(4)));
    let view = ServerView::with_id(&world.state, server(4)).unwrap();
    assert!(
        view.foreign.is_some() && view.takes_replicas,
        "allowed, and shown"
    );
    world.apply(placement(Mismatched::Refused));
    assert_eq!(world.group(1).learner, Some(server(4)), "what it has stays");
    // A server that comes back as another machine names that machine.
    says_its_cores(&mut world, 2, 8);
    assert!(
        ServerView::with_id(&world.state, server(2))
            .unwrap()
            .foreign
            .is_some()
    );
    world.apply(Command::UseProfile {
        profile: Box::new(measured_on(8)),
    });
    assert!(
        ServerView::with_id(&world.state, server(2))
            .unwrap()
            .foreign
            .is_none()
    );
    assert!(
        ServerView::with_id(&world.state, server(3))
            .unwrap()
            .foreign
            .is_some()
    );
    // An older log does not have the field.
    let before = r#"{"choice":"shape","headroom":{"permille":100}}"#;
    let before: PlacementPolicy = serde_json::from_str(before).unwrap();
    assert_eq!(before.mismatched, Mismatched::Used);
}

#[test]
fn a_log_from_before_replays_as_it_was_and_a_snapshot_keeps_the_setting() {
    let mut world = World::new(5);
    fill(&mut world);
    let placement = PlacementPolicy {
        choice: Choice::Shape,
        headroom: Headroom::Permille(100),
        ..PlacementPolicy::default()
    };
    world.apply(Command::UsePlacement { policy: placement });
    world.apply(Command::Delete { group_id: group(1) });
    world.fail(&[2]);
    let expected = serde_json::to_value(&world.state).unwrap();
    let mut replayed = CoordinatorState::new(Profile::default_profile());
    for (now_ms, command) in &world.history {
        apply(&mut replayed, *now_ms, command);
    }
    assert_eq!(serde_json::to_value(&replayed).unwrap(), expected);
    let mut restored: CoordinatorState = serde_json::from_value(expected.clone()).unwrap();
    restored.restore();
    assert_eq!(restored.policy, placement);
    let quote = |state: &mut CoordinatorState| state.quote(&sla(InMemory, 3, 400_000_000), None, None);
    assert_eq!(quote(&mut restored), quote(&mut world.state));
    // An older snapshot does not have the field.
    let mut old = expected;
    old.as_object_mut().unwrap().remove("placement");
    let old: CoordinatorState = serde_json::from_value(old).unwrap();
    assert_eq!(old.policy, PlacementPolicy::default());
}

#[test]
fn the_setting_is_read_or_refused() {
    assert_eq!("one-domain".parse(), Ok(Headroom::OneDomain));
    assert_eq!("12.5".parse(), Ok(Headroom::Permille(125)));
    assert_eq!("0%".parse(), Ok(Headroom::Permille(0)));
    for bad in ["", "-1", "51", "nan", "a lot"] {
        assert!(bad.parse::<Headroom>().is_err(), "{bad}");
    }
}
