//! Logs of releases, frozen: each must lead to the epochs that its release decided (`tests/golden/`).
//!
//! A release adds its own: `QUORATE_GOLDEN=0.2.0 cargo test -p quorate-coordinator-core golden` writes `0.2.0.log` from the
//! history below, which may grow. A file that is there is never written again.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use quorate_coordinator_core::command::{Command, Timed};
use quorate_coordinator_core::coordinator::{decode_batch, encode_batch, read_state};
use quorate_coordinator_core::log::{Base, Contents, Replay, encode_base, encode_writes, scan};
use quorate_coordinator_core::state::{CoordinatorState, applied};
use quorate_placement::Profile;
use quorate_quorum::{Content, Entry, MemberId, Position, Write, WriteId};
use quorate_types::{Durability, FleetId, RunId, ServerId};

use crate::world::{World, group, sla};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Admissions, failures and replacements, a drain, slow servers, resizes, a reset, a deletion, and a server that was given
/// up: with ties between servers, which a release may break otherwise.
fn history() -> Vec<(u64, Command)> {
    let mut world = World::with_headroom(6);
    for n in 1..=4 {
        let durability = [Durability::Persistent, Durability::InMemory][n as usize % 2];
        world.active(n, durability, 3);
    }
    world.fail(&[2]);
    for n in 1..=4 {
        if world.group(n).learner.is_some() {
            let epoch = world.group(n).epoch;
            world.caught_up(n, epoch);
        }
    }
    world.apply(Command::Drain { server: ServerId(3) });
    for n in 1..=4 {
        if world.group(n).learner.is_some() {
            let epoch = world.group(n).epoch;
            world.caught_up(n, epoch);
        }
    }
    world.come_back(2, "i2", vec![]);
    world.apply(Command::ServerSlow {
        server: ServerId(5),
        cause: Some("its journal".into()),
    });
    world.apply(Command::PairUnreachable {
        server: ServerId(1),
        peer: ServerId(4),
        unreachable: true,
        at_fault: None,
    });
    world.apply(Command::Resize {
        group_id: group(2),
        sla: sla(Durability::Persistent, 3, 2_000),
        revision: 2,
    });
    world.active(5, Durability::InMemory, 2);
    let (chain, epoch) = (world.group(5).chain.clone(), world.group(5).epoch);
    world.apply(Command::ServersFailed { servers: chain });
    world.apply(Command::Reset {
        group_id: group(5),
        epoch,
        entries_before: 10,
        bytes_before: 640,
    });
    world.delete(1);
    let failed = world.state.servers.values().find(|server| !server.alive);
    let server = failed.expect("one has failed").server_id;
    world.apply(Command::Forget { server });
    world.history
}

fn begin() -> CoordinatorState {
    CoordinatorState::new(Profile::default_profile())
}

/// The log as a process would have written it, one batch for each command.
fn log_of(release: &str) -> Vec<u8> {
    let first = [
        Command::BeginRun {
            run: RunId(1),
            release: release.into(),
        },
        Command::UseProfile {
            profile: Box::new(Profile::default_profile()),
        },
    ];
    let first = first.into_iter().map(|command| (1_000_000, command));
    let mut state = begin();
    let base = Base::first(MemberId(1), FleetId(1), "127.0.0.1:7402".into());
    let term = base.point.term;
    let mut log = encode_base(&base, Some(&state));
    for ((at_ms, command), position) in first.chain(history()).zip(2..) {
        let (_, issued) = applied(&mut state, at_ms, &command);
        let batch = encode_batch(&[Timed {
            at_ms,
            command,
            issued: Some(issued),
        }]);
        log.extend(encode_writes([&Write {
            id: WriteId::default(),
            vote: None,
            snapshot: None,
            cut_after: None,
            entries: vec![Entry {
                position: Position(position),
                term,
                content: Content::Payload(batch),
            }],
        }]));
    }
    log
}

/// The commands of a log, and the state before them.
fn read(log: &[u8]) -> (CoordinatorState, Vec<Timed>) {
    let scanned = scan(log).unwrap_or_else(|(at, damage)| panic!("{at}: {damage}"));
    match scanned.contents {
        Contents::Former(former) => (begin(), former.commands),
        Contents::Member(disk) => {
            let payloads = disk.entries.into_iter().filter_map(|entry| match entry.content {
                Content::Payload(payload) => Some(decode_batch(&payload).unwrap()),
                _ => None,
            });
            let state = read_state(&disk.state.expect("a state")).unwrap();
            (*state, payloads.flatten().collect())
        }
        Contents::Nothing => panic!("an empty log"),
    }
}

#[test]
fn logs_of_all_releases_lead_to_what_was_decided() {
    if let Ok(release) = std::env::var("QUORATE_GOLDEN") {
        let path = folder().join(format!("{release}.log"));
        assert!(!path.exists(), "{} is frozen", path.display());
        std::fs::write(path, log_of(&release)).unwrap();
    }
    let mut releases = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let path = entry.unwrap().path();
        let (mut state, commands) = read(&std::fs::read(&path).unwrap());
        let kinds: BTreeSet<String> = commands.iter().map(|timed| timed.command.name()).collect();
        for kind in [
            "admit",
            "servers_failed",
            "drain",
            "resize",
            "reset",
            "learner_caught_up",
        ] {
            assert!(kinds.contains(kind), "{}: no {kind}", path.display());
        }
        let issued: usize = commands
            .iter()
            .flat_map(|timed| &timed.issued)
            .map(Vec::len)
            .sum();
        assert!(issued > 15, "{}: {issued} epochs", path.display());
        let replayed = Replay::default().apply(&mut state, &commands);
        replayed.unwrap_or_else(|difference| panic!("{}: {difference}", path.display()));
        state.validate().unwrap();
        releases += 1;
    }
    assert!(releases > 0, "no golden log");
}
