//! A replica's answers to reads: pages, offsets, refusals.

use quorate_types::config::Role;
use quorate_types::{Code, Micros};
use quorate_wire::WireError;
use quorate_wire::client::{Entries, Message, Refused};

use super::{Ask, Open, ReadAction, Reads};
use crate::entries::entries_from;
use crate::errors::Failure;
use crate::limits::{BACKOFF_BASE_US, BACKOFF_MAX_US};
use crate::writer::{Reroute, Target};

impl<A, S: Clone> Reads<A, S> {
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
        // The replica is behind: the entries exist elsewhere, or soon here.
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
}
