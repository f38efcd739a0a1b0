//! Random histories: every invariant of `state/validate.rs` after every command, and of the history itself.

use std::collections::{BTreeMap, BTreeSet};

use crate::world::{World, group, registration, server, sla};
use proptest::prelude::*;
use quorate_coordinator_core::command::{
    Cause, Command, Effect, GuaranteeChange, PartitionsChange, Proof, Registration, Relocate,
};
use quorate_coordinator_core::state::{CoordinatorState, apply};
use quorate_coordinator_core::view::ServerView;
use quorate_guarantees::{Guarantee, LocalPolicy};
use quorate_placement::Profile;
use quorate_types::control::{HeldGroup, ToServer};
use quorate_types::{Durability, Epoch, GroupId, Layout, ServerId, Sla};
use uuid::Uuid;

const SERVERS: u32 = 7;
const GROUPS: u128 = 6;

#[derive(Debug, Clone)]
enum Step {
    Join {
        server: u32,
    },
    /// In a new process when `restart`. Its disk has what it last held, unless `wiped`; whole, unless `damaged`; an older
    /// copy of it when `old`.
    ComeBack {
        server: u32,
        restart: bool,
        wiped: bool,
        damaged: bool,
        old: bool,
    },
    Fail {
        servers: Vec<u32>,
    },
    FailLaggards,
    Admit {
        group: u128,
        persistent: bool,
        degree: u8,
        rate: u64,
    },
    Delete {
        group: u128,
    },
    ApplyAll {
        group: u128,
    },
    ApplyOne {
        group: u128,
    },
    CaughtUp {
        group: u128,
        stale: bool,
    },
    Dropped {
        server: u32,
    },
    StorageFault {
        server: u32,
        faulty: bool,
    },
    StorageFaultLasts {
        server: u32,
    },
    Drain {
        server: u32,
        off: bool,
    },
    Slow {
        server: u32,
        slow: bool,
    },
    Estimate {
        server: u32,
        permille: u16,
    },
    Part {
        server: u32,
        peer: u32,
        unreachable: bool,
    },
    Forget {
        server: u32,
    },
    /// An assertion stops one of the group's replicas.
    Quarantine {
        group: u128,
        member: usize,
    },
    Release {
        group: u128,
    },
    Reset {
        group: u128,
    },
    /// The same for the guarantee of the project of all groups; 0 tokens: it has none any more.
    Guarantee {
        tokens: u64,
        max: Option<u64>,
        off: u64,
    },
    /// The same for the partitions of a group, whose ids follow its own.
    Partitions {
        group: u128,
        count: u16,
        rate: u64,
        off: u64,
    },
    /// Heads report that partitions want such rates.
    Divide {
        wanted: Vec<u64>,
    },
    /// A partition's head has committed all of former layouts.
    Seal {
        group: u128,
        end_offset: u64,
    },
    /// A replica is to move, to a server that is named or chosen.
    Relocate {
        group: u128,
        member: usize,
        to: Option<u32>,
    },
    /// The fleet gets to know relocations.
    Upgrade,
    /// A repetition when `off` is 0, otherwise the next revision or one too early.
    Resize {
        group: u128,
        rate: u64,
        off: u64,
    },
}

fn step() -> impl Strategy<Value = Step> {
    let server = || 1..=SERVERS;
    let group = || 1..=GROUPS;
    prop_oneof![
        2 => server().prop_map(|server| Step::Join { server }),
        4 => (server(), any::<bool>(), prop::bool::weighted(0.2), prop::bool::weighted(0.1), prop::bool::weighted(0.1))
            .prop_map(|(server, restart, wiped, damaged, old)| Step::ComeBack { server, restart, wiped, damaged, old }),
        3 => proptest::collection::vec(server(), 1..4).prop_map(|servers| Step::Fail { servers }),
        1 => Just(Step::FailLaggards),
        4 => (group(), any::<bool>(), 1u8..=5, 1u64..600_000)
            .prop_map(|(group, persistent, degree, rate)| Step::Admit { group, persistent, degree, rate }),
        1 => group().prop_map(|group| Step::Delete { group }),
        2 => (group(), 1u64..600_000, 0u64..3).prop_map(|(group, rate, off)| Step::Resize { group, rate, off }),
        2 => (group(), 0usize..5, prop::option::of(server()))
            .prop_map(|(group, member, to)| Step::Relocate { group, member, to }),
        1 => Just(Step::Upgrade),
        3 => (group(), 1u16..5, 1u64..600_000, 0u64..3)
            .prop_map(|(group, count, rate, off)| Step::Partitions { group, count, rate, off }),
        3 => (group(), 0u64..9).prop_map(|(group, end_offset)| Step::Seal { group, end_offset }),
        2 => proptest::collection::vec(0u64..600_000, 4 * GROUPS as usize).prop_map(|wanted| Step::Divide { wanted }),
        2 => (prop_oneof![Just(0u64), 1u64..4_000_000], prop::option::weighted(0.3, 1u64..8_000_000), 0u64..3)
            .prop_map(|(tokens, max, off)| Step::Guarantee { tokens, max, off }),
        3 => group().prop_map(|group| Step::ApplyAll { group }),
        2 => group().prop_map(|group| Step::ApplyOne { group }),
        4 => (group(), prop::bool::weighted(0.2)).prop_map(|(group, stale)| Step::CaughtUp { group, stale }),
        2 => server().prop_map(|server| Step::Dropped { server }),
        1 => (server(), any::<bool>()).prop_map(|(server, faulty)| Step::StorageFault { server, faulty }),
        1 => server().prop_map(|server| Step::StorageFaultLasts { server }),
        2 => (server(), prop::bool::weighted(0.3)).prop_map(|(server, off)| Step::Drain { server, off }),
        1 => (server(), any::<bool>()).prop_map(|(server, slow)| Step::Slow { server, slow }),
        1 => (server(), 1u16..=1_000).prop_map(|(server, permille)| Step::Estimate { server, permille }),
        1 => (server(), server(), any::<bool>())
            .prop_map(|(server, peer, unreachable)| Step::Part { server, peer, unreachable }),
        1 => server().prop_map(|server| Step::Forget { server }),
        2 => (group(), 0usize..5).prop_map(|(group, member)| Step::Quarantine { group, member }),
        1 => group().prop_map(|group| Step::Release { group }),
        2 => group().prop_map(|group| Step::Reset { group }),
    ]
}

/// The groups on each server's disk, as real servers would have them.
#[derive(Default)]
struct Disks(BTreeMap<u32, BTreeMap<GroupId, Epoch>>);

impl Disks {
    fn take_in(&mut self, effects: &[Effect]) {
        for effect in effects {
            let Effect::Send { server, message } = effect else {
                continue;
            };
            let disk = self.0.entry(server.0).or_default();
            match message {
                ToServer::Configure { config } if config.durability == Durability::Persistent => {
                    disk.insert(config.group_id, config.epoch);
                }
                ToServer::Drop { group_id, .. } => {
                    disk.remove(group_id);
                }
                _ => {}
            }
        }
    }

    fn held(&self, server: u32) -> Vec<HeldGroup> {
        let held = |(group_id, epoch): (&GroupId, &Epoch)| HeldGroup {
            group_id: *group_id,
            epoch: *epoch,
            durability: Durability::Persistent,
            last_index: 1,
            committed_epoch: 0,
            committed_index: 0,
            damaged: false,
        };
        self.0.get(&server).into_iter().flatten().map(held).collect()
    }
}

/// Some servers say how much memory and disk they have: room for a few groups.
fn in_small_room(mut registration: Registration, server: u32) -> Registration {
    if (4..=SERVERS).contains(&server) {
        registration.room.memory_bytes = Some(24 << 20);
        registration.room.disk_bytes = Some(60 << 20);
    }
    registration
}

fn run(world: &mut World, disks: &mut Disks, number: usize, step: &Step) {
    let id_of = |world: &World, n: u32| {
        world
            .state
            .servers
            .values()
            .find(|s| s.name == format!("s{n}"))
            .map(|s| (s.server_id, s.credential_digest.clone(), s.incarnation.clone()))
    };
    let effects = match step {
        Step::Join { server } => {
            let digest = format!("token-{number}");
            world.issue_token(&digest, 1_000, None);
            let proof = Proof::JoinToken {
                digest,
                credential_digest: format!("credential-of-step-{number}"),
            };
            world.register(in_small_room(
                registration(proof, *server, &format!("i{number}")),
                *server,
            ))
        }
        Step::ComeBack {
            server,
            restart,
            wiped,
            damaged,
            old,
        } => {
            let Some((id, credential, incarnation)) = id_of(world, *server) else {
                return;
            };
            if *wiped && *restart {
                disks.0.remove(&id.0);
            }
            let known = incarnation.clone();
            let incarnation = if *restart {
                format!("i{number}")
            } else {
                incarnation
            };
            let mut held = disks.held(id.0);
            held.iter_mut().for_each(|held| held.damaged = *damaged);
            let ran_before = if *old { "another".to_string() } else { known };
            world.register(Registration {
                held,
                previous_incarnations: vec![ran_before],
                ..in_small_room(
                    registration(Proof::Credential(credential), *server, &incarnation),
                    *server,
                )
            })
        }
        Step::Fail { servers } => world.fail(servers),
        Step::FailLaggards => {
            let laggards: Vec<u32> = world.state.laggards().into_iter().map(|s| s.0).collect();
            world.fail(&laggards)
        }
        Step::Admit {
            group: n,
            persistent,
            degree,
            rate,
        } => {
            let durability = if *persistent {
                Durability::Persistent
            } else {
                Durability::InMemory
            };
            world.admit(*n + 100 * (number as u128 % 3), sla(durability, *degree, *rate))
        }
        Step::Delete { group } => world.delete(*group),
        Step::ApplyAll { group: n } => {
            if world.state.groups.contains_key(&group(*n)) {
                world.apply_all(*n);
            }
            return;
        }
        Step::ApplyOne { group: n } => {
            let Some(known) = world.state.groups.get(&group(*n)) else {
                return;
            };
            let Some(server) = known.chain.last().copied() else {
                return;
            };
            let epoch = known.epoch;
            world.apply(Command::Applied {
                server,
                group_id: group(*n),
                epoch,
            })
        }
        Step::CaughtUp { group: n, stale } => {
            let Some(known) = world.state.groups.get(&group(*n)).filter(|g| g.learner.is_some()) else {
                return;
            };
            let epoch = known.epoch - u64::from(*stale);
            world.caught_up(*n, epoch)
        }
        Step::Dropped { server: n } => {
            let drops = world
                .state
                .servers
                .get(&server(*n))
                .map(|s| s.to_drop.clone())
                .unwrap_or_default();
            for group_id in drops.into_keys() {
                world.apply(Command::Dropped {
                    server: server(*n),
                    group_id,
                });
            }
            return;
        }
        Step::StorageFault { server: n, faulty } => {
            let fault = faulty.then(|| "full".to_string());
            world.apply(Command::StorageFault {
                server: server(*n),
                fault,
            })
        }
        Step::StorageFaultLasts { server: n } => {
            world.apply(Command::StorageFaultLasts { server: server(*n) })
        }
        Step::Drain { server: n, off } => world.apply(if *off {
            Command::CallOffDrain { server: server(*n) }
        } else {
            Command::Drain { server: server(*n) }
        }),
        Step::Slow { server: n, slow } => world.apply(Command::ServerSlow {
            server: server(*n),
            cause: slow.then(|| "its disk".to_string()),
        }),
        Step::Estimate { server: n, permille } => world.apply(Command::CapacityEstimated {
            server: server(*n),
            permille: [*permille, 1_000, 1_000],
        }),
        Step::Part {
            server: n,
            peer,
            unreachable,
        } => world.apply(Command::PairUnreachable {
            server: server(*n),
            peer: server(*peer),
            unreachable: *unreachable,
            at_fault: None,
        }),
        Step::Forget { server: n } => world.apply(Command::Forget { server: server(*n) }),
        Step::Quarantine { group: n, member } => {
            let members = world
                .state
                .groups
                .get(&group(*n))
                .into_iter()
                .flat_map(|g| g.members());
            let Some(server) = members.filter(|id| world.state.is_alive(*id)).nth(*member) else {
                return;
            };
            world.apply(Command::Quarantined {
                server,
                group_id: group(*n),
                reason: "an index ran ahead".into(),
            })
        }
        Step::Release { group: n } => world.apply(Command::Release { group_id: group(*n) }),
        Step::Resize { group: n, rate, off } => {
            let known = world.state.groups.get(&group(*n));
            let sla = known.map_or_else(|| sla(Durability::Persistent, 1, 1), |g| g.sla.clone());
            let asked = known.and_then(|g| g.relocation.as_ref()?.next.as_ref());
            let newest = asked.map(|next| next.revision).or(known.map(|g| g.sla_revision));
            let revision = newest.unwrap_or(1) + *off;
            let sla = Sla {
                rate_per_s: *rate,
                ..sla
            };
            world.apply(Command::Resize {
                group_id: group(*n),
                sla,
                revision,
            })
        }
        Step::Relocate { group: n, member, to } => {
            let Some(from) = (world.state.groups.get(&group(*n))).and_then(|g| g.chain.get(*member).copied())
            else {
                return;
            };
            world.apply(Command::Relocate(Relocate {
                group_id: group(*n),
                from,
                to: to.map(server),
                cause: Cause::Operator,
            }))
        }
        Step::Upgrade => world.apply(Command::RaiseFleetVersion { to: 2 }),
        Step::Partitions {
            group: n,
            count,
            rate,
            off,
        } => {
            let known = world.state.groups.get(&group(*n));
            let sla = known.map_or_else(|| sla(Durability::Persistent, 2, 1), |g| g.sla.clone());
            let present = world.state.partitions.get(&group(*n));
            world.apply(Command::SetPartitions(PartitionsChange {
                group_id: group(*n),
                project_id: Uuid::nil(),
                sla: Sla {
                    rate_per_s: *rate,
                    retention_bytes: 1 << 24,
                    ..sla
                },
                partitions: (0..u128::from(*count)).map(|i| group(*n + 100 * i)).collect(),
                revision: present.map_or(0, |one| one.revision) + *off,
            }))
        }
        Step::Divide { wanted } => {
            let of = |(i, wanted): (usize, &u64)| (group(i as u128 / 4 + 1 + 100 * (i as u128 % 4)), *wanted);
            let changes = world
                .state
                .divided_rates(&wanted.iter().enumerate().map(of).collect())
                .changes;
            world.apply(Command::DivideRates { changes })
        }
        Step::Seal { group: n, end_offset } => {
            let found = world.state.groups.get(&group(*n)).and_then(|g| g.partition);
            world.apply(Command::LayoutSealed {
                group_id: group(*n),
                layout: found.map_or(Layout(1), |partition| partition.layout),
                end_offset: *end_offset,
            })
        }
        Step::Guarantee { tokens, max, off } => {
            let revision = world.state.guarantees.revision(Uuid::nil()) + *off;
            let guarantee = Guarantee {
                shared_tokens_per_s: *tokens,
                max_tokens_per_s: *max,
                policy: LocalPolicy::default(),
            };
            world.apply(Command::SetGuarantee(GuaranteeChange {
                project_id: Uuid::nil(),
                guarantee: (*tokens > 0 || max.is_some()).then_some(guarantee),
                revision,
            }))
        }
        Step::Reset { group: n } => {
            let epoch = world.state.groups.get(&group(*n)).map_or(1, |g| g.epoch);
            world.apply(Command::Reset {
                group_id: group(*n),
                epoch,
                entries_before: 7,
                bytes_before: 70,
            })
        }
    };
    disks.take_in(&effects);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn random_histories(steps in proptest::collection::vec(step(), 1..120)) {
        let mut world = World::new(3);
        let mut disks = Disks::default();
        let mut epochs: BTreeMap<GroupId, Epoch> = BTreeMap::new();
        let mut lost: BTreeSet<GroupId> = BTreeSet::new();
        let mut beginnings: BTreeMap<GroupId, u64> = BTreeMap::new();
        for (number, step) in steps.iter().enumerate() {
            for server in world.state.servers.values() {
                let (charged, room) = (world.state.allocated_on(server.server_id).space(), server.room);
                let fits = |bytes, most: Option<u64>| most.is_none_or(|most| bytes <= most);
                prop_assert!(fits(charged.memory_bytes, room.memory_bytes), "{:?} of memory on {}", charged, server.name);
                prop_assert!(fits(charged.disk_bytes, room.disk_bytes), "{:?} of disk on {}", charged, server.name);
            }
            let before: BTreeMap<GroupId, (Epoch, Vec<ServerId>, usize)> = world.state.groups.iter()
                .map(|(id, g)| (*id, (g.epoch, g.members().collect(), g.chain.len())))
                .collect();
            let stopped: Vec<GroupId> = world.state.groups.values()
                .filter(|g| g.quarantine.is_whole()).map(|g| g.group_id).collect();
            run(&mut world, &mut disks, number, step);
            for (id, known) in &world.state.groups {
                // Only data that is gone changes the members of a group that is quarantined as a whole.
                let may_lose_data = matches!(step, Step::ComeBack { .. } | Step::Forget { .. } | Step::Delete { .. });
                if stopped.contains(id) && known.quarantine.is_whole() && !may_lose_data {
                    prop_assert_eq!(known.epoch, before[id].0, "{:?}", known);
                }
                // A drain that is called off gives room to replicas that waited for it.
                if matches!(step, Step::Drain { off: false, .. } | Step::CaughtUp { .. })
                    && let Some((_, members, chained)) = before.get(id)
                    && !known.is_deleting()
                {
                    // When there is room at last, a slow server leaves before its successor has caught up.
                    let is_slow =
                        |id: &ServerId| world.state.servers.get(id).is_some_and(|s| s.slow.is_some() || s.fault_lasts);
                    let slow_made_way = members.iter().any(|id| is_slow(id) && !known.members().any(|now| now == *id));
                    let kept = known.chain.len() >= *chained || slow_made_way;
                    prop_assert!(kept, "a drain takes no replica away: {:?}", known);
                }
                let last = epochs.insert(*id, known.epoch).unwrap_or(0);
                prop_assert!(known.epoch >= last, "epochs only grow");
                if let Some((epoch, members, ..)) = before.get(id) {
                    let now: Vec<_> = known.members().collect();
                    prop_assert!(*epoch < known.epoch || *members == now, "other members, another epoch");
                }
                // A reset may set off another epoch, such as that of a slow server that leaves.
                let reset = matches!(step, Step::Reset { .. }) && known.beginning.is_some_and(|b| b.epoch > last);
                prop_assert!(known.lost || reset || !lost.contains(id), "lost is for good, but for its owner");
                if known.lost {
                    lost.insert(*id);
                } else {
                    lost.remove(id);
                }
                let begins = known.beginning.map_or(0, |b| b.offset);
                prop_assert!(begins >= beginnings.insert(*id, begins).unwrap_or(0), "offsets only grow");
            }
        }
        // After any history, a replay gives the same state, and so does a restart from a snapshot.
        let mut replayed = CoordinatorState::new(Profile::default_profile());
        for (now_ms, command) in &world.history {
            apply(&mut replayed, *now_ms, command);
        }
        let expected = serde_json::to_value(&world.state).unwrap();
        prop_assert_eq!(serde_json::to_value(&replayed).unwrap(), expected);
        let mut restored: CoordinatorState = serde_json::from_slice(&serde_json::to_vec(&world.state).unwrap()).unwrap();
        restored.restore();
        prop_assert_eq!(restored.validate(), Ok(()));
        // Healing: all servers are alive, reachable and with room; learners catch up, and drops are confirmed. Then only
        // lost groups stay short, and nothing stays on a server that drains.
        for n in 1..=SERVERS {
            let restart = world.state.groups.values().any(|g| g.quarantine.servers.contains(&server(n)));
            let back = Step::ComeBack { server: n, restart, wiped: false, damaged: false, old: false };
            run(&mut world, &mut disks, 10_000 + n as usize, &Step::Join { server: n });
            run(&mut world, &mut disks, 20_000 + n as usize, &back);
            run(&mut world, &mut disks, 30_000 + n as usize, &Step::StorageFault { server: n, faulty: false });
            run(&mut world, &mut disks, 30_100 + n as usize, &Step::Slow { server: n, slow: false });
        }
        for (a, b) in world.state.unreachable_pairs.clone().iter() {
            world.apply(Command::PairUnreachable { server: a, peer: b, unreachable: false, at_fault: None });
        }
        for id in world.state.groups.keys().copied().collect::<Vec<_>>() {
            world.apply(Command::Release { group_id: id });
        }
        for n in 50..60 {
            run(&mut world, &mut disks, 40_000 + n as usize, &Step::Join { server: n });
        }
        for round in 0..200 {
            prop_assert!(round < 199, "it never comes to rest");
            let ids: Vec<GroupId> = world.state.groups.keys().copied().collect();
            let mut busy = false;
            for id in ids {
                let Some(known) = world.state.groups.get(&id) else { continue };
                if let Some(learner) = known.learner {
                    busy = true;
                    let (from, epoch) = (*known.chain.last().unwrap(), known.epoch);
                    world.apply(Command::LearnerCaughtUp { server: from, group_id: id, epoch, learner });
                }
            }
            for server in world.state.servers.values().filter(|s| s.alive).map(|s| s.server_id.0).collect::<Vec<_>>() {
                run(&mut world, &mut disks, 50_000, &Step::Dropped { server });
            }
            if !busy {
                break;
            }
        }
        for known in world.state.groups.values() {
            let whole = known.chain.len() == known.degree() && known.leaving.is_none();
            let waits = known.chain.iter().any(|s| !world.state.is_alive(*s));
            prop_assert!(known.lost || known.is_deleting() || waits || whole, "{:?}", known);
        }
        for drained in world.state.servers.values().filter(|s| s.alive && s.drain.is_some()) {
            let left = world.state.groups.values().any(|g| g.is_member(drained.server_id) && !g.chain.iter().any(|s| !world.state.is_alive(*s)));
            prop_assert!(!left, "{:?} is left on {}", ServerView::of(&world.state, drained).drain, drained.name);
        }
    }
}

#[test]
fn uuids_order_does_not_matter() {
    // Group ids are random: the state must not depend on how they sort. Two worlds, ids mirrored.
    let mirrored = |n: u128| GroupId(Uuid::from_u128(u128::MAX - n));
    let mut plain = World::new(5);
    let mut mirror = World::new(5);
    for n in 1..6 {
        plain.admit(n, sla(Durability::InMemory, 3, 1_000 * n as u64));
        let project_id = Uuid::nil();
        mirror.apply(Command::Admit {
            group_id: mirrored(n),
            project_id,
            sla: sla(Durability::InMemory, 3, 1_000 * n as u64),
        });
        assert_eq!(
            plain.state.groups[&group(n)].chain,
            mirror.state.groups[&mirrored(n)].chain
        );
    }
}
