//! Links deliver in order or break. Messages on a link that breaks are lost. Each end hears of the new connection before
//! any message on it; until then, messages that it sends go to the old connection and are lost.

use crate::ids::{Epoch, ServerId};
use crate::message::{MessageBody, ModelMessage};
use crate::state::ModelState;

impl ModelState {
    fn link(&self, from: ServerId, to: ServerId) -> usize {
        usize::from(from) * self.servers.len() + usize::from(to)
    }

    pub fn on_link(&self, from: ServerId, to: ServerId) -> &[ModelMessage] {
        &self.links[self.link(from, to)]
    }

    pub fn send(&mut self, from: ServerId, to: ServerId, epoch: Epoch, body: MessageBody) {
        let is_stale = self
            .on_link(to, from)
            .first()
            .is_some_and(|m| m.body == MessageBody::LinkUp);
        if self.server(to).up && !is_stale {
            let link = self.link(from, to);
            self.links[link].push(ModelMessage { epoch, body });
        }
    }

    pub fn take(&mut self, from: ServerId, to: ServerId) -> Option<ModelMessage> {
        let link = self.link(from, to);
        let queue = &mut self.links[link];
        (!queue.is_empty()).then(|| queue.remove(0))
    }

    /// The link between two living servers breaks and comes back.
    pub fn break_link(&mut self, a: ServerId, b: ServerId) {
        for (from, to) in [(a, b), (b, a)] {
            let link = self.link(from, to);
            self.links[link] = vec![ModelMessage {
                epoch: 0,
                body: MessageBody::LinkUp,
            }];
        }
    }

    /// A process ends: its links close, and its neighbours get new ones when it is back.
    pub fn close_links_of(&mut self, dead: ServerId) {
        for other in 0..self.servers.len() as ServerId {
            for (from, to) in [(dead, other), (other, dead)] {
                let link = self.link(from, to);
                self.links[link].clear();
            }
        }
    }

    /// A process is back: the others hear of the new connection.
    pub fn connect(&mut self, back: ServerId) {
        for other in 0..self.servers.len() as ServerId {
            if other != back && self.server(other).up {
                let link = self.link(back, other);
                self.links[link].push(ModelMessage {
                    epoch: 0,
                    body: MessageBody::LinkUp,
                });
            }
        }
    }
}
