//! Troubles that most servers have at once: the cause is not theirs, but say shared storage. To take servers out for it
//! would leave those that are next.

use quorate_types::ServerId;

use crate::state::CoordinatorState;

/// Whether more than half of the servers that are alive, or out with this trouble, have it.
pub(super) fn is_shared(state: &CoordinatorState, troubled: impl IntoIterator<Item = ServerId>) -> bool {
    let (alive, out): (Vec<ServerId>, Vec<ServerId>) =
        troubled.into_iter().partition(|server| state.is_alive(*server));
    2 * (alive.len() + out.len()) > state.servers_alive() + out.len()
}
