//! Two ends on two threads, over sockets. Shared memory is for two processes: `quorate-replica selftest ofi` tests it.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use crate::{Completion, Domain, FabricError, Link, Offer, Provider};

const RING_BYTES: usize = 64 << 10;
const WRITES_MAX: usize = 16;
const PATIENCE: Duration = Duration::from_secs(10);

fn open(provider: Provider) -> Link {
    let domain = Domain::open(provider, "127.0.0.1").expect("infra/setup installs libfabric");
    Link::open(&domain, RING_BYTES, WRITES_MAX).unwrap()
}

fn connected(provider: Provider, offers: &Sender<Offer>, others: &Receiver<Offer>) -> Link {
    let mut link = open(provider);
    offers.send(link.offer().unwrap()).unwrap();
    let other = others.recv().unwrap();
    link.connect(&other).unwrap();
    // Nobody writes before the other knows it.
    offers.send(other).unwrap();
    others.recv().unwrap();
    link
}

/// Polls until a completion is there that `holds`.
fn until(link: &mut Link, mut holds: impl FnMut(Completion) -> bool) {
    let begun = Instant::now();
    let mut is_there = false;
    while !is_there {
        link.poll(|completion| is_there |= holds(completion)).unwrap();
        assert!(begun.elapsed() < PATIENCE, "nothing completed");
        thread::yield_now();
    }
}

/// Each end writes its number to the other, many times, and waits for the other's.
fn exchange(provider: Provider, own: u8, offers: &Sender<Offer>, others: &Receiver<Offer>) {
    let mut link = connected(provider, offers, others);
    let mut landed = Vec::new();
    for round in 0..1_000u32 {
        let at = (round as usize % 8) * 4096;
        link.staging()[at..at + 100].fill(own.wrapping_add(round as u8));
        loop {
            match link.write(at, 100, round, u64::from(round)) {
                Ok(()) => break,
                Err(FabricError::Again) => link.poll(|_| {}).unwrap(),
                Err(error) => panic!("{error}"),
            }
        }
        let mut has_ended = false;
        until(&mut link, |completion| {
            match completion {
                // The other end may be a round ahead.
                Completion::Landed { immediate } => landed.push(immediate),
                Completion::Ended { number } => has_ended |= number == u64::from(round),
            }
            has_ended && landed.contains(&round)
        });
        assert_eq!(
            link.ring()[at..at + 100],
            [(1 - own).wrapping_add(round as u8); 100]
        );
        assert_eq!(link.under_way(), 0);
    }
    landed.sort_unstable();
    assert!(
        landed.into_iter().take(1_000).eq(0..1_000),
        "each write landed once"
    );
}

fn two_ends(provider: Provider) {
    let ((to_second, from_first), (to_first, from_second)) = (channel(), channel());
    let second = thread::spawn(move || exchange(provider, 1, &to_first, &from_first));
    exchange(provider, 0, &to_second, &from_second);
    second.join().unwrap();
}

#[test]
fn writes_land_over_sockets() {
    two_ends(Provider::Tcp);
}

#[test]
fn a_provider_without_a_device_says_so() {
    let missing = Domain::open(Provider::Verbs, "127.0.0.1").err();
    assert!(
        matches!(
            missing,
            None | Some(FabricError::NoProvider {
                provider: "verbs",
                ..
            })
        ),
        "{missing:?}"
    );
}
