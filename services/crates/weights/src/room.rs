//! Servers' free amounts, as rates move.

use std::collections::BTreeMap;

use quorate_types::ServerId;

/// Amounts of CPU, network and storage IO, in the units of admission.
pub type Amounts = [u64; 3];

/// The free amounts of servers. They may be negative in between: a server that is charged more than may be promised of it takes
/// nothing.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Room {
    free: BTreeMap<ServerId, [i128; 3]>,
}

impl Room {
    pub fn new(free: impl IntoIterator<Item = (ServerId, Amounts)>) -> Self {
        let free = free
            .into_iter()
            .map(|(server, amounts)| (server, amounts.map(i128::from)));
        Self { free: free.collect() }
    }

    /// With other servers beside those that are known.
    pub fn beside(mut self, others: impl IntoIterator<Item = (ServerId, Amounts)>) -> Self {
        for (server, amounts) in others {
            self.free.entry(server).or_insert(amounts.map(i128::from));
        }
        self
    }

    /// Takes so many requests/s at these costs.
    pub fn take(&mut self, costs: &[(ServerId, Amounts)], per_s: u64) {
        self.add(costs, -i128::from(per_s));
    }

    /// Gives them back.
    pub fn give(&mut self, costs: &[(ServerId, Amounts)], per_s: u64) {
        self.add(costs, i128::from(per_s));
    }

    /// Whether no server of these lacks anything.
    pub fn is_kept(&self, costs: &[(ServerId, Amounts)]) -> bool {
        costs
            .iter()
            .all(|(server, _)| self.free_of(*server).iter().all(|free| *free >= 0))
    }

    /// The requests/s at these costs that find room, at most `limit_per_s`.
    pub fn fits_per_s(&self, costs: &[(ServerId, Amounts)], limit_per_s: u64) -> u64 {
        let mut fits = limit_per_s;
        for (server, cost) in costs {
            for (free, cost) in self.free_of(*server).into_iter().zip(cost) {
                if *cost > 0 {
                    let least = free.max(0) / i128::from(*cost);
                    fits = fits.min(u64::try_from(least).unwrap_or(u64::MAX));
                }
            }
        }
        fits
    }

    /// The server that lacks most for so many requests/s, with the resource and the amount; `None`: there is room.
    pub fn scarcest(&self, costs: &[(ServerId, Amounts)], per_s: u64) -> Option<(ServerId, usize, i128)> {
        let lacking = costs.iter().flat_map(|(server, cost)| {
            let free = self.free_of(*server);
            (0..3).map(move |i| (*server, i, i128::from(cost[i]) * i128::from(per_s) - free[i]))
        });
        let lacking = lacking.filter(|(_, _, amount)| *amount > 0);
        lacking.max_by_key(|(server, i, amount)| (*amount, std::cmp::Reverse((*server, *i))))
    }

    /// How many times so much is free on the server, in thousandths; `None`: not once.
    pub fn times(&self, server: ServerId, needed: Amounts) -> Option<u64> {
        let free = self.free_of(server);
        let times = |i: usize| free[i].max(0) * 1_000 / i128::from(needed[i]);
        let least = (0..3).filter(|i| needed[*i] > 0).map(times).min();
        let least = u64::try_from(least.unwrap_or(i128::MAX)).unwrap_or(u64::MAX);
        (least >= 1_000).then_some(least)
    }

    /// Amounts that so many requests/s at this cost lack on the server.
    pub fn lacking(&self, server: ServerId, cost: Amounts, per_s: u64) -> Amounts {
        let free = self.free_of(server);
        let lacks = |i: usize| i128::from(cost[i]) * i128::from(per_s) - free[i];
        std::array::from_fn(|i| u64::try_from(lacks(i)).unwrap_or(0))
    }

    fn free_of(&self, server: ServerId) -> [i128; 3] {
        self.free.get(&server).copied().unwrap_or_default()
    }

    fn add(&mut self, costs: &[(ServerId, Amounts)], per_s: i128) {
        for (server, cost) in costs {
            let free = self.free.entry(*server).or_default();
            for (free, cost) in free.iter_mut().zip(cost) {
                *free += i128::from(*cost) * per_s;
            }
        }
    }
}
