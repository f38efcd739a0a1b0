//! Following the predecessor: agreeing on where the logs part, then taking its batches in order.

use quorate_types::limits::{CATCHUP_PROGRESS_BYTES, SYNC_RETRY_MS, SYNC_STALL_MS};
use quorate_types::planted::{self, Bug};
use quorate_types::{Index, Micros, Role, ServerId};
use quorate_wire::peer;

use crate::base::Base;
use crate::command::Command;
use crate::replica::Replica;
use crate::ring::speaks;

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
    /// The round and the trim level last sent with that.
    told_besides: (u64, Index),
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
    pub(crate) fn ask_predecessor(&mut self, now: Micros, out: &mut Vec<Command>) {
        let Some(to) = self.predecessor else { return };
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
        if reply.nonce != nonce || self.predecessor != Some(from) {
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
            None if planted::on(Bug::SuffixKept) => {}
            None => self.cut_to(reply.common_index, out),
        }
        self.upstream = Upstream::Following(Following {
            told_weight: self.log.weight(self.arrived()),
            confirmed: None,
            told_besides: (0, 0),
            predecessor_last: reply.last_index,
            heard_at: now,
        });
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
        if self.predecessor != Some(from) {
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
        self.advance_commit(message.commit_index, out);
    }

    pub(crate) fn chain_notice(
        &mut self,
        now: Micros,
        from: ServerId,
        notice: peer::ChainNotice,
        out: &mut Vec<Command>,
    ) {
        let Upstream::Following(following) = &mut self.upstream else {
            return;
        };
        if self.predecessor != Some(from) {
            return;
        }
        // What is committed there is held there.
        following.predecessor_last = following.predecessor_last.max(notice.commit_index);
        following.heard_at = now;
        self.fault_before = notice.storage_fault;
        self.rounds.seen = self.rounds.seen.max(notice.round);
        self.hear_trim(&notice);
        self.advance_commit(notice.commit_index, out);
    }

    /// What opens the predecessor's window. A learner is as far as its disk: what waits for the disk is in its
    /// memory, and without this a slow disk would have it hold the rest of the log.
    fn arrived(&self) -> Index {
        match self.role {
            Role::Learner => self.own_level(),
            _ => self.log.last_index(),
        }
    }

    /// At a tick: says what has arrived though it is little, when it shows that this replica gets on while
    /// commitment does not.
    pub(crate) fn report_progress(&mut self, out: &mut Vec<Command>) {
        let is_waited_for = self.role == Role::Learner || self.commit_index < self.log.last_index();
        if is_waited_for {
            self.tell_arrived(1, out);
        }
    }

    fn tell_arrived(&mut self, step_bytes: u64, out: &mut Vec<Command>) {
        let index = self.arrived();
        let weight = self.log.weight(index);
        let (Some(to), Upstream::Following(following)) = (self.predecessor, &mut self.upstream) else {
            return;
        };
        if weight.saturating_sub(following.told_weight) < step_bytes {
            return;
        }
        following.told_weight = weight;
        let message = peer::Message::Progress(peer::Progress {
            index,
            level_with_sender: false,
            ..peer::Progress::default()
        });
        out.push(Command::Send { to, message });
    }

    /// Opens the predecessor's window every so many bytes, says once that nothing is behind and, as a learner
    /// about to join, goes on to say what it has for good.
    pub(crate) fn tell_progress(&mut self, out: &mut Vec<Command>) {
        self.tell_arrived(CATCHUP_PROGRESS_BYTES, out);
        let Upstream::Following(mut following) = self.upstream else {
            return;
        };
        let Some(to) = self.predecessor else { return };
        let (last, level) = (self.log.last_index(), self.own_level());
        let weight = self.log.weight(last);
        let besides = (self.rounds.seen, self.trim.durable);
        let news = match following.confirmed {
            // What is not durable yet delays the ring from here on, so it should be little.
            // A cut that a restart could undo must not come into the chain either.
            None if !self.is_settled() => false,
            None => {
                let unsynced = weight.saturating_sub(self.log.weight(level));
                let lacks = u64::from(planted::on(Bug::CatchUpOneShort));
                last + lacks >= following.predecessor_last && unsynced < CATCHUP_PROGRESS_BYTES
            }
            Some(confirmed) => {
                self.role == Role::Learner && (level > confirmed || besides != following.told_besides)
            }
        };
        if news {
            following.confirmed = Some(level);
            following.told_besides = besides;
            let message = peer::Message::Progress(peer::Progress {
                index: level,
                level_with_sender: true,
                round: besides.0,
                trim_level: besides.1,
            });
            out.push(Command::Send { to, message });
        }
        self.upstream = Upstream::Following(following);
    }

    /// Tells the head what this replica has, where the head waits for its word ([`crate::ring`]).
    pub(crate) fn tell_head(&mut self, out: &mut Vec<Command>) {
        if !speaks(self.role, self.durability) || !self.is_settled() {
            return;
        }
        let before = self.told_head.unwrap_or_default();
        let told = peer::ChainAck {
            level: before.level.max(self.level_here()),
            storage_fault: self.fault(),
            trim_level: before.trim_level.max(self.trim_level_here()),
            round: before.round.max(self.round_here()),
        };
        if self.told_head == Some(told) {
            return;
        }
        let Some(head) = self.config.as_ref().and_then(|c| c.head()) else {
            return;
        };
        self.told_head = Some(told);
        out.push(Command::Send {
            to: head.server_id,
            message: peer::Message::ChainAck(told),
        });
    }
}
