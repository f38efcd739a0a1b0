//! Replicas that should move: the least that helps, and where it helps.

use quorate_types::{GroupId, ServerId};
use quorate_weights::{Migration, Patience, Pressure, Replica, Room, relieve};
use uuid::Uuid;

fn group(n: u128) -> GroupId {
    GroupId(Uuid::from_u128(n))
}

fn replica(n: u128, server: u32, charge: u64, log_bytes: u64) -> Replica {
    Replica {
        group: group(n),
        server: ServerId(server),
        charge: [charge, 0, 0],
        elsewhere: [charge, 0, 0],
        log_bytes,
        members: vec![ServerId(server)],
    }
}

fn pressure(server: u32, lacking: u64) -> Pressure {
    Pressure {
        server: ServerId(server),
        lacking: [lacking, 0, 0],
        wanting: None,
    }
}

fn room(free: &[(u32, u64)]) -> Room {
    Room::new(free.iter().map(|(server, cpu)| (ServerId(*server), [*cpu, 0, 0])))
}

fn moves(found: &[Migration]) -> Vec<(GroupId, u32, u32)> {
    found
        .iter()
        .map(|one| (one.group, one.from.0, one.to.0))
        .collect()
}

const HOSTS: [ServerId; 2] = [ServerId(2), ServerId(3)];

#[test]
fn the_shortest_log_that_frees_enough_moves_to_the_roomiest_server() {
    let here = [
        replica(1, 1, 900, 10),
        replica(2, 1, 500, 40),
        replica(3, 1, 500, 20),
        replica(4, 1, 400, 1),
    ];
    let found = relieve(
        &[pressure(1, 450)],
        &here,
        &HOSTS,
        &room(&[(1, 0), (2, 600), (3, 800)]),
        4,
    );
    // The first has the shortest log of those that are enough, and no server has room for it.
    assert_eq!(moves(&found), [(group(3), 1, 3)]);
}

#[test]
fn where_none_is_enough_the_one_that_frees_most_moves() {
    let here = [
        replica(1, 1, 100, 1),
        replica(2, 1, 300, 900),
        replica(3, 1, 200, 2),
    ];
    let found = relieve(
        &[pressure(1, 450)],
        &here,
        &HOSTS,
        &room(&[(1, 0), (2, 900), (3, 800)]),
        4,
    );
    assert_eq!(moves(&found), [(group(2), 1, 2)]);
}

#[test]
fn a_partition_that_wants_more_goes_only_where_it_can_have_it() {
    let wanting = |wants: u64| Pressure {
        wanting: Some((group(1), [wants, 0, 0])),
        ..pressure(1, wants)
    };
    let here = [replica(1, 1, 300, 10), replica(2, 1, 100, 5)];
    let free = room(&[(1, 0), (2, 500), (3, 700)]);
    let found = relieve(&[wanting(350)], &here, &HOSTS, &free, 4);
    assert_eq!(moves(&found), [(group(1), 1, 3)]);
    assert!(found[0].is_wanted_there);
    // Nowhere is room for both, so the other one leaves, which frees a part.
    assert_eq!(
        moves(&relieve(&[wanting(500)], &here, &HOSTS, &free, 4)),
        [(group(2), 1, 3)]
    );
    // A shorter log beside it that frees enough is better than its own.
    assert_eq!(
        moves(&relieve(&[wanting(90)], &here, &HOSTS, &free, 4)),
        [(group(2), 1, 3)]
    );
}

#[test]
fn members_of_the_group_and_busy_servers_take_nothing() {
    let both = Replica {
        members: vec![ServerId(1), ServerId(3)],
        ..replica(1, 1, 300, 10)
    };
    let free = room(&[(1, 0), (2, 400), (3, 9_000), (4, 0)]);
    let one = std::slice::from_ref(&both);
    let found = relieve(&[pressure(1, 100)], one, &HOSTS, &free, 4);
    assert_eq!(moves(&found), [(group(1), 1, 2)]);
    // The second pressure finds its only host taken.
    let second = Replica {
        server: ServerId(4),
        ..replica(2, 4, 300, 10)
    };
    let here = [both, second];
    let pressures = [pressure(1, 100), pressure(4, 100)];
    assert_eq!(relieve(&pressures, &here, &HOSTS[..1], &free, 4).len(), 1);
    assert_eq!(relieve(&pressures, &here, &HOSTS, &free, 4).len(), 2);
    assert_eq!(relieve(&pressures, &here, &HOSTS, &free, 1).len(), 1);
    assert_eq!(
        relieve(&pressures, &here, &HOSTS, &room(&[(2, 299), (3, 299)]), 4),
        []
    );
}

#[test]
fn a_pressure_that_comes_and_goes_moves_nothing() {
    let mut patience = Patience::default();
    let now = || vec![pressure(1, 10)];
    assert_eq!(patience.lasting(now()), []);
    assert_eq!(patience.lasting(now()), []);
    assert_eq!(patience.lasting(Vec::new()), []);
    assert_eq!(patience.lasting(now()), []);
    assert_eq!(patience.lasting(now()), []);
    assert_eq!(patience.lasting(now()), now());
    patience.begin_again(ServerId(1));
    assert_eq!(patience.lasting(now()), []);
}
