//! Guarantees of projects: admitted, reserved in common, and kept whatever becomes of servers.

use quorate_coordinator_core::command::{Command, Effect, GuaranteeChange, Reply};
use quorate_coordinator_core::engine::{Input, Outgoing};
use quorate_coordinator_core::state::{CoordinatorState, quote_guarantee};
use quorate_coordinator_core::view::GuaranteeView;
use quorate_guarantees::{Guarantee, LocalPolicy, PolicyGroup};
use quorate_types::sla::RefusalReason;
use quorate_types::{Durability, versions};
use uuid::Uuid;

use crate::rig::Rig;
use crate::world::{World, group, server, sla};

const PROJECT: Uuid = Uuid::nil();
const RATE_PER_S: u64 = 10_000;

fn sharing(shared_tokens_per_s: u64) -> Guarantee {
    Guarantee {
        shared_tokens_per_s,
        max_tokens_per_s: None,
        policy: LocalPolicy::default(),
    }
}

impl World {
    fn guarantee(&mut self, guarantee: Option<Guarantee>, revision: u64) -> Reply {
        let effects = self.apply(Command::SetGuarantee(GuaranteeChange {
            project_id: PROJECT,
            guarantee,
            revision,
        }));
        match effects.as_slice() {
            [Effect::Reply(reply)] => reply.clone(),
            others => panic!("nothing but an answer: {others:?}"),
        }
    }

    fn admitted(&mut self, n: u128, rate_per_s: u64) -> bool {
        let effects = self.admit(n, sla(Durability::InMemory, 3, rate_per_s));
        effects.contains(&Effect::Reply(Reply::Admitted { created: true }))
    }

    fn cpu(&self, n: u32) -> f64 {
        self.state.allocated_on(server(n)).to_resources().cpu
    }

    fn cpu_of_all(&self) -> f64 {
        self.state.servers.keys().map(|id| self.cpu(id.0)).sum()
    }
}

fn code(reply: &Reply) -> &str {
    match reply {
        Reply::Conflict { code, .. } => code,
        other => panic!("no conflict: {other:?}"),
    }
}

#[test]
fn groups_of_a_project_reserve_its_shared_tokens_in_common() {
    let mut world = World::new(3);
    // Each server has the head of one.
    assert!((1..=3).all(|n| world.admitted(n, RATE_PER_S)));
    let without = world.cpu_of_all();
    assert_eq!(world.guarantee(Some(sharing(100_000)), 1), Reply::Done);
    let with = world.cpu_of_all();
    assert!(with > without * 1.1, "{without} and {with}");
    // A further group on the same servers adds its own rate, and nothing for what is shared.
    let own = without / 3.0;
    assert!(world.admitted(5, RATE_PER_S));
    assert!((world.cpu_of_all() - with - own).abs() < own / 50.0);
    // Another project's group adds its own rate alone, too.
    world.apply(Command::Admit {
        group_id: group(4),
        project_id: Uuid::from_u128(9),
        sla: sla(Durability::InMemory, 3, RATE_PER_S),
    });
    assert!((world.cpu_of_all() - with - 2.0 * own).abs() < own / 50.0);
    assert_eq!(world.guarantee(None, 2), Reply::Done);
    assert!(
        (world.cpu_of_all() - 5.0 * own).abs() < 1e-9,
        "nothing is left of it"
    );
}

#[test]
fn replicas_go_to_servers_that_reserve_for_their_project() {
    let mut world = World::new(9);
    assert_eq!(
        world.guarantee(Some(sharing(400_000)), 1),
        Reply::Done,
        "before any group"
    );
    for n in 1..=6 {
        assert!(world.admitted(n, 1_000));
    }
    let used = (1..=9).filter(|n| world.cpu(*n) > 0.0).count();
    assert_eq!(used, 3, "all groups fit beside one another");
    let mut others = World::new(9);
    for n in 1..=6 {
        assert!(others.admitted(n, 1_000));
    }
    assert_eq!(
        (1..=9).filter(|n| others.cpu(*n) > 0.0).count(),
        9,
        "without it they spread"
    );
}

#[test]
fn a_guarantee_that_does_not_fit_names_what_is_short_and_one_that_fits() {
    let mut world = World::new(3);
    assert!(world.admitted(1, RATE_PER_S));
    let before = world.state.clone();
    let refused = match world.guarantee(Some(sharing(1_000_000_000)), 1) {
        Reply::GuaranteeRefused(refusal) => refusal,
        other => panic!("{other:?}"),
    };
    assert!(refused.message.contains("CPU"), "{}", refused.message);
    let fits = refused.largest_shared_tokens_per_s;
    assert!(fits > 100_000, "{fits}");
    let ask = |state: &mut CoordinatorState, tokens| quote_guarantee(state, PROJECT, &sharing(tokens));
    assert!(matches!(
        ask(&mut world.state, fits + 1),
        Reply::GuaranteeRefused(_)
    ));
    assert_eq!(ask(&mut world.state, fits), Reply::Done);
    for n in 1..=3 {
        assert_eq!(
            world.cpu(n),
            before.allocated_on(server(n)).to_resources().cpu,
            "a quote changes nothing"
        );
    }
    assert_eq!(world.state.guarantees, before.guarantees);
    assert_eq!(world.guarantee(Some(sharing(fits)), 1), Reply::Done);
    assert!(!world.admitted(2, 200_000), "the servers are full");
    assert_eq!(
        world.guarantee(Some(sharing(fits / 2)), 2),
        Reply::Done,
        "less always fits"
    );
    assert!(world.admitted(3, 50_000));
}

#[test]
fn a_group_needs_room_for_what_its_project_shares() {
    let mut world = World::new(3);
    let all = sla(Durability::InMemory, 3, 1_000);
    let quote = |world: &mut World, tokens: u64, revision| {
        assert_eq!(world.guarantee(Some(sharing(tokens)), revision), Reply::Done);
        world.state.quote(&all, None, Some(PROJECT))
    };
    assert!(quote(&mut world, 1_000_000, 1).admissible);
    let refusal = quote(&mut world, 1_000_000_000, 2)
        .refusal
        .expect("no server has so much");
    assert_eq!(refusal.reason, RefusalReason::InsufficientCapacity);
    assert!(
        world.state.quote(&all, None, None).admissible,
        "other projects have room"
    );
    assert!(!world.admitted(1, 1_000));
}

#[test]
fn misuse_is_refused_and_changes_nothing() {
    let mut world = World::new(3);
    assert!(world.admitted(1, RATE_PER_S));
    world.apply(Command::Admit {
        group_id: group(2),
        project_id: Uuid::from_u128(9),
        sla: sla(Durability::InMemory, 3, 10),
    });
    let (before, charged) = (world.state.guarantees.clone(), world.cpu_of_all());
    let own = GuaranteeView::of(&world.state, PROJECT, &[]).own_tokens_per_s;
    assert!(own > RATE_PER_S);
    let below = Guarantee {
        max_tokens_per_s: Some(own + 99),
        ..sharing(100)
    };
    let reply = world.guarantee(Some(below.clone()), 1);
    assert_eq!(code(&reply), "guarantee_below_groups");
    let Reply::Conflict { message, .. } = &reply else {
        unreachable!()
    };
    assert!(
        message.contains(&format!("ask for {} or more", own + 100)),
        "{message}"
    );
    let foreign = |n: u128, weight: u32| Guarantee {
        policy: LocalPolicy {
            groups: vec![PolicyGroup {
                group_id: group(n),
                weight,
                class: None,
            }],
            ..LocalPolicy::default()
        },
        ..sharing(100)
    };
    assert_eq!(
        code(&world.guarantee(Some(foreign(2, 1)), 1)),
        "foreign_group",
        "another project's"
    );
    assert_eq!(
        code(&world.guarantee(Some(foreign(3, 1)), 1)),
        "foreign_group",
        "nobody's"
    );
    assert_eq!(
        code(&world.guarantee(Some(foreign(1, 0)), 1)),
        "invalid_guarantee",
        "no weight"
    );
    assert_eq!(
        code(&world.guarantee(Some(sharing(0)), 1)),
        "invalid_guarantee",
        "promises nothing"
    );
    assert_eq!(
        code(&world.guarantee(Some(sharing(100)), 2)),
        "guarantee_revision"
    );
    assert_eq!((&world.state.guarantees, world.cpu_of_all()), (&before, charged));
    assert_eq!(world.guarantee(Some(foreign(1, 7)), 1), Reply::Done);
}

#[test]
fn a_repetition_changes_nothing_and_a_late_one_is_refused() {
    let mut world = World::new(3);
    assert_eq!(world.guarantee(Some(sharing(100)), 1), Reply::Done);
    assert_eq!(world.guarantee(Some(sharing(100)), 1), Reply::Done);
    assert_eq!(
        code(&world.guarantee(Some(sharing(101)), 1)),
        "guarantee_revision"
    );
    assert_eq!(world.guarantee(None, 2), Reply::Done);
    assert_eq!(
        code(&world.guarantee(Some(sharing(100)), 1)),
        "guarantee_revision"
    );
    assert_eq!(world.state.guarantees.of(PROJECT), None);
}

#[test]
fn groups_reserve_no_more_than_a_maximum_allows() {
    let mut world = World::new(3);
    assert!(world.admitted(1, RATE_PER_S));
    let own = GuaranteeView::of(&world.state, PROJECT, &[]).own_tokens_per_s;
    let most = Guarantee {
        max_tokens_per_s: Some(2 * own + 500),
        ..sharing(500)
    };
    assert_eq!(world.guarantee(Some(most), 1), Reply::Done);
    let quote = world
        .state
        .quote(&sla(Durability::InMemory, 3, 2 * RATE_PER_S), None, Some(PROJECT));
    let refusal = quote.refusal.expect("it is beyond the maximum");
    assert_eq!(refusal.reason, RefusalReason::BeyondGuarantee);
    let fits = refusal.largest_sla_that_fits.expect("less fits");
    assert!(
        fits.rate_per_s.abs_diff(RATE_PER_S) <= RATE_PER_S / 100,
        "{}",
        fits.rate_per_s
    );
    assert!(!world.admitted(2, 2 * RATE_PER_S));
    assert!(world.admitted(2, fits.rate_per_s));
    let resized = world.apply(Command::Resize {
        group_id: group(1),
        sla: sla(Durability::InMemory, 3, 2 * RATE_PER_S),
        revision: 2,
    });
    assert!(
        matches!(resized.as_slice(), [Effect::Reply(Reply::Refused(_))]),
        "{resized:?}"
    );
    world.delete(2);
    let resized = world.apply(Command::Resize {
        group_id: group(1),
        sla: sla(Durability::InMemory, 3, RATE_PER_S + RATE_PER_S / 2),
        revision: 2,
    });
    assert!(resized.contains(&Effect::Reply(Reply::Done)));
}

#[test]
fn a_deleted_group_has_no_part_in_it_any_more() {
    let mut world = World::new(3);
    assert!(world.admitted(1, RATE_PER_S) && world.admitted(2, RATE_PER_S));
    assert_eq!(world.state.guaranteed_groups(), 0);
    assert_eq!(world.guarantee(Some(sharing(500)), 1), Reply::Done);
    assert_eq!(world.state.guaranteed_groups(), 2);
    world.delete(2);
    assert_eq!(world.state.guaranteed_groups(), 1);
    let groups = &world.state.guaranteed_projects()[0].groups;
    assert_eq!(
        groups.iter().map(|one| one.group_id).collect::<Vec<_>>(),
        [group(1)]
    );
}

#[test]
fn replacements_reserve_what_the_project_shares() {
    let mut world = World::new(4);
    assert_eq!(world.guarantee(Some(sharing(300_000)), 1), Reply::Done);
    for n in 1..=3 {
        assert!(world.admitted(n, 1_000));
        world.apply_all(n);
    }
    let lost = world.group(1).chain[0];
    let spare = (1..=4)
        .find(|n| world.cpu(*n) == 0.0)
        .expect("three servers host them");
    world.fail(&[lost.0]);
    for n in 1..=3 {
        assert_eq!(world.group(n).learner, Some(server(spare)));
    }
    let other = world.group(1).chain[1];
    assert!(
        world.cpu(spare) > 0.7 * world.cpu(other.0),
        "it reserves as much as the others"
    );
    let snapshot = serde_json::to_string(&world.state).unwrap();
    let mut restored: CoordinatorState = serde_json::from_str(&snapshot).unwrap();
    restored.restore();
    restored
        .validate()
        .expect("what is reserved follows from groups and guarantees");
    assert_eq!(restored.guarantees, world.state.guarantees);
}

#[test]
fn coordinators_of_the_release_before_cannot_read_a_guarantee() {
    let mut rig = Rig::new();
    let command = Command::SetGuarantee(GuaranteeChange {
        project_id: PROJECT,
        guarantee: Some(sharing(100)),
        revision: 1,
    });
    let answer = |rig: &mut Rig| {
        let command = command.clone();
        rig.take(Input::Command { call: 5, command })
    };
    let output = answer(&mut rig);
    let [Outgoing::Answer { reply, .. }] = output.outgoing.as_slice() else {
        panic!("{output:?}")
    };
    assert_eq!((code(reply), output.commands.len()), ("fleet_not_ready", 0));
    rig.take(Input::RaiseFleetVersion {
        call: 9,
        members: Vec::new(),
    });
    assert!(rig.engine.state().fleet_version >= versions::FLEET_WITH_GUARANTEES);
    let output = answer(&mut rig);
    assert_eq!(output.commands.len(), 1);
}
