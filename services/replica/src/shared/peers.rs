//! Servers that groups here have to do with: where they are, which are dialed, which cannot be reached.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Mutex;

use quorate_types::{GroupConfig, GroupId, Role, ServerId};

use super::Shards;
use crate::messages::{LinkMessage, ShardMessage};

#[derive(Default)]
pub struct Peers {
    known: Mutex<HashMap<ServerId, Peer>>,
    unreachable: Mutex<HashSet<ServerId>>,
}

/// A server that some group here has, or had, to do with.
#[derive(Default)]
struct Peer {
    address: String,
    /// The host that it last came from, having proved its number. An address may be a name, and connections come from
    /// numbers.
    seen_at: Option<IpAddr>,
    wanted_by: HashSet<GroupId>,
    is_dialed: bool,
}

impl Peers {
    /// Takes the peers of a configuration in, and has links opened to those that this server dials.
    pub fn note(&self, me: ServerId, config: &GroupConfig, shards: &Shards) {
        self.forget(config.group_id);
        if config.role_of(me) == Role::None {
            return;
        }
        let mut peers = self.known.lock().expect("peers");
        for member in config.line().filter(|m| m.server_id != me) {
            let peer = peers.entry(member.server_id).or_default();
            peer.address.clone_from(&member.address);
            peer.wanted_by.insert(config.group_id);
            if me < member.server_id && !peer.is_dialed {
                peer.is_dialed = true;
                let dial = LinkMessage::Dial(member.server_id);
                shards.send_to_peer(member.server_id, ShardMessage::Link(dial));
            }
        }
    }

    /// The group needs no peers any more.
    pub fn forget(&self, group_id: GroupId) {
        for peer in self.known.lock().expect("peers").values_mut() {
            peer.wanted_by.remove(&group_id);
        }
    }

    pub fn note_host(&self, server: ServerId, host: IpAddr) {
        let mut peers = self.known.lock().expect("peers");
        peers.entry(server).or_default().seen_at = Some(host);
    }

    /// Whether the address is of a server that shares, or shared, groups with this one.
    pub fn is_host(&self, host: IpAddr) -> bool {
        let advertised = |peer: &Peer| peer.address.parse().map(|at: SocketAddr| at.ip().to_canonical());
        let peers = self.known.lock().expect("peers");
        let mut peers = peers.values();
        peers.any(|peer| peer.seen_at == Some(host) || advertised(peer) == Ok(host))
    }

    /// The address to dial, while any group needs the peer; `None` ends its dialer.
    pub fn next_dial(&self, server: ServerId) -> Option<String> {
        let mut peers = self.known.lock().expect("peers");
        let peer = peers.get_mut(&server)?;
        if peer.wanted_by.is_empty() {
            peer.is_dialed = false;
            self.reached(server);
            return None;
        }
        Some(peer.address.clone())
    }

    pub fn reached(&self, server: ServerId) {
        self.unreachable.lock().expect("unreachable").remove(&server);
    }

    pub fn not_reached(&self, server: ServerId) {
        self.unreachable.lock().expect("unreachable").insert(server);
    }

    /// Peers that groups here need and that cannot be reached; others have the right to be gone.
    pub fn unreachable(&self) -> Vec<ServerId> {
        let peers = self.known.lock().expect("peers");
        let is_wanted = |id: &&ServerId| peers.get(*id).is_some_and(|peer| !peer.wanted_by.is_empty());
        let unreachable = self.unreachable.lock().expect("unreachable");
        unreachable.iter().filter(is_wanted).copied().collect()
    }
}
