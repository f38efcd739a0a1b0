//! Damage as disks do it: bits that flip, sectors that read as zeros, an end that was never written, remains of earlier
//! content.
//!
//! A checksum of 32 bits finds every flip of up to three bits in a record of these sizes. More power over the bytes
//! would let the fuzzer forge records, which no disk does.

use crate::Input;

const SECTOR_BYTES: usize = 512;
const FLIPS_MAX: usize = 3;

/// Damages `bytes` as the input says. The mask returned marks the bytes that may differ now.
pub fn damage(bytes: &mut [u8], earlier: &[u8], input: &mut Input<'_>) -> Vec<bool> {
    let mut hit = vec![false; bytes.len()];
    if bytes.is_empty() {
        return hit;
    }
    let mut flips = 0;
    for _ in 0..usize::from(input.byte() % 5) {
        let kind = input.byte();
        let at = usize::from(input.u16()) * 8 % bytes.len() + usize::from(kind >> 5);
        let at = at.min(bytes.len() - 1);
        let sector = at - at % SECTOR_BYTES..(at - at % SECTOR_BYTES + SECTOR_BYTES).min(bytes.len());
        match kind % 4 {
            0 if flips < FLIPS_MAX => {
                flips += 1;
                bytes[at] ^= 1 << (kind >> 2 & 7);
                hit[at] = true;
            }
            1 => sector.for_each(|at| (bytes[at], hit[at]) = (0, true)),
            2 => sector.for_each(|at| (bytes[at], hit[at]) = (earlier.get(at).copied().unwrap_or(0), true)),
            3 => (at..bytes.len()).for_each(|at| (bytes[at], hit[at]) = (0, true)),
            _ => {}
        }
    }
    hit
}
