//! A large number in a frame does not make a receiver allocate: buffers follow the bytes that have arrived.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::{BufMut, BytesMut};
use quorate_types::limits::FRAME_BYTES_MAX;
use quorate_wire::client::{self, kind};
use quorate_wire::peer::{self, Envelope};
use quorate_wire::{Frame, decode_frame, encode_frame};

thread_local! {
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

struct Counting;

#[allow(unsafe_code)]
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

fn allocated(work: impl FnOnce()) -> usize {
    let before = ALLOCATED.with(Cell::get);
    work();
    ALLOCATED.with(Cell::get) - before
}

fn frame(kind: u8, head: &[u8]) -> Frame {
    let mut out = BytesMut::new();
    encode_frame(&mut out, kind, 1, None, 0, |out| out.put_slice(head));
    decode_frame(&mut out, FRAME_BYTES_MAX)
        .expect("sound")
        .expect("whole")
}

#[test]
fn the_counter_counts() {
    assert!(allocated(|| drop(vec![0u8; 5000])) >= 5000);
}

#[test]
fn an_announced_frame_costs_nothing_before_it_comes() {
    let mut header = [0u8; 16];
    header[..4].copy_from_slice(&FRAME_BYTES_MAX.to_le_bytes());
    header[6..8].copy_from_slice(&u16::MAX.to_le_bytes());
    let mut stream = BytesMut::from(&header[..]);
    let cost = allocated(|| assert_eq!(decode_frame(&mut stream, FRAME_BYTES_MAX), Ok(None)));
    assert_eq!(cost, 0);
    assert!(stream.capacity() < 1000);
}

#[test]
fn absurd_counts_cost_nothing() {
    let mut acked = u32::MAX.to_le_bytes().to_vec();
    acked.extend([0; 64]);
    let mut entries = [7u32.to_le_bytes(), u32::MAX.to_le_bytes()].concat();
    entries.extend([0; 200]);
    let mut sync = [0u8; 16 + 8 + 4 + 8 + 8].to_vec();
    sync.extend(u32::MAX.to_le_bytes());
    sync.extend([1; 64]);
    let frames = [frame(kind::ACKED, &acked), frame(kind::ENTRIES, &entries)];
    let peer_frame = frame(peer::kind::SYNC_REQUEST, &sync);
    let cost = allocated(|| {
        for frame in &frames {
            assert!(client::Message::decode(frame).is_err());
        }
        assert!(Envelope::decode(&peer_frame).is_err());
    });
    assert!(cost < 4096, "{cost} bytes");
}
