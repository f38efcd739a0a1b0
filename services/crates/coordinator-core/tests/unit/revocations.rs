//! Revoked credentials. No sleeping.

use crate::world::World;
use quorate_coordinator_core::command::{Command, Effect, Reply};
use quorate_types::control::ToServer;
use quorate_types::limits::{REVOCATIONS_MAX, REVOCATIONS_PER_CALL_MAX};
use quorate_types::{CredentialId, Revocation, ServerId};
use uuid::Uuid;

fn of(number: usize, until_s: u64) -> Revocation {
    Revocation {
        credential: CredentialId(Uuid::from_u128(number as u128)),
        until_s,
    }
}

fn revoke(world: &mut World, revocations: Vec<Revocation>) -> Vec<Effect> {
    world.apply(Command::Revoke { revocations })
}

fn told(effects: &[Effect]) -> Vec<(ServerId, Vec<Revocation>)> {
    let told = effects.iter().filter_map(|effect| match effect {
        Effect::Send {
            server,
            message: ToServer::Revoked { revocations },
        } => Some((*server, revocations.clone())),
        _ => None,
    });
    told.collect()
}

fn is_done(effects: &[Effect]) -> bool {
    effects.contains(&Effect::Reply(Reply::Done))
}

#[test]
fn every_living_server_hears_of_new_ones_alone() {
    let mut world = World::new(3);
    world.fail(&[2]);
    let until_s = world.now_ms / 1_000 + 60;
    let first = of(1, until_s);
    let effects = revoke(&mut world, vec![first]);
    assert!(is_done(&effects));
    let both = |revocations: &[Revocation]| [1, 3].map(|id| (ServerId(id), revocations.to_vec()));
    assert_eq!(told(&effects), both(&[first]));
    let second = of(2, until_s);
    let effects = revoke(&mut world, vec![first, second]);
    assert!(is_done(&effects));
    assert_eq!(told(&effects), both(&[second]), "the first is known");
    let effects = revoke(&mut world, vec![first, second]);
    assert!(is_done(&effects));
    assert_eq!(told(&effects), [], "a repetition tells nobody anything");
}

#[test]
fn they_are_forgotten_when_the_last_token_has_expired() {
    let mut world = World::new(1);
    let now_s = world.now_ms / 1_000;
    revoke(&mut world, vec![of(1, now_s + 10)]);
    let effects = revoke(&mut world, vec![of(2, now_s.saturating_sub(1))]);
    assert!(is_done(&effects));
    assert_eq!(told(&effects), [], "its tokens have expired");
    world.now_ms += 11_000;
    revoke(&mut world, vec![of(3, now_s + 100)]);
    let left: Vec<Revocation> = world.state.revocations.iter().collect();
    assert_eq!(left, [of(3, now_s + 100)]);
}

#[test]
fn beyond_the_bound_none_is_taken() {
    let mut world = World::new(1);
    let until_s = world.now_ms / 1_000 + 60;
    for first in (0..REVOCATIONS_MAX).step_by(REVOCATIONS_PER_CALL_MAX) {
        let some = first..first + REVOCATIONS_PER_CALL_MAX;
        assert!(is_done(&revoke(
            &mut world,
            some.map(|i| of(i, until_s)).collect()
        )));
    }
    let effects = revoke(&mut world, vec![of(REVOCATIONS_MAX, until_s)]);
    let code = effects.iter().find_map(|effect| match effect {
        Effect::Reply(Reply::Conflict { code, .. }) => Some(*code),
        _ => None,
    });
    assert_eq!(code, Some("too_many_revocations"));
    assert_eq!(world.state.revocations.count(), REVOCATIONS_MAX);
    assert!(is_done(&revoke(&mut world, vec![of(0, until_s)])), "a known one");
    world.now_ms += 61_000;
    assert!(
        is_done(&revoke(&mut world, vec![of(1, until_s + 60)])),
        "room again"
    );
}
