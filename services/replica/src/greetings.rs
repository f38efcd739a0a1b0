//! Places for connections that have yet to say who they are. Whoever can open a socket can hold one of these for a
//! while, so they are few for one address, clients' places are not among them, and peers have some of their own.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

use quorate_types::limits::{GREETINGS_MAX, GREETINGS_PER_ADDRESS_MAX, PEER_GREETINGS_MAX};

#[derive(Debug, Default)]
pub struct Greetings {
    strangers: usize,
    by_network: HashMap<IpAddr, usize>,
    /// From addresses of peers, beyond what anybody may have.
    peers: usize,
}

/// Given back when it is dropped.
#[derive(Debug)]
pub struct Place {
    of: Rc<RefCell<Greetings>>,
    held: Held,
}

#[derive(Debug, Clone, Copy)]
enum Held {
    Stranger(IpAddr),
    Peer,
}

impl Greetings {
    /// `is_peer`: whether a server that groups here have to do with lives at the address.
    pub fn place(
        greetings: &Rc<RefCell<Self>>,
        from: IpAddr,
        is_peer: impl FnOnce(IpAddr) -> bool,
    ) -> Option<Place> {
        let held = greetings.borrow_mut().take(from.to_canonical(), is_peer)?;
        let of = greetings.clone();
        Some(Place { of, held })
    }

    fn take(&mut self, from: IpAddr, is_peer: impl FnOnce(IpAddr) -> bool) -> Option<Held> {
        let network = network_of(from);
        let of_network = self.by_network.get(&network).copied().unwrap_or(0);
        if self.strangers < GREETINGS_MAX && of_network < GREETINGS_PER_ADDRESS_MAX {
            self.strangers += 1;
            self.by_network.insert(network, of_network + 1);
            return Some(Held::Stranger(network));
        }
        if self.peers < PEER_GREETINGS_MAX && is_peer(from) {
            self.peers += 1;
            return Some(Held::Peer);
        }
        None
    }

    fn give_back(&mut self, held: Held) {
        match held {
            Held::Peer => self.peers -= 1,
            Held::Stranger(network) => {
                self.strangers -= 1;
                let left = self.by_network.get_mut(&network).expect("counted when taken");
                *left -= 1;
                if *left == 0 {
                    self.by_network.remove(&network);
                }
            }
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.of.borrow_mut().give_back(self.held);
    }
}

/// Whom an address belongs to: of IPv6, whoever has one has the 2^64 around it.
fn network_of(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V4(_) => address,
        IpAddr::V6(v6) => Ipv6Addr::from_bits(v6.to_bits() & !u128::from(u64::MAX)).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().expect("an address")
    }

    fn fill(greetings: &Rc<RefCell<Greetings>>, from: IpAddr) -> Vec<Place> {
        std::iter::from_fn(|| Greetings::place(greetings, from, |_| false)).collect()
    }

    #[test]
    fn one_address_cannot_take_all() {
        let greetings = Rc::default();
        let many = fill(&greetings, ip("192.0.2.1"));
        assert_eq!(many.len(), GREETINGS_PER_ADDRESS_MAX);
        assert!(Greetings::place(&greetings, ip("::ffff:192.0.2.1"), |_| false).is_none());
        let other = Greetings::place(&greetings, ip("192.0.2.2"), |_| false);
        assert!(other.is_some());
        drop(many);
        assert_eq!(
            fill(&greetings, ip("192.0.2.1")).len(),
            GREETINGS_PER_ADDRESS_MAX,
            "given back"
        );
        drop(other);
        assert!(
            greetings.borrow().by_network.is_empty(),
            "nothing is kept of who left"
        );
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let greetings = Rc::default();
        let many = fill(&greetings, ip("2001:db8::1"));
        assert!(Greetings::place(&greetings, ip("2001:db8::ffff:2"), |_| false).is_none());
        assert!(Greetings::place(&greetings, ip("2001:db8:0:1::1"), |_| false).is_some());
        drop(many);
    }

    #[test]
    fn peers_find_a_place_when_strangers_hold_all() {
        let greetings = Rc::default();
        let mut held = Vec::new();
        for last in 0.. {
            let some = fill(&greetings, IpAddr::from([198, 51, 100, last]));
            if some.is_empty() {
                break;
            }
            held.extend(some);
        }
        assert_eq!(held.len(), GREETINGS_MAX);
        let peer = ip("192.0.2.7");
        assert!(Greetings::place(&greetings, peer, |_| false).is_none());
        let peers: Vec<Place> =
            std::iter::from_fn(|| Greetings::place(&greetings, peer, |from| from == peer)).collect();
        assert_eq!(peers.len(), PEER_GREETINGS_MAX, "theirs are bounded, too");
        drop(held);
        assert!(Greetings::place(&greetings, ip("203.0.113.1"), |_| false).is_some());
    }
}
