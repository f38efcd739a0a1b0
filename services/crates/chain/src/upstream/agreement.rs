//! Following the predecessor: where this replica stands with it in this epoch.

use quorate_types::limits::{CATCHUP_PROGRESS_BYTES, SYNC_RETRY_MS, SYNC_STALL_MS};
use quorate_types::planted::{self, Bug};
use quorate_types::{Index, Micros, Role, ServerId};
use quorate_wire::peer;

use crate::acknowledged::Acknowledged;
use crate::command::ReplicaCommand;
use crate::local_log::LocalLog;
use crate::log::{Base, Log};
use crate::membership::Membership;

/// Epochs that a request describes. An older disagreement is found as a missing interval, and ends in a base.
const HISTORY_EPOCHS_MAX: usize = 1024;

#[derive(Debug)]
pub(crate) struct Upstream {
    standing: Standing,
    /// The last request's.
    nonce: u32,
    /// A replica before this one cannot write to its disk.
    has_fault: bool,
    /// The greatest index that the predecessor is known to have in this epoch, also while it is asked again.
    predecessor_has: Index,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Standing {
    Unconfigured,
    IsHead,
    /// Waiting for the predecessor's answer in this epoch: its batches are not taken before.
    Asking {
        nonce: u32,
        asked_at: Micros,
    },
    Following(Following),
}

/// In step with the predecessor in this epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Following {
    /// Progress as last sent, for the predecessor's window, by weight: the batch may be trimmed since.
    sent_weight: u64,
    /// The acknowledgement as last sent; `None` before this replica first lacked nothing.
    confirmed: Option<Acknowledged>,
    /// The predecessor's last index, as far as it has said.
    predecessor_last: Index,
    /// Time of the predecessor's last message.
    heard_at: Micros,
}

/// The agreement that the predecessor's answer proposes.
pub(crate) enum Agreed {
    /// Both logs are the same up to this index.
    UpTo(Index),
    /// The log begins again behind this base: what lay before is committed at the predecessor and trimmed.
    Behind(Base),
}

/// A batch from the predecessor, as this replica sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fits {
    /// Not from the predecessor, or not agreed on yet.
    Ignored,
    Held,
    Next,
    /// Batches before it are missing.
    Gap,
}

impl Upstream {
    pub fn new() -> Self {
        Self {
            standing: Standing::Unconfigured,
            nonce: 0,
            has_fault: false,
            predecessor_has: 0,
        }
    }

    pub fn begin_epoch(&mut self, is_head: bool) {
        (self.has_fault, self.predecessor_has) = (false, 0);
        self.standing = if is_head {
            Standing::IsHead
        } else {
            Standing::Unconfigured
        };
    }

    /// Whether the log agrees with the head's up to its end.
    pub fn is_settled(&self) -> bool {
        matches!(self.standing, Standing::IsHead | Standing::Following(_))
    }

    /// The greatest index that the predecessor is known to have in this epoch.
    pub fn predecessor_has(&self) -> Index {
        self.predecessor_has
    }

    pub fn has_fault(&self) -> bool {
        self.has_fault
    }

    /// Asks the predecessor where the logs part.
    pub fn ask(
        &mut self,
        now: Micros,
        predecessor: Option<ServerId>,
        local: &LocalLog,
        out: &mut Vec<ReplicaCommand>,
    ) {
        let Some(to) = predecessor else { return };
        self.nonce = self.nonce.wrapping_add(1);
        self.standing = Standing::Asking {
            nonce: self.nonce,
            asked_at: now,
        };
        let history = local.log().history();
        let history = history[history.len().saturating_sub(HISTORY_EPOCHS_MAX)..].to_vec();
        let request = peer::SyncRequest {
            nonce: self.nonce,
            last_index: local.last_index(),
            commit_index: local.commit_index(),
            history,
        };
        out.push(ReplicaCommand::Send {
            to,
            message: peer::Message::SyncRequest(request),
        });
    }

    /// Whether the predecessor should be asked again.
    pub fn is_ask_due(&self, now: Micros, role: Role, last_index: Index) -> bool {
        match self.standing {
            Standing::Asking { asked_at, .. } => now.saturating_sub(asked_at) >= SYNC_RETRY_MS * 1000,
            // Behind, and nothing comes: the predecessor's log began again, or batches were lost on a link that holds.
            // A learner may have been dropped, and is then not told how far it is behind.
            Standing::Following(following) => {
                (following.predecessor_last > last_index || role == Role::Learner)
                    && now.saturating_sub(following.heard_at) >= SYNC_STALL_MS * 1000
            }
            Standing::Unconfigured | Standing::IsHead => false,
        }
    }

    /// `None`: the answer is not to the last request, or makes no sense.
    pub fn judge_reply(
        &self,
        from: ServerId,
        predecessor: Option<ServerId>,
        reply: &peer::SyncReply,
    ) -> Option<Agreed> {
        let Standing::Asking { nonce, .. } = self.standing else {
            return None;
        };
        if reply.nonce != nonce || predecessor != Some(from) {
            return None;
        }
        match &reply.base {
            Some(bytes) => {
                let base = Base::decode(bytes)?;
                (base.index == reply.common_index).then_some(Agreed::Behind(base))
            }
            None => Some(Agreed::UpTo(reply.common_index)),
        }
    }

    /// The logs agree now; batches follow.
    pub fn follow(&mut self, now: Micros, predecessor_last: Index, role: Role, local: &LocalLog) {
        self.predecessor_has = self.predecessor_has.max(predecessor_last);
        self.standing = Standing::Following(Following {
            sent_weight: local.log().weight(arrived(role, local)),
            confirmed: None,
            predecessor_last,
            heard_at: now,
        });
    }

    /// Takes note of a batch. A batch of an index that is held must be the one that is held.
    #[inline]
    pub fn hear_batch(
        &mut self,
        now: Micros,
        from: ServerId,
        predecessor: Option<ServerId>,
        message: &peer::Replicate,
        log: &Log,
    ) -> Fits {
        let Standing::Following(following) = &mut self.standing else {
            return Fits::Ignored;
        };
        if predecessor != Some(from) {
            return Fits::Ignored;
        }
        following.predecessor_last = following.predecessor_last.max(message.last_index);
        self.predecessor_has = self.predecessor_has.max(message.last_index);
        following.heard_at = now;
        let header = &message.batch.header;
        let last = log.last_index();
        if header.index <= last {
            let held = log.header(header.index);
            assert!(
                held.is_none_or(|held| held.epoch == header.epoch && held.payload_crc == header.payload_crc),
                "two batches at index {} of group {}",
                header.index,
                header.group_id
            );
            Fits::Held
        } else if header.index == last + 1 {
            Fits::Next
        } else {
            Fits::Gap
        }
    }

    pub fn hear_fault(&mut self, has_fault: bool) {
        self.has_fault = has_fault;
    }

    /// Whether the notice counts here.
    pub fn hear_notice(
        &mut self,
        now: Micros,
        from: ServerId,
        predecessor: Option<ServerId>,
        notice: &peer::ChainNotice,
    ) -> bool {
        let Standing::Following(following) = &mut self.standing else {
            return false;
        };
        if predecessor != Some(from) {
            return false;
        }
        // The predecessor holds what it knows to be committed.
        following.predecessor_last = following.predecessor_last.max(notice.commit_index);
        following.heard_at = now;
        self.has_fault = notice.storage_fault;
        true
    }

    /// At a tick: sends even little progress, where this replica gets on while the commit index does not.
    pub fn show_progress(
        &mut self,
        membership: &Membership,
        local: &LocalLog,
        out: &mut Vec<ReplicaCommand>,
    ) {
        let is_waited_for = membership.role() == Role::Learner || local.commit_index() < local.last_index();
        if is_waited_for {
            self.send_arrived(1, membership, local, out);
        }
    }

    /// Opens the predecessor's window every so many bytes. Says once that this replica lacks nothing and, as a learner,
    /// goes on to acknowledge.
    #[inline]
    pub fn report_progress(
        &mut self,
        membership: &Membership,
        local: &LocalLog,
        has: Acknowledged,
        out: &mut Vec<ReplicaCommand>,
    ) {
        self.send_arrived(CATCHUP_PROGRESS_BYTES, membership, local, out);
        let (Some(to), Standing::Following(following)) = (membership.predecessor(), &mut self.standing)
        else {
            return;
        };
        let is_learner = membership.role() == Role::Learner;
        let is_due = match following.confirmed {
            // The ring would wait for a disk that takes nothing.
            None if is_learner && local.has_fault() => false,
            // A truncation that a restart could undo must not come into the chain.
            None => local.is_settled() && following.lacks_nothing(local),
            Some(confirmed) => is_learner && has.is_update_of(confirmed),
        };
        if !is_due {
            return;
        }
        following.confirmed = Some(has);
        let message = peer::Message::Progress(peer::Progress {
            index: has.index,
            is_caught_up: true,
            ring_pass: has.pass,
            trim_index: has.trim_index,
        });
        out.push(ReplicaCommand::Send { to, message });
    }

    fn send_arrived(
        &mut self,
        step_bytes: u64,
        membership: &Membership,
        local: &LocalLog,
        out: &mut Vec<ReplicaCommand>,
    ) {
        let (Some(to), Standing::Following(following)) = (membership.predecessor(), &mut self.standing)
        else {
            return;
        };
        let index = arrived(membership.role(), local);
        let weight = local.log().weight(index);
        if weight.saturating_sub(following.sent_weight) < step_bytes {
            return;
        }
        following.sent_weight = weight;
        let message = peer::Message::Progress(peer::Progress {
            index,
            is_caught_up: false,
            ..peer::Progress::default()
        });
        out.push(ReplicaCommand::Send { to, message });
    }
}

impl Following {
    /// Unsynced bytes delay the ring from here on, so they must be few.
    fn lacks_nothing(&self, local: &LocalLog) -> bool {
        let (log, last) = (local.log(), local.last_index());
        let unsynced = log.weight(last).saturating_sub(log.weight(local.durable_index()));
        let tolerated = u64::from(planted::on(Bug::CatchUpOneShort));
        last + tolerated >= self.predecessor_last && unsynced < CATCHUP_PROGRESS_BYTES
    }
}

/// Opens the predecessor's window. A learner opens it by its disk: batches that wait for the disk are in its memory, and
/// a slow disk would have it hold the rest of the log.
fn arrived(role: Role, local: &LocalLog) -> Index {
    match role {
        Role::Learner => local.durable_index(),
        _ => local.last_index(),
    }
}
