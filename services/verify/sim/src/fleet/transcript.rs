//! Messages between a group on a server and its clients, noted as they go in and come out. Invariants judge the
//! group's answers by them. This transcript belongs to no part of the product.

use std::collections::{BTreeMap, BTreeSet};

use quorate_chain::ClientRef;
use quorate_types::{Offset, Permission};
use quorate_wire::client::{Message, Refused, kind};

use super::permission_of;

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

/// Notes of messages that go in and come out.
impl Transcript {
    pub fn note(&mut self, client: ClientRef, message: &Message, end_offset: Offset) {
        let connection = client.connection;
        let (request, requested) = match message {
            Message::Attach { session, token, .. } => {
                let channel = Channel {
                    session: *session,
                    permission: permission_of(token),
                    is_attached: false,
                    refused_seq: None,
                };
                self.channels.insert(connection, channel);
                return;
            }
            Message::Append(append) => {
                if let Some(channel) = self.channels.get(&connection) {
                    let (session, seq) = (channel.session, append.seq);
                    self.sent.insert((session, seq, append.payload_crc, connection));
                    if self.owners.get(&session) == Some(&connection) {
                        self.appends.insert((session, seq), connection);
                    }
                }
                return;
            }
            Message::Read { request, offset, .. } => (
                *request,
                Requested::Read {
                    offset: *offset,
                    is_cancelled: false,
                },
            ),
            Message::Subscribe {
                request,
                credit_bytes,
                ..
            } => (
                *request,
                Requested::Subscription {
                    granted_bytes: u64::from(*credit_bytes),
                    sent_bytes: 0,
                },
            ),
            Message::Credit { request, bytes } => return self.note_credit(connection, *request, *bytes),
            Message::Cancel { request } => return self.note_cancelled(connection, *request),
            Message::Status { request } => (*request, Requested::Status { end_offset }),
            Message::Trim {
                request,
                before_offset,
            } => (
                *request,
                Requested::Trim {
                    end_offset,
                    before_offset: *before_offset,
                },
            ),
            _ => return,
        };
        self.requests.insert((connection, request), requested);
    }

    pub fn note_credit(&mut self, connection: u64, request: u32, bytes: u32) {
        if let Some(Requested::Subscription { granted_bytes, .. }) =
            self.requests.get_mut(&(connection, request))
        {
            *granted_bytes += u64::from(bytes);
        }
    }

    /// A read may be answered all the same; a subscription is over.
    pub fn note_cancelled(&mut self, connection: u64, request: u32) {
        match self.requests.get_mut(&(connection, request)) {
            Some(Requested::Read { is_cancelled, .. }) => *is_cancelled = true,
            Some(Requested::Subscription { .. }) => {
                self.requests.remove(&(connection, request));
            }
            _ => {}
        }
    }

    pub fn answered(&mut self, client: ClientRef, message: &Message) {
        let connection = client.connection;
        match message {
            Message::Attached(_) => {
                if let Some(channel) = self.channels.get_mut(&connection) {
                    channel.is_attached = true;
                }
            }
            Message::StatusOk(ok) => {
                self.requests.remove(&(connection, ok.request));
            }
            Message::TrimOk { request, .. } => {
                self.requests.remove(&(connection, *request));
            }
            Message::Entries(entries) => {
                let bytes: usize = entries.batches.iter().map(|batch| batch.payload.len()).sum();
                match self.requests.get_mut(&(connection, entries.request)) {
                    Some(Requested::Subscription { sent_bytes, .. }) => *sent_bytes += bytes as u64,
                    _ => {
                        self.requests.remove(&(connection, entries.request));
                    }
                }
            }
            Message::Refused(refused) => self.refused(connection, refused),
            _ => {}
        }
    }

    pub fn refused(&mut self, connection: u64, refused: &Refused) {
        match refused.op {
            kind::ATTACH => self.forget(connection),
            kind::APPEND => {
                if let Some(session) = self.channels.get(&connection).map(|channel| channel.session) {
                    self.end_append(connection, session, refused.id);
                }
            }
            _ => {
                self.requests.remove(&(connection, refused.id as u32));
            }
        }
    }

    /// The batch was answered on this connection.
    pub fn end_append(&mut self, connection: u64, session: u64, seq: u64) {
        if self.appends.get(&(session, seq)) == Some(&connection) {
            self.appends.remove(&(session, seq));
        }
        let of_seq = (session, seq, 0, 0)..=(session, seq, u32::MAX, u64::MAX);
        let sent = self.sent.range(of_seq).copied();
        let ended: Vec<_> = sent.filter(|(_, _, _, of)| *of == connection).collect();
        for key in ended {
            self.sent.remove(&key);
        }
    }
}
