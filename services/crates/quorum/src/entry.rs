//! Entries of the log.

use std::sync::Arc;

use crate::ids::{Point, Position, Term};
use crate::members::Members;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub position: Position,
    pub term: Term,
    pub content: Content,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// The first of a term: with it, everything before it is committed.
    Begin,
    Payload(Arc<[u8]>),
    /// The members from here on, as soon as a log has it.
    Members(Members),
}

impl Entry {
    pub fn point(&self) -> Point {
        Point {
            term: self.term,
            position: self.position,
        }
    }

    /// As bounds count it: the payload, and what surrounds it.
    pub fn bytes(&self) -> usize {
        const AROUND: usize = 32;
        let content = match &self.content {
            Content::Begin => 0,
            Content::Payload(payload) => payload.len(),
            Content::Members(members) => members.bytes(),
        };
        AROUND + content
    }
}
