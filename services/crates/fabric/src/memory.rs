//! Memory that others write into, aligned to pages.

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};

const PAGE_BYTES: usize = 4096;

pub struct Memory {
    start: *mut u8,
    layout: Layout,
}

impl Memory {
    pub fn new(bytes: usize) -> Self {
        assert!(bytes > 0 && bytes.is_multiple_of(PAGE_BYTES), "whole pages");
        let layout = Layout::from_size_align(bytes, PAGE_BYTES).expect("a power of two");
        // SAFETY: the layout has a size.
        let start = unsafe { alloc_zeroed(layout) };
        if start.is_null() {
            handle_alloc_error(layout);
        }
        Self { start, layout }
    }

    pub fn start(&self) -> *mut u8 {
        self.start
    }

    pub fn len(&self) -> usize {
        self.layout.size()
    }

    /// All of it. The other side writes only into slots that it has been given back, and nobody reads those before their
    /// completions; so no reader sees a byte change.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the allocation has this size, and is initialised.
        unsafe { std::slice::from_raw_parts(self.start, self.layout.size()) }
    }

    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; nobody else writes into memory whose owner may.
        unsafe { std::slice::from_raw_parts_mut(self.start, self.layout.size()) }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: it was allocated with this layout.
        unsafe { dealloc(self.start, self.layout) }
    }
}
