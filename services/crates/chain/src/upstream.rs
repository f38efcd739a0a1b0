//! Following the predecessor: agreeing on where the logs part, then taking its batches in order.

use quorate_types::limits::{CATCHUP_PROGRESS_BYTES, SYNC_RETRY_MS, SYNC_STALL_MS};
use quorate_types::{Index, Micros, Role, ServerId};
use quorate_wire::peer;

use crate::base::Base;
use crate::command::Command;
use crate::replica::Replica;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Upstream {
    Unconfigured,
    IsHead,
    /// Waiting for the predecessor's answer in this epoch; what it streams meanwhile is not ours to take.
    Asking {
        nonce: u32,
        asked_at: Micros,
    },
    Following(Following),
}

/// In step with the predecessor in this epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Following {
    /// Progress as last sent, for the predecessor's window, by weight: the batch may be trimmed since.
    told_weight: u64,
    /// What this replica has for good, as last sent; `None` before it was first level with its predecessor.
    confirmed: Option<Index>,
    /// The predecessor's last index, as last told.
    predecessor_last: Index,
    /// When the predecessor last said anything.
    heard_at: Micros,
}

impl Upstream {
    pub fn is_settled(self) -> bool {
        matches!(self, Upstream::IsHead | Upstream::Following(_))
    }
}

impl Replica {
    pub(crate) fn has_predecessor(&self) -> bool {
        matches!(self.role, Role::Follower | Role::Tail | Role::Learner)
    }

    pub(crate) fn predecessor(&self) -> Option<ServerId> {
        self.config
            .as_ref()
            .and_then(|c| c.predecessor_of(self.me))
            .map(|m| m.server_id)
    }

    pub(crate) fn ask_predecessor(&mut self, now: Micros, out: &mut Vec<Command>) {
        let Some(to) = self.predecessor() else { return };
        self.nonce = self.nonce.wrapping_add(1);
        self.upstream = Upstream::Asking {
            nonce: self.nonce,
            asked_at: now,
        };
        // The last epochs suffice: an older disagreement is found as a missing interval and ends in a base.
        let history = self.log.history();
        let history = history[history.len().saturating_sub(1024)..].to_vec();
        let request = peer::SyncRequest {
            nonce: self.nonce,
            last_index: self.log.last_index(),
            commit_index: self.commit_index,
            history,
        };
        out.push(Command::Send {
            to,
            message: peer::Message::SyncRequest(request),
        });
    }

    pub(crate) fn ask_again(&mut self, now: Micros, out: &mut Vec<Command>) {
        let is_due = match self.upstream {
            Upstream::Asking { asked_at, .. } => now.saturating_sub(asked_at) >= SYNC_RETRY_MS * 1000,
            // Behind, and nothing comes: the predecessor began anew, or something was lost without a broken link.
            Upstream::Following(Following {
                predecessor_last,
                heard_at,
                ..
            }) => {
                predecessor_last > self.log.last_index()
                    && now.saturating_sub(heard_at) >= SYNC_STALL_MS * 1000
            }
            Upstream::Unconfigured | Upstream::IsHead => false,
        };
        if is_due {
            self.ask_predecessor(now, out);
        }
    }

    pub(crate) fn sync_reply(
        &mut self,
        now: Micros,
        from: ServerId,
        reply: peer::SyncReply,
        out: &mut Vec<Command>,
    ) {
        let Upstream::Asking { nonce, .. } = self.upstream else {
            return;
        };
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
            None => self.cut_to(reply.common_index, out),
        }
        self.upstream = Upstream::Following(Following {
            told_weight: self.log.weight(self.log.last_index()),
            confirmed: None,
            predecessor_last: reply.last_index,
            heard_at: now,
        });
        self.level_before = reply.level;
        self.advance_commit(reply.commit_index, out);
        self.answer_parked(out);
    }

    /// Forgets the log and begins behind `base`: what lay before is committed at the predecessor and trimmed.
    fn start_from(&mut self, base: Base, out: &mut Vec<Command>) {
        let index = base.index;
        assert!(
            index >= self.commit_index,
            "a base at {index} below what is committed, {}",
            self.commit_index
        );
        self.replace_log(base, out);
        self.downstream.restart_behind(index);
        out.push(Command::Trimmed {
            first_index: index + 1,
        });
        out.push(Command::Committed);
    }

    pub(crate) fn replicate(
        &mut self,
        now: Micros,
        from: ServerId,
        message: peer::Replicate,
        out: &mut Vec<Command>,
    ) {
        let Upstream::Following(following) = &mut self.upstream else {
            return;
        };
        if self
            .config
            .as_ref()
            .and_then(|c| c.predecessor_of(self.me))
            .is_none_or(|m| m.server_id != from)
        {
            return;
        }
        following.predecessor_last = following.predecessor_last.max(message.last_index);
        following.heard_at = now;
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
    }

    pub(crate) fn chain_notice(
        &mut self,
        now: Micros,
        from: ServerId,
        commit_index: Index,
        level: Index,
        storage_fault: bool,
        out: &mut Vec<Command>,
    ) {
        let Upstream::Following(following) = &mut self.upstream else {
            return;
        };
        if self
            .config
            .as_ref()
            .and_then(|c| c.predecessor_of(self.me))
            .is_none_or(|m| m.server_id != from)
        {
            return;
        }
        // What is committed there is held there.
        following.predecessor_last = following.predecessor_last.max(commit_index);
        following.heard_at = now;
        self.fault_before = storage_fault;
        self.level_before = self.level_before.max(level);
        self.advance_commit(commit_index, out);
    }

    /// Opens the predecessor's window every so many bytes, says once that nothing is behind and, as a learner
    /// about to join, goes on to say what it has for good.
    pub(crate) fn tell_progress(&mut self, out: &mut Vec<Command>) {
        let Upstream::Following(mut following) = self.upstream else {
            return;
        };
        let Some(to) = self.predecessor() else { return };
        let (last, level) = (self.log.last_index(), self.own_level());
        let weight = self.log.weight(last);
        if weight - following.told_weight >= CATCHUP_PROGRESS_BYTES {
            following.told_weight = weight;
            let message = peer::Message::Progress {
                index: last,
                level_with_sender: false,
            };
            out.push(Command::Send { to, message });
        }
        let news = match following.confirmed {
            // What is not durable yet delays the ring from here on, so it should be little.
            // A cut that a restart could undo must not come into the chain either.
            None if !self.is_settled() => false,
            None => {
                let unsynced = weight.saturating_sub(self.log.weight(level));
                last >= following.predecessor_last && unsynced < CATCHUP_PROGRESS_BYTES
            }
            Some(confirmed) => self.role == Role::Learner && level > confirmed,
        };
        if news {
            following.confirmed = Some(level);
            let message = peer::Message::Progress {
                index: level,
                level_with_sender: true,
            };
            out.push(Command::Send { to, message });
        }
        self.upstream = Upstream::Following(following);
    }

    /// The tail closes the ring: it tells the head what every replica has.
    pub(crate) fn tell_head(&mut self, out: &mut Vec<Command>) {
        if self.role != Role::Tail || !self.is_settled() {
            return;
        }
        let told_level = self.told_head.map_or(0, |(level, _)| level);
        let told = (told_level.max(self.ring_level_here()), self.fault());
        if self.told_head == Some(told) {
            return;
        }
        let Some(head) = self.config.as_ref().and_then(|c| c.head()) else {
            return;
        };
        self.told_head = Some(told);
        let message = peer::Message::ChainAck {
            level: told.0,
            storage_fault: told.1,
        };
        out.push(Command::Send {
            to: head.server_id,
            message,
        });
    }
}
