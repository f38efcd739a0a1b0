//! The shard's client connections: answers out, and whose bytes are read next.
//!
//! A reader that finds its socket readable asks for its turn before it reads. Otherwise it sleeps: the bytes stay in
//! the socket, and the runtime keeps in mind that it is readable. The flush task, which runs after all readers that
//! were ready, says which of those that sleep reads next (`quorate_qos::FairQueue`). Bytes are charged once they are
//! parsed: an append by its group's cost, whether it is admitted or refused; everything else by its size.
//!
//! Pages of entries ask the same queue before they are sent.

use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Context;

use quorate_chain::ClientRef;
use quorate_group::{Refusal, Request};
use quorate_qos::{FairQueue, Tenant, Turn};
use quorate_transport::WriteHalf;
use quorate_types::ids::IdMap;
use quorate_types::limits::{CLIENT_OUTBOX_BYTES_MAX, CLIENT_PAGES_BYTES_MAX, FAIR_PAGES_BYTES};
use quorate_types::{CredentialId, GroupId, Offset, ProjectId};
use quorate_wire::client::{self, Entries, Message, kind};
use tokio::sync::Notify;

use super::connection::Connection;
use super::flush_wake::FlushWake;
use super::page_queue::{Page, Waiting};
use super::remote_connections::RemoteConnections;
use crate::backlog::Backlog;
use crate::clock::now_us;
use crate::messages::{ClientMessage, ShardMessage};
use crate::shared::{GroupCost, Settings, Shards, WEIGHT_MIN};

/// The upper bits of a connection's number say which shard owns it.
const CONNECTION_SHARD_SHIFT: u32 = 56;
/// Pages of a connection have a seat of their own in the queue between tenants.
const PAGES_SEAT: u64 = 1 << (CONNECTION_SHARD_SHIFT - 1);
/// Connections without a group, and what all of them have together: hundreds of tokens checked each second, however
/// busy the shard is. A client that attaches with a good token pays for that as the tenant that it says to be.
const UNATTACHED: Tenant = Tenant(0);
const UNATTACHED_WEIGHT: [u64; 3] = [50_000; 3];

pub struct Clients {
    shard: usize,
    shards: Arc<Shards>,
    settings: Arc<Settings>,
    connections: IdMap<u64, Connection>,
    remotes: RemoteConnections,
    dirty: Vec<u64>,
    next_connection: u64,
    /// The queue that says which connection is read next.
    fair: FairQueue,
    /// Those named last; empty, the allocation is kept.
    next_readers: Vec<u64>,
    /// Wakes the task that has them named again in a while.
    pub pass_later: Rc<Notify>,
    flush: FlushWake,
}

impl Clients {
    pub fn new(shard: usize, shards: Arc<Shards>, settings: Arc<Settings>, flush: FlushWake) -> Self {
        let fair = FairQueue::new(settings.shard_capacity_milli(shards.count()));
        Self {
            shard,
            shards,
            settings,
            connections: IdMap::default(),
            remotes: RemoteConnections::default(),
            dirty: Vec::new(),
            next_connection: 1,
            fair,
            next_readers: Vec::new(),
            pass_later: Rc::default(),
            flush,
        }
    }

    /// A connection whose HELLO was read, as a stranger's; its number.
    pub fn open(&mut self, stream: Rc<WriteHalf>) -> u64 {
        let id = (self.shard as u64) << CONNECTION_SHARD_SHIFT | self.next_connection;
        self.next_connection += 1;
        self.connections.insert(id, Connection::new(stream));
        self.join(id, UNATTACHED);
        self.fair.raise_weights(UNATTACHED, UNATTACHED_WEIGHT);
        id
    }

    pub fn close(&mut self, id: u64) -> Option<Connection> {
        self.fair.leave(id);
        self.fair.leave(id | PAGES_SEAT);
        self.call_readers();
        self.connections.remove(&id)
    }

    pub fn get(&self, id: u64) -> Option<&Connection> {
        self.connections.get(&id)
    }

    pub fn get_mut(&mut self, id: u64) -> Option<&mut Connection> {
        self.connections.get_mut(&id)
    }

    pub fn is_unmetered(&self) -> bool {
        self.settings.is_unmetered()
    }

    pub fn spend(&mut self, id: u64, cost: [u64; 3]) {
        if let Some(connection) = self.connections.get_mut(&id) {
            connection.spend(cost);
        }
    }

    /// The group is attached on the channel; the attachment's number. The first group's tenant is the connection's.
    pub fn attach(
        &mut self,
        client: ClientRef,
        group_id: GroupId,
        project: Option<ProjectId>,
        credential: Option<CredentialId>,
        cost: Option<Arc<GroupCost>>,
    ) -> Option<u64> {
        let connection = self.connections.get_mut(&client.connection)?;
        let weights = cost.as_ref().map_or([0; 3], |cost| cost.weights());
        let is_first = connection.tenant.is_none();
        let tenant = *connection.tenant.get_or_insert(tenant_of(project, group_id));
        let number = connection
            .channels
            .attach(client.channel, group_id, credential, cost);
        if is_first {
            self.join(client.connection, tenant);
        }
        self.fair.raise_weights(tenant, weights);
        Some(number)
    }

    /// The client detaches the channel; its group.
    pub fn detach(&mut self, client: ClientRef) -> Option<GroupId> {
        self.forget_pages(client, None);
        self.get_mut(client.connection)?.channels.detach(client.channel)
    }

    fn join(&mut self, id: u64, tenant: Tenant) {
        self.fair.join(id, tenant);
        self.fair.join(id | PAGES_SEAT, tenant);
    }
}

/// Answers.
impl Clients {
    pub fn send(&mut self, client: ClientRef, message: Message) {
        let owner = shard_of_connection(client);
        if owner != self.shard {
            if let Some(message) = self.remotes.for_client(client, message) {
                self.shards.send(owner, message);
            }
            return;
        }
        match message {
            Message::Entries(entries) if !self.settings.is_unmetered() => self.queue_page(client, entries),
            Message::Refused(refused) if is_of_reads(refused.op) => {
                self.queue_refusal(client, Message::Refused(refused));
            }
            message => self.push_message(client, &message),
        }
    }

    fn push_message(&mut self, client: ClientRef, message: &Message) {
        self.push_to(client.connection, |connection| {
            connection
                .outbox
                .push(|out| message.encode(client.channel, None, out));
        });
    }

    pub fn refuse(&mut self, client: ClientRef, refusal: Refusal) {
        self.send(client, refusal.into_message());
    }

    /// Batches that are committed: a range of `acks`, all of one client.
    pub fn send_acks(&mut self, client: ClientRef, acks: &[(ClientRef, u64, Offset)], range: Range<usize>) {
        let acks = acks[range]
            .iter()
            .map(|(_, seq, base_offset)| (*seq, *base_offset));
        if shard_of_connection(client) != self.shard {
            return self.send(client, Message::Acked(acks.collect()));
        }
        self.push_to(client.connection, |connection| {
            connection.outbox.push(|out| {
                client::encode_acked(client.channel, acks, out);
                None
            });
        });
    }

    /// For a connection of this shard, if it is still there.
    fn push_to(&mut self, id: u64, push: impl FnOnce(&mut Connection)) {
        let Some(connection) = self.connections.get_mut(&id) else {
            return;
        };
        // A client that asks and does not read is disconnected before it costs more memory.
        if connection.outbox.len() > 2 * CLIENT_OUTBOX_BYTES_MAX {
            return connection.close_at_once("does not read its answers");
        }
        push(connection);
        Self::note_dirty(id, connection, &mut self.dirty, &self.flush);
    }

    /// The socket takes more.
    pub fn mark(&mut self, id: u64) {
        if let Some(connection) = self.connections.get_mut(&id) {
            Self::note_dirty(id, connection, &mut self.dirty, &self.flush);
        }
    }

    /// The next flush writes what waits on the connection.
    fn note_dirty(id: u64, connection: &mut Connection, dirty: &mut Vec<u64>, flush: &FlushWake) {
        if !std::mem::replace(&mut connection.is_dirty, true) {
            dirty.push(id);
            flush.wake();
        }
    }

    /// Writes what waits on each connection that got something in this flush.
    pub fn write_dirty(&mut self) {
        let mut with_pages = Vec::new();
        for id in self.dirty.drain(..) {
            let Some(connection) = self.connections.get_mut(&id) else {
                continue;
            };
            connection.is_dirty = false;
            match connection.outbox.try_write(&connection.stream) {
                Ok(true) => {}
                Ok(false) => connection.blocked.notify_one(),
                Err(_) => connection.close.notify_one(),
            }
            if !connection.pages.is_empty() {
                with_pages.push(id);
            }
        }
        // Their sockets have taken some: pages that waited for that go on.
        for id in with_pages {
            self.send_pages(id);
        }
        if !self.dirty.is_empty() {
            self.flush.wake_again();
        }
    }

    /// The group did not take the channel: before the client hears of that, the channel is free. Nothing more is sent to
    /// it: its connection, which has forgotten it, will not say that it is gone.
    pub fn not_attached(&mut self, client: ClientRef, number: u64, message: Message) {
        self.free_channel(client, number);
        self.send(client, message);
        self.remotes.forget(client);
    }

    pub fn free_channel(&mut self, client: ClientRef, number: u64) {
        let owner = shard_of_connection(client);
        if owner != self.shard {
            let message = ClientMessage::NotAttached { client, number };
            self.shards.send(owner, ShardMessage::Client(message));
        } else if let Some(connection) = self.connections.get_mut(&client.connection)
            && connection.channels.refused(client.channel, number)
        {
            connection.pages.forget(client.channel, None);
        }
    }
}

/// Pages in their tenants' turns.
impl Clients {
    fn queue_page(&mut self, client: ClientRef, entries: Entries) {
        let Some(connection) = self.connections.get_mut(&client.connection) else {
            return;
        };
        if connection.pages.bytes() > CLIENT_PAGES_BYTES_MAX {
            return connection.close_at_once("asks for more at once than it can be sent");
        }
        let page = connection.page(client.channel, &entries, now_us());
        connection.pages.push(Waiting {
            channel: client.channel,
            message: Message::Entries(entries),
            page: Some(page),
        });
        self.send_pages(client.connection);
    }

    /// A refusal of a read ends a subscription: it does not overtake the pages before it.
    fn queue_refusal(&mut self, client: ClientRef, message: Message) {
        match self.connections.get_mut(&client.connection) {
            Some(connection) if !connection.pages.is_empty() => connection.pages.push(Waiting {
                channel: client.channel,
                message,
                page: None,
            }),
            _ => self.push_message(client, &message),
        }
    }

    /// The client does not want the pages of the request, or of any on the channel. Numbers of both are used again.
    pub fn forget_pages(&mut self, client: ClientRef, request: Option<u32>) {
        if let Some(connection) = self.connections.get_mut(&client.connection) {
            connection.pages.forget(client.channel, request);
        }
    }

    /// Sends the connection's pages while it is their turn.
    fn send_pages(&mut self, id: u64) {
        let seat = id | PAGES_SEAT;
        while let Some(first) = self.next_page(id) {
            if first.page.is_none() {
                self.send_first(id);
                continue;
            }
            let Turn::Read { bytes_max } = self.fair.ask(seat) else {
                return self.call_readers();
            };
            // Several pages share a write; the queue counts them as one turn, and names fewer connections.
            let (mut bytes, mut cost) = (0, [0u64; 3]);
            while let Some(page) = self.send_first(id) {
                bytes += page.bytes;
                cost = std::array::from_fn(|i| cost[i].saturating_add(page.cost[i]));
                page.leaves(now_us());
                if bytes >= bytes_max.min(FAIR_PAGES_BYTES) {
                    break;
                }
            }
            self.fair.charge(seat, bytes as u64, cost);
        }
    }

    /// The first that waits on the connection, unless its socket has more than it takes: then pages wait here, and do not
    /// fill the outbox, whose owner would be taken for one that does not read.
    fn next_page(&self, id: u64) -> Option<&Waiting> {
        let connection = self.connections.get(&id)?;
        let has_room = connection.outbox.len() <= CLIENT_OUTBOX_BYTES_MAX;
        connection.pages.front().filter(|_| has_room)
    }

    /// Sends the first of the connection's pages and refusals; the page.
    fn send_first(&mut self, id: u64) -> Option<Page> {
        let waiting = self.connections.get_mut(&id)?.pages.pop()?;
        let client = ClientRef {
            connection: id,
            channel: waiting.channel,
        };
        self.push_message(client, &waiting.message);
        waiting.page
    }

    /// A pass named the connection's pages.
    fn send_pages_in_turn(&mut self, id: u64) {
        if self.next_page(id).is_none() {
            // They were forgotten meanwhile, or the socket is full; the turn is taken all the same.
            let _turn = self.fair.ask(id | PAGES_SEAT);
        }
        self.send_pages(id);
    }

    /// Entries are read from the disk for the client, by the group's shard.
    pub fn charge_disk(&mut self, client: ClientRef, entries: u64, bytes: u64) {
        let owner = shard_of_connection(client);
        if owner != self.shard {
            let message = ClientMessage::FromDisk {
                client,
                entries,
                bytes,
            };
            return self.shards.send(owner, ShardMessage::Client(message));
        }
        let connection = self.connections.get(&client.connection);
        let group = connection.and_then(|connection| connection.channels.cost_of(client.channel));
        if let Some(cost) = group.and_then(|group| group.reads.disk_cost(entries, bytes))
            && !self.settings.is_unmetered()
        {
            self.fair.charge(client.connection | PAGES_SEAT, 0, cost);
        }
    }
}

/// Other shards.
impl Clients {
    /// A request came from a connection of another shard.
    pub fn note_remote(&mut self, client: ClientRef, request: &Request, backlog: Arc<Backlog>) {
        self.remotes.note(client, request, backlog);
    }

    /// An answer came from a group of another shard.
    pub fn send_from_remote(&mut self, client: ClientRef, message: Message, weight: usize) {
        if let Some(connection) = self.connections.get(&client.connection) {
            connection.backlog.arrived(weight);
        }
        self.send(client, message);
    }

    /// A group is in quarantine. Nobody can say which requests to it happened, so its connections end: their clients take
    /// what has no answer for unknown, and ask again elsewhere.
    pub fn close_of(&self, group_id: GroupId) {
        let of_group = |connection: &&Connection| connection.channels.groups().any(|(_, of)| of == group_id);
        for connection in self.connections.values().filter(of_group) {
            connection.close_at_once("a group of it is in quarantine");
        }
    }

    /// Closes connections that showed a token of such a credential. Their clients attach again with another, or hear that
    /// it was revoked.
    pub fn close_where(&self, is_revoked: impl Fn(CredentialId) -> bool) {
        for connection in self.connections.values() {
            if connection.channels.credentials().any(&is_revoked) {
                connection.close_at_once("a credential of it was revoked");
            }
        }
    }

    pub fn close_for_remote(&self, id: u64) {
        if let Some(connection) = self.connections.get(&id) {
            connection.close_at_once("does not read the answers from groups of other shards");
        }
    }
}

/// Turns between tenants.
impl Clients {
    /// A connection that has something to be read; `None`: its task is woken when it is its turn.
    pub fn turn(&mut self, id: u64, context: &Context<'_>) -> Option<usize> {
        if self.settings.is_unmetered() {
            return Some(usize::MAX);
        }
        match self.fair.ask(id) {
            Turn::Read { bytes_max } => Some(bytes_max),
            Turn::Wait => {
                let connection = self.connections.get_mut(&id)?;
                connection.waits_for_turn = Some(context.waker().clone());
                self.call_readers();
                None
            }
        }
    }

    /// A turn is over, in which so many bytes were read: its cost is known now.
    pub fn settle(&mut self, id: u64, bytes: usize) {
        if let Some(connection) = self.connections.get_mut(&id) {
            let spent = connection.take_spent();
            let is_counted = bytes > 0 || spent != [0; 3];
            if is_counted && !self.settings.is_unmetered() {
                self.fair.charge(id, bytes as u64, spent);
            }
        }
        self.call_readers();
    }

    /// The connection is not read for a while.
    pub fn block(&mut self, id: u64) {
        self.settle(id, 0);
        self.fair.block(id);
    }

    pub fn unblock(&mut self, id: u64) {
        self.fair.unblock(id);
    }

    pub fn wants_pass(&self) -> bool {
        self.fair.wants_pass()
    }

    /// Has the flush task say which connection is read next, if one waits for that.
    pub fn call_readers(&self) {
        if self.fair.wants_pass() {
            self.flush.wake();
        }
    }

    /// Every reader that was found ready has asked.
    pub fn let_read(&mut self) {
        // Where none waits, the time means nothing.
        let now = if self.fair.wants_pass() { now_us() } else { 0 };
        let mut next = std::mem::take(&mut self.next_readers);
        if self.fair.pass(now, &mut next).is_some() {
            self.pass_later.notify_one();
        }
        for id in next.drain(..) {
            if id & PAGES_SEAT != 0 {
                self.send_pages_in_turn(id & !PAGES_SEAT);
                continue;
            }
            let connection = self.connections.get_mut(&id);
            if let Some(waker) = connection.and_then(|connection| connection.waits_for_turn.take()) {
                waker.wake();
            }
        }
        self.next_readers = next;
    }

    /// Weighs tenants again, each by the groups that its connections have attached: groups come, go and change.
    pub fn weigh_tenants(&mut self) {
        let mut groups: HashMap<Tenant, HashMap<GroupId, [u64; 3]>> = HashMap::new();
        for connection in self.connections.values() {
            if let Some(tenant) = connection.tenant {
                groups
                    .entry(tenant)
                    .or_default()
                    .extend(connection.channels.weights());
            }
        }
        for (tenant, weights) in groups {
            let sum = weights.into_values().fold([0; 3], |sum: [u64; 3], of_group| {
                std::array::from_fn(|i| sum[i] + of_group[i])
            });
            self.fair
                .set_weights(tenant, sum.map(|weight| weight.max(WEIGHT_MIN)));
        }
        self.fair.forget_idle();
    }
}

fn is_of_reads(op: u8) -> bool {
    matches!(op, kind::READ | kind::SUBSCRIBE)
}

fn shard_of_connection(client: ClientRef) -> usize {
    (client.connection >> CONNECTION_SHARD_SHIFT) as usize
}

/// The tenant of a connection that attaches the group.
fn tenant_of(project: Option<ProjectId>, group_id: GroupId) -> Tenant {
    Tenant(project.map_or(group_id.0, |project| project.0).as_u128())
}

#[cfg(test)]
impl Clients {
    pub fn ids(&self) -> impl Iterator<Item = u64> {
        self.connections.keys().copied()
    }

    /// As an ATTACH of that tenant whose token was good.
    pub fn attach_as(
        &mut self,
        client: ClientRef,
        group_id: GroupId,
        tenant: Tenant,
        cost: Option<Arc<GroupCost>>,
    ) -> u64 {
        self.connections
            .get_mut(&client.connection)
            .expect("it is here")
            .tenant = Some(tenant);
        self.join(client.connection, tenant);
        self.attach(client, group_id, None, None, cost)
            .expect("it is here")
    }
    /// As of pages that left.
    pub fn charge_pages(&mut self, id: u64, cost: [u64; 3]) {
        self.fair.charge(id | PAGES_SEAT, 0, cost);
    }

    pub fn waiting_pages(&self, id: u64) -> usize {
        self.connections[&id].pages.len()
    }
}
