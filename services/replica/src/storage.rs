//! A server's disk: opening it at start, giving groups to their shards, and passing on later events of the group
//! logs.

use std::sync::Arc;
use std::time::{Duration, Instant};

use quorate_group_log::{Event, GroupLogOptions, GroupLogs, Meaning, OpenError as LogError, Opened};
use quorate_journal::{Journal, JournalOptions, Lsn, OpenError, Recovery};
use quorate_recovery::{LogState, Recovered, Scan, UnknownRecord, classify};
use quorate_types::control::HeldGroup;
use quorate_types::{Epoch, GroupId, ServerId};

use crate::exit::Exit;
use crate::flags::Flags;
use crate::messages::{Hosting, LogsMessage, ShardMessage};
use crate::shard::quarantine::guard;
use crate::shared::Shared;

/// Beside the journal: which group logs belong to it.
const PAIR_FILE: &str = "group-logs.id";
/// A sync that hangs is another's trouble: longer than a slow one takes.
const PREDECESSOR_WAIT: Duration = Duration::from_secs(10);
const LOCK_RETRY: Duration = Duration::from_millis(50);

/// Journal and group logs, read.
pub struct Storage {
    pub journal: Arc<Journal>,
    logs: Opened,
    recovered: Recovered,
    /// Bases on disk, behind which group logs can be trimmed.
    bases: Vec<(GroupId, u64, u64)>,
}

impl Storage {
    /// Reads group logs, then what the journal has behind them.
    pub fn open(flags: &Flags, me: ServerId, has_identity: bool) -> Result<Storage, Exit> {
        let mut scan = Scan::new(me);
        let mut unreadable = None;
        let logs_dir = flags.group_logs_dir();
        let logs = patiently(|| {
            let options = GroupLogOptions {
                answerers: usize::from(flags.shards),
                keep_segments: usize::from(flags.journal_keep_segments),
                ..GroupLogOptions::new(classify)
            };
            let pair = flags.data_dir.join(PAIR_FILE);
            Opened::open(&logs_dir, &pair, options, |group_id, found| {
                if unreadable.is_none() {
                    unreadable = take(Some(group_id), || scan.group_log(group_id, found)).err();
                }
            })
        })
        .map_err(|error| Exit::DiskUnusable(error.to_string()))?;
        // Before the first note nothing was copied, and the journal begins where it begins.
        scan.expect_journal((!logs.is_new()).then_some(logs.copied_lsn() + 1));

        let options = JournalOptions {
            segment_bytes: flags.journal_segment_bytes,
            // A journal that is gone lacks what was not copied yet. One number is left out, so that each start sees it
            // until the group logs have it in their marks.
            first_lsn: logs.copied_lsn() + if logs.copied_lsn() > 0 { 2 } else { 1 },
            owner_of: Some(owner),
            ..JournalOptions::default()
        };
        let dir = flags.data_dir.join("journal");
        let (journal, recovery) = Journal::open(&dir, options, |record| {
            if unreadable.is_none() {
                let group_id = classify(record.kind, record.head).map(|(group_id, _)| group_id);
                unreadable = take(group_id, || scan.record(&record)).err();
            }
        })
        .map_err(|error| match error {
            OpenError::Locked(_) => {
                Exit::DiskUnusable(format!("{error}; is another server using this folder?"))
            }
            _ => Exit::DiskUnusable(error.to_string()),
        })?;
        if let Some(reason) = unreadable {
            return Err(Exit::DiskUnusable(format!("{}: {reason}", dir.display())));
        }
        if recovery.next_lsn <= logs.copied_lsn() {
            return Err(Exit::DiskUnusable(format!(
                "{} is older than the group logs in {}; restore it, or remove it: groups then learn from other \
                 replicas what they lack",
                dir.display(),
                logs_dir.display()
            )));
        }
        let recovered = scan.finish(&recovery);
        let holds_records = recovery.records > 0 || logs.copied_lsn() > 0;
        if holds_records && !has_identity {
            return Err(Exit::DiskUnusable(format!(
                "{} holds records but identity.json is missing; restore it, or wipe the folder to join anew",
                dir.display()
            )));
        }
        say_what_was_read(&recovery, logs.copied_lsn(), recovered.groups.len());
        Ok(Storage {
            journal: Arc::new(journal),
            logs,
            recovered,
            bases: Vec::new(),
        })
    }

    /// Gives recovered groups to their shards; says what the server holds. Groups that cannot be used are dropped.
    pub fn hand_over(&mut self, shared: &Shared) -> Vec<HeldGroup> {
        let mut held = Vec::new();
        for (group_id, group) in std::mem::take(&mut self.recovered.groups) {
            let is_damaged = group.state == LogState::Damaged;
            if is_damaged {
                let last_index = group.replica.log().last_index();
                tracing::error!(group = %group_id, last_index, "records of the group are missing; it keeps what is \
                    sound and learns the rest from other replicas");
            }
            held.extend(group.held(group_id));
            self.bases
                .extend(group.places.base.map(|(index, lsn)| (group_id, index, lsn)));
            let message = Hosting::Recovered {
                group_id,
                replica: Box::new(group.replica),
                places: group.places,
                is_damaged,
            };
            shared
                .shards
                .send_to_group(group_id, ShardMessage::Hosting(message));
            if let LogState::Useless(reason) = group.state {
                tracing::error!(group = %group_id, reason, "the group's records have a hole; it will be learned anew");
                let epoch = Epoch::MAX;
                let message = Hosting::Drop { group_id, epoch };
                shared
                    .shards
                    .send_to_group(group_id, ShardMessage::Hosting(message));
            }
        }
        held
    }

    /// Starts copying. After [`Storage::hand_over`]: shards must know their groups before they hear of records that
    /// have moved.
    pub fn start(self, shared: &Arc<Shared>) -> Result<Arc<GroupLogs>, Exit> {
        let listener = shared.clone();
        let logs = self
            .logs
            .start(
                self.journal,
                self.recovered.missing,
                Arc::new(move |event| pass_on(&listener, event)),
            )
            .map_err(|error| Exit::DiskUnusable(error.to_string()))?;
        let logs = Arc::new(logs);
        shared.set_group_logs(&logs);
        for (group_id, index, lsn) in self.bases {
            logs.trim(group_id, index, lsn);
        }
        Ok(logs)
    }
}

/// Has the scan take a record of this group. An assertion that does not hold is as good as a record of a later version:
/// nothing was written yet, and the next release may read it.
fn take(
    group_id: Option<GroupId>,
    record: impl FnOnce() -> Result<(), UnknownRecord>,
) -> Result<(), Unreadable> {
    let asserted = |assertion| Unreadable::Asserted { group_id, assertion };
    guard(record).map_err(asserted)?.map_err(Unreadable::Unknown)
}

/// A record that this release cannot read.
#[derive(Debug, thiserror::Error)]
enum Unreadable {
    #[error(transparent)]
    Unknown(UnknownRecord),
    #[error(
        "a record of group {} does not meet an assertion: {assertion}. This is a defect of ours. Nothing was changed on \
         the disk: report it, keep the folder, and start a release that reads it. The group's other replicas go on",
        group_id.map_or("unknown".to_string(), |id| id.to_string())
    )]
    Asserted {
        group_id: Option<GroupId>,
        assertion: String,
    },
}

/// The group of a record, and its index if it is a batch.
fn owner(kind: u8, head: &[u8]) -> Option<(u128, u64)> {
    let (group, meaning) = classify(kind, head)?;
    let index = match meaning {
        Meaning::Batch { index } => index,
        Meaning::Dropped | Meaning::Other => 0,
    };
    Some((group.0.as_u128(), index))
}

/// A process that was killed holds its folders until the last of its threads is out of the disk: whoever starts it again
/// at once waits for that. Nothing is read of a folder that is locked.
fn patiently<T>(mut open: impl FnMut() -> Result<T, LogError>) -> Result<T, LogError> {
    let deadline = Instant::now() + PREDECESSOR_WAIT;
    loop {
        match open() {
            Err(LogError::Locked(_)) if Instant::now() < deadline => std::thread::sleep(LOCK_RETRY),
            opened => return opened,
        }
    }
}

fn say_what_was_read(recovery: &Recovery, copied_lsn: Lsn, groups: usize) {
    for damage in &recovery.damages {
        tracing::error!(
            ?damage,
            "part of the journal is damaged; groups learn what they may lack"
        );
    }
    let (records, torn) = (recovery.records, &recovery.torn);
    tracing::info!(records, copied_lsn, groups, ?torn, "journal and group logs read");
}

fn pass_on(shared: &Shared, event: Event) {
    let shards = &shared.shards;
    let to_group = |group_id, message| shards.send_to_group(group_id, ShardMessage::Logs(message));
    match event {
        Event::Moved { group, records } => {
            to_group(
                group,
                LogsMessage::Moved {
                    group_id: group,
                    records,
                },
            );
        }
        Event::Lost { lsns, answer } => shards.broadcast(|| {
            let (lsns, answer) = (lsns.clone(), answer.clone());
            ShardMessage::Logs(LogsMessage::LostInJournal { lsns, answer })
        }),
        Event::Damaged { group, place, answer } => {
            to_group(
                group,
                LogsMessage::DamagedInLog {
                    group_id: group,
                    place,
                    answer,
                },
            );
        }
        Event::Incomplete { group: Some(group) } => to_group(group, LogsMessage::Restate(Some(group))),
        Event::Incomplete { group: None } => {
            shards.broadcast(|| ShardMessage::Logs(LogsMessage::Restate(None)))
        }
        // The log says it; what it leads to, the journal tells when its device is full.
        Event::Stalled { .. } | Event::Resumed => {}
    }
}

#[cfg(test)]
#[path = "storage_tests.rs"]
mod tests;
