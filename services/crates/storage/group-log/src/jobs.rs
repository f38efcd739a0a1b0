//! Jobs for the thread.

use quorate_journal::Lsn;
use quorate_types::{GroupId, Index};

pub(crate) enum Job {
    Trim { group: GroupId, index: Index, lsn: Lsn },
    Stop,
}
