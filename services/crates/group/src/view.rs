//! The state beside its own that a handler sees, and the way of its outputs.

use quorate_chain::Replica;
use quorate_types::{GroupId, ServerId};

use crate::counters::Counters;
use crate::output::Outputs;
use crate::turn::Turn;

pub(crate) struct View<'a> {
    pub group_id: GroupId,
    pub me: ServerId,
    pub replica: &'a Replica,
    pub counters: &'a mut Counters,
    pub turn: &'a mut Turn,
    pub out: &'a mut Outputs,
}
