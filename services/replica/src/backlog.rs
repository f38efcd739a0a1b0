//! Bytes on their way between one connection and groups of other shards.
//!
//! Only with several shards. The inbox of a shard has no bound of its own. Clients' part of it is bounded here: each
//! connection has a backlog of bytes that were sent either way and not taken in. With too many requests on their way
//! the connection is not read; with too many answers it is closed, as with an outbox.

use std::sync::atomic::{AtomicUsize, Ordering};

use quorate_group::Request;
use quorate_types::limits::{CLIENT_BACKLOG_BYTES_MAX, CLIENT_OUTBOX_BYTES_MAX};
use quorate_wire::client::Message;

/// As an outbox: twice what stops reading from the client.
pub const BACKLOG_BYTES_MAX: usize = 2 * CLIENT_OUTBOX_BYTES_MAX;
/// The cost of a message beside the payloads it carries: at least its head.
const MESSAGE_BYTES: usize = 512;

#[derive(Debug, Default)]
pub struct Backlog {
    answers: AtomicUsize,
    requests: AtomicUsize,
}

impl Backlog {
    /// A request goes out; the answer is its weight, for [`Backlog::taken`].
    pub fn asked(&self, request: &Request) -> usize {
        let weight = weight_of_request(request);
        self.requests.fetch_add(weight, Ordering::Relaxed);
        weight
    }

    /// The group's shard has taken a request in.
    pub fn taken(&self, weight: usize) {
        let before = self.requests.fetch_sub(weight, Ordering::Relaxed);
        assert!(before >= weight, "no more is taken in than was asked");
    }

    /// The connection is not to be read until others have caught up with it.
    pub fn is_full_of_requests(&self) -> bool {
        self.requests.load(Ordering::Relaxed) > CLIENT_BACKLOG_BYTES_MAX
    }

    #[cfg(test)]
    pub fn answers_bytes(&self) -> usize {
        self.answers.load(Ordering::Relaxed)
    }

    pub fn arrived(&self, weight: usize) {
        let before = self.answers.fetch_sub(weight, Ordering::Relaxed);
        assert!(before >= weight, "no more arrives than was sent");
    }

    /// False: it would be too much.
    pub fn add(&self, weight: usize) -> bool {
        let before = self.answers.fetch_add(weight, Ordering::Relaxed);
        let fits = before + weight <= BACKLOG_BYTES_MAX;
        if !fits {
            self.answers.fetch_sub(weight, Ordering::Relaxed);
        }
        fits
    }
}

pub fn weight_of(message: &Message) -> usize {
    let carried = match message {
        Message::Entries(entries) => {
            let payloads = entries.batches.iter().map(|batch| batch.payload.len());
            payloads.sum::<usize>() + 64 * entries.batches.len()
        }
        Message::Acked(acks) => 16 * acks.len(),
        _ => 0,
    };
    MESSAGE_BYTES + carried
}

fn weight_of_request(request: &Request) -> usize {
    let carried = match request {
        Request::Message {
            message: Message::Append(append),
            ..
        } => append.payload.len(),
        _ => 0,
    };
    MESSAGE_BYTES + carried
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use quorate_wire::client::Append;

    use super::*;

    #[test]
    fn requests_that_nobody_takes_in_stop_the_reading() {
        let backlog = Backlog::default();
        let append = || Request::Message {
            message: Message::Append(Append {
                seq: 1,
                floor_index: 0,
                timeout_ms: 0,
                entry_count: 1,
                payload_crc: 0,
                expected_offset: 0,
                fencing_token: 0,
                payload: Bytes::from(vec![0; 1 << 20]),
            }),
            trace: None,
        };
        let mut weights = Vec::new();
        while !backlog.is_full_of_requests() {
            weights.push(backlog.asked(&append()));
            assert!(weights.len() < 100, "it never is");
        }
        let total: usize = weights.iter().sum();
        assert!(total <= CLIENT_BACKLOG_BYTES_MAX + weights[0], "one frame beyond");
        backlog.taken(weights.pop().expect("some"));
        assert!(!backlog.is_full_of_requests());
        assert!(
            backlog.asked(&Request::Gone) > 0,
            "a message that carries nothing costs, too"
        );
    }
}
