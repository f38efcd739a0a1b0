//! Events as a running hash, so that two runs can be compared, and as text when a seed is replayed.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fmt::{Debug, Write};

use quorate_types::Micros;

/// Lines kept of a replay.
const LINES_MAX: usize = 200_000;
const LINE_CHARS_MAX: usize = 260;

thread_local! {
    /// Outside of the world, so that it outlives a panic there.
    static LINES: RefCell<Option<VecDeque<Line>>> = const { RefCell::new(None) };
    static FOCUS: RefCell<Option<usize>> = const { RefCell::new(None) };
}

#[derive(Debug, Clone)]
pub struct Line {
    pub at_us: Micros,
    /// The group concerned; `None`: the whole fleet.
    pub group: Option<usize>,
    pub text: String,
}

#[derive(Debug)]
pub struct Trace {
    hash: u64,
    pub now: Micros,
    keeps_lines: bool,
}

impl Default for Trace {
    fn default() -> Self {
        Self::new()
    }
}

impl Trace {
    pub fn new() -> Self {
        Self {
            hash: 0xcbf2_9ce4_8422_2325,
            now: 0,
            keeps_lines: LINES.with_borrow(Option::is_some),
        }
    }

    pub fn numbers(&mut self, numbers: &[u64]) {
        for number in numbers {
            self.hash = (self.hash ^ number)
                .wrapping_mul(0x0100_0000_01b3)
                .rotate_left(29);
        }
    }

    pub fn line(&self, group: Option<usize>, text: impl FnOnce() -> String) {
        if !self.keeps_lines {
            return;
        }
        let text: String = text().chars().take(LINE_CHARS_MAX).collect();
        let line = Line {
            at_us: self.now,
            group,
            text,
        };
        LINES.with_borrow_mut(|lines| {
            let Some(lines) = lines else { return };
            if lines.len() == LINES_MAX {
                lines.pop_front();
            }
            lines.push_back(line);
        });
    }

    pub fn hash(&self) -> u64 {
        self.hash
    }
}

/// Keeps the lines of what runs on this thread from here on.
pub fn record() {
    LINES.set(Some(VecDeque::new()));
}

/// Ends [`record`]; the lines of the last run.
pub fn recorded() -> Vec<Line> {
    LINES.take().unwrap_or_default().into()
}

/// Sets the group of the current event. After a failure it is the group concerned.
pub fn focus(group: Option<usize>) {
    FOCUS.set(group);
}

pub fn focused() -> Option<usize> {
    FOCUS.with_borrow(|group| *group)
}

/// The beginning of its debug text; payloads may have megabytes.
pub fn brief(what: &impl Debug) -> String {
    struct Brief(String);
    impl Write for Brief {
        fn write_str(&mut self, text: &str) -> std::fmt::Result {
            self.0.push_str(text);
            if self.0.len() < LINE_CHARS_MAX {
                Ok(())
            } else {
                Err(std::fmt::Error)
            }
        }
    }
    let mut brief = Brief(String::new());
    let _is_cut = write!(brief, "{what:?}").is_err();
    brief.0
}
