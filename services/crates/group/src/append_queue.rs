//! A group's budget, and the queue that keeps to it.

use quorate_chain::AppendRequest;
use quorate_qos::Admission;
use quorate_types::cost::Budget;

/// The queue and the budget that the first configuration brings.
#[derive(Debug)]
pub(crate) struct AppendQueue {
    pub admission: Admission<AppendRequest>,
    pub budget: Budget,
}
