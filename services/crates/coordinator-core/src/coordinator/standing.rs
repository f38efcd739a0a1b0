//! A member's present role, with the state that its agreed log leads to.

use quorate_quorum::Point;

use super::leading::Leading;
use crate::command::Command;
use crate::state::CoordinatorState;

#[derive(Debug)]
pub enum Standing {
    /// None: its disk has nothing yet.
    Follows(Option<Box<CoordinatorState>>),
    /// It was elected, and the beginning of its run is not agreed yet. Entries of earlier terms may come before.
    Begins {
        state: Box<CoordinatorState>,
        /// The commands that are to be agreed before the engine begins.
        commands: Vec<Command>,
        /// Their place, once the quorum has taken them.
        begin: Option<Point>,
    },
    Leads(Box<Leading>),
    /// Its state may have more than is agreed: it is read again.
    Rereads,
}

impl Standing {
    /// The state, if all of it is agreed.
    pub fn agreed_state(&self) -> Option<&CoordinatorState> {
        match self {
            Self::Follows(state) => state.as_deref(),
            Self::Begins { state, .. } => Some(state),
            Self::Leads(leading) => leading.is_open().then(|| leading.engine.state()),
            Self::Rereads => None,
        }
    }

    /// Leads no more.
    pub fn followed(self) -> Self {
        match self {
            Self::Begins { state, .. } => Self::Follows(Some(state)),
            Self::Leads(leading) => leading
                .into_state()
                .map_or(Self::Rereads, |state| Self::Follows(Some(state))),
            other => other,
        }
    }
}
