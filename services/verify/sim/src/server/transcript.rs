//! Messages between a group on a server and its clients, noted as they go in and come out. Invariants judge the
//! group's answers by them. This transcript belongs to no part of the product.

use std::collections::{BTreeMap, BTreeSet};

use quorate_types::{Offset, Permission};

/// By connection: each leads one client to one group here.
#[derive(Debug, Default)]
pub struct Transcript {
    pub channels: BTreeMap<u64, Channel>,
    /// The connection on which each session was attached last, while it is attached.
    pub owners: BTreeMap<u64, u64>,
    /// Batches that came and were not answered: session, seq, checksum, connection.
    pub sent: BTreeSet<(u64, u64, u32, u64)>,
    /// Appends that came from the owners of their sessions, by session and seq: the connection on which each came
    /// last.
    pub appends: BTreeMap<(u64, u64), u64>,
    /// Reads, subscriptions, trims and questions that were not answered, by connection and number.
    pub requests: BTreeMap<(u64, u32), Requested>,
}

#[derive(Debug)]
pub struct Channel {
    pub session: u64,
    pub permission: Permission,
    pub is_attached: bool,
    /// The least seq that was refused for lack of budget or room, and has not come again.
    pub refused_seq: Option<u64>,
}

#[derive(Debug, Clone, Copy)]
pub enum Requested {
    Read {
        offset: Offset,
        is_cancelled: bool,
    },
    Subscription {
        /// Payload bytes for which credit was given, and those sent.
        granted_bytes: u64,
        sent_bytes: u64,
    },
    Status {
        /// The end of the committed log when the client sent it.
        end_offset: Offset,
    },
    Trim {
        end_offset: Offset,
        before_offset: Offset,
    },
}

impl Transcript {
    /// An ATTACH or a batch that has not been answered, and whose client is there.
    pub fn waiting(&self) -> Option<String> {
        let attach = self.channels.iter().find(|(_, channel)| !channel.is_attached);
        let attach = attach.map(|(connection, _)| format!("the ATTACH on connection {connection}"));
        attach.or_else(|| {
            let ((session, seq), connection) = self.appends.iter().next()?;
            Some(format!(
                "batch {seq} of session {session:x} on connection {connection}"
            ))
        })
    }

    /// A request of a reader or another client that has no answer yet. Cancelled requests need no answer.
    pub fn unanswered(&self) -> Option<String> {
        let is_due = |requested: &Requested| {
            !matches!(
                requested,
                Requested::Read {
                    is_cancelled: true,
                    ..
                }
            )
        };
        let mut requests = self.requests.iter();
        let (key, requested) = requests.find(|(_, requested)| is_due(requested))?;
        Some(format!("{requested:?} on (connection, request) {key:?}"))
    }

    /// The client's channel is gone: nobody waits on it.
    pub fn forget(&mut self, connection: u64) {
        if let Some(channel) = self.channels.remove(&connection)
            && self.owners.get(&channel.session) == Some(&connection)
        {
            self.owners.remove(&channel.session);
        }
        self.appends.retain(|_, of| *of != connection);
        self.sent.retain(|(_, _, _, of)| *of != connection);
        self.requests.retain(|(of, _), _| *of != connection);
    }
}
