//! Links deliver in order or break. What is on a link that breaks is lost; each end hears of the new connection
//! before anything that came on it, and until then what it sends goes to the old one, which is gone.

use crate::state::{Body, Epoch, Message, ServerId, State};

impl State {
    fn link(&self, from: ServerId, to: ServerId) -> usize {
        usize::from(from) * self.servers.len() + usize::from(to)
    }

    pub fn on_link(&self, from: ServerId, to: ServerId) -> &[Message] {
        &self.links[self.link(from, to)]
    }

    pub fn send(&mut self, from: ServerId, to: ServerId, epoch: Epoch, body: Body) {
        let is_stale = self
            .on_link(to, from)
            .first()
            .is_some_and(|m| m.body == Body::LinkUp);
        if self.server(to).up && !is_stale {
            let link = self.link(from, to);
            self.links[link].push(Message { epoch, body });
        }
    }

    pub fn take(&mut self, from: ServerId, to: ServerId) -> Option<Message> {
        let link = self.link(from, to);
        let queue = &mut self.links[link];
        (!queue.is_empty()).then(|| queue.remove(0))
    }

    /// The link between two living servers breaks and comes back.
    pub fn break_link(&mut self, a: ServerId, b: ServerId) {
        for (from, to) in [(a, b), (b, a)] {
            let link = self.link(from, to);
            self.links[link] = vec![Message {
                epoch: 0,
                body: Body::LinkUp,
            }];
        }
    }

    /// A process ends: its links end with it, and its neighbours find new ones when it is back.
    pub fn cut_links_of(&mut self, dead: ServerId) {
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
                self.links[link].push(Message {
                    epoch: 0,
                    body: Body::LinkUp,
                });
            }
        }
    }
}
