//! A target without libFuzzer: it tries the files that it is given, and each of them changed in many ways. The changes
//! are the same in every run.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Changed copies of each file that are tried.
const CHANGES_PER_INPUT: u64 = 300;
const CHANGES_AT_ONCE_MAX: u64 = 4;

/// Tries every file of the folders in the program's arguments. A panic names the file and the change.
pub fn main(target: impl Fn(&[u8])) -> ExitCode {
    let folders: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if folders.is_empty() {
        eprintln!("name one or more folders of inputs");
        return ExitCode::from(2);
    }
    match folders
        .iter()
        .map(|folder| replay(folder, &target))
        .sum::<io::Result<u64>>()
    {
        // As libFuzzer names it.
        Ok(executions) => {
            eprintln!("stat::number_of_executed_units: {executions}");
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("the inputs cannot be read: {error}");
            ExitCode::FAILURE
        }
    }
}

/// The number of inputs tried.
fn replay(folder: &Path, target: &impl Fn(&[u8])) -> io::Result<u64> {
    let mut paths = std::fs::read_dir(folder)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    let mut executions = 0;
    for path in paths {
        let input = std::fs::read(&path)?;
        for change in 0..=CHANGES_PER_INPUT {
            let at = At { path: &path, change };
            target(&changed(&input, change));
            std::mem::forget(at);
            executions += 1;
        }
    }
    Ok(executions)
}

/// The input that is being tried; named when it is dropped, by a panic.
struct At<'a> {
    path: &'a Path,
    change: u64,
}

impl Drop for At<'_> {
    fn drop(&mut self) {
        eprintln!("found by change {} of {}", self.change, self.path.display());
    }
}

/// The input with some bytes flipped, replaced, cut off, doubled or added; change 0 is none.
fn changed(input: &[u8], change: u64) -> Vec<u8> {
    let mut bytes = input.to_vec();
    let mut numbers = Numbers(change.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let changes = if change == 0 {
        0
    } else {
        1 + change % CHANGES_AT_ONCE_MAX
    };
    for _ in 0..changes {
        let at = numbers.below(bytes.len() + 1);
        let byte = numbers.below(256) as u8;
        match numbers.below(6) {
            0 => bytes.truncate(at),
            1 => bytes.insert(at, byte),
            2 => bytes.extend_from_within(at..),
            3 | 4 if at < bytes.len() => bytes[at] = byte,
            _ if at < bytes.len() => bytes[at] ^= 1 << (byte % 8),
            _ => bytes.push(byte),
        }
    }
    bytes
}

/// Numbers that look random: SplitMix64.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_are_many_and_the_same_each_time() {
        let input = b"some bytes of an input";
        let all: std::collections::BTreeSet<Vec<u8>> = (0..=CHANGES_PER_INPUT)
            .map(|change| changed(input, change))
            .collect();
        assert!(all.len() > 250, "{}", all.len());
        assert!(all.contains(&input[..]));
        assert_eq!(changed(input, 77), changed(input, 77));
    }
}
