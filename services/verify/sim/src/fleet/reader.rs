//! The state of a client that reads.

use std::collections::BTreeMap;

use quorate_types::{Micros, Offset};

use super::{ClientState, Connection, Grant};
use crate::plan::GroupPlan;

#[derive(Debug)]
pub struct Reader {
    pub group: usize,
    pub connection: Connection,
    pub state: ClientState,
    pub since: Micros,
    pub grant: Grant,
    pub subscribes: bool,
    /// All before was read.
    pub next_offset: Offset,
    /// Number of its last request on this attachment.
    pub requests: u32,
    /// Requests that it waits for, by number.
    pub asked: BTreeMap<u32, Asked>,
    /// The time at which it may ask again.
    pub rests_until: Micros,
}

/// A read, or a subscription, that has no answer or has more to come.
#[derive(Debug, Clone, Copy)]
pub struct Asked {
    /// The offset at which the next page begins.
    pub offset: Offset,
    /// It looks somewhere else than where the reader is.
    pub is_aside: bool,
    pub is_subscription: bool,
    /// It got a page.
    pub has_begun: bool,
    /// Payload bytes that were got and not given back as credit.
    pub got_bytes: u32,
}

impl Reader {
    pub fn new(group: usize, number: usize, plan: &GroupPlan) -> Self {
        Self {
            group,
            connection: Connection::default(),
            state: ClientState::Idle,
            since: 0,
            grant: Grant {
                may_append: false,
                may_read: number + 1 < plan.readers || !plan.has_unpermitted,
                lifetime_s: plan.token_lifetime_s,
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

    pub fn disconnected(&mut self) {
        self.state = ClientState::Idle;
        self.asked.clear();
    }

    pub fn next_request(&mut self) -> u32 {
        self.requests += 1;
        self.requests
    }
}
