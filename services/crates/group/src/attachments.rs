//! Attached clients, each with its session and permission.

use std::collections::BTreeSet;

use quorate_chain::ClientRef;
use quorate_types::ids::IdMap;
use quorate_types::planted::{self, Bug};
use quorate_types::{Code, Layout, Permission};

/// A client's attachment to the group: one for each connection and channel.
#[derive(Debug)]
pub(crate) struct Channel {
    /// The number of its ATTACH.
    pub number: u64,
    pub session: u64,
    permission: Permission,
    /// A batch refused for lack of budget or room: until it comes again, those behind it cannot be ordered.
    refused_seq: Option<u64>,
}

#[derive(Debug, Default)]
pub(crate) struct Attachments {
    channels: IdMap<ClientRef, Channel>,
    /// The channel on which each session was attached last: it alone may append.
    owners: IdMap<u64, ClientRef>,
    /// Attached with a session at the head, and not answered before the ring has closed.
    unanswered: Vec<ClientRef>,
}

impl Attachments {
    /// The session moves to this channel, also where the server is not the head: it may become the head, and the
    /// client need not attach again then.
    pub fn attach(&mut self, client: ClientRef, number: u64, session: u64, permission: Permission) {
        let channel = Channel {
            number,
            session,
            permission,
            refused_seq: None,
        };
        self.channels.insert(client, channel);
        if session != 0 {
            self.owners.insert(session, client);
        }
    }

    pub fn detach(&mut self, client: ClientRef) {
        if let Some(channel) = self.channels.remove(&client) {
            let owns = self.owners.get(&channel.session) == Some(&client);
            if owns || planted::on(Bug::DetachEndsSession) {
                self.owners.remove(&channel.session);
            }
        }
        self.unanswered.retain(|waiting| *waiting != client);
    }

    /// Whether the session is attached on this channel and on no later one.
    pub fn owns(&self, session: u64, client: ClientRef) -> bool {
        self.owners.get(&session) == Some(&client)
    }

    pub fn session_of(&self, client: ClientRef) -> Option<u64> {
        self.channels.get(&client).map(|channel| channel.session)
    }

    pub fn number_of(&self, client: ClientRef) -> Option<u64> {
        self.channels.get(&client).map(|channel| channel.number)
    }

    /// Clients whose ATTACH was answered: nothing comes before that answer. They are in order, as the map's own differs
    /// from process to process, and a seed must give one trace.
    pub fn answered(&self) -> Vec<ClientRef> {
        let unanswered: BTreeSet<&ClientRef> = self.unanswered.iter().collect();
        let is_answered = |client: &ClientRef| !unanswered.contains(client);
        let mut clients: Vec<ClientRef> = self.channels.keys().copied().filter(is_answered).collect();
        clients.sort_unstable();
        clients
    }

    pub fn answer_later(&mut self, client: ClientRef) {
        self.unanswered.push(client);
    }

    pub fn take_unanswered(&mut self) -> Vec<ClientRef> {
        std::mem::take(&mut self.unanswered)
    }

    /// The session of a client that may append, or trim: a client that may append can push out what is old anyway,
    /// by filling what is retained.
    pub fn may_append(&self, client: ClientRef, wall_s: u64) -> Result<u64, Code> {
        let channel = self.channels.get(&client).ok_or(Code::UnknownChannel)?;
        if !channel.permission.may_append && !planted::on(Bug::PermissionIgnored) {
            return Err(Code::PermissionDenied);
        }
        if channel.permission.expires_at_s < wall_s {
            return Err(Code::TokenExpired);
        }
        Ok(channel.session)
    }

    /// Whether the client finds keys' partitions by another layout than this.
    pub fn has_other_layout(&self, client: ClientRef, layout: Layout) -> bool {
        let channel = self.channels.get(&client);
        channel.is_some_and(|channel| channel.permission.layout != layout)
    }

    pub fn may_read(&self, client: ClientRef, wall_s: u64) -> Result<(), Code> {
        match self.channels.get(&client) {
            None => Err(Code::UnknownChannel),
            Some(channel) if !channel.permission.may_read => Err(Code::PermissionDenied),
            Some(channel) if channel.permission.expires_at_s < wall_s => Err(Code::TokenExpired),
            Some(_) => Ok(()),
        }
    }

    /// A batch of the channel was refused for lack of budget or room.
    pub fn note_refused(&mut self, client: ClientRef, seq: u64) {
        if let Some(channel) = self.channels.get_mut(&client) {
            let least = channel.refused_seq.map_or(seq, |refused| refused.min(seq));
            channel.refused_seq = Some(least);
        }
    }

    /// Whether the batch would leave a gap, since one before it was refused. Refused at once, it takes neither budget
    /// nor room from batches that can be ordered.
    pub fn is_behind_refused(&mut self, client: ClientRef, seq: u64) -> bool {
        let Some(channel) = self.channels.get_mut(&client) else {
            return false;
        };
        let is_behind = channel.refused_seq.is_some_and(|refused| seq > refused);
        if !is_behind {
            channel.refused_seq = None;
        }
        is_behind && !planted::on(Bug::RefusedOvertaken)
    }
}
