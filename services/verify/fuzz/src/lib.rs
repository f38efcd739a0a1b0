//! Parts that the targets share: taking an input apart, damaging bytes as disks do, and counting allocations.

pub mod allocation;
pub mod damage;
pub mod replay;

/// Makes a program of a target, a function of bytes: libFuzzer's, or one that tries given inputs.
#[macro_export]
macro_rules! program {
    ($target:expr) => {
        #[cfg(fuzzing)]
        libfuzzer_sys::fuzz_target!(|data: &[u8]| $target(data));

        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            $crate::replay::main($target)
        }
    };
}

/// Takes small numbers and slices from the front of an input; zeros when it has run out.
pub struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    pub fn new(data: &'a [u8]) -> Self {
        Self(data)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn byte(&mut self) -> u8 {
        self.bytes(1).first().copied().unwrap_or(0)
    }

    pub fn u16(&mut self) -> u16 {
        u16::from_le_bytes([self.byte(), self.byte()])
    }

    pub fn u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        let found = self.bytes(8);
        bytes[..found.len()].copy_from_slice(found);
        u64::from_le_bytes(bytes)
    }

    /// At most `count` bytes.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (front, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        front
    }

    pub fn rest(self) -> &'a [u8] {
        self.0
    }
}
