//! The bytes that a learner may still be sent: catching up takes no more than its share of a server.

use quorate_types::limits::CATCHUP_WINDOW_BYTES;

/// Bytes, negative when one batch overdrew them; `None`: as many as the window takes.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Allowance {
    bytes: Option<i64>,
}

impl Allowance {
    pub fn begin(&mut self) {
        self.bytes = Some(0);
    }

    pub fn left(&self) -> Option<i64> {
        self.bytes
    }

    /// An allowance that a learner cannot take now is not saved up for it.
    pub fn add(&mut self, bytes: u64) {
        if let Some(left) = &mut self.bytes {
            *left = left
                .saturating_add_unsigned(bytes)
                .min(CATCHUP_WINDOW_BYTES as i64);
        }
    }

    /// The last batch may overdraw it.
    pub fn spend(&mut self, bytes: u64) {
        if let Some(left) = &mut self.bytes {
            *left = left.saturating_sub_unsigned(bytes);
        }
    }
}
