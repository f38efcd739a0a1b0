//! The group as a model of stateright: initial state, actions and properties.

use stateright::{Model, Property};

use crate::actions::{GroupModel, ModelAction};
use crate::properties;
use crate::state::ModelState;

impl Model for GroupModel {
    type State = ModelState;
    type Action = ModelAction;

    fn init_states(&self) -> Vec<ModelState> {
        vec![ModelState::first(&self.0)]
    }

    fn actions(&self, state: &ModelState, actions: &mut Vec<ModelAction>) {
        self.possible(state, actions);
    }

    fn next_state(&self, state: &ModelState, action: ModelAction) -> Option<ModelState> {
        let mut next = state.clone();
        self.apply(&mut next, action);
        Some(next)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        properties::all()
    }
}
