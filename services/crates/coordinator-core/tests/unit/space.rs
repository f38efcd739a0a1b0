//! Memory and disk are admitted: what was promised fits the servers, wherever replicas go. No sleeping.

use crate::world::{World, credential, group, registration, server, sla};
use quorate_coordinator_core::command::{Command, Effect, Registration, Reply};
use quorate_coordinator_core::state::{CoordinatorState, EventKind};
use quorate_coordinator_core::view::FleetView;
use quorate_types::Durability::{InMemory, Persistent};
use quorate_types::sla::{Refusal, ScarceResource};
use quorate_types::{Durability, Room, Sla};

const MIB: u64 = 1 << 20;

fn with_room(servers: u32, memory_mib: u64, disk_mib: u64) -> World {
    let mut world = World::new(servers);
    for n in 1..=servers {
        give_room(&mut world, n, memory_mib, disk_mib);
    }
    world
}

fn give_room(world: &mut World, n: u32, memory_mib: u64, disk_mib: u64) {
    let room = Room {
        memory_bytes: Some(memory_mib * MIB),
        disk_bytes: Some(disk_mib * MIB),
    };
    world.register(Registration {
        room,
        ..registration(credential(n), n, "i1")
    });
}

fn retaining(durability: Durability, degree: u8, retention_mib: u64) -> Sla {
    Sla {
        retention_bytes: retention_mib * MIB,
        request_size_bytes: 4_096,
        ..sla(durability, degree, 100)
    }
}

fn outcome(effects: &[Effect]) -> Result<(), Refusal> {
    let reply = effects.iter().find_map(|effect| match effect {
        Effect::Reply(Reply::Refused(refusal)) => Some(Err(refusal.clone())),
        Effect::Reply(Reply::Admitted { .. } | Reply::Done) => Some(Ok(())),
        _ => None,
    });
    reply.expect("it is granted or refused")
}

#[test]
fn a_retention_beyond_the_memory_of_all_servers_is_refused_with_one_that_fits() {
    let mut world = with_room(3, 1_024, 4_096);
    let refusal = outcome(&world.admit(1, retaining(InMemory, 3, 1 << 30))).unwrap_err();
    assert_eq!(refusal.scarce_resource, ScarceResource::Memory);
    assert!(refusal.message.contains("memory") && refusal.message.contains("1024.0 MiB"));
    assert_eq!(world.kinds().last(), Some(&EventKind::GroupRefused));
    let quote = world.state.quote(&retaining(InMemory, 3, 1 << 30), None, None);
    assert_eq!(quote.refusal.as_ref(), Some(&refusal));
    assert_eq!(quote.dominant_resource, ScarceResource::Memory);
    let fits = refusal.largest_sla_that_fits.expect("a shorter retention");
    assert_eq!(fits.rate_per_s, 100);
    outcome(&world.admit(1, fits)).expect("the refusal names one that fits");
    let mut world = with_room(3, 1_024, 4_096);
    let refusal = outcome(&world.admit(2, retaining(Persistent, 3, 1 << 30))).unwrap_err();
    assert_eq!(refusal.scarce_resource, ScarceResource::Disk);
}

#[test]
fn a_server_without_a_word_about_its_room_is_not_limited() {
    let mut world = World::new(3);
    outcome(&world.admit(1, retaining(InMemory, 3, 1 << 30))).expect("as in earlier versions");
    let all = FleetView::of(&world.state).total;
    assert_eq!(all.nominal.room, Room::default());
    assert!(
        all.allocated.room.memory_bytes > Some(3 << 50),
        "what it takes is known"
    );
    // Now they say it: nothing more fits, and what is there stays.
    for n in 1..=3 {
        give_room(&mut world, n, 1_024, 1_024);
    }
    let refusal = outcome(&world.admit(2, retaining(InMemory, 3, 1))).unwrap_err();
    assert_eq!(refusal.scarce_resource, ScarceResource::Memory);
    assert_eq!(world.group(1).chain.len(), 3);
}

#[test]
fn a_replacement_goes_where_its_memory_is() {
    let mut world = with_room(3, 1_024, 1_024);
    outcome(&world.admit(1, retaining(InMemory, 2, 512))).unwrap();
    world.apply_all(1);
    let chain: Vec<u32> = world.group(1).chain.iter().map(|id| id.0).collect();
    let other = (1..=3).find(|n| !chain.contains(n)).unwrap();
    give_room(&mut world, other, 256, 1_024);
    world.fail(&[chain[1]]);
    assert_eq!(world.group(1).learner, None, "the one left has too little memory");
    give_room(&mut world, other, 2_048, 1_024);
    assert_eq!(world.group(1).learner, Some(server(other)));
}

#[test]
fn a_drain_waits_for_disk() {
    let mut world = with_room(4, 1_024, 1_024);
    outcome(&world.admit(1, retaining(Persistent, 3, 512))).unwrap();
    world.apply_all(1);
    let chain: Vec<u32> = world.group(1).chain.iter().map(|id| id.0).collect();
    let other = (1..=4).find(|n| !chain.contains(n)).unwrap();
    give_room(&mut world, other, 1_024, 100);
    world.apply(Command::Drain {
        server: server(chain[0]),
    });
    let drain = world.state.servers[&server(chain[0])].drain.clone().unwrap();
    assert_eq!(drain.scarce, Some(ScarceResource::Disk));
}

#[test]
fn a_longer_retention_needs_room_and_a_shorter_one_does_not() {
    let mut world = with_room(3, 1_024, 1_024);
    outcome(&world.admit(1, retaining(InMemory, 3, 256))).unwrap();
    world.apply_all(1);
    let mut resize = |retention_mib, revision| {
        outcome(&world.apply(Command::Resize {
            group_id: group(1),
            sla: retaining(InMemory, 3, retention_mib),
            revision,
        }))
    };
    let refusal = resize(4_096, 2).unwrap_err();
    println!("{}", refusal.message);
    assert_eq!(refusal.scarce_resource, ScarceResource::Memory);
    let fits = refusal
        .largest_sla_that_fits
        .expect("a shorter retention")
        .retention_bytes;
    assert!((256 * MIB..1_024 * MIB).contains(&fits), "{fits}");
    resize(fits / MIB, 2).unwrap();
    resize(fits / MIB + 1, 3).unwrap_err();
    resize(1, 3).unwrap();
}

/// Snapshots of earlier versions have demands of three amounts.
#[test]
fn groups_of_earlier_versions_are_charged_by_their_slas() {
    let mut world = with_room(3, 1_024, 1_024);
    outcome(&world.admit(1, retaining(InMemory, 3, 256))).unwrap();
    let mut snapshot = serde_json::to_value(&world.state).unwrap();
    let groups = snapshot["groups"].as_object_mut().unwrap();
    for demand in groups
        .values_mut()
        .flat_map(|one| one["demands"].as_array_mut().unwrap())
    {
        assert_eq!(demand.as_array().unwrap().len(), 5);
        demand.as_array_mut().unwrap().truncate(3);
    }
    let mut restored: CoordinatorState = serde_json::from_value(snapshot).unwrap();
    restored.restore();
    restored.validate().unwrap();
    let space = retaining(InMemory, 3, 256).terms().space();
    for n in 1..=3 {
        assert_eq!(restored.allocated_on(server(n)).space(), space);
    }
}

/// A server with a full disk keeps its persistent groups read-only: they leave it, and come back when it is well.
mod faults {
    use super::*;
    use quorate_coordinator_core::planner::StorageFaults;
    use quorate_coordinator_core::state::GroupStatus::{Active, Degraded};
    use quorate_types::limits::STORAGE_FAULT_LASTS_MS;

    fn set_fault(world: &mut World, n: u32, fault: Option<&str>) {
        world.apply(Command::StorageFault {
            server: server(n),
            fault: fault.map(Into::into),
        });
    }

    fn lasts(world: &mut World, n: u32) {
        world.apply(Command::StorageFaultLasts { server: server(n) });
    }

    #[test]
    fn a_fault_that_lasts_is_noted_once() {
        let mut world = World::new(3);
        let mut faults = StorageFaults::default();
        let command = Command::StorageFaultLasts { server: server(2) };
        set_fault(&mut world, 2, Some("full"));
        assert_eq!(faults.due(&world.state, 1_000), []);
        assert_eq!(faults.due(&world.state, 999 + STORAGE_FAULT_LASTS_MS), []);
        set_fault(&mut world, 2, None);
        assert_eq!(faults.due(&world.state, 1_000 + STORAGE_FAULT_LASTS_MS), []);
        set_fault(&mut world, 2, Some("full again"));
        assert_eq!(faults.due(&world.state, 50_000), []);
        assert_eq!(
            faults.due(&world.state, 50_000 + STORAGE_FAULT_LASTS_MS),
            std::slice::from_ref(&command)
        );
        world.apply(command);
        assert_eq!(faults.due(&world.state, 60_001 + STORAGE_FAULT_LASTS_MS), []);
    }

    #[test]
    fn groups_that_can_spare_a_replica_leave_a_full_disk_at_once_and_groups_in_memory_stay() {
        let mut world = World::new(4);
        for n in 1..=5 {
            world.active(n, Persistent, 3);
        }
        world.active(6, InMemory, 3);
        let on = |world: &World, n: u128, id: u32| world.group(n).is_member(server(id));
        let id = world.group(6).chain[0].0;
        set_fault(&mut world, id, Some("no space"));
        let before: Vec<u128> = (1..=5).filter(|n| on(&world, *n, id)).collect();
        assert!(!before.is_empty(), "a fault alone moves nothing");
        lasts(&mut world, id);
        for n in &before {
            assert!(!on(&world, *n, id), "group {n} has left");
            assert_eq!(world.group(*n).status, Degraded, "and takes appends");
            assert!(world.group(*n).learner.is_some());
            let epoch = world.group(*n).epoch;
            world.caught_up(*n, epoch);
            assert_eq!(world.group(*n).status, Active);
        }
        assert!(on(&world, 6, id), "its disk does not concern a group in memory");
        // It is used again when the fault is gone.
        assert!(!world.state.servers[&server(id)].takes_replicas());
        set_fault(&mut world, id, None);
        assert!(world.state.servers[&server(id)].takes_replicas());
        assert!(!world.state.servers[&server(id)].fault_lasts);
    }

    #[test]
    fn a_group_that_can_spare_none_leaves_when_its_replacement_has_learned() {
        let mut world = World::new(3);
        world.active(1, Persistent, 2);
        let chain: Vec<u32> = world.group(1).chain.iter().map(|id| id.0).collect();
        set_fault(&mut world, chain[0], Some("no space"));
        lasts(&mut world, chain[0]);
        assert_eq!(world.group(1).leaving, Some(server(chain[0])));
        let epoch = world.group(1).epoch;
        world.caught_up(1, epoch);
        assert!(!world.group(1).is_member(server(chain[0])));
        assert_eq!(world.group(1).chain.len(), 2);
    }

    /// The learner may be about to join: commits wait for it.
    #[test]
    fn a_learner_whose_disk_stays_full_is_given_up_though_no_other_server_fits() {
        let mut world = World::new(3);
        world.active(1, Persistent, 2);
        let leaves = world.group(1).chain[1];
        world.apply(Command::Drain { server: leaves });
        let learner = world.group(1).learner.expect("it moves").0;
        set_fault(&mut world, learner, Some("no space"));
        assert_eq!(world.group(1).learner, Some(server(learner)));
        lasts(&mut world, learner);
        assert_eq!((world.group(1).learner, world.group(1).leaving), (None, None));
        assert_eq!(world.group(1).status, Active);
        set_fault(&mut world, learner, None);
        assert_eq!(
            world.group(1).learner,
            Some(server(learner)),
            "the move begins again"
        );
        assert_eq!(world.group(1).leaving, Some(leaves));
    }

    #[test]
    fn appends_go_on_though_no_server_has_room_for_a_replacement() {
        let mut world = World::new(3);
        world.active(1, Persistent, 3);
        set_fault(&mut world, 2, Some("no space"));
        lasts(&mut world, 2);
        assert_eq!((world.group(1).chain.len(), world.group(1).status), (2, Degraded));
        // A second disk that is full must not make the group fall below its least.
        set_fault(&mut world, 3, Some("no space"));
        lasts(&mut world, 3);
        assert_eq!(world.group(1).chain.len(), 2);
        set_fault(&mut world, 2, None);
        assert_eq!(world.group(1).learner, Some(server(2)), "it is used again");
    }

    /// A common cause, as shared storage that is full: there is nowhere to go, and a shorter chain takes no more appends.
    #[test]
    fn when_most_disks_have_a_fault_none_is_left_for_it() {
        let mut world = World::new(4);
        let mut faults = StorageFaults::default();
        for n in 1..=3 {
            set_fault(&mut world, n, Some("full"));
        }
        assert_eq!(faults.due(&world.state, 1_000), []);
        assert_eq!(faults.due(&world.state, 1_000 + 10 * STORAGE_FAULT_LASTS_MS), []);
        set_fault(&mut world, 3, None);
        let left = |n| Command::StorageFaultLasts { server: server(n) };
        let due = faults.due(&world.state, 1_050 + 10 * STORAGE_FAULT_LASTS_MS);
        assert_eq!(due, [left(1), left(2)], "half of it is not most");
    }

    #[test]
    fn a_replica_leaves_a_full_disk_at_once_only_where_another_disk_of_its_group_is_sound() {
        let mut world = World::new(5);
        let lax = Sla {
            min_replicas: Some(1),
            ..sla(Persistent, 2, 1_000)
        };
        world.admit(1, lax);
        world.apply_all(1);
        let chain: Vec<u32> = world.shape(1).0;
        for n in &chain {
            set_fault(&mut world, *n, Some("full"));
        }
        for n in &chain {
            lasts(&mut world, *n);
        }
        assert_eq!(world.shape(1).0, chain, "nobody else takes appends");
        let epoch = world.group(1).epoch;
        world.caught_up(1, epoch);
        assert_eq!(world.group(1).chain.len(), 1, "the one that has joined does");
        assert!(!chain.contains(&world.shape(1).0[0]));
    }
}
