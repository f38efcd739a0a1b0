//! Places for connections that have yet to say who they are. Anybody who can open a socket can hold one of these for
//! a while. So they are few for one address, clients' places are not among them, and peers have some of their own.

use std::cell::RefCell;
use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

use quorate_types::limits::{HANDSHAKES_MAX, HANDSHAKES_PER_ADDRESS_MAX, PEER_HANDSHAKES_MAX};

#[derive(Debug, Default)]
pub struct Handshakes {
    strangers: usize,
    by_network: HashMap<IpAddr, usize>,
    /// From addresses of peers, beyond what anybody may have.
    peers: usize,
}

/// Given back when it is dropped.
#[derive(Debug)]
pub struct HandshakePlace {
    of: Rc<RefCell<Handshakes>>,
    held: Held,
}

#[derive(Debug, Clone, Copy)]
enum Held {
    Stranger(IpAddr),
    Peer,
}

impl Handshakes {
    /// `is_peer`: whether the address is of a server that shares groups with this one.
    pub fn place(
        handshakes: &Rc<RefCell<Self>>,
        from: IpAddr,
        is_peer: impl FnOnce(IpAddr) -> bool,
    ) -> Option<HandshakePlace> {
        let held = handshakes.borrow_mut().take(from.to_canonical(), is_peer)?;
        let of = handshakes.clone();
        Some(HandshakePlace { of, held })
    }

    fn take(&mut self, from: IpAddr, is_peer: impl FnOnce(IpAddr) -> bool) -> Option<Held> {
        let network = network_of(from);
        let of_network = self.by_network.get(&network).copied().unwrap_or(0);
        if self.strangers < HANDSHAKES_MAX && of_network < HANDSHAKES_PER_ADDRESS_MAX {
            self.strangers += 1;
            self.by_network.insert(network, of_network + 1);
            return Some(Held::Stranger(network));
        }
        if self.peers < PEER_HANDSHAKES_MAX && is_peer(from) {
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

impl Drop for HandshakePlace {
    fn drop(&mut self) {
        self.of.borrow_mut().give_back(self.held);
    }
}

/// The network that an address belongs to. An IPv6 address comes with the 2^64 around it.
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

    fn fill(handshakes: &Rc<RefCell<Handshakes>>, from: IpAddr) -> Vec<HandshakePlace> {
        std::iter::from_fn(|| Handshakes::place(handshakes, from, |_| false)).collect()
    }

    #[test]
    fn one_address_cannot_take_all() {
        let handshakes = Rc::default();
        let many = fill(&handshakes, ip("192.0.2.1"));
        assert_eq!(many.len(), HANDSHAKES_PER_ADDRESS_MAX);
        assert!(Handshakes::place(&handshakes, ip("::ffff:192.0.2.1"), |_| false).is_none());
        let other = Handshakes::place(&handshakes, ip("192.0.2.2"), |_| false);
        assert!(other.is_some());
        drop(many);
        assert_eq!(
            fill(&handshakes, ip("192.0.2.1")).len(),
            HANDSHAKES_PER_ADDRESS_MAX,
            "given back"
        );
        drop(other);
        assert!(
            handshakes.borrow().by_network.is_empty(),
            "nothing is kept of who left"
        );
    }

    #[test]
    fn a_network_of_ipv6_is_one_address() {
        let handshakes = Rc::default();
        let many = fill(&handshakes, ip("2001:db8::1"));
        assert!(Handshakes::place(&handshakes, ip("2001:db8::ffff:2"), |_| false).is_none());
        assert!(Handshakes::place(&handshakes, ip("2001:db8:0:1::1"), |_| false).is_some());
        drop(many);
    }

    #[test]
    fn peers_find_a_place_when_strangers_hold_all() {
        let handshakes = Rc::default();
        let mut held = Vec::new();
        for last in 0.. {
            let some = fill(&handshakes, IpAddr::from([198, 51, 100, last]));
            if some.is_empty() {
                break;
            }
            held.extend(some);
        }
        assert_eq!(held.len(), HANDSHAKES_MAX);
        let peer = ip("192.0.2.7");
        assert!(Handshakes::place(&handshakes, peer, |_| false).is_none());
        let peers: Vec<HandshakePlace> =
            std::iter::from_fn(|| Handshakes::place(&handshakes, peer, |from| from == peer)).collect();
        assert_eq!(peers.len(), PEER_HANDSHAKES_MAX, "theirs are bounded, too");
        drop(held);
        assert!(Handshakes::place(&handshakes, ip("203.0.113.1"), |_| false).is_some());
    }
}
