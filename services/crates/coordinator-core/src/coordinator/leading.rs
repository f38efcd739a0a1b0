//! A leader's engine, and the batch of it that is not agreed yet.

use std::sync::Arc;

use quorate_quorum::Point;
use quorate_types::Place;

use super::batch::encode_batch;
use crate::engine::{Behind, Engine, Outgoing, Output};
use crate::state::CoordinatorState;

#[derive(Debug)]
pub struct Leading {
    pub engine: Engine,
    waiting: Option<Waiting>,
    /// A server proves that the log is behind it. The proof counts if this one leads still: a leader that was followed by
    /// another lacks what servers were told since.
    behind: Option<Behind>,
}

/// The engine's state has the batch already.
#[derive(Debug)]
struct Waiting {
    payload: Arc<[u8]>,
    /// None: the quorum does not take it yet.
    point: Option<Point>,
    place: Option<Place>,
    outgoing: Vec<Outgoing>,
}

impl Leading {
    pub fn new(engine: Engine) -> Self {
        Self {
            engine,
            waiting: None,
            behind: None,
        }
    }

    /// Whether the engine may take inputs in.
    pub fn is_open(&self) -> bool {
        self.waiting.is_none() && self.behind.is_none()
    }

    /// Holds on, with an output that is dropped, until a majority says whether this one leads still.
    pub fn suspect(&mut self, behind: Behind) {
        self.behind = Some(behind);
    }

    pub fn suspected(&self) -> Option<&Behind> {
        self.behind.as_ref()
    }

    /// Keeps an output back until its commands are agreed. Gives it back if it has none.
    pub fn keep_back(&mut self, output: Output) -> Option<(Option<Place>, Vec<Outgoing>)> {
        assert!(self.waiting.is_none(), "one batch at a time");
        let Output {
            commands,
            outgoing,
            place,
            ..
        } = output;
        if commands.is_empty() {
            return Some((place, outgoing));
        }
        self.waiting = Some(Waiting {
            payload: encode_batch(&commands),
            point: None,
            place,
            outgoing,
        });
        None
    }

    /// A batch that the quorum has not taken yet.
    pub fn to_propose(&self) -> Option<Arc<[u8]>> {
        let waiting = self.waiting.as_ref().filter(|waiting| waiting.point.is_none());
        waiting.map(|waiting| waiting.payload.clone())
    }

    pub fn placed(&mut self, point: Point) {
        let waiting = self.waiting.as_mut().expect("it was proposed");
        waiting.point = Some(point);
    }

    /// Gives the messages that follow from the batch, if this is its place. None: the entry is another's.
    pub fn agreed(&mut self, point: Point) -> Option<(Option<Place>, Vec<Outgoing>)> {
        let waiting = self.waiting.take_if(|waiting| waiting.point == Some(point))?;
        Some((waiting.place, waiting.outgoing))
    }

    /// The state, if all of it is agreed.
    pub fn into_state(self) -> Option<Box<CoordinatorState>> {
        self.is_open().then(|| Box::new(self.engine.into_state()))
    }
}
