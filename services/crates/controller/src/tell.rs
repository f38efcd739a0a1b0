//! What servers say in rounds, as it goes over links: tenants by their groups and epochs, long lists in several frames.

use std::collections::{BTreeMap, HashMap};

use quorate_types::limits::SHARE_CROWDS_MAX;
use quorate_wire::share::{SHARE_ENTRIES_MAX, Share, ShareCrowd, ShareEntry, What};

use crate::exchange::Key;
use crate::problem::NOTHING;
use crate::rounds::{Body, Crowd, Message};

pub fn entry(key: Key, number: Option<u64>) -> ShareEntry {
    ShareEntry {
        group_id: key.0,
        epoch: key.1,
        number,
        used_up: None,
    }
}

/// Frames about groups for several servers.
#[derive(Default)]
pub struct Sheets {
    by_receiver: BTreeMap<usize, Vec<ShareEntry>>,
}

impl Sheets {
    pub fn tell(&mut self, to: usize, entry: ShareEntry) {
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
                    crowds: Vec::new(),
                };
                shares.push((to, share));
            }
        }
        shares
    }
}

/// `names`: of the tenants, by number.
pub fn to_shares(message: &Message, names: &[Key]) -> Vec<(usize, Share)> {
    let whole = |what: What, free, entries: Vec<ShareEntry>, crowds| Share {
        interval: message.interval,
        what,
        free,
        entries,
        crowds,
    };
    let named = |tenant: &usize, number: Option<u64>| entry(names[*tenant], number);
    let amounts =
        |list: &[(usize, u64)]| -> Vec<ShareEntry> { list.iter().map(|(t, n)| named(t, Some(*n))).collect() };
    let (what, entries): (What, Vec<ShareEntry>) = match &message.body {
        Body::Free(free) => return vec![(message.to, whole(What::Free, *free, Vec::new(), Vec::new()))],
        Body::Crowds(crowds) => {
            let crowds = crowds.iter().take(SHARE_CROWDS_MAX).map(to_share_crowd).collect();
            return vec![(message.to, whole(What::Crowds, NOTHING, Vec::new(), crowds))];
        }
        Body::Has { free, wants } => {
            let wants = amounts(wants);
            let mut parts: Vec<&[ShareEntry]> = wants.chunks(SHARE_ENTRIES_MAX).collect();
            if parts.is_empty() {
                parts.push(&[]);
            }
            let share = |part: &[ShareEntry]| whole(What::Has, *free, part.to_vec(), Vec::new());
            return parts.into_iter().map(|part| (message.to, share(part))).collect();
        }
        Body::Wants(list) => (What::Wants, amounts(list)),
        Body::Proposals(list) => (What::Proposals, amounts(list)),
        Body::Promise(list) => (What::Promise, amounts(list)),
        Body::Accepted(list) => (What::Accepted, list.iter().map(|t| named(t, None)).collect()),
    };
    let mut sheets = Sheets::default();
    entries.into_iter().for_each(|one| sheets.tell(message.to, one));
    sheets.shares(message.interval, what)
}

fn to_share_crowd(crowd: &Crowd) -> ShareCrowd {
    ShareCrowd {
        per_level: crowd.per_level,
        until_level: crowd.until_level,
    }
}

fn to_crowd(crowd: &ShareCrowd) -> Crowd {
    Crowd {
        per_level: crowd.per_level,
        until_level: crowd.until_level,
    }
}

/// `numbers`: of the tenants of this interval that the sender has to do with too; of others nothing is taken in.
pub fn to_message(
    from: usize,
    me: usize,
    share: &Share,
    numbers: &HashMap<Key, usize>,
    is_theirs: impl Fn(usize) -> bool,
) -> Option<Message> {
    let known = share.entries.iter().filter_map(|one| {
        let tenant = *numbers.get(&(one.group_id, one.epoch))?;
        is_theirs(tenant).then_some((tenant, one))
    });
    let amounts = || -> Vec<(usize, u64)> {
        let amount = |(tenant, one): (usize, &ShareEntry)| Some((tenant, one.number?));
        known.clone().filter_map(amount).collect()
    };
    let body = match share.what {
        What::Free => Body::Free(share.free),
        What::Wants => Body::Wants(amounts()),
        What::Proposals => Body::Proposals(amounts()),
        What::Promise => Body::Promise(amounts()),
        What::Accepted => Body::Accepted(known.clone().map(|(t, _)| t).collect()),
        What::Has => Body::Has {
            free: share.free,
            wants: amounts(),
        },
        What::Crowds => Body::Crowds(share.crowds.iter().map(to_crowd).collect()),
        What::Using | What::Recall | What::Returned | What::Assumed | What::Kept => return None,
    };
    Some(Message {
        from,
        to: me,
        interval: share.interval,
        body,
    })
}
