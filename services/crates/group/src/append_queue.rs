//! A group's budget, and the queue that keeps to it.

use quorate_chain::AppendRequest;
use quorate_qos::Admission;
use quorate_types::Micros;
use quorate_types::cost::Budget;

/// The queue and the budget that the first configuration brings.
#[derive(Debug)]
pub(crate) struct AppendQueue {
    pub admission: Admission<AppendRequest>,
    /// In force: the group's own, and its share of its project's guarantee.
    pub budget: Budget,
    own: Budget,
    share_per_s: u64,
    /// The part of its own reservation, in requests/s, that the group is assumed to use; `None`: all of it.
    assumed_per_s: Option<u64>,
}

impl AppendQueue {
    pub fn new(admission: Admission<AppendRequest>, own: &Budget) -> Self {
        Self {
            admission,
            budget: own.clone(),
            own: own.clone(),
            share_per_s: 0,
            assumed_per_s: None,
        }
    }

    /// The group's own budget, without any share.
    pub fn own(&self) -> &Budget {
        &self.own
    }

    pub fn share_per_s(&self) -> u64 {
        self.share_per_s
    }

    pub fn set_own(&mut self, now_us: Micros, own: &Budget) {
        self.own = own.clone();
        self.put_in_force(now_us);
    }

    /// So many requests/s of its project's guarantee are the group's from now on.
    pub fn set_share(&mut self, now_us: Micros, per_s: u64) {
        if per_s != self.share_per_s {
            self.share_per_s = per_s;
            self.put_in_force(now_us);
            self.keep_to_assumed(now_us);
        }
    }

    /// Others use what the group is not assumed to use of its own reservation. Its share is not lent.
    pub fn assume(&mut self, now_us: Micros, per_s: Option<u64>) {
        self.assumed_per_s = per_s;
        self.keep_to_assumed(now_us);
    }

    fn put_in_force(&mut self, now_us: Micros) {
        self.budget = self.own.with_more(self.share_per_s);
        self.admission.set_budget(now_us, &self.budget);
    }

    fn keep_to_assumed(&mut self, now_us: Micros) {
        let tokens = |per_s: u64| {
            let per_s = per_s.saturating_add(self.share_per_s);
            self.own.request_milli().map(|cost| cost.saturating_mul(per_s))
        };
        let tokens = self.assumed_per_s.map(tokens);
        self.admission.assume(now_us, tokens);
    }
}
