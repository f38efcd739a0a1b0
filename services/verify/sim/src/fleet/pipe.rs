//! One direction of a connection: in order, and with all that is on it lost when the connection breaks. While its
//! direction is blocked, nothing arrives and nothing is lost: the sender's kernel sends again.

use std::collections::VecDeque;

use quorate_types::Micros;

#[derive(Debug)]
pub struct Pipe<T> {
    queue: VecDeque<T>,
    last_at: Micros,
}

impl<T> Default for Pipe<T> {
    fn default() -> Self {
        Self {
            queue: VecDeque::new(),
            last_at: 0,
        }
    }
}

impl<T> Pipe<T> {
    /// Puts a message on its way; answers when it arrives.
    pub fn send(&mut self, message: T, at: Micros) -> Micros {
        self.queue.push_back(message);
        self.last_at = self.last_at.max(at);
        self.last_at
    }

    pub fn not_before(&mut self, at: Micros) {
        self.last_at = self.last_at.max(at);
    }

    pub fn receive(&mut self) -> Option<T> {
        self.queue.pop_front()
    }

    pub fn len(&self) -> usize {
        self.queue.len()
    }
}
