//! Following the predecessor: agreeing on where the logs part, then taking its batches in order.

use quorate_types::limits::{CATCHUP_PROGRESS_BYTES, SYNC_RETRY_MS};
use quorate_types::{Durability, Index, Micros, Role, ServerId};
use quorate_wire::peer;

use crate::base::Base;
use crate::command::Command;
use crate::log::Log;
use crate::replica::Replica;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upstream {
    Unconfigured,
    IsHead,
    /// Waiting for the predecessor's answer in this epoch; what it streams meanwhile is not ours to take.
    Asking { nonce: u32, asked_at: Micros },
    /// In step; `told` is the last progress sent, `told_level` whether it said that nothing was behind it.
    Following { told: Index, told_level: bool },
}

impl Upstream {
    pub fn is_settled(self) -> bool {
        matches!(self, Upstream::IsHead | Upstream::Following { .. })
    }
}

impl Replica {
    pub(crate) fn has_predecessor(&self) -> bool {
        matches!(self.role, Role::Follower | Role::Tail | Role::Learner)
    }

    pub(crate) fn predecessor(&self) -> Option<ServerId> {
        self.config.as_ref().and_then(|c| c.predecessor_of(self.me)).map(|m| m.server_id)
    }

    pub(crate) fn ask_predecessor(&mut self, now: Micros, out: &mut Vec<Command>) {
        let Some(to) = self.predecessor() else { return };
        self.nonce = self.nonce.wrapping_add(1);
        self.upstream = Upstream::Asking { nonce: self.nonce, asked_at: now };
        // The last epochs suffice: an older disagreement is found as a missing interval and ends in a base.
        let history = self.log.history();
        let history = history[history.len().saturating_sub(1024)..].to_vec();
        let request = peer::SyncRequest {
            nonce: self.nonce,
            last_index: self.log.last_index(),
            commit_index: self.commit_index,
            history,
        };
        out.push(Command::Send { to, message: peer::Message::SyncRequest(request) });
    }

    pub(crate) fn ask_again(&mut self, now: Micros, out: &mut Vec<Command>) {
        if let Upstream::Asking { asked_at, .. } = self.upstream
            && now.saturating_sub(asked_at) >= SYNC_RETRY_MS * 1000
        {
            self.ask_predecessor(now, out);
        }
    }

    pub(crate) fn sync_reply(&mut self, from: ServerId, reply: peer::SyncReply, out: &mut Vec<Command>) {
        let Upstream::Asking { nonce, .. } = self.upstream else { return };
        if reply.nonce != nonce || self.predecessor() != Some(from) {
            return;
        }
        match &reply.base {
            Some(bytes) => {
                let Some(base) = Base::decode(bytes) else { return };
                if base.index != reply.common_index {
                    return;
                }
                self.start_from(base, out);
            }
            None => self.cut_to(reply.common_index),
        }
        self.upstream = Upstream::Following { told: self.log.last_index(), told_level: false };
        self.level_before = reply.level;
        self.advance_commit(reply.commit_index, out);
        self.tell_progress(reply.last_index, out);
        self.answer_parked(out);
    }

    /// Forgets the log and begins behind `base`: what lay before is committed at the predecessor and trimmed.
    fn start_from(&mut self, base: Base, out: &mut Vec<Command>) {
        let index = base.index;
        assert!(index >= self.commit_index, "a base at {index} below what is committed, {}", self.commit_index);
        self.log = Log::new(base);
        self.commit_index = index;
        if self.durability == Durability::Persistent {
            self.durable_index = 0;
            self.persist_base(out);
        } else {
            self.durable_index = index;
        }
        out.push(Command::Trimmed { first_index: index + 1 });
        out.push(Command::Committed);
    }

    pub(crate) fn replicate(
        &mut self,
        now: Micros,
        from: ServerId,
        message: peer::Replicate,
        out: &mut Vec<Command>,
    ) {
        if !matches!(self.upstream, Upstream::Following { .. }) || self.predecessor() != Some(from) {
            return;
        }
        let header = &message.batch.header;
        let last = self.log.last_index();
        if header.index <= last {
            let held = self.log.header(header.index);
            assert!(
                held.is_none_or(|held| held.epoch == header.epoch && held.payload_crc == header.payload_crc),
                "two batches at index {} of group {}",
                header.index,
                header.group_id
            );
        } else if header.index == last + 1 {
            self.store(message.batch, out);
        } else {
            self.ask_predecessor(now, out);
            return;
        }
        self.fault_before = message.storage_fault;
        self.level_before = self.level_before.max(message.level);
        self.advance_commit(message.commit_index, out);
        self.tell_progress(message.last_index, out);
    }

    pub(crate) fn chain_notice(
        &mut self,
        from: ServerId,
        commit_index: Index,
        level: Index,
        storage_fault: bool,
        out: &mut Vec<Command>,
    ) {
        if !matches!(self.upstream, Upstream::Following { .. }) || self.predecessor() != Some(from) {
            return;
        }
        self.fault_before = storage_fault;
        self.level_before = self.level_before.max(level);
        self.advance_commit(commit_index, out);
    }

    /// Opens the predecessor's window every so many bytes, and says once when nothing is behind.
    fn tell_progress(&mut self, predecessor_last: Index, out: &mut Vec<Command>) {
        let Upstream::Following { told, told_level } = self.upstream else { return };
        let Some(to) = self.predecessor() else { return };
        let last = self.log.last_index();
        let level = last >= predecessor_last;
        let due = self.log.weight(last) - self.log.weight(told) >= CATCHUP_PROGRESS_BYTES;
        if !due && (told_level || !level) {
            return;
        }
        self.upstream = Upstream::Following { told: last, told_level: told_level || level };
        let message = peer::Message::Progress { index: last, level_with_sender: level };
        out.push(Command::Send { to, message });
    }

    /// The tail closes the ring: it tells the head what every replica has.
    pub(crate) fn tell_head(&mut self, out: &mut Vec<Command>) {
        if self.role != Role::Tail || !self.upstream.is_settled() {
            return;
        }
        let told = (self.level(), self.fault());
        if self.told_head == Some(told) {
            return;
        }
        let Some(head) = self.config.as_ref().and_then(|c| c.head()) else { return };
        self.told_head = Some(told);
        let message = peer::Message::ChainAck { level: told.0, storage_fault: told.1 };
        out.push(Command::Send { to: head.server_id, message });
    }
}
