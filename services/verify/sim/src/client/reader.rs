//! Clients that read a group from its beginning to its end, at any replica: by single reads, some of which wait, or
//! by subscriptions with credit. Each page must join the pages before it.

use std::collections::BTreeMap;

use quorate_types::{Code, Micros, Offset};
use quorate_wire::client::{Attached, Entries, Message, Refused, kind};
use rand::Rng;

use super::token::Grant;
use super::{ATTACH_TIMEOUT_US, Connection, State, Who};
use crate::invariants;
use crate::plan::GroupPlan;
use crate::schedule::What;
use crate::world::World;

/// An answer, or the next page of a subscription, may be so late before a reader asks elsewhere.
const ANSWER_TIMEOUT_US: Micros = 4_000_000;
/// Reads that one reader waits for at once.
const READS_MAX: usize = 3;

#[derive(Debug)]
pub struct Reader {
    pub group: usize,
    pub(super) connection: Connection,
    state: State,
    since: Micros,
    grant: Grant,
    subscribes: bool,
    /// All before was read.
    pub next_offset: Offset,
    /// Number of its last request on this attachment.
    requests: u32,
    /// Requests that it waits for, by number.
    asked: BTreeMap<u32, Asked>,
    /// The time at which it may ask again.
    rests_until: Micros,
}

/// A read, or a subscription, that has no answer or has more to come.
#[derive(Debug, Clone, Copy)]
struct Asked {
    /// The offset at which the next page begins.
    offset: Offset,
    /// It looks somewhere else than where the reader is.
    is_aside: bool,
    is_subscription: bool,
    /// It got a page.
    has_begun: bool,
    /// Payload bytes that were got and not given back as credit.
    got_bytes: u32,
}

impl Reader {
    pub fn new(group: usize, number: usize, plan: &GroupPlan) -> Self {
        Self {
            group,
            connection: Connection::default(),
            state: State::Idle,
            since: 0,
            grant: Grant {
                may_append: false,
                may_read: number + 1 < plan.readers || !plan.has_stranger,
                life_s: plan.token_life_s,
            },
            subscribes: number.is_multiple_of(2) == plan.first_subscribes,
            next_offset: 0,
            requests: 0,
            asked: BTreeMap::new(),
            rests_until: 0,
        }
    }

    /// It may read, and so has to get what is there.
    pub fn may_read(&self) -> bool {
        self.grant.may_read
    }

    pub(super) fn disconnected(&mut self) {
        self.state = State::Idle;
        self.asked.clear();
    }

    fn next_request(&mut self) -> u32 {
        self.requests += 1;
        self.requests
    }
}

impl World {
    pub fn reader_tick(&mut self, r: usize) {
        let now = self.now;
        let reader = &mut self.readers[r];
        match reader.state {
            State::Idle if now < reader.rests_until => {}
            State::Idle => self.connect_reader(r),
            State::Attaching if now - reader.since > ATTACH_TIMEOUT_US => self.close(Who::Reader(r)),
            State::Attaching => {}
            // Undisturbed, every answer comes.
            State::Ready if now - reader.since > ANSWER_TIMEOUT_US && !self.is_healing => {
                self.close(Who::Reader(r));
            }
            State::Ready if self.rng.random_bool(0.02) => self.attach_reader(r),
            State::Ready => self.read_on(r),
        }
        let at = now + self.rng.random_range(1_000..20_000);
        self.at(at, What::ClientTick { who: Who::Reader(r) });
    }

    /// To some replica of the group, or to a server that may not have it.
    fn connect_reader(&mut self, r: usize) {
        let group_id = Self::group_id(self.readers[r].group);
        let group = self.coordinator.state().groups.get(&group_id);
        let chain = group.into_iter().flat_map(|group| &group.chain);
        let places: Vec<usize> = chain.filter_map(|id| self.server_of(*id)).collect();
        let server = if places.is_empty() || self.rng.random_bool(0.1) {
            self.rng.random_range(0..self.servers.len())
        } else {
            places[self.rng.random_range(0..places.len())]
        };
        self.open(Who::Reader(r), server);
        self.attach_reader(r);
    }

    /// On its connection, where it may be attached already: then its requests are numbered from 1 again.
    fn attach_reader(&mut self, r: usize) {
        if self.readers[r].state != State::Idle {
            self.request(Who::Reader(r), Some(Message::Detach));
        }
        let (group_id, wall_s) = (Self::group_id(self.readers[r].group), self.wall_s());
        let reader = &mut self.readers[r];
        reader.state = State::Attaching;
        reader.since = self.now;
        reader.requests = 0;
        reader.asked.clear();
        let message = Message::Attach {
            group_id,
            session: 0,
            token: reader.grant.token(wall_s),
        };
        self.request(Who::Reader(r), Some(message));
    }

    fn read_on(&mut self, r: usize) {
        if self.now < self.readers[r].rests_until {
            return;
        }
        if self.readers[r].subscribes {
            return self.keep_subscription(r);
        }
        let reader = &self.readers[r];
        let (next, count) = (reader.next_offset, reader.asked.len());
        let goes_on = reader.asked.values().any(|asked| !asked.is_aside);
        if !goes_on {
            self.ask_for(r, next, false);
        } else if count < READS_MAX && self.rng.random_bool(0.2) {
            let ledger = &self.ledgers[self.readers[r].group];
            let offset = self
                .rng
                .random_range(ledger.begin_offset()..=ledger.end_offset() + 1);
            self.ask_for(r, offset, true);
        } else if self.rng.random_bool(0.02) {
            let request = *self.readers[r]
                .asked
                .keys()
                .next()
                .expect("it asked for something");
            self.readers[r].asked.remove(&request);
            self.request(Who::Reader(r), Some(Message::Cancel { request }));
        }
    }

    fn ask_for(&mut self, r: usize, offset: Offset, is_aside: bool) {
        let longest = self.plan.groups[self.readers[r].group].payload_bytes_max;
        let sizes = [0, 1, 2 * longest, 10 * longest];
        let waits_ms = [0, 20, 300, 1_000];
        let mut draw = |of: &[u32]| of[self.rng.random_range(0..of.len())];
        let (max_bytes, max_entries, wait_ms) = (draw(&sizes), draw(&[0, 0, 1, 7]), draw(&waits_ms));
        let reader = &mut self.readers[r];
        let request = reader.next_request();
        let asked = Asked {
            offset,
            is_aside,
            is_subscription: false,
            has_begun: false,
            got_bytes: 0,
        };
        reader.asked.insert(request, asked);
        reader.since = self.now;
        let message = Message::Read {
            request,
            max_bytes,
            max_entries,
            wait_ms,
            offset,
        };
        self.request(Who::Reader(r), Some(message));
    }

    fn keep_subscription(&mut self, r: usize) {
        let first = self.readers[r].asked.iter().next();
        let Some((request, asked)) = first.map(|(request, asked)| (*request, *asked)) else {
            return self.subscribe(r);
        };
        if self.rng.random_bool(0.01) {
            self.readers[r].asked.remove(&request);
            return self.request(Who::Reader(r), Some(Message::Cancel { request }));
        }
        if asked.got_bytes > 0 && self.rng.random_bool(0.3) {
            let asked = self.readers[r].asked.get_mut(&request).expect("looked up above");
            let bytes = std::mem::take(&mut asked.got_bytes);
            self.request(Who::Reader(r), Some(Message::Credit { request, bytes }));
        }
    }

    fn subscribe(&mut self, r: usize) {
        let longest = self.plan.groups[self.readers[r].group].payload_bytes_max;
        let credits = [1, longest, 3 * longest, 20 * longest];
        let credit_bytes = credits[self.rng.random_range(0..credits.len())];
        let reader = &mut self.readers[r];
        let (request, offset) = (reader.next_request(), reader.next_offset);
        let asked = Asked {
            offset,
            is_aside: false,
            is_subscription: true,
            has_begun: false,
            got_bytes: 0,
        };
        reader.asked.insert(request, asked);
        reader.since = self.now;
        let message = Message::Subscribe {
            request,
            credit_bytes,
            offset,
        };
        self.request(Who::Reader(r), Some(message));
    }

    pub(super) fn at_reader(&mut self, r: usize, message: Message) {
        match message {
            Message::Attached(attached) => self.reader_attached(r, &attached),
            // Before that, what comes was asked for on an earlier attachment.
            _ if self.readers[r].state != State::Ready => {}
            Message::Entries(entries) => self.got(r, &entries),
            Message::Refused(refused) => self.refused_reader(r, &refused),
            _ => {}
        }
    }

    fn reader_attached(&mut self, r: usize, attached: &Attached) {
        let reader = &mut self.readers[r];
        reader.state = State::Ready;
        reader.since = self.now;
        // Trimmed entries are not to be had any more.
        if attached.trim_offset > reader.next_offset {
            reader.next_offset = attached.trim_offset;
        }
    }

    fn got(&mut self, r: usize, entries: &Entries) {
        let reader = &mut self.readers[r];
        // Entries of a request that was cancelled may still be on the way.
        let Some(asked) = reader.asked.get_mut(&entries.request) else {
            return;
        };
        invariants::after_page(r, asked.offset, asked.has_begun, entries);
        asked.has_begun = true;
        reader.since = self.now;
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
        self.counts.pages += 1;
        self.counts.read_batches += entries.batches.len() as u64;
    }

    fn refused_reader(&mut self, r: usize, refused: &Refused) {
        let request = refused.id as u32;
        let reader = &mut self.readers[r];
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
        reader.rests_until = self.now + u64::from(refused.retry_after_ms) * 1_000 + rest_us;
        if is(Code::Trimmed) {
            // ATTACHED says from where on there is something.
            self.attach_reader(r);
        } else if is_attach || !is(Code::Internal) && !is(Code::Overloaded) {
            self.close(Who::Reader(r));
        }
    }
}
