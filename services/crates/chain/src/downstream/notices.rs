//! Holding commit notices back: nothing downstream waits for a commit but readers there.
//!
//! The next batch carries the commit index for free. So appends that follow one another need no message for it. All
//! else that a notice says is sent at once.

#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct NoticeHold {
    is_on: bool,
    /// The hold has lasted long enough: the next flush sends what is pending.
    is_due: bool,
    is_pending: bool,
}

impl NoticeHold {
    pub fn hold(&mut self) {
        self.is_on = true;
    }

    pub fn due(&mut self) {
        self.is_due = true;
    }

    /// Whether a commit notice may wait beyond this flush.
    pub fn begin_flush(&mut self) -> bool {
        self.is_pending = false;
        self.is_on && !std::mem::take(&mut self.is_due)
    }

    pub fn set_pending(&mut self) {
        self.is_pending = true;
    }

    pub fn is_pending(&self) -> bool {
        self.is_pending
    }

    /// As at the beginning, with the shell's choice kept.
    pub fn reset(self) -> Self {
        Self {
            is_on: self.is_on,
            ..Self::default()
        }
    }
}
