//! What servers say in rounds, as it goes over links: tenants by their groups and epochs, long lists in several frames.

use std::collections::{BTreeMap, HashMap};

use quorate_wire::share::{SHARE_ENTRIES_MAX, Share, ShareEntry, What};

use crate::exchange::Key;
use crate::problem::NOTHING;
use crate::rounds::{Body, Message};

pub fn entry(key: Key, real: f64, number: Option<u64>) -> ShareEntry {
    ShareEntry {
        group_id: key.0,
        epoch: key.1,
        real,
        number,
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
                };
                shares.push((to, share));
            }
        }
        shares
    }
}

/// `names`: of the tenants, by number.
pub fn to_shares(message: &Message, names: &[Key]) -> Vec<(usize, Share)> {
    if let Body::Free(free) = message.body {
        let share = Share {
            interval: message.interval,
            what: What::Free,
            free,
            entries: Vec::new(),
        };
        return vec![(message.to, share)];
    }
    let named = |tenant: &usize, real: f64, number: Option<u64>| entry(names[*tenant], real, number);
    let amounts = |list: &[(usize, u64)]| list.iter().map(|(t, n)| named(t, 0.0, Some(*n))).collect();
    let bounds = |list: &[(usize, f64)]| list.iter().map(|(t, x)| named(t, *x, None)).collect();
    let (what, entries): (What, Vec<ShareEntry>) = match &message.body {
        Body::Free(_) => unreachable!("told above"),
        Body::Wants(list) => (What::Wants, amounts(list)),
        Body::Proposals(list) => (What::Proposals, amounts(list)),
        Body::Promise(list) => (What::Promise, amounts(list)),
        Body::AtLeast(list) => (What::AtLeast, bounds(list)),
        Body::AtMost(list) => (What::AtMost, bounds(list)),
        Body::Accepted(list) => (What::Accepted, list.iter().map(|t| named(t, 0.0, None)).collect()),
        Body::Shares(list) => (
            What::Shares,
            list.iter().map(|(t, x, n)| named(t, *x, *n)).collect(),
        ),
    };
    let mut sheets = Sheets::default();
    entries.into_iter().for_each(|one| sheets.tell(message.to, one));
    sheets.shares(message.interval, what)
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
    let bounds = || -> Vec<(usize, f64)> { known.clone().map(|(t, one)| (t, one.real)).collect() };
    let body = match share.what {
        What::Free => Body::Free(share.free),
        What::Wants => Body::Wants(amounts()),
        What::Proposals => Body::Proposals(amounts()),
        What::Promise => Body::Promise(amounts()),
        What::AtLeast => Body::AtLeast(bounds()),
        What::AtMost => Body::AtMost(bounds()),
        What::Accepted => Body::Accepted(known.clone().map(|(t, _)| t).collect()),
        What::Shares => Body::Shares(known.clone().map(|(t, one)| (t, one.real, one.number)).collect()),
        What::Using | What::Recall | What::Returned | What::Assumed | What::Kept => return None,
    };
    Some(Message {
        from,
        to: me,
        interval: share.interval,
        body,
    })
}
