//! One client's connection: its outbox, its channels, and what was done for it.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::task::Waker;

use quorate_qos::Tenant;
use quorate_transport::{Outbox, WriteHalf};
use quorate_types::ids::IdMap;
use quorate_types::limits::CLIENT_OUTBOX_BYTES_MAX;
use quorate_types::{CredentialId, GroupId};
use quorate_wire::client::{Entries, Message};
use tokio::sync::Notify;

use super::page_queue::{Page, PageQueue};
use crate::backlog::Backlog;
use crate::shared::{GroupCost, frame_cost};

pub struct Connection {
    pub stream: Rc<WriteHalf>,
    pub outbox: Outbox,
    pub is_dirty: bool,
    /// The socket took less than there is: the writer task goes on when it can.
    pub blocked: Rc<Notify>,
    pub close: Rc<Notify>,
    is_closing: Cell<bool>,
    pub channels: Channels,
    /// Bytes on their way to groups of other shards, and from them.
    pub backlog: Arc<Backlog>,
    /// The tenant of the first group that it attached.
    pub tenant: Option<Tenant>,
    /// Work that was done for it and is not charged yet, in thousandths of tokens.
    spent: [u64; 3],
    /// It has something to be read, and it is not its turn.
    pub waits_for_turn: Option<Waker>,
    pub pages: PageQueue,
}

impl Connection {
    pub fn new(stream: Rc<WriteHalf>) -> Self {
        Self {
            stream,
            outbox: Outbox::default(),
            is_dirty: false,
            blocked: Rc::default(),
            close: Rc::default(),
            is_closing: Cell::new(false),
            channels: Channels::default(),
            backlog: Arc::default(),
            tenant: None,
            spent: [0; 3],
            waits_for_turn: None,
            pages: PageQueue::default(),
        }
    }

    /// Ends it without a message: there is no room for one. The log has the reason once; the client finds its
    /// connection lost.
    pub fn close_at_once(&self, why: &'static str) {
        if !self.is_closing.replace(true) {
            tracing::info!(why, "closed a client's connection");
        }
        self.close.notify_one();
    }

    #[cfg(test)]
    pub fn is_closing(&self) -> bool {
        self.is_closing.get()
    }

    /// Back-pressure: a client that does not take its answers is not read from, nor one whose requests other shards
    /// have yet to take in.
    pub fn is_ahead(&self) -> bool {
        self.outbox.len() + self.pages.bytes() > CLIENT_OUTBOX_BYTES_MAX || self.backlog.is_full_of_requests()
    }

    /// Entries for a channel, as a page that can leave.
    pub fn page(&self, channel: u32, entries: &Entries, now: u64) -> Page {
        Page::of(entries, self.channels.cost_of(channel), now)
    }

    /// Charges a message; the group that it is for.
    pub fn charge(&mut self, channel: u32, message: &Message) -> Option<GroupId> {
        let of = self.channels.attached.get(&channel);
        let group_id = of.map(|of| of.group_id);
        let group_cost = of.and_then(|of| of.cost.as_ref());
        let cost = match (message, group_cost) {
            (Message::Append(append), Some(cost)) => cost.of(append.entry_count, append.payload.len()),
            (Message::Append(append), None) => frame_cost(append.payload.len()),
            _ => frame_cost(0),
        };
        self.spend(cost);
        group_id
    }

    pub fn spend(&mut self, cost: [u64; 3]) {
        for (sum, more) in self.spent.iter_mut().zip(cost) {
            *sum = sum.saturating_add(more);
        }
    }

    pub fn take_spent(&mut self) -> [u64; 3] {
        std::mem::take(&mut self.spent)
    }
}

/// The group that each channel of a connection has attached.
#[derive(Default)]
pub struct Channels {
    attached: IdMap<u32, Attachment>,
    attachments: u64,
}

struct Attachment {
    group_id: GroupId,
    /// Its place among the connection's attachments. A refusal frees the channel only while it is still this one's.
    number: u64,
    /// The credential of the token that it showed.
    credential: Option<CredentialId>,
    /// `None` of a group that was not here.
    cost: Option<Arc<GroupCost>>,
}

impl Channels {
    pub fn attach(
        &mut self,
        channel: u32,
        group_id: GroupId,
        credential: Option<CredentialId>,
        cost: Option<Arc<GroupCost>>,
    ) -> u64 {
        self.attachments += 1;
        let number = self.attachments;
        self.attached.insert(
            channel,
            Attachment {
                group_id,
                number,
                credential,
                cost,
            },
        );
        number
    }

    pub fn detach(&mut self, channel: u32) -> Option<GroupId> {
        self.attached.remove(&channel).map(|of| of.group_id)
    }

    /// The client may have detached the channel meanwhile, and attached a group again; false then.
    pub fn refused(&mut self, channel: u32, number: u64) -> bool {
        let is_its = self.attached.get(&channel).is_some_and(|of| of.number == number);
        if is_its {
            self.attached.remove(&channel);
        }
        is_its
    }

    pub fn group_of(&self, channel: u32) -> Option<GroupId> {
        self.attached.get(&channel).map(|of| of.group_id)
    }

    pub fn len(&self) -> usize {
        self.attached.len()
    }

    /// Each channel and its group.
    pub fn groups(&self) -> impl Iterator<Item = (u32, GroupId)> {
        self.attached.iter().map(|(channel, of)| (*channel, of.group_id))
    }

    pub fn credentials(&self) -> impl Iterator<Item = CredentialId> {
        self.attached.values().filter_map(|of| of.credential)
    }

    pub fn cost_of(&self, channel: u32) -> Option<&Arc<GroupCost>> {
        self.attached.get(&channel)?.cost.as_ref()
    }

    /// The weights of the groups that are attached.
    pub fn weights(&self) -> impl Iterator<Item = (GroupId, [u64; 3])> {
        let attached = self.attached.values();
        attached.filter_map(|of| Some((of.group_id, of.cost.as_ref()?.weights())))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_late_refusal_leaves_alone_what_was_attached_since() {
        let (group, mut channels) = (GroupId(Uuid::from_u128(7)), Channels::default());
        let first = channels.attach(1, group, None, None);
        assert_eq!(channels.detach(1), Some(group));
        let second = channels.attach(1, group, None, None);
        channels.refused(1, first);
        assert_eq!(channels.group_of(1), Some(group), "the group may hold it");
        channels.refused(1, second);
        assert_eq!(channels.group_of(1), None, "free for another");
        channels.refused(1, second);
    }
}
