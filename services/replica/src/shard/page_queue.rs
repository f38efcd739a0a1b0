//! Pages of one connection that wait for their tenant's turn to send.
//!
//! Pages share the queue between tenants with what is read from sockets: so reads and tails are isolated as appends are
//! (Pisces §3.4). Acknowledgements and other answers do not wait here, but for refusals of reads, which keep their place
//! behind the pages before them.

use std::collections::VecDeque;
use std::sync::Arc;

use quorate_qos::PageTicket;
use quorate_wire::client::{Entries, Message};

use crate::shared::{GroupCost, frame_cost};

/// A page that can leave.
pub struct Page {
    pub bytes: usize,
    pub entries: u64,
    /// In thousandths of tokens.
    pub cost: [u64; 3],
    /// Its place in the reservation of its group.
    judged: Option<(PageTicket, Arc<GroupCost>)>,
}

impl Page {
    pub fn of(entries: &Entries, group: Option<&Arc<GroupCost>>, now: u64) -> Self {
        let count =
            |each: fn(&quorate_wire::client::EntriesBatch) -> u64| entries.batches.iter().map(each).sum();
        let count_of_entries: u64 = count(|batch| u64::from(batch.entry_count));
        let payload_bytes: u64 = count(|batch| batch.payload.len() as u64);
        let entry_bytes = payload_bytes.saturating_sub(4 * count_of_entries);
        let least = frame_cost(payload_bytes as usize);
        let group = group.filter(|_| count_of_entries > 0);
        // The reservation is in the tokens of the profile, whatever a frame costs at least.
        let found = group.and_then(|group| {
            let (cost, ticket) = group.reads.ready(now, count_of_entries, entry_bytes)?;
            Some((cost, ticket.zip(Some(group.clone()))))
        });
        let (cost, judged) = found.unzip();
        let judged = judged.flatten();
        let cost = cost.map_or(least, |cost| std::array::from_fn(|i| cost[i].max(least[i])));
        Self {
            bytes: payload_bytes as usize,
            entries: count_of_entries,
            cost,
            judged,
        }
    }

    pub fn leaves(self, now: u64) {
        if let Some((ticket, group)) = self.judged {
            group.reads.leaves(now, ticket, self.entries);
        }
    }
}

pub struct Waiting {
    pub channel: u32,
    pub message: Message,
    /// `None`: a refusal behind pages.
    pub page: Option<Page>,
}

impl Waiting {
    fn bytes(&self) -> usize {
        self.page.as_ref().map_or(0, |page| page.bytes)
    }

    fn is_of(&self, request: u32) -> bool {
        match &self.message {
            Message::Entries(entries) => entries.request == request,
            Message::Refused(refused) => refused.id == u64::from(request),
            _ => false,
        }
    }

    fn forget(self) {
        if let Some((ticket, group)) = self.page.and_then(|page| page.judged) {
            group.reads.forget(ticket);
        }
    }
}

#[derive(Default)]
pub struct PageQueue {
    waiting: VecDeque<Waiting>,
    bytes: usize,
}

impl PageQueue {
    pub fn push(&mut self, waiting: Waiting) {
        self.bytes += waiting.bytes();
        self.waiting.push_back(waiting);
    }

    pub fn front(&self) -> Option<&Waiting> {
        self.waiting.front()
    }

    pub fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.waiting.pop_front()?;
        self.bytes -= waiting.bytes();
        Some(waiting)
    }

    /// The client does not want the pages of this request, or of any on the channel.
    pub fn forget(&mut self, channel: u32, request: Option<u32>) {
        for waiting in std::mem::take(&mut self.waiting) {
            if waiting.channel == channel && request.is_none_or(|request| waiting.is_of(request)) {
                self.bytes -= waiting.bytes();
                waiting.forget();
            } else {
                self.waiting.push_back(waiting);
            }
        }
    }

    /// Payload bytes of the pages.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    #[cfg(test)]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl Drop for PageQueue {
    fn drop(&mut self) {
        for waiting in self.waiting.drain(..) {
            waiting.forget();
        }
    }
}
