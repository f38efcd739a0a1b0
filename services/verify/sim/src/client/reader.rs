//! Clients that read a group from its beginning to its end, at any replica. They use single reads, some of which wait,
//! or subscriptions with credit. Each page must join the pages before it.

use quorate_types::{Code, Micros, Offset};
use quorate_wire::client::{Attached, Entries, Message, Refused, kind};
use rand::Rng;

use super::connection;
use super::connection::ATTACH_TIMEOUT_US;
use crate::fleet::{Asked, ClientId, ClientState, Scheduled, World};
use crate::invariants;

/// A reader asks elsewhere if an answer, or the next page of a subscription, is later than this.
const ANSWER_TIMEOUT_US: Micros = 4_000_000;

/// Reads that one reader waits for at once.
const READS_MAX: usize = 3;

pub fn tick(world: &mut World, r: usize) {
    let now = world.now;
    let reader = &mut world.readers[r];
    match reader.state {
        ClientState::Idle if now < reader.rests_until => {}
        ClientState::Idle => connect(world, r),
        ClientState::Attaching if now - reader.since > ATTACH_TIMEOUT_US => {
            connection::close(world, ClientId::Reader(r))
        }
        ClientState::Attaching => {}
        // Undisturbed, every answer comes.
        ClientState::Ready if now - reader.since > ANSWER_TIMEOUT_US && !world.is_healing => {
            connection::close(world, ClientId::Reader(r));
        }
        ClientState::Ready if world.rng.random_bool(0.02) => attach(world, r),
        ClientState::Ready => read_on(world, r),
    }
    let at = now + world.rng.random_range(1_000..20_000);
    world.schedule(
        at,
        Scheduled::ClientTick {
            client: ClientId::Reader(r),
        },
    );
}

/// Connects to some replica of the group, or to a server that may not have it.
fn connect(world: &mut World, r: usize) {
    let group_id = World::group_id(world.readers[r].group);
    let group = world.coordinators.known().groups.get(&group_id);
    let chain = group.into_iter().flat_map(|group| &group.chain);
    let places: Vec<usize> = chain.filter_map(|id| world.server_of(*id)).collect();
    let server = if places.is_empty() || world.rng.random_bool(0.1) {
        world.rng.random_range(0..world.servers.len())
    } else {
        places[world.rng.random_range(0..places.len())]
    };
    connection::open(world, ClientId::Reader(r), server);
    attach(world, r);
}

/// Attaches on its connection, where it may be attached already. Its requests are numbered from 1 again.
fn attach(world: &mut World, r: usize) {
    if world.readers[r].state != ClientState::Idle {
        connection::send(world, ClientId::Reader(r), Some(Message::Detach));
    }
    let (group_id, wall_s) = (World::group_id(world.readers[r].group), world.wall_s());
    let reader = &mut world.readers[r];
    reader.state = ClientState::Attaching;
    reader.since = world.now;
    reader.requests = 0;
    reader.asked.clear();
    let message = Message::Attach {
        group_id,
        session: 0,
        token: reader.grant.token(wall_s),
    };
    connection::send(world, ClientId::Reader(r), Some(message));
}

fn read_on(world: &mut World, r: usize) {
    if world.now < world.readers[r].rests_until {
        return;
    }
    if world.readers[r].subscribes {
        return keep_subscription(world, r);
    }
    let reader = &world.readers[r];
    let (next, count) = (reader.next_offset, reader.asked.len());
    let goes_on = reader.asked.values().any(|asked| !asked.is_aside);
    if !goes_on {
        read_at(world, r, next, false);
    } else if count < READS_MAX && world.rng.random_bool(0.2) {
        let ledger = &world.ledgers[world.readers[r].group];
        let offset = world
            .rng
            .random_range(ledger.begin_offset()..=ledger.end_offset() + 1);
        read_at(world, r, offset, true);
    } else if world.rng.random_bool(0.02) {
        let request = *world.readers[r]
            .asked
            .keys()
            .next()
            .expect("it asked for something");
        world.readers[r].asked.remove(&request);
        connection::send(world, ClientId::Reader(r), Some(Message::Cancel { request }));
    }
}

fn read_at(world: &mut World, r: usize, offset: Offset, is_aside: bool) {
    let longest = world.plan.groups[world.readers[r].group].payload_bytes_max;
    let sizes = [0, 1, 2 * longest, 10 * longest];
    let waits_ms = [0, 20, 300, 1_000];
    let mut draw = |of: &[u32]| of[world.rng.random_range(0..of.len())];
    let (max_bytes, max_entries, wait_ms) = (draw(&sizes), draw(&[0, 0, 1, 7]), draw(&waits_ms));
    let reader = &mut world.readers[r];
    let request = reader.next_request();
    let asked = Asked {
        offset,
        is_aside,
        is_subscription: false,
        has_begun: false,
        got_bytes: 0,
    };
    reader.asked.insert(request, asked);
    reader.since = world.now;
    let message = Message::Read {
        request,
        max_bytes,
        max_entries,
        wait_ms,
        offset,
    };
    connection::send(world, ClientId::Reader(r), Some(message));
}

fn keep_subscription(world: &mut World, r: usize) {
    let first = world.readers[r].asked.iter().next();
    let Some((request, asked)) = first.map(|(request, asked)| (*request, *asked)) else {
        return subscribe(world, r);
    };
    if world.rng.random_bool(0.01) {
        world.readers[r].asked.remove(&request);
        return connection::send(world, ClientId::Reader(r), Some(Message::Cancel { request }));
    }
    if asked.got_bytes > 0 && world.rng.random_bool(0.3) {
        let asked = world.readers[r].asked.get_mut(&request).expect("looked up above");
        let bytes = std::mem::take(&mut asked.got_bytes);
        connection::send(
            world,
            ClientId::Reader(r),
            Some(Message::Credit { request, bytes }),
        );
    }
}

fn subscribe(world: &mut World, r: usize) {
    let longest = world.plan.groups[world.readers[r].group].payload_bytes_max;
    let credits = [1, longest, 3 * longest, 20 * longest];
    let credit_bytes = credits[world.rng.random_range(0..credits.len())];
    let reader = &mut world.readers[r];
    let (request, offset) = (reader.next_request(), reader.next_offset);
    let asked = Asked {
        offset,
        is_aside: false,
        is_subscription: true,
        has_begun: false,
        got_bytes: 0,
    };
    reader.asked.insert(request, asked);
    reader.since = world.now;
    let message = Message::Subscribe {
        request,
        credit_bytes,
        offset,
    };
    connection::send(world, ClientId::Reader(r), Some(message));
}

pub(super) fn receive(world: &mut World, r: usize, message: Message) {
    match message {
        // Answers come in the order of requests: the last ATTACH is not answered yet.
        Message::Attached(_) if world.connection(ClientId::Reader(r)).attaches_unanswered > 0 => {}
        Message::Attached(attached) => take_attached(world, r, &attached),
        // Before that, messages answer an earlier attachment.
        _ if world.readers[r].state != ClientState::Ready => {}
        Message::Entries(entries) => take_page(world, r, &entries),
        Message::Refused(refused) => take_refusal(world, r, &refused),
        _ => {}
    }
}

fn take_attached(world: &mut World, r: usize, attached: &Attached) {
    let reader = &mut world.readers[r];
    reader.state = ClientState::Ready;
    reader.since = world.now;
    // Trimmed entries cannot be read any more.
    if attached.trim_offset > reader.next_offset {
        reader.next_offset = attached.trim_offset;
    }
}

fn take_page(world: &mut World, r: usize, entries: &Entries) {
    let reader = &mut world.readers[r];
    // Entries of a request that was cancelled may still be on the way.
    let Some(asked) = reader.asked.get_mut(&entries.request) else {
        return;
    };
    invariants::after_page(r, asked.offset, asked.has_begun, entries);
    asked.has_begun = true;
    reader.since = world.now;
    asked.offset = entries.next_offset;
    let bytes: usize = entries.batches.iter().map(|batch| batch.payload.len()).sum();
    asked.got_bytes += bytes as u32;
    let asked = *asked;
    if !asked.is_aside {
        reader.next_offset = reader.next_offset.max(entries.next_offset);
    }
    if !asked.is_subscription {
        reader.asked.remove(&entries.request);
    }
    world.counts.pages += 1;
    world.counts.read_batches += entries.batches.len() as u64;
}

fn take_refusal(world: &mut World, r: usize, refused: &Refused) {
    let request = refused.id as u32;
    let reader = &mut world.readers[r];
    let is_attach = refused.op == kind::ATTACH;
    let asked = reader.asked.remove(&request);
    if asked.is_some_and(|asked| asked.is_aside) {
        return;
    }
    let is = |code: Code| refused.code == code as u16;
    let rest_us = if is(Code::PermissionDenied) {
        200_000
    } else {
        5_000
    };
    reader.rests_until = world.now + u64::from(refused.retry_after_ms) * 1_000 + rest_us;
    if is(Code::Trimmed) {
        // ATTACHED has the offset from which entries are there.
        attach(world, r);
    } else if is_attach || !is(Code::Internal) && !is(Code::Overloaded) {
        connection::close(world, ClientId::Reader(r));
    }
}
