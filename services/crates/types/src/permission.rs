//! The permission that a token gives a client.

use crate::config::{Layout, ProjectId};

/// Operations that a client may use with one group, and until when.
#[derive(Debug, Clone)]
pub struct Permission {
    pub may_append: bool,
    pub may_read: bool,
    /// The project of the grant's group; `None` in tokens of issuers that do not name it.
    pub project: Option<ProjectId>,
    /// The layout by which the client finds keys' partitions.
    pub layout: Layout,
    /// Seconds since 1970.
    pub expires_at_s: u64,
}
