//! The outcome of an append that is refused: *refused* or *unknown*.

use quorate_chain::{Happened, Replica, Verdict};
use quorate_types::Index;
use quorate_types::planted::{self, Bug};

/// The knowledge on which the refusal of a batch rests.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Basis<'a> {
    /// No replica was asked, or one that cannot tell: it is not the head, or its chain does not agree with it yet.
    Nothing,
    /// The session table of a head whose chain agrees with it.
    Table {
        head: &'a Replica,
        session: u64,
        seq: u64,
        floor_index: Index,
    },
    /// The judgement of such a head.
    Judged(Happened),
}

/// Whether a refused batch may have been ordered all the same, by this sending or by an earlier one. An earlier sending
/// may have gone to another server, over another connection: only a head can exclude that.
pub(crate) fn may_have_happened(basis: Basis<'_>) -> bool {
    match basis {
        Basis::Nothing => true,
        Basis::Table {
            head,
            session,
            seq,
            floor_index,
        } => is_recalled(head, session, seq, floor_index),
        Basis::Judged(happened) => happened == Happened::Unknown,
    }
}

/// Whether an earlier sending of the batch was ordered, or the table has forgotten too much to tell.
pub(crate) fn is_recalled(replica: &Replica, session: u64, seq: u64, floor_index: Index) -> bool {
    let verdict = replica.log().sessions().judge(session, seq, floor_index);
    let is_recalled = session != 0 && matches!(verdict, Verdict::Ordered(_) | Verdict::Expired);
    is_recalled && !planted::on(Bug::RetryRefusedOutright)
}
