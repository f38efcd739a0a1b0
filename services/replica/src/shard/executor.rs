//! Carries out what groups want done: each output goes to the handler that owns its way out.

use std::sync::Arc;

use quorate_chain::ClientRef;
use quorate_group::{Output, Outputs, Report, Span, SpanKind};
use quorate_telemetry::SpanRecord;
use quorate_telemetry::spans::{ORDER, REPLICATE};
use quorate_types::{GroupId, Micros, ServerId};
use quorate_wire::peer::Envelope;

use super::clients::Clients;
use super::disk::Disk;
use super::hosted::Hosted;
use super::links::Links;
use super::wakeups::Wakeups;
use crate::messages::{LinkMessage, ShardMessage};
use crate::shared::Shared;

pub struct Executor {
    pub shard: usize,
    pub shared: Arc<Shared>,
    pub clients: Clients,
    pub links: Links,
    pub disk: Disk,
    pub wakeups: Wakeups,
}

impl Executor {
    pub fn carry_out(&mut self, group_id: GroupId, hosted: &mut Hosted, outputs: &mut Outputs, now: Micros) {
        let Outputs { list, acks, .. } = outputs;
        for output in list.drain(..) {
            match output {
                Output::Peer { to, envelope } => self.send_peer(to, envelope),
                Output::Acked { client, acks: range } => self.clients.send_acks(client, acks, range),
                Output::Journal(record) => self.disk.write(group_id, record),
                Output::Client { client, message } => self.clients.send(client, message),
                Output::NotAttached {
                    client,
                    number,
                    message,
                } => {
                    self.clients.not_attached(client, number, message);
                }
                Output::WakeInTime => self.wakeups.in_time(group_id),
                Output::CommitNoticePending => {
                    if !std::mem::replace(&mut hosted.is_notice_pending, true) {
                        self.wakeups.notice_pending(group_id);
                    }
                }
                Output::CatchupWanted => self.wakeups.catchup_wanted(group_id),
                Output::OwnerReturned { epoch } => self.shared.burst.owner_returned(group_id, epoch, now),
                Output::Coordinator(message) => self.shared.coordinator.send(message),
                Output::ForgetDisk => {
                    self.disk.write_dropped(group_id);
                    hosted.records.forget();
                }
                Output::Load {
                    generation,
                    from_index,
                    to_index,
                } => {
                    self.disk
                        .load(group_id, generation, (from_index, to_index), &hosted.records);
                }
                Output::ReadPage(read) => {
                    let (entries, bytes) = read.lacking_size();
                    self.clients.charge_disk(read.reader.client, entries, bytes);
                    self.disk.read_page(group_id, read, &hosted.records);
                }
                Output::ReadForPeer { to, epoch, header } => {
                    self.disk
                        .read_for_peer(group_id, to, epoch, header, &hosted.records);
                }
                Output::Rewrite { header, payload } => {
                    self.disk.rewrite(group_id, header, payload, &hosted.records);
                }
                Output::Copied {
                    copier,
                    header,
                    payload,
                } => {
                    self.disk.copied(copier, &header, payload);
                }
                Output::CopierReleased(copier) => self.disk.release_copier(copier),
                Output::Span(span) => self.send_span(group_id, span),
                Output::Report(report) => log(group_id, report),
            }
        }
        outputs.clear();
    }

    /// For a group that is not here: its outputs are answers to one client.
    pub fn answer(&mut self, outputs: &mut Outputs) {
        for output in outputs.list.drain(..) {
            match output {
                Output::Client { client, message } => self.clients.send(client, message),
                Output::NotAttached {
                    client,
                    number,
                    message,
                } => {
                    self.clients.not_attached(client, number, message);
                }
                other => unreachable!("a group that is not here wants {other:?}"),
            }
        }
        outputs.clear();
    }

    /// To a peer, on whichever shard its link is.
    pub fn send_peer(&mut self, to: ServerId, envelope: Envelope) {
        let owner = self.shared.shards.of_peer(to);
        if owner == self.shard {
            self.links.send(to, envelope);
        } else {
            let message = LinkMessage::ToPeer { to, envelope };
            self.shared.shards.send(owner, ShardMessage::Link(message));
        }
    }

    /// The journal takes nothing: persistent groups of this server become read-only, and say so.
    pub fn storage_refused(&self, reason: &str) {
        if self.shared.coordinator.begin_storage_fault(reason) {
            tracing::error!(
                reason,
                "the disk takes no more records; persistent groups are read-only"
            );
            self.shared.shards.broadcast(|| {
                ShardMessage::Journal(quorate_journal::Event::DiskFull {
                    reason: reason.into(),
                })
            });
        }
    }

    fn send_span(&self, group_id: GroupId, span: Span) {
        let Some(spans) = &self.shared.spans else {
            return;
        };
        spans.send(SpanRecord {
            name: match span.kind {
                SpanKind::Order => ORDER,
                SpanKind::Replicate => REPLICATE,
            },
            trace_id: span.trace.trace_id,
            parent_span_id: span.trace.span_id,
            trace_flags: span.trace.flags,
            began_us: span.began_us,
            ended_us: span.ended_us,
            server_id: self.shared.server_id(),
            group: group_id,
            epoch: span.epoch,
            index: span.index,
            entry_count: span.entry_count,
        });
    }

    /// A client of channel 0: the connection itself.
    pub fn connection_itself(connection: u64) -> ClientRef {
        ClientRef {
            connection,
            channel: 0,
        }
    }
}

fn log(group: GroupId, report: Report) {
    match report {
        Report::Adopted { epoch } => tracing::debug!(%group, epoch, "epoch adopted"),
        Report::ConfigRefused { epoch } => {
            tracing::error!(
                %group,
                epoch,
                "the coordinator sent another configuration of this epoch, which was refused: its log is an older copy"
            );
        }
        Report::RecordsDamaged {
            records,
            from_index,
            to_index,
        } => {
            tracing::error!(%group, records, from_index, to_index, "records on disk are damaged; they are being repaired");
        }
        Report::RecordRepaired { index, from } => {
            let source = from.map_or("memory".to_string(), |server| format!("server {}", server.0));
            tracing::warn!(%group, index, source, "a damaged record was repaired");
        }
        Report::RecordsUnrepaired {
            records,
            from_index,
            to_index,
        } => {
            tracing::error!(%group, records, from_index, to_index, "no replica has the damaged records; their entries cannot be read");
        }
        Report::PageUnreadable { reason } => {
            tracing::error!(%group, reason, "cannot read entries back from disk")
        }
    }
}
