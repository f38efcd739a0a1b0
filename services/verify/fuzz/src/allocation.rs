//! Counts allocations, so that a target can check that a few bytes never cost many.

#![allow(unsafe_code)] // An allocator can be written in no other way.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; only a counter is kept beside it.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.with(|a| a.set(a.get() + layout.size()));
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The work's result, asserting that it allocated no more than a small multiple of the bytes that it was given.
pub fn bounded<T>(given_bytes: usize, work: impl FnOnce() -> T) -> T {
    let before = ALLOCATED.with(Cell::get);
    let result = work();
    let cost = ALLOCATED.with(Cell::get) - before;
    let most = 4_096 + 16 * given_bytes;
    assert!(
        cost <= most,
        "{given_bytes} bytes made a receiver allocate {cost}"
    );
    result
}
