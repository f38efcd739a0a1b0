//! The reason for which an input is refused.

use std::fmt;

/// An input that cannot be used: the field, and the reason.
#[derive(Debug, PartialEq, Eq)]
pub struct Unusable {
    what: &'static str,
    field: String,
    problem: String,
}

impl Unusable {
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self {
            what: "instance",
            field: field.into(),
            problem: problem.into(),
        }
    }

    pub fn of(self, what: &'static str) -> Self {
        Self { what, ..self }
    }
}

impl fmt::Display for Unusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.what, self.field, self.problem)
    }
}
