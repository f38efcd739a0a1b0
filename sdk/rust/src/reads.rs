//! Reads, tails, trims and status calls, pure: what is open, what is to be sent, what an answer means.
//!
//! All of them can be repeated without harm, so they stay open across connections until they are answered or
//! their deadline passes. A tail subscribes again from the offset that must come next.

use std::collections::BTreeMap;

use quorate_types::config::{GroupState, Role};
use quorate_types::{Code, Epoch, Micros, Offset};
use quorate_wire::WireError;
use quorate_wire::client::{Attached, Entries, Message, Refused, StatusOk};

use crate::codes::client_side;
use crate::entries::{Entry, entries_from};
use crate::errors::Failure;
use crate::limits::{BACKOFF_BASE_US, BACKOFF_MAX_US, READS_OUTSTANDING_MAX, TAILS_MAX};
use crate::writer::{NEVER, Reroute, Target};

/// What is asked once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ask {
    /// `wait_until`: when an empty answer is due, if nothing is there.
    Read {
        offset: Offset,
        max_bytes: u32,
        max_entries: u32,
        wait_until: Micros,
    },
    Status,
    /// Discard what lies before.
    Trim {
        before_offset: Offset,
    },
}

/// What the outside has to do. `A` is what an ask, `S` what a tail is known by.
#[derive(Debug)]
pub enum ReadAction<A, S> {
    Page {
        ticket: A,
        offset: Offset,
        page: Entries,
    },
    Status {
        ticket: A,
        status: StatusOk,
    },
    Trimmed {
        ticket: A,
        trim_offset: Offset,
    },
    Failed {
        ticket: A,
        failure: Failure,
    },
    /// The next entries of a tail; `bytes` of credit are due when they are consumed. `None`: nobody listens.
    Tailed {
        request: u32,
        ticket: S,
        entries: Vec<Entry>,
        bytes: u32,
    },
    Ended {
        ticket: S,
        failure: Failure,
    },
    Reroute(Reroute),
}

enum Open<A, S> {
    Ask {
        ask: Ask,
        ticket: A,
        deadline: Micros,
        refusal: Option<Failure>,
    },
    Tail {
        ticket: S,
        next_offset: Offset,
        credit_bytes: u32,
        buffered_bytes: u32,
        owed_bytes: u32,
    },
}

struct Item<A, S> {
    open: Open<A, S>,
    /// When it is to be sent (again); [`NEVER`] while it is with the server.
    send_at: Micros,
}

pub struct Reads<A, S> {
    items: BTreeMap<u32, Item<A, S>>,
    /// Small messages that go before anything else: CREDIT, CANCEL.
    urgent: Vec<Message>,
    last_request: u32,
    is_attached: bool,
    /// Something may be due to be sent: saves looking at every item.
    send_at: Micros,
    earliest: Micros,
    trouble: Failure,
    pub epoch: Epoch,
}

impl<A, S: Clone> Default for Reads<A, S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<A, S: Clone> Reads<A, S> {
    pub fn new() -> Self {
        Self {
            items: BTreeMap::new(),
            urgent: Vec::new(),
            last_request: 0,
            is_attached: false,
            send_at: NEVER,
            earliest: NEVER,
            trouble: Failure::new(client_side::NO_CONNECTION, "not connected yet"),
            epoch: 0,
        }
    }

    pub fn ask(&mut self, deadline: Micros, ask: Ask, ticket: A) -> Result<(), (A, Failure)> {
        if self.items.len() >= READS_OUTSTANDING_MAX {
            let message = format!("{} reads are outstanding", self.items.len());
            return Err((ticket, Failure::new(client_side::QUEUE_FULL, message)));
        }
        self.earliest = self.earliest.min(deadline);
        self.start(Open::Ask {
            ask,
            ticket,
            deadline,
            refusal: None,
        });
        Ok(())
    }

    pub fn subscribe(&mut self, offset: Offset, credit_bytes: u32, ticket: S) -> Result<(), (S, Failure)> {
        let tails = self
            .items
            .values()
            .filter(|item| matches!(item.open, Open::Tail { .. }))
            .count();
        if tails >= TAILS_MAX {
            let message = format!("{tails} tails are open on this client");
            return Err((ticket, Failure::new(client_side::QUEUE_FULL, message)));
        }
        let (buffered_bytes, owed_bytes) = (0, 0);
        self.start(Open::Tail {
            ticket,
            next_offset: offset,
            credit_bytes,
            buffered_bytes,
            owed_bytes,
        });
        Ok(())
    }

    fn start(&mut self, open: Open<A, S>) {
        self.last_request = self.last_request.checked_add(1).unwrap_or(1);
        self.items.insert(self.last_request, Item { open, send_at: 0 });
        self.send_at = 0;
    }

    /// A tail's reader has consumed `bytes`. Credit goes back in quarters: little by little would cost a frame for
    /// each frame.
    pub fn consumed(&mut self, request: u32, bytes: u32) {
        let Some(item) = self.items.get_mut(&request) else {
            return;
        };
        let Open::Tail {
            credit_bytes,
            buffered_bytes,
            owed_bytes,
            ..
        } = &mut item.open
        else {
            return;
        };
        *buffered_bytes = buffered_bytes.saturating_sub(bytes);
        *owed_bytes = owed_bytes.saturating_add(bytes);
        if *owed_bytes >= *credit_bytes / 4 && self.is_attached && item.send_at == NEVER {
            self.urgent.push(Message::Credit {
                request,
                bytes: *owed_bytes,
            });
            *owed_bytes = 0;
        }
    }

    pub fn cancel(&mut self, request: u32) {
        if let Some(item) = self.items.remove(&request)
            && self.is_attached
            && item.send_at == NEVER
        {
            self.urgent.push(Message::Cancel { request });
        }
    }

    pub fn is_idle(&self) -> bool {
        self.items.is_empty()
    }

    /// The next message to send now.
    pub fn next_message(&mut self, now: Micros) -> Option<Message> {
        if !self.is_attached {
            return None;
        }
        if let Some(message) = self.urgent.pop() {
            return Some(message);
        }
        if self.send_at > now {
            return None;
        }
        let due = self.items.iter_mut().find(|(_, item)| item.send_at <= now);
        let Some((request, item)) = due else {
            self.send_at = self
                .items
                .values()
                .map(|item| item.send_at)
                .min()
                .unwrap_or(NEVER);
            return None;
        };
        item.send_at = NEVER;
        let request = *request;
        Some(match &mut item.open {
            Open::Ask { ask: Ask::Status, .. } => Message::Status { request },
            Open::Ask {
                ask: Ask::Trim { before_offset },
                ..
            } => Message::Trim {
                request,
                before_offset: *before_offset,
            },
            Open::Ask {
                ask:
                    Ask::Read {
                        offset,
                        max_bytes,
                        max_entries,
                        wait_until,
                    },
                ..
            } => {
                let wait_ms = (wait_until.saturating_sub(now) / 1_000).min(u64::from(u32::MAX)) as u32;
                let (max_bytes, max_entries) = (*max_bytes, *max_entries);
                Message::Read {
                    request,
                    max_bytes,
                    max_entries,
                    wait_ms,
                    offset: *offset,
                }
            }
            Open::Tail {
                next_offset,
                credit_bytes,
                buffered_bytes,
                owed_bytes,
                ..
            } => {
                *owed_bytes = 0;
                let credit_bytes = credit_bytes.saturating_sub(*buffered_bytes).max(1);
                Message::Subscribe {
                    request,
                    credit_bytes,
                    offset: *next_offset,
                }
            }
        })
    }

    pub fn wake_at(&self) -> Micros {
        if self.is_attached {
            self.earliest.min(self.send_at)
        } else {
            self.earliest
        }
    }

    // The connection.

    pub fn on_attached(&mut self, attached: &Attached) -> Option<Reroute> {
        let to = Target::Head(attached.head_address.clone());
        if attached.epoch < self.epoch {
            let reason = format!("its epoch {} is older than {}", attached.epoch, self.epoch);
            return Some(Reroute {
                to: Target::Other,
                reason,
            });
        }
        self.epoch = attached.epoch;
        if attached.role == Role::None as u8 || attached.state == GroupState::Syncing as u8 {
            return Some(Reroute {
                to,
                reason: "it has no readable replica".to_string(),
            });
        }
        self.is_attached = true;
        for item in self.items.values_mut() {
            item.send_at = 0;
        }
        self.send_at = 0;
        None
    }

    pub fn on_detached(&mut self, trouble: Failure) {
        self.is_attached = false;
        self.urgent.clear();
        self.trouble = trouble;
    }

    pub fn set_trouble(&mut self, trouble: Failure) {
        self.trouble = trouble;
    }

    // Answers.

    pub fn on_message(
        &mut self,
        message: Message,
        now: Micros,
        actions: &mut Vec<ReadAction<A, S>>,
    ) -> Result<(), WireError> {
        match message {
            Message::Entries(page) => self.on_entries(page, actions)?,
            Message::StatusOk(status) => match self.items.remove(&status.request).map(|item| item.open) {
                Some(Open::Ask {
                    ask: Ask::Status,
                    ticket,
                    ..
                }) => {
                    actions.push(ReadAction::Status { ticket, status });
                }
                Some(_) => {
                    return Err(WireError::Malformed {
                        what: "STATUS_OK for what was no STATUS",
                    });
                }
                None => {}
            },
            Message::TrimOk { request, trim_offset } => {
                match self.items.remove(&request).map(|item| item.open) {
                    Some(Open::Ask {
                        ask: Ask::Trim { .. },
                        ticket,
                        ..
                    }) => actions.push(ReadAction::Trimmed { ticket, trim_offset }),
                    Some(_) => {
                        return Err(WireError::Malformed {
                            what: "TRIM_OK for what was no TRIM",
                        });
                    }
                    None => {}
                }
            }
            Message::Refused(refused) => self.on_refused(&refused, now, actions),
            Message::Notice(notice) => {
                self.epoch = self.epoch.max(notice.epoch);
                if notice.role == Role::None as u8 {
                    let to = Target::Head(notice.head_address);
                    let reason = "the replica was removed".to_string();
                    actions.push(ReadAction::Reroute(Reroute { to, reason }));
                }
            }
            _ => {
                return Err(WireError::Malformed {
                    what: "answer to a read",
                });
            }
        }
        Ok(())
    }

    fn on_entries(&mut self, page: Entries, actions: &mut Vec<ReadAction<A, S>>) -> Result<(), WireError> {
        // Unknown requests were cancelled, or their caller stopped waiting.
        let request = page.request;
        let Some(item) = self.items.get_mut(&request) else {
            return Ok(());
        };
        match &mut item.open {
            Open::Tail {
                ticket,
                next_offset,
                buffered_bytes,
                ..
            } => {
                let entries = entries_from(&page, *next_offset)?;
                let bytes = page
                    .batches
                    .iter()
                    .map(|batch| batch.payload.len())
                    .sum::<usize>() as u32;
                *next_offset = entries.last().map_or(*next_offset, |entry| entry.offset + 1);
                *buffered_bytes = buffered_bytes.saturating_add(bytes);
                actions.push(ReadAction::Tailed {
                    request,
                    ticket: ticket.clone(),
                    entries,
                    bytes,
                });
            }
            Open::Ask {
                ask: Ask::Read { .. },
                ..
            } => {
                let item = self.items.remove(&request).expect("looked at above");
                let Open::Ask {
                    ask: Ask::Read { offset, .. },
                    ticket,
                    ..
                } = item.open
                else {
                    unreachable!()
                };
                actions.push(ReadAction::Page { ticket, offset, page });
            }
            Open::Ask { .. } => {
                return Err(WireError::Malformed {
                    what: "ENTRIES for what was no READ",
                });
            }
        }
        Ok(())
    }

    fn on_refused(&mut self, refused: &Refused, now: Micros, actions: &mut Vec<ReadAction<A, S>>) {
        let Ok(request) = u32::try_from(refused.id) else {
            return;
        };
        let Some(item) = self.items.get_mut(&request) else {
            return;
        };
        let failure = Failure::refused(refused);
        // A replica that is behind: the entries exist elsewhere, or soon here.
        let is_behind = failure.is(Code::OffsetBeyondEnd) || failure.is(Code::Syncing);
        match refused.retry {
            _ if is_behind || refused.retry == 1 => {
                item.send_at = now + failure.retry_after_us().clamp(BACKOFF_BASE_US, BACKOFF_MAX_US);
                self.send_at = self.send_at.min(item.send_at);
                if let Open::Ask { refusal, .. } = &mut item.open {
                    *refusal = Some(failure);
                }
            }
            2 => {
                let to = Target::Head(refused.head_address.clone());
                actions.push(ReadAction::Reroute(Reroute {
                    to,
                    reason: failure.to_string(),
                }));
            }
            3 => {
                actions.push(ReadAction::Reroute(Reroute {
                    to: Target::Handle,
                    reason: failure.to_string(),
                }));
            }
            _ => {
                let item = self.items.remove(&request).expect("looked at above");
                actions.push(item.fail(failure));
            }
        }
    }

    /// Ends what is past its deadline.
    pub fn on_time(&mut self, now: Micros, actions: &mut Vec<ReadAction<A, S>>) {
        if now < self.earliest {
            return;
        }
        let is_late = |item: &Item<A, S>| matches!(item.open, Open::Ask { deadline, .. } if deadline <= now);
        let late: Vec<u32> = self
            .items
            .iter()
            .filter(|(_, item)| is_late(item))
            .map(|(request, _)| *request)
            .collect();
        for request in late {
            let item = self.items.remove(&request).expect("found above");
            let failure = match &item.open {
                Open::Ask {
                    refusal: Some(refusal),
                    ..
                } => refusal.clone(),
                _ if self.is_attached => {
                    Failure::of(Code::DeadlineExceeded, "the read was not answered in time")
                }
                _ => Failure {
                    is_retryable: true,
                    ..self.trouble.clone()
                },
            };
            actions.push(item.fail(failure));
        }
        let deadlines = self.items.values().filter_map(|item| match item.open {
            Open::Ask { deadline, .. } => Some(deadline),
            Open::Tail { .. } => None,
        });
        self.earliest = deadlines.min().unwrap_or(NEVER);
    }

    pub fn fail_all(&mut self, failure: &Failure, actions: &mut Vec<ReadAction<A, S>>) {
        for (_, item) in std::mem::take(&mut self.items) {
            actions.push(item.fail(failure.clone()));
        }
        self.urgent.clear();
        self.earliest = NEVER;
        self.send_at = NEVER;
    }
}

impl<A, S> Item<A, S> {
    fn fail(self, failure: Failure) -> ReadAction<A, S> {
        match self.open {
            Open::Ask { ticket, .. } => ReadAction::Failed { ticket, failure },
            Open::Tail { ticket, .. } => ReadAction::Ended { ticket, failure },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use quorate_wire::client::{EntriesBatch, kind};
    use quorate_wire::cursor;

    fn attached() -> Attached {
        Attached {
            epoch: 1,
            role: Role::Follower as u8,
            durability: 1,
            state: GroupState::Active as u8,
            window_batches: 256,
            last_index: 0,
            next_seq: 1,
            commit_offset: 0,
            trim_offset: 0,
            rate_per_s: 0,
            head_address: String::new(),
        }
    }

    fn reads() -> Reads<&'static str, &'static str> {
        let mut reads = Reads::new();
        assert_eq!(reads.on_attached(&attached()), None);
        reads
    }

    fn read(offset: Offset) -> Ask {
        Ask::Read {
            offset,
            max_bytes: 0,
            max_entries: 0,
            wait_until: 5_000,
        }
    }

    fn page(request: u32, base_offset: Offset, entries: &[&[u8]]) -> Message {
        let payload: Bytes = cursor::payload_of(entries.iter().copied());
        let batch = EntriesBatch {
            base_offset,
            timestamp_us: 1,
            entry_count: entries.len() as u32,
            payload_crc: crc32fast::hash(&payload),
            payload,
        };
        let next_offset = base_offset + entries.len() as u64;
        let (commit_offset, trim_offset) = (next_offset, 0);
        Message::Entries(Entries {
            request,
            next_offset,
            commit_offset,
            trim_offset,
            batches: vec![batch],
        })
    }

    fn refusal(request: u32, code: Code, retry: u8) -> Message {
        Message::Refused(Refused {
            op: kind::READ,
            outcome: 1,
            retry,
            code: code as u16,
            retry_after_ms: 30,
            id: u64::from(request),
            head_address: "h:1".into(),
            message: String::new(),
        })
    }

    #[test]
    fn a_read_is_sent_again_on_a_new_connection_and_answered_once() {
        let mut reads = reads();
        let mut actions = Vec::new();
        reads.ask(9_000_000, read(7), "r").unwrap();
        let sent = Message::Read {
            request: 1,
            max_bytes: 0,
            max_entries: 0,
            wait_ms: 5,
            offset: 7,
        };
        assert_eq!(reads.next_message(0), Some(sent));
        assert_eq!(reads.next_message(0), None);
        reads.on_detached(Failure::new(client_side::NO_CONNECTION, ""));
        assert_eq!(reads.next_message(0), None);
        reads.on_attached(&attached());
        assert!(matches!(
            reads.next_message(4_000),
            Some(Message::Read {
                wait_ms: 1,
                offset: 7,
                ..
            })
        ));
        reads.on_message(page(1, 7, &[b"x"]), 0, &mut actions).unwrap();
        assert!(matches!(
            actions.pop(),
            Some(ReadAction::Page {
                ticket: "r",
                offset: 7,
                ..
            })
        ));
        reads.on_message(page(1, 7, &[b"x"]), 0, &mut actions).unwrap();
        assert!(actions.is_empty() && reads.is_idle());
    }

    #[test]
    fn a_replica_that_is_behind_is_asked_again_later_until_the_deadline() {
        let mut reads = reads();
        let mut actions = Vec::new();
        reads.ask(100_000, read(7), "r").unwrap();
        assert!(reads.next_message(0).is_some());
        reads
            .on_message(refusal(1, Code::Syncing, 1), 1_000, &mut actions)
            .unwrap();
        assert_eq!(reads.next_message(30_999), None);
        assert_eq!(reads.wake_at(), 31_000);
        assert!(reads.next_message(31_000).is_some());
        reads.on_time(100_000, &mut actions);
        let Some(ReadAction::Failed { ticket: "r", failure }) = actions.pop() else {
            panic!("not ended")
        };
        assert!(failure.is(Code::Syncing), "the reason is what the server said");
    }

    #[test]
    fn refusals_end_a_read_or_send_it_elsewhere() {
        let mut reads = reads();
        let mut actions = Vec::new();
        reads.ask(NEVER, read(7), "a").unwrap();
        reads.ask(NEVER, Ask::Status, "b").unwrap();
        assert!(reads.next_message(0).is_some() && reads.next_message(0).is_some());
        reads
            .on_message(refusal(1, Code::Trimmed, 0), 0, &mut actions)
            .unwrap();
        assert!(matches!(&actions[..], [ReadAction::Failed { ticket: "a", .. }]));
        actions.clear();
        reads
            .on_message(refusal(2, Code::NotHead, 2), 0, &mut actions)
            .unwrap();
        assert!(
            matches!(&actions[..], [ReadAction::Reroute(Reroute { to: Target::Head(h), .. })] if h == "h:1")
        );
        assert!(!reads.is_idle());
    }

    #[test]
    fn a_trim_is_repeated_until_a_head_answers() {
        let mut reads = reads();
        let mut actions = Vec::new();
        let trim = Ask::Trim { before_offset: 9 };
        reads.ask(NEVER, trim, "t").unwrap();
        let sent = Message::Trim {
            request: 1,
            before_offset: 9,
        };
        assert_eq!(reads.next_message(0), Some(sent.clone()));
        reads
            .on_message(refusal(1, Code::EpochChanged, 2), 0, &mut actions)
            .unwrap();
        assert!(matches!(&actions[..], [ReadAction::Reroute(_)]));
        actions.clear();
        reads.on_detached(Failure::new(client_side::NO_CONNECTION, "gone"));
        assert!(reads.on_attached(&attached()).is_none());
        assert_eq!(reads.next_message(0), Some(sent));
        let answer = Message::TrimOk {
            request: 1,
            trim_offset: 8,
        };
        reads.on_message(answer, 0, &mut actions).unwrap();
        assert!(matches!(
            &actions[..],
            [ReadAction::Trimmed {
                ticket: "t",
                trim_offset: 8
            }]
        ));
        assert!(reads.is_idle());
    }

    #[test]
    fn a_tail_goes_on_where_it_was_and_gives_credit_back() {
        let mut reads = reads();
        let mut actions = Vec::new();
        reads.subscribe(5, 40, "t").unwrap();
        assert_eq!(
            reads.next_message(0),
            Some(Message::Subscribe {
                request: 1,
                credit_bytes: 40,
                offset: 5
            })
        );
        reads
            .on_message(page(1, 4, &[b"a", b"b", b"c"]), 0, &mut actions)
            .unwrap();
        let Some(ReadAction::Tailed { entries, bytes, .. }) = actions.pop() else {
            panic!("nothing came")
        };
        assert_eq!((entries.len(), entries[0].offset, bytes), (2, 5, 15));
        reads.on_detached(Failure::new(client_side::NO_CONNECTION, ""));
        reads.on_attached(&attached());
        let again = Message::Subscribe {
            request: 1,
            credit_bytes: 25,
            offset: 7,
        };
        assert_eq!(reads.next_message(0), Some(again));
        reads.consumed(1, 9);
        assert_eq!(reads.next_message(0), None);
        reads.consumed(1, 6);
        assert_eq!(
            reads.next_message(0),
            Some(Message::Credit {
                request: 1,
                bytes: 15
            })
        );
        assert!(
            reads.on_message(page(1, 8, &[b"e"]), 0, &mut actions).is_err(),
            "a gap"
        );
        reads.cancel(1);
        assert_eq!(reads.next_message(0), Some(Message::Cancel { request: 1 }));
        assert!(reads.is_idle());
    }
}
