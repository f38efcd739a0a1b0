//! Reports between servers, as they go over links: tenants by their groups and epochs, long lists in several frames.

use std::collections::{BTreeMap, HashMap};

use quorate_types::limits::SHARE_AGGREGATES_MAX;
use quorate_wire::share::{SHARE_ENTRIES_MAX, Share, ShareAggregate, ShareEntry, What};

use crate::iterations::{Aggregate, IterationBody, IterationMessage};
use crate::problem::GroupEpoch;
use crate::problem::NOTHING;

pub fn entry(key: GroupEpoch, number: Option<u64>) -> ShareEntry {
    ShareEntry {
        group_id: key.0,
        epoch: key.1,
        number,
        used_up: None,
    }
}

/// Frames about groups for several servers.
#[derive(Default)]
pub struct Reports {
    by_receiver: BTreeMap<usize, Vec<ShareEntry>>,
}

impl Reports {
    pub fn add(&mut self, to: usize, entry: ShareEntry) {
        self.by_receiver.entry(to).or_default().push(entry);
    }

    pub fn shares(self, interval: u64, what: What) -> Vec<(usize, Share)> {
        let mut shares = Vec::new();
        for (to, entries) in self.by_receiver {
            for part in entries.chunks(SHARE_ENTRIES_MAX) {
                let share = Share {
                    interval,
                    what,
                    free: NOTHING,
                    entries: part.to_vec(),
                    aggregates: Vec::new(),
                };
                shares.push((to, share));
            }
        }
        shares
    }
}

/// `names`: the tenants' keys, by number.
pub fn to_shares(message: &IterationMessage, names: &[GroupEpoch]) -> Vec<(usize, Share)> {
    let whole = |what: What, free, entries: Vec<ShareEntry>, aggregates| Share {
        interval: message.interval,
        what,
        free,
        entries,
        aggregates,
    };
    let named = |tenant: &usize, number: Option<u64>| entry(names[*tenant], number);
    let amounts =
        |list: &[(usize, u64)]| -> Vec<ShareEntry> { list.iter().map(|(t, n)| named(t, Some(*n))).collect() };
    let (what, entries): (What, Vec<ShareEntry>) = match &message.body {
        IterationBody::Free(free) => {
            return vec![(message.to, whole(What::Free, *free, Vec::new(), Vec::new()))];
        }
        IterationBody::Aggregates(aggregates) => {
            let aggregates = aggregates
                .iter()
                .take(SHARE_AGGREGATES_MAX)
                .map(to_share_aggregate)
                .collect();
            return vec![(
                message.to,
                whole(What::Aggregates, NOTHING, Vec::new(), aggregates),
            )];
        }
        IterationBody::Has { free, wants } => {
            let wants = amounts(wants);
            let mut parts: Vec<&[ShareEntry]> = wants.chunks(SHARE_ENTRIES_MAX).collect();
            if parts.is_empty() {
                parts.push(&[]);
            }
            let share = |part: &[ShareEntry]| whole(What::Has, *free, part.to_vec(), Vec::new());
            return parts.into_iter().map(|part| (message.to, share(part))).collect();
        }
        IterationBody::Wants(list) => (What::Wants, amounts(list)),
        IterationBody::Proposals(list) => (What::Proposals, amounts(list)),
        IterationBody::Commitments(list) => (What::Commitment, amounts(list)),
        IterationBody::Accepted(list) => (What::Accepted, list.iter().map(|t| named(t, None)).collect()),
    };
    let mut reports = Reports::default();
    entries.into_iter().for_each(|one| reports.add(message.to, one));
    reports.shares(message.interval, what)
}

fn to_share_aggregate(aggregate: &Aggregate) -> ShareAggregate {
    ShareAggregate {
        per_level: aggregate.per_level,
        until_level: aggregate.until_level,
    }
}

fn to_aggregate(aggregate: &ShareAggregate) -> Aggregate {
    Aggregate {
        per_level: aggregate.per_level,
        until_level: aggregate.until_level,
    }
}

/// `numbers`: the tenants of this interval. Entries of others are left out, as are entries of tenants for which `is_theirs`
/// is false: the sender does not host them.
pub fn to_message(
    from: usize,
    me: usize,
    share: &Share,
    numbers: &HashMap<GroupEpoch, usize>,
    is_theirs: impl Fn(usize) -> bool,
) -> Option<IterationMessage> {
    let known = share.entries.iter().filter_map(|one| {
        let tenant = *numbers.get(&(one.group_id, one.epoch))?;
        is_theirs(tenant).then_some((tenant, one))
    });
    let amounts = || -> Vec<(usize, u64)> {
        let amount = |(tenant, one): (usize, &ShareEntry)| Some((tenant, one.number?));
        known.clone().filter_map(amount).collect()
    };
    let body = match share.what {
        What::Free => IterationBody::Free(share.free),
        What::Wants => IterationBody::Wants(amounts()),
        What::Proposals => IterationBody::Proposals(amounts()),
        What::Commitment => IterationBody::Commitments(amounts()),
        What::Accepted => IterationBody::Accepted(known.clone().map(|(t, _)| t).collect()),
        What::Has => IterationBody::Has {
            free: share.free,
            wants: amounts(),
        },
        What::Aggregates => IterationBody::Aggregates(share.aggregates.iter().map(to_aggregate).collect()),
        What::Using | What::Recall | What::Returned | What::Assumed | What::Kept => return None,
    };
    Some(IterationMessage {
        from,
        to: me,
        interval: share.interval,
        body,
    })
}
