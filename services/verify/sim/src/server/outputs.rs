//! A group's outputs are carried out. Nothing here takes a step.

use quorate_chain::ClientRef;
use quorate_group::{Output, Outputs, Record};
use quorate_recovery::GroupRecord;
use quorate_types::{GroupId, Offset};

use super::{answers, control, disk_reads, journal, repairs, timers};
use crate::fleet::World;
use crate::links;
use crate::trace::brief;

/// Carries out outputs of a group, or the refusal for one that is not here.
pub(super) fn carry_out_all(world: &mut World, s: usize, group_id: GroupId, out: &mut Outputs) {
    let list = std::mem::take(&mut out.list);
    let acks = std::mem::take(&mut out.acks);
    for output in list {
        carry_out(world, s, group_id, output, &acks);
    }
    out.clear();
}

fn carry_out(
    world: &mut World,
    s: usize,
    group_id: GroupId,
    output: Output,
    acks: &[(ClientRef, u64, Offset)],
) {
    match output {
        Output::Client { client, message } => answers::send(world, s, group_id, client, &message),
        Output::Acked { client, acks: range } => answers::send_acks(world, s, group_id, client, &acks[range]),
        Output::NotAttached { client, message, .. } => answers::send(world, s, group_id, client, &message),
        Output::Peer { to, envelope } => {
            world.trace.line(Some(World::index_of(group_id)), || {
                format!("s{} → server {to}: {}", s + 1, brief(&envelope.message))
            });
            links::send(world, s, to, envelope);
        }
        Output::Coordinator(message) => control::report(world, s, message),
        Output::Journal(record) => {
            count(world, &record);
            let entry = GroupRecord::new(group_id, record);
            journal::write(world, s, entry);
        }
        Output::ForgetDisk => {
            world.counts.logs_forgotten += 1;
            world.servers[s].forget(group_id);
            journal::write(world, s, GroupRecord::dropped(group_id));
        }
        Output::Load {
            generation,
            from_index,
            to_index,
        } => disk_reads::load(world, s, group_id, generation, (from_index, to_index)),
        Output::ReadPage(read) => disk_reads::read_page(world, s, group_id, read),
        Output::ReadForPeer { to, epoch, header } => {
            disk_reads::read_for_peer(world, s, group_id, to, epoch, header)
        }
        Output::Copied {
            copier,
            header,
            payload,
        } => repairs::copied(world, s, copier, &header, &payload),
        Output::CopierReleased(copier) => repairs::copier_released(world, s, copier),
        Output::Rewrite { header, payload } => repairs::rewrite(world, s, group_id, &header, &payload),
        Output::WakeInTime => timers::schedule_wake(world, s, group_id),
        Output::CatchupWanted => timers::schedule_catchup(world, s, group_id),
        Output::CommitNoticePending => timers::schedule_commit_notice(world, s, group_id),
        Output::OwnerReturned { .. } => world.counts.owners_returned += 1,
        Output::Report(report) => repairs::note_report(world, s, group_id, &report),
        Output::Span(_) => {}
    }
}

fn count(world: &mut World, record: &Record) {
    let counts = &mut world.counts;
    match record {
        Record::Base { .. } => counts.bases += 1,
        Record::Truncated { .. } => counts.truncations += 1,
        Record::Trim { .. } => counts.trims += 1,
        Record::Batch(_) | Record::Repaired { .. } => {}
    }
}
