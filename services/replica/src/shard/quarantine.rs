//! Assertions of one group: they stop its replica, and nothing else of the server.
//!
//! The state of a group is its own, and a step touches nothing beside it, the turn and the outputs. So a step that panics
//! leaves one group in doubt. Its outputs are discarded together with its state: for everybody else the replica has
//! crashed before them. Outputs of earlier steps were whole, and stay. A panic anywhere else may have left
//! shared state half-way, and ends the process.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind};

thread_local! {
    static IS_IN_GROUP: Cell<bool> = const { Cell::new(false) };
    static LAST_PANIC: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs a step of one group, or has it answer a question. The error says which assertion did not hold.
pub fn guard<T>(step: impl FnOnce() -> T) -> Result<T, String> {
    let was_in = IS_IN_GROUP.replace(true);
    let stepped = catch_unwind(AssertUnwindSafe(step));
    IS_IN_GROUP.set(was_in);
    stepped.map_err(|_| LAST_PANIC.take())
}

/// Has panics outside of groups' steps end the process. `report` prints each.
pub fn end_on_panic(report: Box<dyn Fn(&PanicHookInfo<'_>) + Sync + Send>) {
    std::panic::set_hook(Box::new(move |panic| {
        report(panic);
        if !IS_IN_GROUP.get() {
            std::process::abort();
        }
        note(panic);
    }));
}

/// Keeps the panic's text for the group's quarantine.
pub fn note(panic: &PanicHookInfo<'_>) {
    let text = panic.payload_as_str().unwrap_or("no text");
    let place = panic.location().map(ToString::to_string).unwrap_or_default();
    LAST_PANIC.set(format!("{text} ({place})"));
}
