"""The compared systems, in the order of the table."""

from __future__ import annotations

from quorate_peers.peers.aeron import Aeron
from quorate_peers.peers.etcd import Etcd
from quorate_peers.peers.kafka import Kafka
from quorate_peers.peers.nats import Nats
from quorate_peers.peers.peer import Peer
from quorate_peers.peers.quorate import Quorate, SpinningQuorate
from quorate_peers.peers.raft import HashicorpRaft
from quorate_peers.peers.zookeeper import Zookeeper

PEERS: dict[str, type[Peer]] = {
    peer.name: peer for peer in (Quorate, SpinningQuorate, Aeron, HashicorpRaft, Kafka, Nats, Zookeeper, Etcd)
}
