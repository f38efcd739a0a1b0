//! Groups with partitions: admitted together or not at all, changed together, and grown without a key's order lost.

use std::collections::{BTreeSet, HashMap};

use quorate_coordinator_core::command::{
    Cause, Command, Effect, PartitionsChange, QuoteRequest, RateChange, Relocate, Reply,
};
use quorate_coordinator_core::planner::reports;
use quorate_coordinator_core::state::{GroupStatus, LayoutChange, quote};
use quorate_coordinator_core::view::PartitionsView;
use quorate_types::control::{ToCoordinator, ToServer};
use quorate_types::sla::RefusalReason;
use quorate_types::{Durability, Layout, Sla};
use uuid::Uuid;

use crate::world::{World, group, server, sla};

/// A group with ids from `first` on.
fn change(first: u128, count: u128, rate_per_s: u64, revision: u64) -> PartitionsChange {
    PartitionsChange {
        group_id: group(first),
        project_id: Uuid::nil(),
        sla: Sla {
            retention_bytes: 1 << 28,
            ..sla(Durability::InMemory, 3, rate_per_s)
        },
        partitions: (first..first + count).map(group).collect(),
        revision,
    }
}

impl World {
    fn set(&mut self, change: PartitionsChange) -> Reply {
        answer(self.apply(Command::SetPartitions(change)))
    }

    fn seal(&mut self, n: u128, layout: u32, end_offset: u64) -> bool {
        let message = ToCoordinator::LayoutSealed {
            group_id: group(n),
            layout: Layout(layout),
            end_offset,
        };
        let head = self.group(n).chain[0];
        let command = reports::proposal(&self.state, head, &message);
        command.is_some_and(|command| {
            self.apply(command);
            true
        })
    }

    fn view(&self, n: u128) -> PartitionsView {
        let wanted = [(group(n), 7)].into();
        PartitionsView::of(&self.state, group(n), &wanted).expect("it has partitions")
    }

    fn charged_cpu(&self) -> f64 {
        let each = self.state.servers.keys();
        each.map(|id| self.state.allocated_on(*id).to_resources().cpu)
            .sum()
    }

    fn all_active(&mut self, first: u128, count: u128) {
        (first..first + count).for_each(|n| self.apply_all(n));
    }
}

fn answer(effects: Vec<Effect>) -> Reply {
    let mut replies = effects.into_iter().filter_map(|effect| match effect {
        Effect::Reply(reply) => Some(reply),
        _ => None,
    });
    replies.next().expect("an answer")
}

fn code(reply: &Reply) -> &str {
    match reply {
        Reply::Conflict { code, .. } => code,
        other => panic!("no conflict: {other:?}"),
    }
}

#[test]
fn partitions_divide_one_sla_and_spread_over_the_fleet() {
    let mut world = World::new(8);
    assert_eq!(world.set(change(10, 8, 100_003, 1)), Reply::Done);
    let rates: Vec<u64> = (10..18).map(|n| world.group(n).sla.rate_per_s).collect();
    assert_eq!(
        rates,
        [12_501, 12_501, 12_501, 12_500, 12_500, 12_500, 12_500, 12_500]
    );
    let heads: std::collections::BTreeSet<_> = (10..18).map(|n| world.group(n).chain[0]).collect();
    assert!(heads.len() >= 4, "heads on {heads:?}");
    let view = world.view(10);
    assert_eq!(
        (
            view.wanted_per_s.len(),
            view.wanted_per_s[0],
            view.wanted_per_s[1]
        ),
        (8, Some(7), None)
    );
    assert_eq!(
        (view.layout, view.in_use, view.partitions.len()),
        (Layout(1), 8, 8)
    );
    assert_eq!(world.set(change(10, 8, 100_003, 1)), Reply::Done, "a repetition");
    assert_eq!(world.view(10), view);
}

#[test]
fn all_partitions_are_admitted_or_none() {
    let mut world = World::new(3);
    let reply = world.set(change(10, 4, 2_000_000, 1));
    let Reply::Refused(refusal) = reply else {
        panic!("{reply:?}");
    };
    assert_eq!(refusal.reason, RefusalReason::InsufficientCapacity);
    assert!(world.state.groups.is_empty() && world.state.partitions.is_empty());
    assert!(world.charged_cpu() == 0.0, "nothing stays charged");
    let fits = refusal.largest_sla_that_fits.expect("less fits");
    assert_eq!(
        world.set(PartitionsChange {
            sla: fits.clone(),
            ..change(10, 4, 1, 1)
        }),
        Reply::Done
    );
    let more = fits.rate_per_s + fits.rate_per_s / 10;
    assert!(matches!(world.set(change(10, 4, more, 2)), Reply::Refused(_)));
    assert_eq!(world.view(10).sla, fits, "a refused change changes nothing");
}

#[test]
fn a_partitioned_group_may_have_more_than_one_shard_carries() {
    let mut world = World::new(9);
    let peak_per_s = world
        .state
        .profile
        .shard_peak_per_s(&sla(Durability::InMemory, 3, 1));
    let reply = world.set(change(10, 1, peak_per_s + 100, 1));
    assert!(
        matches!(&reply, Reply::Refused(refusal) if refusal.reason == RefusalReason::BeyondShardPeak),
        "{reply:?}"
    );
    assert_eq!(world.set(change(10, 4, peak_per_s + 100, 1)), Reply::Done);
}

#[test]
fn a_quote_tells_every_partitions_demand_and_leaves_no_trace() {
    let mut world = World::new(3);
    let asked = change(10, 3, 30_001, 1).sla;
    let request = QuoteRequest {
        partitions: Some(3),
        ..asked.into()
    };
    let before = world.charged_cpu();
    let answer = quote(&mut world.state, &request);
    assert!(answer.admissible, "{answer:?}");
    assert_eq!(answer.parts.len(), 3);
    let sum: f64 = answer.parts.iter().map(|part| part.demand.demand.cpu).sum();
    assert!((answer.total_demand.demand.cpu - sum).abs() < 1e-9);
    assert!(
        answer.parts[0].demand.demand.cpu > answer.parts[2].demand.demand.cpu,
        "the first has the rest"
    );
    assert_eq!(world.charged_cpu(), before);
    world.set(change(10, 3, 30_001, 1));
    let grown = QuoteRequest {
        sla: change(10, 3, 60_000, 1).sla,
        replaces: Some(group(10)),
        project_id: None,
        partitions: None,
    };
    assert_eq!(
        quote(&mut world.state, &grown).parts.len(),
        3,
        "as many as it has"
    );
    assert!(world.state.validate().is_ok());
}

#[test]
fn an_sla_that_cannot_be_divided_is_refused_by_field() {
    let mut world = World::new(3);
    let mut few = change(10, 4, 3, 1);
    let message = |reply: Reply| match reply {
        Reply::Conflict { message, .. } => message,
        other => panic!("{other:?}"),
    };
    assert!(message(world.set(few.clone())).starts_with("rate_per_s"));
    few.sla.rate_per_s = 4;
    few.sla.retention_bytes = 1 << 20;
    assert!(message(world.set(few)).starts_with("retention_bytes"));
    let many = change(10, 257, 1_000, 1);
    assert!(message(world.set(many)).starts_with("partitions"));
    let none = PartitionsChange {
        partitions: Vec::new(),
        ..change(10, 1, 10, 1)
    };
    assert!(message(world.set(none)).starts_with("partitions"));
    assert!(world.state.groups.is_empty());
}

#[test]
fn misuse_changes_nothing() {
    let mut world = World::new(5);
    world.set(change(10, 2, 2_000, 1));
    world.all_active(10, 2);
    let before = world.view(10);
    assert_eq!(code(&world.set(change(10, 3, 3_000, 3))), "partitions_revision");
    assert_eq!(code(&world.set(change(10, 1, 2_000, 2))), "partitions_differ");
    let other = PartitionsChange {
        partitions: vec![group(11), group(10)],
        ..change(10, 2, 2_000, 2)
    };
    assert_eq!(code(&world.set(other)), "partitions_differ");
    let twice = PartitionsChange {
        partitions: vec![group(10), group(11), group(11)],
        ..change(10, 2, 3_000, 2)
    };
    assert_eq!(code(&world.set(twice)), "group_exists");
    let foreign = PartitionsChange {
        project_id: Uuid::from_u128(9),
        ..change(10, 2, 3_000, 2)
    };
    assert_eq!(code(&world.set(foreign)), "group_deleted");
    let resize = Command::Resize {
        group_id: group(11),
        sla: sla(Durability::InMemory, 3, 9),
        revision: 2,
    };
    assert_eq!(code(&answer(world.apply(resize))), "group_partitioned");
    let delete = Command::Delete { group_id: group(11) };
    assert_eq!(code(&answer(world.apply(delete))), "group_partitioned");
    assert_eq!(world.view(10), before);
    world.fail(&[1, 2, 3, 4, 5]);
    assert_eq!(code(&world.set(change(10, 3, 3_000, 2))), "partition_not_ready");
}

#[test]
fn clients_use_added_partitions_once_all_others_are_sealed() {
    let mut world = World::new(4);
    world.admit(10, change(10, 1, 9_000, 1).sla);
    world.apply_all(10);
    assert_eq!(
        world.set(change(10, 3, 9_000, 1)),
        Reply::Done,
        "a plain group grows"
    );
    let view = world.view(10);
    assert_eq!(
        (view.layout, view.in_use, view.partitions.len()),
        (Layout(0), 1, 3)
    );
    world.all_active(10, 3);
    assert_eq!(code(&world.set(change(10, 4, 9_000, 2))), "partitions_growing");
    assert!(!world.seal(11, 1, 0), "a new partition has nothing to seal");
    assert!(!world.seal(10, 0, 5), "of an earlier layout");
    assert!(world.seal(10, 1, 70));
    let view = world.view(10);
    assert_eq!((view.layout, view.in_use), (Layout(1), 3));
    assert!(!world.seal(10, 1, 90), "the first report holds");

    assert_eq!(world.set(change(10, 4, 9_000, 2)), Reply::Done);
    world.all_active(10, 4);
    assert!(world.seal(12, 2, 8) && world.seal(10, 2, 99));
    assert_eq!((world.view(10).layout, world.view(10).in_use), (Layout(1), 3));
    assert!(world.seal(11, 2, 7));
    let changed = |layout, from, to, ends: &[u64]| LayoutChange {
        layout: Layout(layout),
        from,
        to,
        ends: ends.to_vec(),
    };
    let view = world.view(10);
    assert_eq!((view.layout, view.in_use), (Layout(2), 4));
    assert_eq!(
        view.changes,
        [changed(1, 1, 3, &[70]), changed(2, 3, 4, &[99, 7, 8])]
    );
    let rates: u64 = (10..14).map(|n| world.group(n).sla.rate_per_s).sum();
    assert_eq!(rates, 9_000);
}

#[test]
fn members_are_told_the_layout_with_the_epoch_that_begins_it() {
    let mut world = World::new(3);
    world.admit(10, change(10, 1, 9_000, 1).sla);
    world.apply_all(10);
    let effects = world.apply(Command::SetPartitions(change(10, 2, 9_000, 1)));
    let layouts = effects.iter().filter_map(|effect| match effect {
        Effect::Send {
            message: ToServer::Configure { config },
            ..
        } => Some((config.group_id, config.epoch, config.layout)),
        _ => None,
    });
    let mut layouts: Vec<_> = layouts.collect();
    layouts.sort();
    layouts.dedup();
    assert_eq!(layouts, [(group(10), 2, Layout(1)), (group(11), 1, Layout(1))]);
}

#[test]
fn a_replica_that_is_no_head_seals_nothing() {
    let mut world = World::new(3);
    world.admit(10, change(10, 1, 9_000, 1).sla);
    world.apply_all(10);
    world.set(change(10, 2, 9_000, 1));
    let message = ToCoordinator::LayoutSealed {
        group_id: group(10),
        layout: Layout(1),
        end_offset: 3,
    };
    let head = world.group(10).chain[0];
    for n in (1..=3).map(server).filter(|id| *id != head) {
        assert_eq!(reports::proposal(&world.state, n, &message), None);
    }
    assert!(reports::proposal(&world.state, head, &message).is_some());
}

#[test]
fn a_group_is_deleted_with_all_its_partitions() {
    let mut world = World::new(3);
    world.set(change(10, 3, 3_000, 1));
    world.all_active(10, 3);
    assert!(world.charged_cpu() > 0.0);
    assert_eq!(
        answer(world.apply(Command::Delete { group_id: group(10) })),
        Reply::Deleted
    );
    assert!((10..13).all(|n| world.group(n).status == GroupStatus::Deleting));
    assert_eq!((world.charged_cpu(), world.state.partitions.len()), (0.0, 0));
    let again = Command::Delete { group_id: group(11) };
    assert_eq!(
        answer(world.apply(again)),
        Reply::Deleted,
        "each part may be asked for again"
    );
}

fn rates(world: &World, first: u128, count: u128) -> Vec<u64> {
    (first..first + count)
        .map(|n| world.group(n).sla.rate_per_s)
        .collect()
}

#[test]
fn a_partition_moves_to_where_it_can_have_what_it_wants() {
    let mut world = World::new(2);
    world.apply(Command::RaiseFleetVersion { to: 2 });
    let all = change(10, 2, 40_000, 1);
    let sla_alone = Sla {
        replication_degree: 1,
        ..all.sla.clone()
    };
    let sla = sla_alone.clone();
    assert_eq!(world.set(PartitionsChange { sla, ..all }), Reply::Done);
    world.all_active(10, 2);
    assert_ne!(world.group(10).chain, world.group(11).chain);
    // Other groups take the rest of both servers, and swap nothing.
    let much = Sla {
        rate_per_s: 80_000_000,
        ..sla_alone.clone()
    };
    for n in 1..=8 {
        let refusal = world.state.quote(&much, None, None).refusal.expect("too much");
        let Some(rest) = refusal.largest_sla_that_fits else {
            break;
        };
        world.admit(n, rest);
    }
    let wanted = wants(10, &[38_000, 1]);
    let divided = world.state.divided_rates(&wanted);
    assert_eq!((divided.changes, divided.pressures.len()), (vec![], 1));
    assert_eq!(world.join(3, "i1"), Ok(server(3)));
    let asked = world
        .state
        .migrations(&divided.pressures, &divided.room, &BTreeSet::new());
    let [one] = &asked[..] else {
        panic!("one replica is enough: {asked:?}");
    };
    let full = world.group(10).chain[0];
    assert_eq!(
        (one.cause, one.from, one.to),
        (Cause::Demand, full, Some(server(3)))
    );
    world.apply(Command::Relocate(one.clone()));
    assert_eq!(
        world.state.divided_rates(&wanted).changes,
        [],
        "nothing changes while it moves"
    );
    let moved = world.state.groups[&one.group_id].clone();
    world.apply(Command::LearnerCaughtUp {
        server: full,
        group_id: moved.group_id,
        epoch: moved.epoch,
        learner: server(3),
    });
    let changes = world.state.divided_rates(&wanted).changes;
    world.apply(Command::DivideRates { changes });
    assert!(rates(&world, 10, 2)[0] >= 38_000, "{:?}", rates(&world, 10, 2));
}

#[test]
fn rates_follow_what_partitions_want_while_a_replica_moves() {
    let mut world = World::new(4);
    world.apply(Command::RaiseFleetVersion { to: 2 });
    world.set(change(10, 2, 8_000, 1));
    world.all_active(10, 2);
    let from = world.group(10).chain[0];
    world.apply(Command::Relocate(Relocate {
        group_id: group(10),
        from,
        to: None,
        cause: Cause::Operator,
    }));
    let to = world.group(10).learner.expect("a server is free");
    let changes = world.state.divided_rates(&wants(10, &[7_000, 500])).changes;
    world.apply(Command::DivideRates { changes });
    let divided = rates(&world, 10, 2);
    assert!(divided[0] >= 7_000, "{divided:?}");
    assert!(
        world.group(10).relocation.is_some(),
        "the move goes on, and its reason is known"
    );
    world.caught_up(10, world.group(10).epoch);
    let known = world.group(10);
    assert_eq!((known.relocation.clone(), known.is_member(from)), (None, false));
    assert!(known.chain.contains(&to));
    assert_eq!(rates(&world, 10, 2), divided);
}

fn wants(first: u128, wanted: &[u64]) -> HashMap<quorate_types::GroupId, u64> {
    (first..).map(group).zip(wanted.iter().copied()).collect()
}

#[test]
fn rates_follow_what_partitions_want_and_keep_their_sum() {
    let mut world = World::new(6);
    world.set(change(10, 4, 8_000, 1));
    world.all_active(10, 4);
    let before = world.charged_cpu();
    assert_eq!(
        world.state.divided_rates(&wants(10, &[1_500; 4])).changes,
        [],
        "all have enough"
    );
    assert_eq!(
        world.state.divided_rates(&wants(10, &[9_000; 3])).changes,
        [],
        "one has not reported"
    );
    let changes = world
        .state
        .divided_rates(&wants(10, &[9_000, 100, 100, 100]))
        .changes;
    assert_eq!(changes.len(), 1);
    let epochs: Vec<u64> = (10..14).map(|n| world.group(n).epoch).collect();
    assert_eq!(
        answer(world.apply(Command::DivideRates {
            changes: changes.clone()
        })),
        Reply::Done
    );
    assert_eq!(rates(&world, 10, 4), changes[0].rates);
    assert!(changes[0].rates[0] > 7_000, "{changes:?}");
    assert_eq!(changes[0].rates.iter().sum::<u64>(), 8_000);
    assert!(
        (10..14)
            .zip(epochs)
            .all(|(n, epoch)| world.group(n).epoch == epoch + 1)
    );
    assert!(
        (world.charged_cpu() - before).abs() < before / 100.0,
        "servers are charged as much"
    );

    let again = world.apply(Command::DivideRates { changes });
    assert_eq!(
        again,
        [Effect::Reply(Reply::Done)],
        "a repetition begins no epoch"
    );
    assert_eq!(world.set(change(10, 4, 16_000, 2)), Reply::Done);
    let doubled = rates(&world, 10, 4);
    assert!(doubled[0] > 14_000, "proportions stay: {doubled:?}");
    assert_eq!(doubled.iter().sum::<u64>(), 16_000);
    world.all_active(10, 4);
    assert_eq!(world.set(change(10, 5, 16_000, 3)), Reply::Done);
    assert_eq!(rates(&world, 10, 5).iter().sum::<u64>(), 16_000);
}

#[test]
fn rates_that_were_computed_for_another_state_are_left_out() {
    let mut world = World::new(6);
    world.set(change(10, 2, 2_000, 1));
    world.all_active(10, 2);
    let of = |revision: u64, rates: &[u64]| RateChange {
        group_id: group(10),
        revision,
        rates: rates.to_vec(),
    };
    for wrong in [
        of(2, &[1_500, 500]),
        of(1, &[1_500, 501]),
        of(1, &[2_000, 0]),
        of(1, &[2_000]),
        of(1, &[u64::MAX, 2_001]),
    ] {
        let effects = world.apply(Command::DivideRates { changes: vec![wrong] });
        assert_eq!(effects, [Effect::Reply(Reply::Done)]);
    }
    assert_eq!(rates(&world, 10, 2), [1_000, 1_000]);
    let elsewhere = RateChange {
        group_id: group(99),
        ..of(1, &[1])
    };
    world.apply(Command::DivideRates {
        changes: vec![elsewhere, of(1, &[1_500, 500])],
    });
    assert_eq!(rates(&world, 10, 2), [1_500, 500]);
}

#[test]
fn tenants_swap_where_servers_are_full() {
    // Two servers, chains of one, and four partitions on each: the fleet is as full as it may be.
    let mut world = World::new(2);
    let alone = |first, rate_per_s| {
        let all = change(first, 2, rate_per_s, 1);
        PartitionsChange {
            sla: Sla {
                replication_degree: 1,
                ..all.sla
            },
            ..all
        }
    };
    let Reply::Refused(refusal) = world.set(alone(10, 8_000_000)) else {
        panic!()
    };
    let most = refusal.largest_sla_that_fits.unwrap().rate_per_s;
    assert_eq!(world.set(alone(20, most / 2)), Reply::Done);
    assert_eq!(world.set(alone(30, most / 2)), Reply::Done);
    world.all_active(20, 2);
    world.all_active(30, 2);
    let (each, more) = (most / 4, most / 3);
    let mut wanted = wants(20, &[more, each / 2]);
    let on = |n: u128| world.group(n).chain[0];
    // The other tenant wants more where the first one wants less.
    let beside: &[u64] = if on(30) == on(20) {
        &[each / 2, more]
    } else {
        &[more, each / 2]
    };
    wanted.extend(wants(30, beside));
    let changes = world.state.divided_rates(&wanted).changes;
    assert_eq!(changes.len(), 2, "{changes:?}");
    world.apply(Command::DivideRates { changes });
    assert!(rates(&world, 20, 2)[0] >= more, "{:?}", rates(&world, 20, 2));
    assert!(*rates(&world, 30, 2).iter().max().unwrap() >= more);
}
